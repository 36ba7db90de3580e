package session

import (
	"encoding/binary"
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// caller is a session that called lately on a connection, for Transaction.
type caller struct {
	s  *session // nil: none
	c  *conn
	id int // of the connection
}

// maxCallers is how many of them are remembered, each at one place.
const maxCallers = 64

// callerAt is the place of a session on a connection.
func (r *Recorder) callerAt(id *[16]byte, connection int) *caller {
	// Servers count in either half, in either order of the bytes.
	h := (binary.LittleEndian.Uint64(id[:]) ^ binary.LittleEndian.Uint64(id[8:]) ^ uint64(connection)) * 0x9e3779b97f4a7c15
	return &r.callers[h>>(64-bits.Len(maxCallers-1))]
}

// brief is Transaction, without the lock, for a usual COMPOUND that tells no more of sessions than which slot it used, and what it moved. It
// takes that from the messages, and has the View decode no operation. It returns false, and has changed nothing, if more has to be done.
func (r *Recorder) brief(v *rpc.View) bool {
	tx := v.Tx
	o, a := openingOf(tx.Call.Payload), answerOf(tx.Reply.Payload)
	if o == nil || a == nil || !o.sequences() || !plainly(v) {
		return false
	}
	id := tx.Connection.Resolve().ID
	x := r.callerAt(o.id(), id)
	if x.s == nil || x.id != id || x.s.id != *o.id() {
		return false
	}
	x.s.calls++
	x.s.meter.count(x.c.count(v))
	x.s.slot(o.slot(), o.highest())
	x.s.series.add(tx.Call.First.Time, tx.Reply.Last.Time, slots(o.highest()), slots(a.target()))
	return true
}

// slot notes the slot of a call, and the highest one in use as the client says.
func (s *session) slot(slot, highest uint32) {
	s.fore.used = max(s.fore.used, slots(slot))
	s.fore.said = max(s.fore.said, slots(highest))
}

// plainly reports whether none of the operations behind the first one tells of sessions or layouts.
func plainly(v *rpc.View) bool {
	list := v.Numbers()
	if len(list) == 0 {
		return false
	}
	for _, n := range list[1:] {
		if n < telling && 1<<n&tells != 0 {
			return false
		}
	}
	return true
}

// tells has a bit for each operation that compound looks at, all of which have numbers below telling.
const (
	tells = 1<<nfs4.OP_SEQUENCE | 1<<nfs4.OP_EXCHANGE_ID | 1<<nfs4.OP_CREATE_SESSION | 1<<nfs4.OP_BIND_CONN_TO_SESSION | 1<<nfs4.OP_DESTROY_SESSION |
		1<<nfs4.OP_LAYOUTGET | 1<<nfs4.OP_LAYOUTRETURN | 1<<nfs4.OP_GETDEVICEINFO
	telling = 64
)
