package transaction

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/memory"
)

// queue lets ended transactions out in the order of their first packets.
type queue struct {
	head, tail *Transaction   // those in it, in that order
	held       int            // of these have ended
	heldBytes  int            // of these, in bytes
	ready      []*Transaction // these, with Options.OnCompletion

	opt    *Options
	memory *memory.Account
	out    func(*Transaction) // takes one that has left the queue
}

// put puts a transaction in its place.
func (q *queue) put(tx *Transaction) {
	first := tx.First().Number
	after := q.tail
	for after != nil && after.First().Number > first {
		after = after.prev
	}
	tx.prev = after
	if after == nil {
		tx.next = q.head
		q.head = tx
	} else {
		tx.next = after.next
		after.next = tx
	}
	if tx.next == nil {
		q.tail = tx
	} else {
		tx.next.prev = tx
	}
}

// remove takes a transaction out.
func (q *queue) remove(tx *Transaction) {
	if tx.prev == nil {
		q.head = tx.next
	} else {
		tx.prev.next = tx.next
	}
	if tx.next == nil {
		q.tail = tx.prev
	} else {
		tx.next.prev = tx.prev
	}
	tx.prev, tx.next = nil, nil
}

// pop removes the first one.
func (q *queue) pop() {
	tx := q.head
	if q.head = tx.next; q.head == nil {
		q.tail = nil
	} else {
		q.head.prev, tx.next = nil, nil
	}
}

// ended notes that a transaction has ended.
func (q *queue) ended(tx *Transaction) {
	if q.opt.OnCompletion {
		q.ready = append(q.ready, tx)
	}
	q.held++
	q.heldBytes += tx.size
}

// drain lets ended transactions out: up to the first one that is still open, or all when too many wait.
func (q *queue) drain() {
	if q.opt.OnCompletion {
		q.release()
		return
	}
	for q.head != nil && q.head.finished {
		q.let(q.head)
	}
	if q.held > q.opt.Held || q.heldBytes > q.memory.Limit()/4 {
		q.release()
	}
}

// release lets all ended transactions out.
func (q *queue) release() {
	if q.opt.OnCompletion {
		q.completed()
		return
	}
	for tx := q.head; tx != nil && q.held > 0; {
		next := tx.next
		if tx.finished {
			q.let(tx)
		}
		tx = next
	}
}

// completed lets out those that have ended since the last time, as a rule one. To look for them among all that are open would take time in
// proportion to these.
func (q *queue) completed() {
	if len(q.ready) > 1 {
		slices.SortFunc(q.ready, func(a, b *Transaction) int {
			return cmp.Or(cmp.Compare(a.First().Number, b.First().Number), cmp.Compare(a.serial, b.serial))
		})
	}
	for i, tx := range q.ready {
		q.ready[i] = nil
		q.let(tx)
	}
	q.ready = q.ready[:0]
}

// let lets an ended transaction out.
func (q *queue) let(tx *Transaction) {
	q.remove(tx)
	q.held--
	q.heldBytes -= tx.size
	q.out(tx)
}
