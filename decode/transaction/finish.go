package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// expire ends transactions whose reply has waited too long.
func (t *Tracker) expire(now int64) {
	for tx := t.acks.overdue(now, t.open); tx != nil; tx = t.acks.overdue(now, t.open) {
		t.finish(tx)
	}
}

// evict gives up the oldest open transaction. It returns false if there is none.
func (t *Tracker) evict(why NoteKind) bool {
	for tx := t.queue.head; tx != nil; tx = tx.next {
		if tx.finished {
			continue
		}
		if !tx.replied { // else it only waits for an acknowledgement
			tx.note(why)
			t.Stats.Evicted++
		}
		t.finish(tx)
		return true
	}
	return false
}

// finish ends a transaction and emits what can be emitted.
func (t *Tracker) finish(tx *Transaction) {
	if tx.finished || t.finishFast(tx) {
		return
	}
	t.end(tx)
	t.queue.drain()
}

// end computes what is known of a transaction only at its end.
func (t *Tracker) end(tx *Transaction) {
	tx.finished = true
	t.open--
	h := halfOf(tx.Connection, tx.From)
	if h == nil {
		h = t.halves.of(tx.Connection, tx.From)
	}
	h.open.remove(tx)
	if tx.replied {
		h.recent.add(tx)
	}
	if t.tracer != nil || !t.completeFast(tx) {
		t.complete(tx, h)
	}
	t.halves.countTables(h)
	if tx.counted {
		h.settled(tx, rdma.Ref{})
	}
	if !tx.unproven {
		t.count(tx)
	}
	t.queue.ended(tx)
}

// count notes that a transaction has ended: all is known of it.
func (t *Tracker) count(tx *Transaction) {
	if t.opt.Ended != nil {
		if tx.blame == nil {
			t.storage.roomForBlame(tx)
		}
		t.opt.Ended(tx)
	}
	calls := &of(tx.Connection.Resolve()).calls
	calls.Ended++
	switch tx.State {
	case NoReply:
		calls.Unanswered++
	case NoCall, Incomplete:
		calls.Incomplete++
	}
}

// complete finds out what is missing of a transaction of h, and what its messages are.
func (t *Tracker) complete(tx *Transaction, h *half) {
	if tx.Kernel != nil {
		t.recorded(tx)
		return
	}
	if len(tx.segments) > 0 {
		h.memory.withdraw(tx.segments)
	}
	if len(tx.served) > 0 {
		owner := t.halves.of(tx.Connection, tx.From.Other())
		owner.memory.withdraw(tx.served)
		t.halves.countTables(owner)
		if !tx.Done.Seen() {
			tx.note(DoneNotSeen)
		}
	}
	switch {
	case !tx.Reply.Seen():
		tx.State = NoReply
	case !tx.Call.Seen():
		tx.State = NoCall
		if tx.bySide {
			tx.note(AssumedReply)
		}
	}
	tx.unproven = tx.unproven && !h.proven
	tx.judge()
	t.events.attribute(tx, &t.storage, t.tracer)
	tx.order()
	if t.tracer != nil {
		tx.sortPackets()
	}
	assembleCall(tx)
	assembleReply(tx)
	if !tx.Named {
		tx.named()
	}
	account(tx)
	t.storage.listed(tx)
}

// out emits a transaction that has left the queue, and takes its memory back.
func (t *Tracker) out(tx *Transaction) {
	tx.resolve()
	if tx.unproven {
		t.storage.memory.Add(-tx.size)
		t.Stats.OtherSends++
		if t.opt.Withdrawn != nil {
			t.opt.Withdrawn(tx)
		}
		t.pool.recycle(tx)
		return
	}
	t.give(tx)
}

// give emits a transaction that nothing of the tracker points to any more.
func (t *Tracker) give(tx *Transaction) {
	t.storage.memory.Add(-tx.size)
	tx.gen = 0 // what still points here must not touch it any more
	if t.opt.Detach {
		tx.Connection = copyOf(tx.Connection)
		t.emit(tx)
		return
	}
	t.emit(tx)
	t.pool.recycle(tx)
}

// Recycle takes back a transaction that was emitted with Options.Detach.
func (t *Tracker) Recycle(tx *Transaction) { t.pool.recycle(tx) }
