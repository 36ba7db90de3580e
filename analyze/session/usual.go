package session

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// recent is a client without sessions that called lately, on a connection.
type recent struct {
	c    *conn
	g    *client // nil: none yet
	k    *rdma.Connection
	from rdma.Side
}

// of reports whether a call is one of the same client on the same connection.
func (x *recent) of(tx *transaction.Transaction) bool {
	k := tx.Connection
	return x.g != nil && x.c != nil && x.k == k && x.from == tx.From && k.MergedInto == nil && x.g.version == tx.Version &&
		x.g.client == k.Ends[tx.From].Addr && x.g.server == k.Ends[tx.From.Other()].Addr
}

// recentOf is the place of a connection in Recorder.recent.
func (r *Recorder) recentOf(k *rdma.Connection) *recent {
	return &r.recent[uint(k.ID)%uint(len(r.recent))]
}

// usual is Message for calls of versions without sessions, with Apart, and without the lock: the table of open calls, and who
// has how many of them open, concern nobody but the goroutine that decodes. It returns false, and has changed nothing, if
// more has to be done: see Message.
func (r *Recorder) usual(tx *transaction.Transaction, reply bool, s *rdma.Send) bool {
	f := &r.few
	i := -1
	if f.used != 0 {
		i = f.find(tx)
	}
	open := r.pending()
	switch {
	case reply && i >= 0:
		if r.paid >= open+maxSpare {
			return false
		}
		f.remove(i)
		f.of.c.closed()
		return true
	case reply:
		return r.open.Len() == 0 || r.usualReply(tx, s)
	}
	x := r.recentOf(tx.Connection)
	if i >= 0 || open >= r.paid || !x.of(tx) {
		return false
	}
	if r.open.Len() > 0 {
		if _, known := r.open.Get(tx); known {
			return false
		}
	}
	x.c.begun()
	if !f.add(x, tx) {
		o := r.put(tx, tx.XID, tx.Call.First.Number)
		o.c, o.g = x.c, x.g
	}
	return true
}

// sole is usual for a call while no other is open: most are. Message does the same for its reply.
func (r *Recorder) sole(tx *transaction.Transaction) bool {
	f := &r.few
	x := r.recentOf(tx.Connection)
	if f.used != 0 || r.open.Len() != 0 || r.paid == 0 || !x.of(tx) {
		return false
	}
	if f.of != x {
		f.of = x
	}
	f.used = 1
	c := &f.calls[0]
	c.tx, c.xid, c.first = tx, tx.XID, tx.Call.First.Number
	x.c.begun()
	return true
}

// SetLone implements transaction.LoneHandler.
func (r *Recorder) SetLone(l *transaction.Lone) { r.lone = l }

// usualReply is usual for the reply to a call in the table.
func (r *Recorder) usualReply(tx *transaction.Transaction, s *rdma.Send) bool {
	o, known := r.open.Get(tx)
	switch {
	case !known:
	case o.g == nil || r.paid >= r.pending()+maxSpare:
		return false
	default:
		r.open.Take(tx)
		r.ended(o, s.Last.Time)
		r.recycle(o)
	}
	return true
}
