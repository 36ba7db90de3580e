package transaction

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Closed implements rdma.Handler: calls without a reply get none.
func (t *Tracker) Closed(c *rdma.Connection, ref rdma.Ref) {
	for side := range rdma.Side(2) {
		h := halfOf(c, side)
		if h == nil {
			continue
		}
		t.sent.closed(h)
		t.halves.peers.Add(t.sent.grown())
		t.halves.forget(h)
		if h.open.n == 0 {
			continue
		}
		// In the order of the list, so that the output is the same each time.
		all := t.scratch[:0]
		for _, tx := range h.open.all() {
			all = append(all, tx)
		}
		slices.SortFunc(all, func(a, b *Transaction) int {
			return cmp.Or(cmp.Compare(a.First().Number, b.First().Number), cmp.Compare(a.gen, b.gen))
		})
		for _, tx := range all {
			if !tx.replied && c.Terminated != "" {
				tx.Note(Note{Kind: ConnectionEnded, Why: c.Terminated})
			}
			t.end(tx)
		}
		clear(all)
		if t.scratch = all[:0]; cap(all) > maxScratch {
			t.scratch = nil
		}
	}
	// What is remembered of the connection goes; the connection itself may be
	// kept by those who list it.
	for side := range rdma.Side(2) {
		if h := halfOf(c, side); h != nil {
			t.halves.forget(h)
			of(c).halves[side] = nil
			t.halves.recycle(h)
		}
	}
	t.queue.drain()
}

// maxScratch is how many transactions Closed sorts without making room each
// time.
const maxScratch = 1024

// Flush ends all transactions at the end of the capture.
func (t *Tracker) Flush() {
	for tx := t.queue.head; tx != nil; tx = tx.next {
		if !tx.finished {
			t.end(tx)
		}
	}
	t.queue.drain()
}
