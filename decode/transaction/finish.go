package transaction

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
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

// over reports whether the transaction has ended by other means.
func (w *waiter) over() bool { return w.tx.gen != w.gen || w.tx.finished }

// push adds a transaction. open is how many there are at most that still wait:
// where they do not expire, because time stands still, the rest is swept out.
func (r *ring) push(tx *Transaction, gen uint64, open int) {
	if r.head > 64 || len(r.q) > 1024 {
		r.tidy(open)
	}
	r.q = append(r.q, waiter{tx, gen})
}

// tidy makes room for push, if there is much that does not wait.
func (r *ring) tidy(open int) {
	switch {
	case r.head > 64 && r.head > len(r.q)/2:
		n := copy(r.q, r.q[r.head:])
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	case len(r.q)-r.head > 1024+2*open:
		n := 0
		for _, w := range r.q[r.head:] {
			if !w.over() {
				r.q[n] = w
				n++
			}
		}
		clear(r.q[n:])
		r.q, r.head = r.q[:n], 0
	}
}

// left takes out a transaction that has ended, if it is the one that was pushed last: then nobody has to look at it again.
func (r *ring) left(tx *Transaction) {
	if n := len(r.q) - 1; n >= r.head && r.q[n].tx == tx {
		r.q = r.q[:n]
	}
}

// expire ends transactions whose reply has waited too long.
func (t *Tracker) expire(now int64) {
	for t.waiting.head < len(t.waiting.q) {
		w := t.waiting.q[t.waiting.head]
		if !w.over() && w.tx.replied {
			if now < w.tx.waitingUntil {
				break
			}
			if w.tx.missed() {
				w.tx.waitingUntil += slowWait
				t.overdue.push(w.tx, w.gen, t.open)
			} else {
				t.finish(w.tx)
			}
		}
		t.waiting.head++
	}
	t.waiting.empty()
	for t.overdue.head < len(t.overdue.q) {
		w := t.overdue.q[t.overdue.head]
		if !w.over() {
			if now < w.tx.waitingUntil {
				break
			}
			t.finish(w.tx)
		}
		t.overdue.head++
	}
	t.overdue.empty()
}

// empty begins anew if nothing waits.
func (r *ring) empty() {
	if r.head == len(r.q) {
		r.q, r.head = r.q[:0], 0
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
		h = t.half(tx.Connection, tx.From)
	}
	h.open.remove(tx)
	if tx.replied {
		h.ends(tx)
	}
	if t.tracing || !t.completeFast(tx) {
		t.complete(tx, h)
	}
	t.tables(h)
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
	t.grew(tx, blameSize)
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
		owner := t.half(tx.Connection, tx.From.Other())
		owner.memory.withdraw(tx.served)
		t.tables(owner)
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
	t.troubles(tx)
	tx.order()
	if t.tracing {
		tx.sortPackets()
	}
	t.assembleCall(tx)
	t.assembleReply(tx)
	if !tx.Named {
		t.named(tx)
	}
	t.account(tx)
	t.listed(tx)
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

// incomplete marks a transaction of which a part is missing.
func (tx *Transaction) incomplete(n Note) {
	if tx.State == Complete {
		tx.State = Incomplete
	}
	tx.Note(n)
}

func chunkIncomplete(p NotePart, captured, want uint64) Note {
	return Note{Kind: ChunkIncomplete, Part: p, N: captured, Of: want}
}

// assembleCall makes the RPC call out of its Position-Zero Read chunk.
func (t *Tracker) assembleCall(tx *Transaction) {
	m := &tx.Call
	if !m.Seen() {
		return
	}
	if m.Cut {
		tx.incomplete(Note{Kind: MessageCut, Part: PartCall, N: uint64(len(m.raw)), Of: uint64(m.SendBytes)})
	}
	if !m.Transport {
		m.Bytes = uint64(m.PayloadLength)
		return
	}
	inline := 0
	if m.Header.Inline() {
		inline = m.Header.PayloadLength
	}
	if m.Header.Plain() {
		m.Bytes = uint64(inline)
		return
	}
	t.assembleCallChunks(tx, inline)
}

// assembleCallChunks is assembleCall for a call with chunks, besides inline bytes in its Send.
func (t *Tracker) assembleCallChunks(tx *Transaction, inline int) {
	m := &tx.Call
	h := &m.Header
	zero := h.PositionZero()
	m.Bytes = uint64(inline) + zero.Length
	for _, c := range h.ReadChunks() {
		if c.Position != 0 || h.Version == rpcrdma.Version2 {
			// Padding is part of the message, not of the chunk (RFC 8166,
			// section 3.4.5).
			m.Bytes += (c.Length + 3) &^ 3
		}
	}
	if h.Cut {
		m.Bytes = 0 // it is not known what else is in the lists
	}
	if len(zero.Segments) == 0 {
		return
	}
	if h.Type == rpcrdma.TypeMsg && inline > 0 {
		tx.note(PositionZeroInline)
		return
	}
	m.Payload = m.long.prefix()
	m.PayloadLength = int(min(zero.Length, 1<<30))
	if uint64(len(m.Payload)) < zero.Length {
		tx.incomplete(chunkIncomplete(PartPositionZero, uint64(len(m.Payload)), zero.Length))
	}
}

// assembleReply makes the RPC reply out of its Reply chunk.
func (t *Tracker) assembleReply(tx *Transaction) {
	m := &tx.Reply
	if !m.Seen() {
		return
	}
	if m.Cut {
		tx.incomplete(Note{Kind: MessageCut, Part: PartReply, N: uint64(len(m.raw)), Of: uint64(m.SendBytes)})
	}
	if !m.Transport {
		m.Bytes = uint64(m.PayloadLength)
		return
	}
	if m.Header.Inline() {
		m.Bytes = uint64(m.Header.PayloadLength)
		if m.Header.Plain() {
			return
		}
	}
	t.assembleReplyChunks(tx)
}

// assembleReplyChunks is assembleReply for a reply that may have chunks; the inline part has been counted.
func (t *Tracker) assembleReplyChunks(tx *Transaction) {
	m := &tx.Reply
	h := &m.Header
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
	if h.Cut {
		m.Bytes = 0
	}
	if h.Type != rpcrdma.TypeNoMsg && !(h.Version == rpcrdma.Version2 && h.Type == rpcrdma.TypeReplyExternal) &&
		len(m.long.b) == 0 {
		return
	}
	if h.Type == rpcrdma.TypeMsg && h.Inline() {
		return
	}
	want := written
	zero := h.PositionZero()
	if zero.Length > 0 {
		want = zero.Length
	}
	p := m.long.prefix()
	if uint64(len(p)) > want {
		p = p[:want:want]
	}
	m.Payload = p
	m.PayloadLength = int(min(want, 1<<30))
	if zero.Length > 0 && uint64(len(p)) < want {
		tx.incomplete(chunkIncomplete(PartReplyPositionZero, uint64(len(p)), want))
	} else if uint64(len(p)) < want && tx.Call.Seen() {
		tx.incomplete(chunkIncomplete(PartReplyChunk, uint64(len(p)), want))
	}
}

// account compares what was moved with what the headers say.
func (t *Tracker) account(tx *Transaction) {
	if tx.State == NoCall || !tx.Call.Transport {
		return
	}
	if len(tx.segments)+len(tx.served) == 0 && len(tx.Reply.Header.Writes) == 0 {
		return // nothing to compare
	}
	var offered, read uint64
	for i := range tx.segments {
		if s := &tx.segments[i]; s.kind == ReadList {
			offered += uint64(s.length)
			read += s.cover.bytes
		}
	}
	if offered > read && tx.Reply.Seen() {
		if tx.unplaced {
			tx.incomplete(Note{Kind: ReadsUnplaced, Part: PartReadList, N: read, Of: offered})
		} else if tx.Reads > tx.ReadsByRequester {
			tx.incomplete(chunkIncomplete(PartReadList, read, offered))
		} else if tx.Reply.refuses() {
			tx.note(NotPulled)
		} else { // the responder has to read all arguments before it executes the call (RFC 8166, section 3.4.5.1)
			tx.incomplete(Note{Kind: NotPulled})
		}
	}
	if !tx.Reply.Seen() || !tx.Reply.Transport || tx.Reply.Header.Type == rpcrdma.TypeError {
		return
	}
	offered, read = 0, 0
	for i := range tx.served {
		offered += uint64(tx.served[i].length)
		read += tx.served[i].cover.bytes
	}
	if offered > read {
		if tx.ReadsByRequester == 0 {
			tx.note(ReplyNotRead)
		} else {
			tx.incomplete(chunkIncomplete(PartReplyReads, read, offered))
		}
	}
	t.compare(tx)
}

// compare checks the lengths of the reply's chunks against the bytes that were
// written into them. The segments of a call stand in the order of its lists,
// so that one pass does.
func (t *Tracker) compare(tx *Transaction) {
	h := &tx.Reply.Header
	var want, have, written uint64
	at := -1 // the chunk that is added up
	settle := func(kind ChunkKind) {
		part := PartWriteChunk
		if kind == ReplyChunk {
			part = PartReplyChunk
		}
		if have < want {
			tx.incomplete(chunkIncomplete(part, have, want))
		}
		if written > (want+3)&^3 && !h.Cut { // padding may be written, and does not count (RFC 8166, section 3.4.6.2)
			tx.Note(Note{Kind: WrittenBeyondReply, Part: part, N: written, Of: want})
		}
		want, have, written = 0, 0, 0
	}
	kind := WriteList
	for i := range tx.segments {
		s := &tx.segments[i]
		if s.kind == ReadList {
			continue
		}
		if s.chunk != at || s.kind != kind {
			settle(kind)
			at, kind = s.chunk, s.kind
		}
		var c rpcrdma.WriteChunk
		switch {
		case kind == ReplyChunk:
			c = h.Reply
		case s.chunk < len(h.Writes):
			c = h.Writes[s.chunk]
		}
		if s.index < len(c) {
			want += uint64(c[s.index].Length)
			have += min(s.cover.bytes, uint64(c[s.index].Length))
		}
		written += s.cover.bytes
	}
	settle(kind)
	tx.unoffered()
}

// unoffered notes bytes that the reply counts in Write chunks, or segments of them, that the call did not offer: a reply returns the chunks
// of its call (RFC 8166, section 3.4.6).
func (tx *Transaction) unoffered() {
	call, reply := &tx.Call.Header, &tx.Reply.Header
	if call.Cut {
		return
	}
	var n uint64
	for i, c := range reply.Writes {
		offered := 0
		if i < len(call.Writes) {
			offered = len(call.Writes[i])
		}
		n += c[min(offered, len(c)):].Length()
	}
	if n > 0 {
		tx.incomplete(Note{Kind: ReplyUnoffered, N: n})
	}
}

// out emits a transaction that has left the queue, and takes its memory back.
func (t *Tracker) out(tx *Transaction) {
	tx.resolve()
	if tx.unproven {
		t.memory.Add(-tx.size)
		t.Stats.OtherSends++
		if t.opt.Withdrawn != nil {
			t.opt.Withdrawn(tx)
		}
		t.recycle(tx)
		return
	}
	t.give(tx)
}

// give emits a transaction that nothing of the tracker points to any more.
func (t *Tracker) give(tx *Transaction) {
	t.memory.Add(-tx.size)
	tx.gen = 0 // what still points here must not touch it any more
	if t.opt.Detach {
		tx.Connection = copyOf(tx.Connection)
		t.emit(tx)
		return
	}
	t.emit(tx)
	t.recycle(tx)
}

// Recycle takes back a transaction that was emitted with Options.Detach.
func (t *Tracker) Recycle(tx *Transaction) { t.recycle(tx) }
