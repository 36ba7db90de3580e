package transaction

import "github.com/rpcrdma/toolkit/decode/rpcrdma"

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
func assembleCall(tx *Transaction) {
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
	assembleCallChunks(tx, inline)
}

// assembleCallChunks is assembleCall for a call with chunks, besides inline bytes in its Send.
func assembleCallChunks(tx *Transaction, inline int) {
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
func assembleReply(tx *Transaction) {
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
	assembleReplyChunks(tx)
}

// assembleReplyChunks is assembleReply for a reply that may have chunks; the inline part has been counted.
func assembleReplyChunks(tx *Transaction) {
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
func account(tx *Transaction) {
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
	compare(tx)
}

// compare checks the lengths of the reply's chunks against the bytes that were
// written into them. The segments of a call stand in the order of its lists,
// so that one pass does.
func compare(tx *Transaction) {
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
