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

// evict gives up the oldest open transaction other than except. It returns
// false if there is none.
func (t *Tracker) evict(except *Transaction, why NoteKind) bool {
	for tx := t.queue.head; tx != nil; tx = tx.next {
		if tx.finished || tx == except {
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
	t.queue.ended(tx)
	h := halfOf(tx.Connection, tx.From)
	if h == nil {
		h = t.halves.of(tx.Connection, tx.From)
	}
	h.open.remove(tx)
	if tx.replied {
		h.ends(tx)
	}
	if t.tracer != nil || !t.completeFast(tx) {
		t.complete(tx, h)
	}
	t.halves.countTables(h)
	if tx.counted {
		h.settled(tx, rdma.Ref{})
	}
	if tx.unproven {
		return
	}
	if t.opt.Ended != nil {
		if tx.blame == nil {
			t.roomForBlame(tx)
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

// roomForBlame makes room for what Options.Ended may say.
func (t *Tracker) roomForBlame(tx *Transaction) {
	tx.blame = new(Blame)
	t.storage.grew(tx, blameSize)
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

// ends remembers a transaction that has ended with a reply.
func (h *half) ends(tx *Transaction) {
	e := h.ended()
	e.set, e.xid, e.print = true, tx.XID, tx.Reply.print()
	if !tx.Call.Cut && !tx.Reply.Cut {
		e.gen = tx.gen
	}
	if tx.Call.Seen() {
		e.origin, e.number, e.first = tx.from(), tx.Call.First.Number, tx.FirstSent()
		e.sum = tx.sum()
	}
}

// ended returns an empty entry for a transaction that has ended with a reply, in place of that of the oldest.
func (h *half) ended() *recent {
	const mask = len(h.recent) - 1 // a power of two
	e := &h.recent[h.at&mask]
	*e = recent{}
	h.at = (h.at + 1) & mask
	return e
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
