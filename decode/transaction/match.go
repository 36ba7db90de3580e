package transaction

import "github.com/rpcrdma/toolkit/decode/rdma"

// This file tells which transaction a Send belongs to, from top to bottom:
//
//	Send ── fastSend: all at once, for most
//	     └─ any ── read: what does it say it is?
//	          ├─ isCall  → call:   sent again, of a reply that came before it, or a new transaction
//	          ├─ isReply → answer: of an open call, sent again, or of a call that was not captured
//	          ├─ isDone  → done:   the end of an open transaction (read-read model)
//	          └─ nothing of a transaction: counted
//
// What is kept of a Send once that is known (its bytes, the memory that it offers,
// its packets, what all that takes) is in record.go.

// Send implements rdma.Handler.
func (t *Tracker) Send(c *rdma.Connection, s *rdma.Send) (tag rdma.Tag) {
	t.enforce()
	if t.acks.any() {
		t.expire(s.Last.Time)
	}
	if k, ok := c.Upper.(*conn); ok {
		if tx, reply := t.fastSend(k, c, s); tx != nil {
			if t.opt.Message != nil {
				t.opt.Message(tx, reply, s)
			}
			return tx.sendTag(reply)
		}
	}
	tag = t.any(c, s)
	if t.opt.Message != nil || t.opt.Unmatched != nil {
		t.report(tag, c, s)
	}
	if c.Fabric == rdma.UDP {
		if tx, reply := t.OfSend(tag); reply && tx.Call.Seen() {
			t.finish(tx) // nothing acknowledges it
			return rdma.Tag{}
		}
	}
	return tag
}

// report tells of a Send, which got this tag.
func (t *Tracker) report(tag rdma.Tag, c *rdma.Connection, s *rdma.Send) {
	if tx, reply := t.OfSend(tag); tx == nil {
		if t.opt.Unmatched != nil {
			t.opt.Unmatched(c, s)
		}
	} else if t.opt.Message != nil {
		t.opt.Message(tx, reply, s)
	}
}

// any is Send for whatever it is.
func (t *Tracker) any(c *rdma.Connection, s *rdma.Send) (tag rdma.Tag) {
	m, truncated := t.reader.read(c, s)
	if m.transport {
		t.protocol.proves(c, s, m.direction, &t.reader)
	}
	switch m.direction {
	case isCall:
		if m.bySide && t.wasCall(c, s, m.xid) {
			tag = t.answer(c, s, m)
		} else {
			tag = t.call(c, s, m)
		}
	case isReply:
		tag = t.answer(c, s, m)
	case isDone:
		t.done(c, s, m.xid)
	case isControl, isNoRPC:
		t.protocol.other(c, s, m, &t.reader)
	}
	if truncated {
		t.truncated(c, tag)
	}
	return tag
}

// wasCall reports whether s is the reply to what was taken for one, because of the side that sent it: a callback of which the capture
// holds too little. A reply comes after its call.
func (t *Tracker) wasCall(c *rdma.Connection, s *rdma.Send, xid uint32) bool {
	tx := t.halves.of(c, s.From).open.get(xid)
	if tx == nil || !tx.bySide || tx.Call.Seen() || tx.Reply.Last.Number >= s.First.Number {
		return false
	}
	tx.bySide = false
	t.turn(tx)
	tx.note(AssumedCall)
	return true
}

// call finds the transaction of a call, or begins one.
func (t *Tracker) call(c *rdma.Connection, s *rdma.Send, m said) rdma.Tag {
	h := t.halves.of(c, s.From)
	copied := false
	if old := h.open.get(m.xid); old != nil {
		switch {
		case t.reader.mayBeCallOf(old):
			return t.late(old, s, m.transport, m.sure)
		case old.sameCall(s):
			t.repeatedCall(old, s)
			return old.sendTag(false)
		case m.transport && t.reader.registeredAnew(old):
			t.offerAnew(old, s)
			return old.sendTag(false)
		case m.transport || c.Fabric == rdma.TCP || c.Fabric == rdma.UDP: // else it may be no call
			copied = old.Call.SendBytes == s.Length && sameSecured(old.Call.raw, s.Data, s.Length)
			switch {
			case old.replied:
			case copied:
				old.note(SecuredAgain)
			default:
				old.note(XIDReused)
			}
			t.finish(old)
		}
	}
	tx := t.begin(h, c, s.From, m.xid)
	t.recordCall(tx, h, s, m)
	if copied {
		tx.note(SecuredCopy)
	}
	return tx.sendTag(false)
}

// sameCall reports whether s repeats the call of an open transaction.
func (tx *Transaction) sameCall(s *rdma.Send) bool {
	if tx.Call.SendBytes != s.Length || len(tx.Call.raw) > len(s.Data) {
		return false
	}
	// The credit word may differ.
	a, b := tx.Call.raw, s.Data[:len(tx.Call.raw)]
	return len(a) >= 12 && string(a[:8]) == string(b[:8]) && string(a[12:]) == string(b[12:])
}

// sameAsCaptured is how many bytes of two RPC messages have to be equal, at least, for one to be the other again: up to the credential.
const sameAsCaptured = 28

// answer finds the call of a reply, or begins a transaction without one. A reply
// that was seen before belongs to none.
func (t *Tracker) answer(c *rdma.Connection, s *rdma.Send, m said) rdma.Tag {
	h := t.halves.of(c, s.From.Other())
	tx := h.open.get(m.xid)
	switch {
	case tx == nil:
		same, other := h.recent.answered(m.xid, s)
		if same {
			t.Stats.Duplicates++
			return rdma.Tag{}
		}
		tx = t.begin(h, c, s.From.Other(), m.xid)
		tx.bySide = m.bySide
		tx.Reply.First = s.First
		t.queue.put(tx)
		if other { // the XID was answered before, in other words
			tx.note(SecondReply)
		}
	case tx.late && t.split(tx, h):
		if m.transport {
			t.reader.decode(s)
		}
	case tx.replied:
		t.Stats.Duplicates++
		t.repeatedReply(tx, s)
		return rdma.Tag{}
	}
	t.recordReply(tx, h, s, m)
	return tx.sendTag(true)
}

// done takes an RDMA_DONE: the requester has read the chunks of the reply.
func (t *Tracker) done(c *rdma.Connection, s *rdma.Send, xid uint32) {
	t.Stats.Dones++
	if tx := t.halves.of(c, s.From).open.get(xid); tx != nil {
		tx.Done = s.Last
		t.tracer.send(tx, DonePart, s, false)
		if tx.replied {
			t.finish(tx)
		}
	}
}
