package transaction

import (
	"encoding/binary"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// A capture may hold a reply before its call: receive queues, capture points and
// files that are merged have clocks and buffers of their own. A reply without a
// call therefore waits for that, as long as one waits for its acknowledgement.

// maxAheadReplies is how many replies wait for their calls at once. In a capture
// that has one direction only they all do.
const maxAheadReplies = 1024

const waiterSize = int(unsafe.Sizeof(waiter{}))

// ahead lets a reply wait for its call. The one that has waited longest is given
// up for it.
func (t *Tracker) ahead(tx *Transaction) {
	if len(t.early) < maxAheadReplies {
		before := cap(t.early)
		t.early = append(t.early, waiter{tx, tx.gen})
		t.memory.Add((cap(t.early) - before) * waiterSize)
		return
	}
	w := &t.early[t.earlyAt]
	t.earlyAt = (t.earlyAt + 1) % len(t.early)
	old := *w
	*w = waiter{tx, tx.gen}
	if !old.over() && !old.tx.Call.Seen() {
		t.finish(old.tx)
	}
}

// overtook reports whether an open transaction is a reply whose call the message
// at hand may be: it names the memory that the reply names.
func (t *Tracker) overtook(old *Transaction) bool {
	if !old.replied || old.Call.Seen() || old.turned {
		return false
	}
	if !old.Reply.Transport {
		return true
	}
	r, h := &old.Reply.Header, &t.peek
	if r.Type == rpcrdma.TypeError || r.Cut || h.Cut {
		return true
	}
	// A reply repeats the lists of its call (RFC 8166, section 4.3).
	if len(r.Writes) > len(h.Writes) || r.HasReply && !h.HasReply || len(r.Reply) > len(h.Reply) {
		return false
	}
	for i, w := range r.Writes {
		if len(w) > len(h.Writes[i]) || !sameHandles(w, h.Writes[i]) {
			return false
		}
	}
	return sameHandles(r.Reply, h.Reply)
}

func sameHandles(used, offered rpcrdma.WriteChunk) bool {
	for i := range used {
		if used[i].Handle != offered[i].Handle || used[i].Offset != offered[i].Offset {
			return false
		}
	}
	return true
}

// late takes the call of a reply that has come before it.
func (t *Tracker) late(tx *Transaction, s *rdma.Send, transport, sure bool) rdma.Tag {
	tx.late = true
	t.queue.remove(tx)
	t.setMessage(tx, &tx.Call, s, transport)
	t.queue.put(tx)
	if transport {
		t.offer(tx)
		t.written(tx)
		t.overtaken(tx)
	}
	if sure {
		t.named(tx)
	}
	t.traceSend(tx, CallPart, s, false)
	t.resent(tx, t.half(tx.Connection, tx.From))
	// The call may get a reply of its own: see split.
	tx.waitingUntil = max(tx.waitingUntil, s.Last.Time+ackWait)
	return tx.sendTag(false)
}

// split takes the reply of a call that came after what was taken for its reply: that one answers an earlier copy of the call, which the
// capture lacks, and becomes a transaction of its own. It reports false if there is no room for it.
func (t *Tracker) split(tx *Transaction, h *half) bool {
	if t.open >= t.opt.Open {
		return false // else begin could give up tx
	}
	r := &tx.Reply
	early := t.begin(h, tx.Connection, tx.From, tx.XID)
	s := rdma.Send{
		From: tx.From.Other(), Data: r.raw, Length: r.SendBytes, First: r.First, Last: r.Last, Packets: r.Packets, Invalidates: r.Invalidates, Handle: r.Handle,
	}
	if r.Transport {
		t.decode(&s)
	}
	t.setMessage(early, &early.Reply, &s, r.Transport)
	t.queue.put(early)
	early.replied, early.acked, early.Times.Ack = true, tx.acked, tx.Times.Ack
	t.moveEarlier(tx, early)
	if t.opt.Message != nil {
		t.opt.Message(early, true, &s)
	}
	t.end(early)
	h.open.put(tx.XID, tx) // begin has put the other one in its place

	if len(tx.served) > 0 {
		t.half(tx.Connection, tx.From.Other()).memory.withdraw(tx.served)
		tx.served = tx.served[:0]
	}
	tx.late, tx.replied, tx.acked, tx.Times.Ack = false, false, false, rdma.Ref{}
	tx.Reply.recycle()
	return true
}

// moveEarlier gives the operations and packets before the call of tx to the transaction of the reply before it.
func (t *Tracker) moveEarlier(tx, early *Transaction) {
	first := tx.Call.First.Number
	ops := tx.Operations
	tx.Operations = tx.Operations[:0]
	tx.Times.FirstPush, tx.Times.LastPush = rdma.Ref{}, rdma.Ref{}
	for _, o := range ops {
		to := tx
		if o.First.Number < first {
			to = early
			t.list(early, o)
		} else {
			tx.Operations = append(tx.Operations, o)
		}
		if o.Kind != rdma.Write {
			continue
		}
		if to == early {
			tx.Writes, early.Writes = tx.Writes-1, early.Writes+1
			tx.WriteBytes -= uint64(o.Bytes)
			early.WriteBytes += uint64(o.Bytes)
		}
		if !to.Times.FirstPush.Seen() {
			to.Times.FirstPush = o.First
		}
		to.Times.LastPush = o.Last
	}
	for i := range tx.segments {
		if g := &tx.segments[i]; g.kind != ReadList {
			g.cover.spans, g.cover.bytes = g.cover.spans[:0], 0
		}
	}
	t.written(tx)
	packets := tx.Packets
	tx.Packets = tx.Packets[:0]
	for _, p := range packets {
		if p.Ref.Number < first {
			early.Packets = append(early.Packets, p)
			t.grew(early, packetSize)
		} else {
			tx.Packets = append(tx.Packets, p)
		}
	}
}

// written counts the Writes that came before the call on the memory that it
// offers.
func (t *Tracker) written(tx *Transaction) {
	for i := range tx.Operations {
		o := &tx.Operations[i]
		if o.Kind != rdma.Write {
			continue
		}
		for j := range tx.segments {
			g := &tx.segments[j]
			if g.kind == ReadList || g.handle != o.Handle || !g.holds(o.Offset, o.Bytes) {
				continue
			}
			before := cap(g.cover.spans)
			from := o.Offset - g.offset
			g.cover.add(from, from+uint64(o.Bytes))
			t.grew(tx, (cap(g.cover.spans)-before)*spanSize)
			break
		}
	}
}

// order notes what is odd about the order of call and reply.
func (tx *Transaction) order() {
	if !tx.Call.Seen() || !tx.Reply.Seen() {
		return
	}
	switch d := tx.Call.First.Time - tx.Reply.Last.Time; {
	case d > 0:
		tx.Note(Note{Kind: ReplyStampedEarlier, N: uint64(d)})
	case tx.late && d == 0:
		tx.note(ReplyFirstSameTime)
	case tx.late && (tx.Call.Transport || tx.Call.Last.Number > tx.Reply.First.Number): // else it was only hidden: see rdma.Send.Claimed
		tx.note(ReplyFirst)
	}
}

// printed is how many bytes of a message its print covers.
const printed = 64

// printOf is what is remembered of a message to recognise a repetition: a hash of
// its first bytes without the credits, which may differ, and its length.
func printOf(b []byte, length int) uint64 {
	b = b[:min(len(b), printed)]
	h := uint64(length)
	if len(b) >= 8 {
		h ^= binary.LittleEndian.Uint64(b)
		b = b[min(len(b), 12):]
	}
	return wire.Sum64(h, b)
}

// print returns the print of a message. Only replies that have been answered are asked for it, at the end of their transaction.
func (m *Message) print() uint64 { return printOf(m.raw, m.SendBytes) }
