package session

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// recent is who called lately on a connection: a client without sessions, or a session.
type recent struct {
	c    *conn
	g    *client  // nil: none yet, or a session
	s    *session // nil: none yet, or a client without sessions
	k    *rdma.Connection
	from rdma.Side
}

// on reports whether a call came the same way.
func (x *recent) on(tx *transaction.Transaction) bool {
	k := tx.Connection
	return x.c != nil && x.k == k && x.from == tx.From && k.MergedInto == nil
}

// of reports whether a call is one of the same client without sessions, and came the same way.
func (x *recent) of(tx *transaction.Transaction) bool {
	k := tx.Connection
	return x.g != nil && x.on(tx) && x.g.version == tx.Version &&
		x.g.client == k.Ends[tx.From].Addr && x.g.server == k.Ends[tx.From.Other()].Addr
}

// recentOf is the place of a connection in Recorder.recent.
func (r *Recorder) recentOf(k *rdma.Connection) *recent {
	return &r.recent[uint(k.ID)%uint(len(r.recent))]
}

// usual is Message with Apart or SlotsOnly, and without the lock, for calls of versions without sessions, and for most others: the table of open
// calls, the slots in use, and who has how many calls open, concern nobody but the goroutine that decodes. It returns false, and has changed
// nothing, if more has to be done: see Message.
func (r *Recorder) usual(tx *transaction.Transaction, reply bool, s *rdma.Send) bool {
	f := &r.few
	i := f.place(tx)
	c := &f.calls[i]
	switch known := c.tx == tx; {
	case !reply:
		return !known && r.usualCall(tx, s)
	case !known:
		return r.open.Len() == 0 || r.usualReply(tx, s)
	case r.paid > maxSpare && r.paid >= r.pending()+maxSpare:
		return false
	}
	x := c.of
	x.c.closed()
	if x.s != nil {
		x.s.replied(r, c.slot, tx, s.Last.Time, bare)
	}
	f.remove(i)
	return true
}

// usualCall is usual for a call that is not in few.
func (r *Recorder) usualCall(tx *transaction.Transaction, s *rdma.Send) bool {
	x := r.recentOf(tx.Connection)
	slot := uint32(0)
	switch {
	case r.pending() >= r.paid:
		return false
	case tx.Version < 4:
		if !x.of(tx) {
			return false
		}
	default:
		o := openingOf(tx.Call.Payload)
		switch {
		case o == nil || tx.Procedure != compoundProcedure:
			return false
		case !o.sequences():
			if o.minor() == 0 && r.slots {
				_, known := r.open.Get(tx)
				return !known // see began
			}
			if o.minor() != 0 || !x.of(tx) {
				return false
			}
		case x.s == nil || !x.on(tx) || *o.id() != x.s.id || int(o.slot()) >= len(x.s.fore.busy):
			return false
		default:
			slot = o.slot()
		}
	}
	if r.open.Len() > 0 {
		if _, known := r.open.Get(tx); known {
			return false
		}
	}
	x.c.begun()
	if x.s != nil {
		if at := s.First.Time; r.live { // see idlest
			x.c.last, x.s.meter.last = max(x.c.last, at), max(x.s.meter.last, at)
		}
		tx.Slots = x.s.fore.begin(r, nil, slot, s.First.Time) // there is room for it
	}
	if i := r.few.place(tx); r.few.used>>i&1 == 0 {
		r.few.set(i, x, tx, slot)
	} else {
		o := r.put(tx, tx.XID, tx.Call.First.Number)
		o.c, o.g, o.s, o.slot = x.c, x.g, x.s, slot
	}
	return true
}

// compoundProcedure is the number of COMPOUND.
const compoundProcedure = 1

// sole is usual for a call while no other is open: most are. Message does the same for its reply.
func (r *Recorder) sole(tx *transaction.Transaction) bool {
	f := &r.few
	x := r.recentOf(tx.Connection)
	if f.used != 0 || r.open.Len() != 0 || r.paid == 0 || !x.of(tx) {
		return false
	}
	f.set(f.place(tx), x, tx, 0)
	x.c.begun()
	return true
}

// usualReply is usual for the reply to a call in the table.
func (r *Recorder) usualReply(tx *transaction.Transaction, s *rdma.Send) bool {
	o, known := r.open.Get(tx)
	switch {
	case !known:
	case o.back || o.g == nil && o.s == nil || r.paid >= r.pending()+maxSpare:
		return false
	default:
		r.open.Take(tx)
		r.ended(o, s.Last.Time)
		if o.s != nil {
			o.s.replied(r, o.slot, tx, s.Last.Time, o.guard)
		}
		r.recycle(o)
	}
	return true
}
