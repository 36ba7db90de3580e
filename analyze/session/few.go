package session

import (
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// few are open calls of clients of a version without sessions, and of sessions. Each has one place, which depends on its XID: those of a client are
// consecutive. What finds its place taken is in Recorder.open, and whatever is not done by usual first moves all of them there: see collect.
type few struct {
	used  uint16 // which of calls are in use, a bit each
	calls [fewCalls]fewCall
}

const fewCalls = 16

type fewCall struct {
	tx    *transaction.Transaction // nil: none
	of    *recent                  // in Recorder.recent
	xid   uint32
	slot  uint32 // of the session
	first uint64
}

// place is where a call is, if it is one of them. Clients count in either order of the bytes.
func (f *few) place(tx *transaction.Transaction) uint { return uint(tx.XID+tx.XID>>24) % fewCalls }

// has reports whether a call is one of them.
func (f *few) has(tx *transaction.Transaction) bool { return f.calls[f.place(tx)].tx == tx }

// only reports whether a call is the only one of them.
func (f *few) only(tx *transaction.Transaction) bool {
	i := f.place(tx)
	return f.used == 1<<i && f.calls[i].tx == tx
}

// set puts a call at its place.
func (f *few) set(i uint, x *recent, tx *transaction.Transaction, slot uint32) {
	f.used |= 1 << i
	c := &f.calls[i]
	c.tx, c.of, c.xid, c.slot, c.first = tx, x, tx.XID, slot, tx.Call.First.Number
}

// remove removes a call.
func (f *few) remove(i uint) {
	f.calls[i].tx = nil
	f.used &^= 1 << i
}

// collect moves them to the table.
func (r *Recorder) collect() {
	f := &r.few
	for ; f.used != 0; f.used &= f.used - 1 {
		c := &f.calls[bits.TrailingZeros16(f.used)%fewCalls]
		o := r.put(c.tx, c.xid, c.first)
		o.c, o.g, o.s, o.slot = c.of.c, c.of.g, c.of.s, c.slot
		c.tx = nil
	}
}

// pending is how many calls are open.
func (r *Recorder) pending() int { return r.open.Len() + bits.OnesCount16(r.few.used) }
