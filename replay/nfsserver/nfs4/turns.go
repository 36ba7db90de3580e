package nfs4

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// turns takes an operation's turn among the requests of an owner of NFSv4.0.
type turns struct {
	objects *objects
	reply   *reply
	turn    state.Turn
}

// begin takes an operation's turn. It returns true if the operation has already been answered.
func (x *turns) begin(turn state.Turn, r *state.Replay, st status) (status, bool) {
	if st != ok {
		return st, true
	}
	x.turn = turn
	if r != nil {
		return x.replay(r), true
	}
	return ok, false
}

// replay answers a repeated operation with the result of the first one.
func (x *turns) replay(r *state.Replay) status {
	out := x.reply.call.Out
	x.reply.call.Out = append(out[:len(out)-4], r.Result...)
	if r.Moved {
		x.objects.setFH(r.File)
	}
	x.turn.Release()
	x.turn = state.Turn{}
	x.reply.whole = true
	return status(binary.BigEndian.Uint32(r.Result))
}
