package transaction

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// A capture may hold a reply before its call: receive queues, capture points and
// files that are merged have clocks and buffers of their own. A reply without a
// call therefore waits for that, as long as one waits for its acknowledgement.

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
	t.storage.setMessage(tx, &tx.Call, s, transport, &t.reader)
	t.queue.put(tx)
	if transport {
		t.chunks.offer(tx)
		t.chunks.written(tx)
		t.chunks.overtaken(tx)
	}
	if sure {
		tx.named()
	}
	t.tracer.send(tx, CallPart, s, false)
	t.sent.resent(tx, t.halves.of(tx.Connection, tx.From), &t.pool.entries)
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
		t.reader.decode(&s)
	}
	t.storage.setMessage(early, &early.Reply, &s, r.Transport, &t.reader)
	t.queue.put(early)
	early.replied, early.acked, early.Times.Ack = true, tx.acked, tx.Times.Ack
	t.chunks.moveEarlier(tx, early)
	if t.opt.Message != nil {
		t.opt.Message(early, true, &s)
	}
	t.end(early)
	h.open.put(tx.XID, tx) // begin has put the other one in its place

	if len(tx.served) > 0 {
		t.halves.of(tx.Connection, tx.From.Other()).memory.withdraw(tx.served)
		tx.served = tx.served[:0]
	}
	tx.late, tx.replied, tx.acked, tx.Times.Ack = false, false, false, rdma.Ref{}
	tx.Reply.recycle()
	return true
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
