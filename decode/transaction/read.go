package transaction

import (
	"encoding/binary"
	"slices"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
)

// reader tells what a Send says it is.
type reader struct {
	halves *halves        // whose open calls a message may answer
	header rpcrdma.Header // of the Send at hand
	err    error          // of decoding that
}

// said is what a Send says about itself. Four fields are the most that Go passes in registers.
type said struct {
	xid       uint32
	direction direction
	sure      bool // direction is no guess
	bySide    bool // direction follows from nothing but the side that sent it
	transport bool // it has a transport header: reader.header
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

// read tells what a Send is, by its own bytes as far as they say it. truncated means that no more than the XID was captured.
func (r *reader) read(c *rdma.Connection, s *rdma.Send) (m said, truncated bool) {
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
		case may && !version && !r.answered(c, s) && r.known(c, s):
			// It begins as another one did before: that is not an XID.
			return said{direction: isNoRPC}, false
		case may:
			truncated = !version
		case !unknownVersion(b):
			return said{direction: isNoRPC}, false
		}
	}
	m.transport, m.xid = true, binary.BigEndian.Uint32(b)
	m.direction, m.sure, m.bySide = r.direction(c, s)
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

// answered reports whether the other side has an open call with the XID of s.
func (r *reader) answered(c *rdma.Connection, s *rdma.Send) bool {
	tx := r.halves.of(c, s.From.Other()).open.get(binary.BigEndian.Uint32(s.Data))
	return tx != nil && !tx.replied
}

// known reports whether the sender has used the XID of s before.
func (r *reader) known(c *rdma.Connection, s *rdma.Send) bool {
	h := r.halves.of(c, s.From)
	xid := binary.BigEndian.Uint32(s.Data)
	return h.open.get(xid) != nil || h.recent.has(xid)
}

// direction decodes the transport header into reader.header and tells calls from
// replies. In a Position-Zero Read chunk the RPC message is read only later (see
// disclose); until then the direction may be a guess: sure is false if the capture
// holds too little of the message to tell.
func (r *reader) direction(c *rdma.Connection, s *rdma.Send) (d direction, sure, bySide bool) {
	r.decode(s)
	if d, ok := declared(&r.header, s, r.err); ok {
		return d, true, false
	}
	return r.guess(c, s)
}

// decode decodes the transport header of a Send into reader.header.
func (r *reader) decode(s *rdma.Send) {
	if r.header.Length > keepHeader {
		r.header = rpcrdma.Header{} // no need to keep the lists of a giant
	}
	r.err = r.header.Decode(s.Data, s.Length)
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
func (r *reader) guess(c *rdma.Connection, s *rdma.Send) (d direction, sure, bySide bool) {
	h := &r.header
	tx := r.halves.of(c, s.From.Other()).open.get(h.XID)
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

// mayBeCallOf reports whether an open transaction is a reply whose call the message
// at hand may be: it names the memory that the reply names.
func (r *reader) mayBeCallOf(old *Transaction) bool {
	if !old.replied || old.Call.Seen() || old.turned {
		return false
	}
	if !old.Reply.Transport {
		return true
	}
	used, h := &old.Reply.Header, &r.header
	if used.Type == rpcrdma.TypeError || used.Cut || h.Cut {
		return true
	}
	// A reply repeats the lists of its call (RFC 8166, section 4.3).
	if len(used.Writes) > len(h.Writes) || used.HasReply && !h.HasReply || len(used.Reply) > len(h.Reply) {
		return false
	}
	for i, w := range used.Writes {
		if len(w) > len(h.Writes[i]) || !sameHandles(w, h.Writes[i]) {
			return false
		}
	}
	return sameHandles(used.Reply, h.Reply)
}

// registeredAnew reports whether the call at hand retransmits the call of an open transaction with memory that was registered again: the handles
// and offsets of its chunks differ, everything else is equal.
func (r *reader) registeredAnew(tx *Transaction) bool {
	a, b := &tx.Call.Header, &r.header
	if tx.replied || !tx.Call.Transport || a.Plain() || b.Plain() || a.Cut || b.Cut || r.err != nil || a.Version != b.Version || a.Type != b.Type ||
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

// sumOf is what sum is of a transaction whose call has these bytes, as far as a Send tells it: ok is false if some of them are in a chunk,
// or were not captured.
func (r *reader) sumOf(data []byte, length int) (sum uint64, ok bool) {
	h := &r.header
	r.err = h.Decode(data, length)
	if !h.Inline() || h.PositionZero().Length > 0 || len(h.Payload) < min(h.PayloadLength, summed) {
		return 0, false
	}
	return wire.Sum64(0, h.Payload[:min(len(h.Payload), summed)]) ^ uint64(h.PayloadLength)<<32, true
}

// differsFromEnded is differs for a transaction that has ended: the tracker still has the prints of the messages of the last ones. A print
// covers only the beginning of a message. data is the payload of the Send.
func (r *reader) differsFromEnded(c *rdma.Connection, from rdma.Side, tag rdma.Tag, length int, data []byte) bool {
	for side := range rdma.Side(2) {
		h := halfOf(c, side)
		if h == nil {
			continue
		}
		for i := range h.recent.list {
			e := &h.recent.list[i]
			switch {
			case e.gen != tag.W0>>numberBits:
			case side != from: // a reply
				return len(data) >= min(length, printed) && e.print != printOf(data, length)
			default:
				sum, ok := r.sumOf(data, length)
				return ok && e.sum != sum
			}
		}
	}
	return false
}
