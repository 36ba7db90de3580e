package session

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// brief takes a COMPOUND that tells no more of sessions than which slot it used, and what it moved. It reads that from the
// messages, so that no operation has to be decoded. It returns false, and has changed nothing, if more has to be done.
func (r *Recorder) brief(v *rpc.View) bool {
	if !v.Usual() || !plainly(v) {
		return false
	}
	tx := v.Tx
	q, _, g, ok := peekCall(tx.Call.Payload, false)
	if !ok {
		return false
	}
	a, ok := peekReply(tx.Reply.Payload, g)
	if !ok {
		return false
	}
	if x := r.session(tx.Connection, q.session, tx.Call.First); x != nil {
		x.took(r, v, q.slot, q.highest)
		x.status(a.flags)
		x.series.add(tx.Call.First.Time, tx.Reply.Last.Time, slots(q.highest), slots(a.target))
	}
	return true
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
