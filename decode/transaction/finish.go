package transaction

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// ring is a queue of transactions that wait for the acknowledgement of their
// reply.
type ring struct {
	q    []waiter
	head int
}

type waiter struct {
	tx  *Transaction
	gen uint64
}

func (r *ring) push(tx *Transaction, gen uint64) {
	if r.head > 64 && r.head > len(r.q)/2 {
		n := copy(r.q, r.q[r.head:])
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	}
	r.q = append(r.q, waiter{tx, gen})
}

// expire ends transactions whose reply has waited too long.
func (t *Tracker) expire(now int64) {
	for t.waiting.head < len(t.waiting.q) {
		w := t.waiting.q[t.waiting.head]
		if w.tx.gen == w.gen && !w.tx.finished {
			if now < w.tx.waitingUntil {
				return
			}
			if len(w.tx.served) > 0 && !w.tx.Done.Seen() {
				w.tx.Note("RDMA_DONE not seen")
			}
			t.finish(w.tx)
		}
		t.waiting.head++
	}
	t.waiting.q, t.waiting.head = t.waiting.q[:0], 0
}

// evict gives up the oldest open transaction.
func (t *Tracker) evict() {
	for tx := t.head; tx != nil; tx = tx.next {
		if !tx.finished {
			tx.Note("given up: too many open calls")
			t.Stats.Evicted++
			t.finish(tx)
			return
		}
	}
}

// finish ends a transaction and emits what can be emitted.
func (t *Tracker) finish(tx *Transaction) {
	if tx.finished {
		return
	}
	t.end(tx)
	t.drain()
}

// end computes what is known of a transaction only at its end.
func (t *Tracker) end(tx *Transaction) {
	tx.finished = true
	t.open--
	t.held++
	h := t.half(tx.Connection, tx.From)
	if h.open[tx.XID] == tx {
		delete(h.open, tx.XID)
	}
	if tx.replied {
		h.recent[h.at] = recent{tx.XID, true}
		h.at = (h.at + 1) % len(h.recent)
	}
	for i := range tx.segments {
		h.memory.remove(&tx.segments[i])
	}
	if len(tx.served) > 0 {
		mem := &t.half(tx.Connection, tx.From.Other()).memory
		for i := range tx.served {
			mem.remove(&tx.served[i])
		}
	}
	switch {
	case !tx.Reply.Seen():
		tx.State = NoReply
	case !tx.Call.Seen():
		tx.State = NoCall
	}
	t.assembleCall(tx)
	t.assembleReply(tx)
	if !tx.Named {
		t.named(tx)
	}
	t.account(tx)
}

// incomplete marks a transaction of which a part is missing.
func (tx *Transaction) incomplete(note string) {
	if tx.State == Complete {
		tx.State = Incomplete
	}
	tx.Note(note)
}

// assembleCall makes the RPC call out of its Position-Zero Read chunk.
func (t *Tracker) assembleCall(tx *Transaction) {
	m := &tx.Call
	if !m.Seen() {
		return
	}
	if m.Cut {
		tx.incomplete(fmt.Sprintf("call cut by the capture: %d of %d bytes", len(m.raw), m.SendBytes))
	}
	if !m.Transport {
		m.Bytes = uint64(m.PayloadLength)
		return
	}
	h := &m.Header
	zero := h.PositionZero()
	inline := 0
	if h.Inline() {
		inline = h.PayloadLength
	}
	m.Bytes = uint64(inline) + zero.Length
	for _, c := range h.ReadChunks() {
		if c.Position != 0 || h.Version == rpcrdma.Version2 {
			// Padding is part of the message, not of the chunk (RFC 8166,
			// section 3.4.5).
			m.Bytes += (c.Length + 3) &^ 3
		}
	}
	if len(zero.Segments) == 0 {
		return
	}
	if h.Type == rpcrdma.TypeMsg && inline > 0 {
		tx.Note("RDMA_MSG with a Position-Zero Read chunk")
		return
	}
	m.Payload = m.long.prefix()
	m.PayloadLength = int(min(zero.Length, 1<<30))
	if uint64(len(m.Payload)) < zero.Length {
		tx.incomplete(fmt.Sprintf("Position-Zero Read chunk: %d of %d bytes captured", len(m.Payload), zero.Length))
	}
}

// assembleReply makes the RPC reply out of its Reply chunk.
func (t *Tracker) assembleReply(tx *Transaction) {
	m := &tx.Reply
	if !m.Seen() {
		return
	}
	if m.Cut {
		tx.incomplete(fmt.Sprintf("reply cut by the capture: %d of %d bytes", len(m.raw), m.SendBytes))
	}
	if !m.Transport {
		m.Bytes = uint64(m.PayloadLength)
		return
	}
	h := &m.Header
	if h.Inline() {
		m.Bytes = uint64(h.PayloadLength)
	}
	for _, c := range h.Writes {
		m.Bytes += (c.Length() + 3) &^ 3
	}
	for _, c := range h.ReadChunks() {
		m.Bytes += (c.Length + 3) &^ 3
	}
	written := h.Reply.Length()
	if written > 0 {
		m.Bytes += written
	}
	if h.Type != rpcrdma.TypeNoMsg && !(h.Version == rpcrdma.Version2 && h.Type == rpcrdma.TypeReplyExternal) &&
		len(m.long.b) == 0 {
		return
	}
	if h.Type == rpcrdma.TypeMsg && h.Inline() {
		return
	}
	want := written
	if zero := h.PositionZero(); zero.Length > 0 {
		want = zero.Length
	}
	p := m.long.prefix()
	if uint64(len(p)) > want {
		p = p[:want:want]
	}
	m.Payload = p
	m.PayloadLength = int(min(want, 1<<30))
	if uint64(len(p)) < want && tx.Call.Seen() {
		tx.incomplete(fmt.Sprintf("Reply chunk: %d of %d bytes captured", len(p), want))
	}
}

// account compares what was moved with what the headers say.
func (t *Tracker) account(tx *Transaction) {
	if tx.State == NoCall || !tx.Call.Transport {
		return
	}
	var offered, read uint64
	for i := range tx.segments {
		if s := &tx.segments[i]; s.kind == ReadList {
			offered += uint64(s.length)
			read += s.cover.bytes
		}
	}
	if offered > read && tx.Reply.Seen() {
		if tx.Reads == 0 {
			tx.Note("Read list not pulled by the responder, or its Reads are not in the capture")
		} else {
			tx.incomplete(fmt.Sprintf("Read list: %d of %d bytes captured", read, offered))
		}
	}
	if !tx.Reply.Seen() || !tx.Reply.Transport || tx.Reply.Header.Type == rpcrdma.TypeError {
		return
	}
	for ci, c := range tx.Reply.Header.Writes {
		t.compare(tx, c, WriteList, ci, "Write chunk")
	}
	t.compare(tx, tx.Reply.Header.Reply, ReplyChunk, 0, "Reply chunk")
}

// compare holds the lengths of a reply's chunk against the bytes that were
// written into it.
func (t *Tracker) compare(tx *Transaction, c rpcrdma.WriteChunk, kind ChunkKind, index int, name string) {
	var want, have uint64
	i := 0
	for si := range tx.segments {
		s := &tx.segments[si]
		if s.kind != kind || kind == WriteList && s.chunk != index {
			continue
		}
		if i < len(c) {
			want += uint64(c[i].Length)
			have += min(s.cover.bytes, uint64(c[i].Length))
		}
		i++
	}
	if have < want {
		tx.incomplete(fmt.Sprintf("%s: %d of %d bytes captured", name, have, want))
	}
}

// drain emits ended transactions: in the order of their first packets up to
// the first one that is still open, or all when too many wait.
func (t *Tracker) drain() {
	if t.opt.OnCompletion {
		t.release()
		return
	}
	for t.head != nil && t.head.finished {
		t.out(t.head)
	}
	if t.held > t.opt.Held || t.bytes > t.opt.HeldBytes {
		t.release()
	}
}

// release emits all ended transactions.
func (t *Tracker) release() {
	for tx := t.head; tx != nil && t.held > 0; {
		next := tx.next
		if tx.finished {
			t.out(tx)
		}
		tx = next
	}
}

// out emits a transaction and takes its memory back.
func (t *Tracker) out(tx *Transaction) {
	if tx.prev == nil {
		t.head = tx.next
	} else {
		tx.prev.next = tx.next
	}
	if tx.next == nil {
		t.tail = tx.prev
	} else {
		tx.next.prev = tx.prev
	}
	tx.prev, tx.next = nil, nil
	t.held--
	t.bytes -= tx.size
	t.emit(tx)
	t.recycle(tx)
}

// recycle readies a transaction's memory for another one.
func (t *Tracker) recycle(tx *Transaction) {
	if len(t.free) >= 4096 || cap(tx.segments) > 256 {
		tx.gen = 0 // tags that still point here are stale
		return
	}
	segments, served := tx.segments[:0], tx.served[:0]
	ops := tx.Operations[:0]
	if cap(ops) > 1024 {
		ops = nil
	}
	chunks := tx.chunkData[:0]
	if cap(chunks) > 16 {
		chunks = nil
	}
	call, reply := tx.Call, tx.Reply
	callTag, replyTag := tx.callTag, tx.replyTag
	notes := tx.Notes[:0]
	*tx = Transaction{
		segments: segments, served: served, Operations: ops, chunkData: chunks,
		callTag: callTag, replyTag: replyTag, Notes: notes,
	}
	tx.Call.recycle(&call)
	tx.Reply.recycle(&reply)
	t.free = append(t.free, tx)
}

func (m *Message) recycle(old *Message) {
	m.Header = old.Header
	m.raw = old.raw[:0]
	if cap(m.raw) > keepBuffer {
		m.raw = nil
	}
	m.long = old.long
	m.long.reset(keepBuffer)
}
