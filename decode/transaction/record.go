package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// What is kept of a Send once its transaction is known: see match.go. Here lie the
// copies, the lists of packets and the count of what all that takes.

// recordCall takes the first message of a new transaction of h.
func (t *Tracker) recordCall(tx *Transaction, h *half, s *rdma.Send, m said) {
	h.newest = tx.gen
	t.storage.setMessage(tx, &tx.Call, s, m.transport, &t.reader)
	t.queue.put(tx)
	if m.transport {
		h.asked(tx)
		t.chunks.offer(tx)
		t.chunks.overtaken(tx)
	}
	if m.sure {
		tx.assumed = m.transport && !tx.Call.Header.Inline() && forwardSide(tx.Connection) == unknownSide
		tx.named()
	} else {
		tx.note(AssumedCall)
	}
	t.tracer.send(tx, CallPart, s, false)
	t.sent.resent(tx, h, &t.pool.entries)
}

// repeatedCall notes that the call of an open transaction was sent again.
func (t *Tracker) repeatedCall(tx *Transaction, s *rdma.Send) {
	tx.Retransmits += s.Packets
	tx.Call.shared = true
	t.tracer.send(tx, CallPart, s, true)
	tx.note(CallRepeated)
}

// offerAnew notes that the call of an open transaction was sent again with other memory, which takes the place of the first: to register it
// anew, the requester has invalidated that.
func (t *Tracker) offerAnew(tx *Transaction, s *rdma.Send) {
	t.repeatedCall(tx, s)
	m := &tx.Call
	first, last, original, packets, again := m.First, m.Last, m.original, m.Packets, tx.Retransmits
	t.halves.of(tx.Connection, tx.From).memory.withdraw(tx.segments)
	tx.segments = tx.segments[:0]
	t.storage.setMessage(tx, m, s, true, &t.reader)
	m.First, m.Last, m.original, m.Packets, tx.Retransmits = first, last, original, packets, again
	t.chunks.offer(tx)
}

// recordReply takes the reply of a transaction of h.
func (t *Tracker) recordReply(tx *Transaction, h *half, s *rdma.Send, m said) {
	t.storage.setMessage(tx, &tx.Reply, s, m.transport, &t.reader)
	if m.transport {
		h.settled(tx, s.Last)
	}
	t.tracer.send(tx, ReplyPart, s, false)
	t.reply(tx)
}

// repeatedReply notes that an open transaction was answered again.
func (t *Tracker) repeatedReply(tx *Transaction, s *rdma.Send) {
	tx.Retransmits += s.Packets
	tx.Reply.shared = true
	t.tracer.send(tx, ReplyPart, s, true)
	if tx.Reply.same(s) {
		tx.note(ReplyRepeated)
	} else {
		tx.note(ReplyRepeatedOther)
	}
}

// same reports whether s has the content of m, as far as both were captured. Credits may differ: each message says how many there are now
// (RFC 8166, section 3.3.1).
func (m *Message) same(s *rdma.Send) bool {
	n := min(len(m.raw), len(s.Data))
	a, b := m.raw[:n], s.Data[:n]
	if m.SendBytes != s.Length {
		return false
	}
	if m.Transport && n >= 12 {
		return string(a[:8]) == string(b[:8]) && string(a[12:]) == string(b[12:])
	}
	return string(a) == string(b)
}

// headOnly is what is kept of a large message when memory is short: enough
// for the names and numbers before the data.
const headOnly = 8 << 10

// setSend takes what is known of a Send besides its bytes.
func (m *Message) setSend(tx *Transaction, s *rdma.Send) {
	m.First, m.Last, m.original = s.First, s.Last, s.Last
	m.stamp, m.againStamp = tx.Connection.Stamp, rdma.Stamp{}
	m.Packets = s.Packets
	m.SendBytes = s.Length
	m.Cut = len(s.Data) < s.Length
	m.Invalidates, m.Handle = s.Invalidates, s.Handle
	tx.Retransmits += s.Again
}

// reply notes that the reply of tx has arrived.
func (t *Tracker) reply(tx *Transaction) {
	tx.replied = true
	h := &tx.Reply.Header
	if tx.Reply.Transport && !h.Plain() && len(h.Reads) > 0 && h.Type != rpcrdma.TypeError {
		t.chunks.serve(tx)
	}
	if !tx.Call.Seen() && tx.Reply.Transport {
		t.chunks.adopt(tx)
	}
	t.replyOfCall(tx)
	if tx.Call.Seen() {
		return
	}
	gone, grown := t.ahead.wait(tx)
	t.storage.memory.Add(grown)
	if gone != nil {
		t.finish(gone)
	}
}

// replyOfCall is reply for one without chunks, to a call that was seen: it waits for its acknowledgement.
func (t *Tracker) replyOfCall(tx *Transaction) {
	tx.replied = true
	t.acks.wait(tx, t.open)
}
