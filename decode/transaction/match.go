package transaction

import (
	"encoding/binary"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

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

// said is what a Send says about itself. Four fields are the most that Go passes in registers.
type said struct {
	xid       uint32
	direction direction
	sure      bool // direction is no guess
	bySide    bool // direction follows from nothing but the side that sent it
	transport bool // it has a transport header: Tracker.peek
}

type direction uint8

const (
	isCall direction = iota
	isReply
	isDone
	isControl // a message of version 2 about the connection itself
	isNoRPC
	isNothing // too short to be a message of TCP or UDP; not counted
)

// Send implements rdma.Handler.
func (t *Tracker) Send(c *rdma.Connection, s *rdma.Send) (tag rdma.Tag) {
	t.enforce()
	if t.waiting.head < len(t.waiting.q) || t.overdue.head < len(t.overdue.q) {
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
	if t.opt.Message != nil || t.opt.Stray != nil {
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
		if t.opt.Stray != nil {
			t.opt.Stray(c, s)
		}
	} else if t.opt.Message != nil {
		t.opt.Message(tx, reply, s)
	}
}

// any is Send for whatever it is.
func (t *Tracker) any(c *rdma.Connection, s *rdma.Send) (tag rdma.Tag) {
	m, truncated := t.read(c, s)
	if m.transport {
		t.proves(c, s, m.direction)
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
		t.other(c, s, m)
	}
	if truncated {
		t.truncated(c, tag)
	}
	return tag
}

// read tells what a Send is, by its own bytes as far as they say it. truncated means that no more than the XID was captured.
func (t *Tracker) read(c *rdma.Connection, s *rdma.Send) (m said, truncated bool) {
	b := s.Data
	if c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		switch {
		case len(b) < 8:
			return said{direction: isNothing}, false
		case binary.BigEndian.Uint32(b[4:]) != 0:
			m.direction = isReply
		}
		m.xid, m.sure = binary.BigEndian.Uint32(b), true
		return m, false
	}
	switch {
	case rpcrdma.Plausible(b, s.Length), rpcrdma.PlausibleV2(b, s.Length), rpcrdma.PlausibleV0(b, s.Length):
	default:
		switch may, version := rpcrdma.PlausibleCut(b, s.Length); {
		case may && !version && !t.answered(c, s) && t.known(c, s):
			// It begins as another one did before: that is not an XID.
			return said{direction: isNoRPC}, false
		case may:
			truncated = !version
		case !unknownVersion(b):
			return said{direction: isNoRPC}, false
		}
	}
	m.transport, m.xid = true, binary.BigEndian.Uint32(b)
	m.direction, m.sure, m.bySide = t.direction(c, s)
	return m, truncated
}

// unknownVersion recognises a call of a version that does not exist, which has to
// be answered with ERR_VERS: its fixed part and its RPC message are as in version 1.
func unknownVersion(b []byte) bool {
	if len(b) < 28+24 || binary.BigEndian.Uint32(b[4:]) > 255 || binary.BigEndian.Uint32(b[12:]) > 4 {
		return false
	}
	xid := binary.BigEndian.Uint32(b)
	// Empty lists, then a call of RPC version 2, or a reply. Perftest, for one, sends runs of zeros.
	if binary.BigEndian.Uint32(b[28:]) != xid {
		return false
	}
	kind := binary.BigEndian.Uint32(b[32:])
	return kind == 0 && binary.BigEndian.Uint32(b[36:]) == 2 || kind == 1
}

// direction decodes the transport header into Tracker.peek and tells calls from
// replies. In a Position-Zero Read chunk the RPC message is read only later (see
// disclose); until then the direction may be a guess: sure is false if the capture
// holds too little of the message to tell.
func (t *Tracker) direction(c *rdma.Connection, s *rdma.Send) (d direction, sure, bySide bool) {
	t.decode(s)
	if d, ok := declared(&t.peek, s, t.peekErr); ok {
		return d, true, false
	}
	return t.guess(c, s)
}

// decode decodes the transport header of a Send into Tracker.peek.
func (t *Tracker) decode(s *rdma.Send) {
	if t.peek.Length > keepHeader {
		t.peek = rpcrdma.Header{} // no need to keep the lists of a giant
	}
	t.peekErr = t.peek.Decode(s.Data, s.Length)
}

// declared is the direction as the message says it: by its type, or by an RPC
// message that is inline.
func declared(h *rpcrdma.Header, s *rdma.Send, err error) (d direction, ok bool) {
	switch h.Type {
	case rpcrdma.TypeDone:
		return isDone, true
	case rpcrdma.TypeError:
		return isReply, true
	}
	if h.Cut && s.Length == 16 {
		return isDone, true // no other message is so short
	}
	if h.Version == rpcrdma.Version2 {
		switch h.Type {
		case rpcrdma.TypeCallExternal, rpcrdma.TypeCallInline, rpcrdma.TypeCallMiddle:
			return isCall, true
		case rpcrdma.TypeReplyExternal, rpcrdma.TypeReplyInline, rpcrdma.TypeReplyMiddle:
			return isReply, true
		}
		return isControl, true
	}
	if h.Inline() && len(h.Payload) >= 8 {
		if binary.BigEndian.Uint32(h.Payload[4:]) == 0 {
			return isCall, true
		}
		return isReply, true
	}
	if err != nil && !h.Cut && len(s.Data) >= 36 && binary.BigEndian.Uint32(s.Data[32:]) == 0 {
		return isCall, true
	}
	return 0, false
}

// guess takes a message with the XID of an open call of the other side for its
// reply, and another one for what its sender sends as a rule.
func (t *Tracker) guess(c *rdma.Connection, s *rdma.Send) (d direction, sure, bySide bool) {
	h := &t.peek
	tx := t.half(c, s.From.Other()).open.get(h.XID)
	answers := tx != nil && !tx.replied
	side := forwardSide(c)
	cut := h.Cut || len(h.Payload) < min(h.PayloadLength, 8)
	switch {
	case h.Version == rpcrdma.Version0 && answers:
		return isReply, true, false // a long one has a list at offset 0 as well
	case len(h.Reads) > 0:
		// In the read-read model a reply has a Read list, too: its message or
		// results wait to be read.
		if answers && tx.mayBeExposed() || (tx == nil || tx.replied) && side != unknownSide && side != s.From {
			return isReply, answers, false
		}
		return isCall, true, false
	case h.Type == rpcrdma.TypeNoMsg && !h.Cut && tx == nil && side == s.From:
		return isCall, true, false // without the Read list that it needs: nothing of the other side asks for a reply
	case h.Type == rpcrdma.TypeNoMsg && !h.Cut, answers, !cut:
		return isReply, true, false // as a call it would have a Read list, or its message
	}
	// Whatever it is, it comes from where calls come from, or from where
	// replies do.
	if side == unknownSide || side == s.From {
		return isCall, side != unknownSide, true
	}
	return isReply, true, true
}

// wasCall reports whether s is the reply to what was taken for one, because of the side that sent it: a callback of which the capture
// holds too little. A reply comes after its call.
func (t *Tracker) wasCall(c *rdma.Connection, s *rdma.Send, xid uint32) bool {
	tx := t.half(c, s.From).open.get(xid)
	if tx == nil || !tx.bySide || tx.Call.Seen() || tx.Reply.Last.Number >= s.First.Number {
		return false
	}
	tx.bySide = false
	t.turn(tx)
	tx.note(AssumedCall)
	return true
}

// mayBeExposed reports whether the reply of a call may offer memory: the
// requester has offered none for it, and the responder has read all of the
// call.
func (tx *Transaction) mayBeExposed() bool {
	h := &tx.Call.Header
	if h.HasReply || len(h.Writes) > 0 {
		return false
	}
	for i := range tx.segments {
		if s := &tx.segments[i]; s.chunk < 0 && s.asked.bytes < uint64(s.length) {
			return false
		}
	}
	return true
}

// call finds the transaction of a call, or begins one.
func (t *Tracker) call(c *rdma.Connection, s *rdma.Send, m said) rdma.Tag {
	h := t.half(c, s.From)
	copied := false
	if old := h.open.get(m.xid); old != nil {
		switch {
		case t.overtook(old):
			return t.late(old, s, m.transport, m.sure)
		case old.sameCall(s):
			t.repeatedCall(old, s)
			return old.sendTag(false)
		case m.transport && t.registeredAnew(old):
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

// registeredAnew reports whether the call at hand retransmits the call of an open transaction with memory that was registered again: the handles
// and offsets of its chunks differ, everything else is equal.
func (t *Tracker) registeredAnew(tx *Transaction) bool {
	a, b := &tx.Call.Header, &t.peek
	if tx.replied || !tx.Call.Transport || a.Plain() || b.Plain() || a.Cut || b.Cut || t.peekErr != nil || a.Version != b.Version || a.Type != b.Type ||
		a.PayloadLength != b.PayloadLength || len(a.Writes) != len(b.Writes) || a.HasReply != b.HasReply || a.Reply.Length() != b.Reply.Length() {
		return false
	}
	n := min(len(a.Payload), len(b.Payload))
	if n < min(a.PayloadLength, sameAsCaptured) || string(a.Payload[:n]) != string(b.Payload[:n]) {
		return false
	}
	for i := range a.Writes {
		if a.Writes[i].Length() != b.Writes[i].Length() {
			return false
		}
	}
	return a.PositionZero().Length == b.PositionZero().Length && slices.EqualFunc(a.ReadChunks(), b.ReadChunks(), func(x, y rpcrdma.ReadChunk) bool {
		return x.Position == y.Position && x.Length == y.Length
	})
}

// answer finds the call of a reply, or begins a transaction without one. A reply
// that was seen before belongs to none.
func (t *Tracker) answer(c *rdma.Connection, s *rdma.Send, m said) rdma.Tag {
	h := t.half(c, s.From.Other())
	tx := h.open.get(m.xid)
	switch {
	case tx == nil:
		same, other := h.answered(m.xid, s)
		if same {
			t.Stats.Duplicates++
			return rdma.Tag{}
		}
		tx = t.begin(h, c, s.From.Other(), m.xid)
		tx.bySide = m.bySide
		t.recordUnasked(tx, s, other)
	case tx.late && t.split(tx, h):
		if m.transport {
			t.decode(s)
		}
	case tx.replied:
		t.Stats.Duplicates++
		t.repeatedReply(tx, s)
		return rdma.Tag{}
	}
	t.recordReply(tx, h, s, m)
	return tx.sendTag(true)
}

// answered reports whether s is the reply to an XID that ended not long ago, or
// another one to it.
func (h *half) answered(xid uint32, s *rdma.Send) (same, other bool) {
	for i := range h.recent {
		if r := &h.recent[i]; r.set && r.xid == xid {
			if r.print == printOf(s.Data, s.Length) {
				return true, other
			}
			other = true
		}
	}
	return false, other
}

// done takes an RDMA_DONE: the requester has read the chunks of the reply.
func (t *Tracker) done(c *rdma.Connection, s *rdma.Send, xid uint32) {
	t.Stats.Dones++
	if tx := t.half(c, s.From).open.get(xid); tx != nil {
		t.recordDone(tx, s)
		if tx.replied {
			t.finish(tx)
		}
	}
}
