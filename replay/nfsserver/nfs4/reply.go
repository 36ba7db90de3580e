package nfs4

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// replyHeader is the size in bytes of the RPC header of a reply, which counts towards the limits
// of a session: XID to accept_stat, with a verifier of AUTH_NONE.
const replyHeader = 24

// errorReserve is the room kept in the reply for the result of a failed operation.
const errorReserve = 12

// reply is the reply to a COMPOUND, within its limit.
type reply struct {
	call    *nfsserver.Call
	start   int              // of the results in Out
	counter int              // position of the number of operations in Out
	limit   int              // of the results in bytes, items included
	beyond  status           // the status for more than limit
	keep    bool             // the client wants the reply to be kept
	items   []transport.Item // separate items with their positions in the results; to keep them

	// Of the operation:
	before, mark int  // length of the results before it, position of its status in Out
	whole        bool // the result is complete, its status included
	tail         bool // the result has more than a status although it is an error
}

func (r *reply) reset(c *nfsserver.Call) {
	clear(r.items)
	*r = reply{call: c, items: r.items[:0]}
}

// head appends what is before the results.
func (r *reply) head(tag []byte, minor uint32, limit int) {
	c := r.call
	r.start, r.limit, r.beyond = len(c.Out), limit-replyHeader, nfs4.NFS4ERR_REP_TOO_BIG
	if minor == 0 {
		r.beyond = nfs4.NFS4ERR_RESOURCE
	}
	c.Out = xdr.AppendUint32(c.Out, 0)
	c.Out = xdr.AppendOpaque(c.Out, tag)
	r.counter = len(c.Out)
	c.Out = xdr.AppendUint32(c.Out, 0)
}

// end fills in what is before the results. It returns the reply, from its status on, if it is to be
// kept.
func (r *reply) end(done uint32, st status) []byte {
	out := r.call.Out[r.start:]
	binary.BigEndian.PutUint32(out, uint32(st))
	binary.BigEndian.PutUint32(r.call.Out[r.counter:], done)
	switch {
	case r.call.Items() == 0:
		return out
	case r.keep:
		m := transport.Message{Stream: out, Items: r.items}
		return m.AppendWhole(nil)
	}
	return nil
}

// open begins the result of an operation.
func (r *reply) open(number uint32) {
	r.before, r.whole, r.tail = r.call.Len(), false, false
	b := xdr.AppendUint32(r.call.Out, number)
	r.mark = len(b)
	r.call.Out = xdr.AppendUint32(b, 0)
}

// close ends the result of an operation. A result that is too long becomes an error.
func (r *reply) close(number uint32, st status, info *opInfo) status {
	c := r.call
	switch {
	case r.whole:
	case st == ok && info.reserve == 0 && c.Len() > r.limit:
		st = r.beyond
		fallthrough
	case st != ok && !r.tail:
		c.Undo(r.before + 4)
		c.Out = appendFailure(c.Out, number, st)
	default:
		binary.BigEndian.PutUint32(c.Out[r.mark:], uint32(st))
	}
	r.items = r.items[:min(len(r.items), c.Items())]
	return st
}

// undo takes the result of an operation back.
func (r *reply) undo() { r.call.Undo(r.before) }

// encoded is the result of the operation that has ended, from its status on.
func (r *reply) encoded() []byte { return r.call.Out[r.mark:] }

// fits reports whether the result of an operation, of at most the given number of bytes, leaves room for an
// error of a later one.
func (r *reply) fits(result int) bool { return r.before+8+result+errorReserve <= r.limit }

// appendFailure appends the result of a failed operation: only a status, except for SETATTR,
// whose result always says which attributes were set.
func appendFailure(b []byte, number uint32, st status) []byte {
	b = xdr.AppendUint32(b, uint32(st))
	if number == uint32(nfs4.OP_SETATTR) {
		b = xdr.AppendUint32(b, 0)
	}
	return b
}

// room is how many bytes the result of the operation may have, so that there is room for an
// error of a later one.
func (r *reply) room() int { return max(r.limit-r.call.Len()-errorReserve, 0) }

// data appends an eligible item to the result.
func (r *reply) data(b []byte) {
	n, at := r.call.Items(), r.call.Len()
	r.call.AddData(b)
	if r.call.Items() > n && r.keep {
		r.items = append(r.items, transport.Item{Position: uint32(at + 4), Data: b})
	}
}
