package transaction

import (
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// storage holds what belongs to transactions within the limits of Options.
type storage struct {
	opt    *Options
	memory *memory.Account
	queue  *queue // whose ended transactions can go
}

// grew notes that a transaction holds n bytes more.
func (s *storage) grew(tx *Transaction, n int) {
	if n != 0 {
		tx.size += n
		s.memory.Add(n)
	}
}

// listed counts what the lists of the headers take, and the notes.
func (s *storage) listed(tx *Transaction) {
	lists := tx.lists
	if !tx.plain() {
		lists = tx.Call.Header.Memory() + tx.Reply.Header.Memory()
	}
	s.grew(tx, lists-tx.lists+tx.noted)
	tx.lists, tx.noted = lists, 0
}

// room reports whether there is room for n bytes that can be done without. What
// has ended is emitted for it, if that is much.
func (s *storage) fits(n int) bool {
	if s.memory.Fits(n) {
		return true
	}
	if s.queue.heldBytes > s.memory.Limit()/8 {
		s.queue.release()
	}
	return s.memory.Fits(n)
}

// list adds an operation to the list of its transaction and returns its place,
// counted from 1; 0 if there is no room.
func (s *storage) addOperation(tx *Transaction, o Operation) int {
	n := len(tx.Operations)
	if n >= s.opt.Operations || n == cap(tx.Operations) && n > 16 && !s.memory.Fits(n*operationSize) {
		tx.OperationsLost++
		return 0
	}
	before := cap(tx.Operations)
	tx.Operations = append(tx.Operations, o)
	s.grew(tx, (cap(tx.Operations)-before)*operationSize)
	return n + 1
}

// again notes a packet of a transaction that was seen again.
func (s *storage) again(tx *Transaction, from rdma.Side, ref rdma.Ref) {
	tx.Retransmits++
	s.addTrouble(tx, Trouble{Kind: rdma.EventRetransmit, From: from, Ref: ref, Own: true})
}

func (s *storage) addTrouble(tx *Transaction, x Trouble) {
	if n := len(tx.Troubles); n >= maxTroubles || x.Own && n >= maxOwn {
		tx.TroublesLost++
		return
	}
	before := cap(tx.Troubles)
	tx.Troubles = append(tx.Troubles, x)
	s.grew(tx, (cap(tx.Troubles)-before)*troubleSize)
}

// store puts bytes of a chunk at their place in a buffer of the transaction.
func (s *storage) put(tx *Transaction, b *buffer, at uint64, data []byte) {
	if !s.fits(b.growth(at, len(data))) {
		tx.note(NotAssembledMemory)
		return
	}
	grown, ok := b.put(at, data, s.opt.Assembly)
	if !ok {
		tx.note(NotAssembledTooLong)
		return
	}
	s.grew(tx, grown)
}

// setMessage copies what was sent.
func (st *storage) setMessage(tx *Transaction, m *Message, s *rdma.Send, transport bool, r *reader) {
	m.setSend(tx, s)
	m.Transport = transport
	if s.Claimed != 0 {
		tx.Note(Note{Kind: RecordMark, N: uint64(s.Claimed)})
	}
	data := s.Data
	if len(data) > headOnly && !st.fits(len(data)) {
		data = data[:headOnly]
		m.Cut = true
		tx.note(MessageNotKept)
	}
	before := cap(m.raw)
	m.raw = append(m.raw[:0], data...)
	st.grew(tx, cap(m.raw)-before)
	if !transport {
		m.Payload, m.PayloadLength = m.raw, s.Length
		return
	}
	// An error here is part of the story: conformance checks report it.
	if r.err != nil {
		if r.header.Cut {
			tx.note(HeaderCut)
		} else {
			tx.Note(Note{Kind: HeaderMalformed, Why: r.err.Error()})
		}
	}
	// direction has decoded the header where the Send lies. The message takes
	// it over, with the payload in bytes of its own.
	m.Header.Take(&r.header)
	st.listed(tx)
	h := &m.Header
	if h.Payload != nil {
		at := min(h.Length, len(m.raw))
		h.Payload = m.raw[at:len(m.raw):len(m.raw)]
	}
	if h.Inline() {
		m.Payload, m.PayloadLength = h.Payload, h.PayloadLength
	}
}

// setFast is setMessage for what rpcrdma.Chunkless has accepted. The header is decoded where it is to stay.
func (st *storage) setFast(tx *Transaction, m *Message, s *rdma.Send) {
	m.setSend(tx, s)
	m.Transport = true
	if n := len(s.Data); n <= cap(m.raw) {
		m.raw = m.raw[:n]
		copy(m.raw, s.Data)
	} else {
		before := cap(m.raw)
		m.raw = append(m.raw[:0], s.Data...)
		st.grew(tx, cap(m.raw)-before)
	}
	m.Header.DecodeChunkless(m.raw, s.Length)
	m.Payload, m.PayloadLength = m.Header.Payload, m.Header.PayloadLength
	if tx.noted != 0 || !tx.plain() {
		st.listed(tx)
	}
}

// roomForBlame makes room for what Options.Ended may say.
func (s *storage) roomForBlame(tx *Transaction) {
	tx.blame = new(Blame)
	s.grew(tx, blameSize)
}
