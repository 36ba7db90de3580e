package session

import (
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// few are open calls of one client of a version without sessions, or of one session, on one connection. Most of the time no others are open. Whatever is
// not done by usual first moves them to Recorder.open: see collect.
type few struct {
	of    *recent // in Recorder.recent
	used  uint8   // which of calls are in use, a bit each
	calls [8]struct {
		tx    *transaction.Transaction
		xid   uint32
		first uint64
		slot  uint32 // of the session
	}
}

// find is the place of a call; -1 if it is not there.
func (f *few) find(tx *transaction.Transaction) int {
	for m := f.used; m != 0; m &= m - 1 {
		if i := bits.TrailingZeros8(m) & 7; f.calls[i].tx == tx {
			return i
		}
	}
	return -1
}

// add adds a call, and reports whether there is room for it.
func (f *few) add(x *recent, tx *transaction.Transaction, slot uint32) bool {
	if f.used != 0 && f.of != x || f.used == 1<<8-1 {
		return false
	}
	i := bits.TrailingZeros8(^f.used) & 7
	if f.of != x {
		f.of = x
	}
	f.used |= 1 << i
	c := &f.calls[i]
	c.tx, c.xid, c.first, c.slot = tx, tx.XID, tx.Call.First.Number, slot
	return true
}

// remove removes a call.
func (f *few) remove(i int) {
	f.calls[i].tx = nil
	f.used &^= 1 << i
}

// collect moves them to the table.
func (r *Recorder) collect() {
	f := &r.few
	for ; f.used != 0; f.used &= f.used - 1 {
		c := &f.calls[bits.TrailingZeros8(f.used)&7]
		o := r.put(c.tx, c.xid, c.first)
		o.c, o.g, o.s, o.slot = f.of.c, f.of.g, f.of.s, c.slot
		c.tx = nil
	}
}

// pending is how many calls are open.
func (r *Recorder) pending() int { return r.open.Len() + bits.OnesCount8(r.few.used) }
