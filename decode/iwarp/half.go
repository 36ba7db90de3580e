package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// mode is how a direction of a connection treats its bytes.
type mode uint8

const (
	modeStart   mode = iota // an MPA frame is expected, or nothing is known yet
	modeFraming             // an FPDU starts, or is under way
	modeSearch              // the next FPDU has to be found
	modeOff                 // not iWARP
)

// span is the set of packets that carried something.
type span struct {
	first, last rdma.Ref
	packets     int
	latest      uint64 // number of the packet that was counted last
	lowest      uint64 // number of the oldest packet
}

// count is the number of packets. Where retransmissions overlap, a packet may be counted more than once.
func (s *span) count() int {
	return int(min(uint64(s.packets), s.last.Number-s.lowest+1))
}

// add counts the packet of the next bytes. The last packet is the most recent one: if a lost segment arrives
// late, it is the one that completed the whole.
func (s *span) add(ref rdma.Ref) {
	if s.packets == 0 {
		s.first, s.last, s.lowest = ref, ref, ref.Number
	} else if ref.Number == s.latest {
		return
	} else if ref.Number > s.last.Number {
		s.last = ref
	}
	s.latest = ref.Number
	s.lowest = min(s.lowest, ref.Number)
	s.packets++
}

// until records that the span became readable only with ready, because its bytes overtook earlier ones.
func (s *span) until(ready rdma.Ref) {
	if ready.Number > s.last.Number {
		s.last = ready
	}
}

// join adds the packets of a following part.
func (s *span) join(o *span) {
	if s.packets == 0 {
		*s = *o
		return
	}
	if o.first.Number == s.latest {
		s.packets--
	}
	s.packets += o.packets
	s.latest = o.latest
	s.lowest = min(s.lowest, o.lowest)
	if o.last.Number > s.last.Number {
		s.last = o.last
	}
}

// half is one direction of a connection: bytes of a TCP stream in, DDP
// segments out. Bytes are named by their offset in the stream.
type half struct {
	conn *Conn
	dir  uint8
	mode mode
	sure bool   // the first byte of the stream is known
	pos  uint64 // of the next byte that arrives

	// The current FPDU or MPA frame, unless it was whole in one segment.
	buf   []byte // its captured start, without holes
	have  int    // bytes of it that went by, captured or not
	need  int    // its size in the stream; 0 until known
	start uint64 // its offset in the stream
	from  span
	parts []rdma.Part // its packets, for a tracer
	holes []hole      // of it, in order: see payload
	lossy bool        // what is skipped is not in the capture at all

	// Markers of this direction: the peer's MPA frame says whether there are any, but the first FPDU shows
	// it, too.
	askMarkers bool // the next FPDU is the first and shows whether there are markers
	marked     bool
	base       uint64 // offset of the first FPDU, or of its marker

	fpdus      uint64 // decoded
	searched   bool   // it was not followed from the MPA frame on
	unproven   bool   // the search has just ended: a wrong CRC means that it was mistaken
	search     *search
	repeated   uint64   // number of the last packet with repeated data
	gaveUp     uint64   // number of the packet at which bytes were given up as lost
	ready      rdma.Ref // the packet that made the current bytes readable in order
	ended      bool     // the sender has closed its stream
	terminated bool     // the sender has sent a Terminate message
	more       bool     // the newest FPDU was not the last of its message

	framing framing

	out operations
}

// data handles the next bytes of the stream: the payload of one TCP segment, or its new part.
func (h *half) data(p []byte, ref rdma.Ref) {
	if n := len(p); n > 0 {
		if h.have > 0 && h.mode == modeFraming && h.overrun(p) {
			h.giveUp(h.start, h.from.first)
			h.surrender(p, ref, len(h.buf) == h.have)
			p = nil
		}
		h.framing.previous = n
		h.framing.segment = max(h.framing.segment, n)
	}
	for len(p) > 0 {
		switch h.mode {
		case modeStart:
			p = h.greet(p, ref)
		case modeFraming:
			h.frame(p, ref)
			return
		case modeSearch:
			h.seek(p, ref)
			return
		default:
			h.pos += uint64(len(p))
			return
		}
	}
}

// skip records n bytes that were not captured.
func (h *half) skip(n uint64) {
	switch h.mode {
	case modeFraming:
		h.settleSize()
		if h.need > 0 {
			room := uint64(h.need - h.have)
			if h.lossy {
				h.lacks(h.pos, h.pos+min(n, room))
			}
			if n < room {
				h.have += int(n)
				h.pos += n
				return
			}
			n -= room
			h.pos += room
			h.have = h.need
			if !h.finish() {
				h.drop()
				h.pos += n
				h.lose()
				return
			}
			if n == 0 {
				return
			}
		}
		h.drop()
		h.pos += n
		h.lose()
	case modeSearch:
		h.seekSkip(n)
	case modeStart:
		h.drop()
		h.pos += n
		h.lose()
	default:
		h.pos += n
	}
}

// settleSize determines the size of the current FPDU from an incomplete head, when no more of the head will
// arrive.
func (h *half) settleSize() {
	if h.have > 0 && h.need == 0 {
		if size := h.size(h.buf, h.start); size >= headLen && h.plausibleHead(h.buf, h.start) {
			h.need = size
		}
	}
}

// off makes the half deaf.
func (h *half) off() {
	h.drop()
	if h.search != nil {
		h.conn.t.release(h.search.buf)
		h.search = nil
	}
	h.mode = modeOff
}

// drop forgets the FPDU under way.
func (h *half) drop() {
	if h.buf != nil {
		h.conn.t.release(h.buf)
		h.buf = nil
	}
	h.have, h.need = 0, 0
	h.framing.pieces = h.framing.pieces[:0]
	h.from = span{}
	h.parts = h.parts[:0]
	h.holes = h.holes[:0]
}

// begin starts collecting an FPDU or MPA frame at the current position.
func (h *half) begin() {
	h.start = h.pos
	h.from = span{}
	h.have, h.need = 0, 0
	h.framing.pieces = h.framing.pieces[:0]
	if h.buf == nil {
		h.buf = h.conn.t.buffer()
	}
}

// keep moves n bytes of p to the buffer.
func (h *half) keep(p []byte, n int, ref rdma.Ref) []byte {
	if len(h.buf) == h.have {
		h.buf = append(h.buf, p[:n]...)
	}
	h.framing.note(h.pos, ref)
	h.from.add(ref)
	h.from.until(h.ready)
	h.collect(ref, n)
	h.have += n
	h.pos += uint64(n)
	return p[n:]
}

// greet expects an MPA frame and returns the part of p after it.
func (h *half) greet(p []byte, ref rdma.Ref) []byte {
	if h.have == 0 {
		h.begin()
	} else if h.misled(p) {
		h.conn.recognise()
		h.giveUp(h.start, h.from.first)
		h.surrender(p, ref, true)
		return nil
	}
	old := h.have
	rest := h.keep(p, min(len(p), MPAHeaderLen+MPAMaxPrivate-h.have), ref)
	var f MPAFrame
	n, err := f.Decode(h.buf)
	switch {
	case err == ErrShort && len(rest) == 0:
		return nil
	case err == nil:
		// What was taken too much goes back.
		p = p[n-old:]
		h.pos = h.start + uint64(n)
		last := h.from
		h.conn.negotiate(h, &f, &last)
		h.drop()
		h.mode = modeFraming
		h.askMarkers, h.base = true, h.pos
		return p
	}
	if request, reply, short := mpaKind(h.buf); !short && (request || reply) {
		// An invalid MPA frame: iWARP nevertheless.
		h.conn.recognise()
		h.giveUp(h.start, h.from.first)
	} else if h.sure && (h.conn.verdict == Yes || h.conn.expected) {
		h.giveUp(h.start, h.from.first) // the peer, or the port, says that it is iWARP
	} else if h.sure {
		h.drop()
		h.conn.refuse()
		return p[len(p):]
	}
	// The bytes so far go to the search as one piece.
	h.surrender(rest, ref, false)
	return nil
}

// misled reports whether the segment p starts with FPDUs although the private data of an MPA frame should go on there:
// then its length is wrong.
func (h *half) misled(p []byte) bool {
	request, reply, short := mpaKind(h.buf)
	if short || !request && !reply {
		return false
	}
	request, reply, _ = mpaKind(p)
	return !request && !reply && Sniff(p, len(p)) == Yes
}

// frame splits FPDUs off p.
func (h *half) frame(p []byte, ref rdma.Ref) {
	for len(p) > 0 {
		if h.have == 0 {
			n := h.size(p, h.pos)
			if n > 0 && n <= len(p) {
				one := span{first: ref, last: ref, packets: 1, latest: ref.Number, lowest: ref.Number}
				one.until(h.ready)
				if n < len(p) && !h.follows(p[n:], h.pos+uint64(n)) && h.wrong(p[:n]) {
					h.giveUp(h.pos, ref)
					h.surrender(p, ref, true)
					return
				}
				if !h.fpdu(p[:n:n], n, h.pos, &one) {
					h.showMalformed(p[:n:n], n, h.pos, &one)
					h.implausible(h.pos, ref)
					h.surrender(p, ref, true)
					return
				}
				h.pos += uint64(n)
				p = p[n:]
				continue
			}
			h.begin()
		}
		want := headLen
		if h.need > 0 {
			want = h.need
		}
		p = h.keep(p, min(want-h.have, len(p)), ref)
		if h.need == 0 && h.have >= headLen {
			h.need = h.size(h.buf, h.start)
			if !h.plausibleHead(h.buf, h.start) || h.need < headLen {
				h.showMalformed(h.buf, h.need, h.start, &h.from)
				h.implausible(h.start, h.from.first)
				h.surrender(p, ref, true)
				return
			}
		}
		if h.have == h.need && len(h.buf) == h.need && (!h.follows(p, h.pos) || h.torn()) && h.wrong(h.buf) {
			h.giveUp(h.start, h.from.first)
			h.surrender(p, ref, true)
			return
		}
		if h.have == h.need && !h.finish() {
			h.showMalformed(h.buf, h.need, h.start, &h.from)
			h.implausible(h.start, h.from.first)
			h.surrender(p, ref, true)
			return
		}
	}
}

// headLen is how much of an FPDU must be present before the rest is waited for: the smallest FPDU, which is
// length, tagged header, and CRC.
const headLen = FPDUHeaderLen + TaggedLen + CRCLen

// size returns the stream bytes of the FPDU that starts with b at offset at; 0 if b is too short to tell.
func (h *half) size(b []byte, at uint64) int {
	if h.askMarkers {
		if len(b) < MarkerLen {
			return 0
		}
		// The first marker of a stream is all zero. No FPDU starts like that: a ULPDU has at least a header.
		h.askMarkers = false
		h.marked = binary.BigEndian.Uint32(b) == 0
		h.base = at
	}
	if !h.marked {
		if len(b) < FPDUHeaderLen {
			return 0
		}
		return FPDULen(int(binary.BigEndian.Uint16(b)))
	}
	pos, lead := at-h.base, 0
	if pos%MarkerInterval == 0 {
		lead = MarkerLen
	}
	if len(b) < lead+FPDUHeaderLen {
		return 0
	}
	return MarkedLen(pos, FPDULen(int(binary.BigEndian.Uint16(b[lead:]))))
}

// plausibleHead reports whether an FPDU can start with b at offset at. b may be longer or shorter than the
// FPDU's head.
func (h *half) plausibleHead(b []byte, at uint64) bool {
	return h.headBits(b, at) >= 0
}

// headBits is plausible for an FPDU that may contain markers.
func (h *half) headBits(b []byte, at uint64) int {
	b = b[:min(len(b), FPDUHeaderLen+UntaggedLen+2*MarkerLen)]
	if h.marked {
		var head [FPDUHeaderLen + UntaggedLen + 2*MarkerLen]byte
		b = RemoveMarkers(head[:0], b, at-h.base)
	}
	if len(b) < FPDUHeaderLen+ControlLen {
		return 0
	}
	return plausible(b[FPDUHeaderLen:], int(binary.BigEndian.Uint16(b)))
}

// finish passes on the FPDU in the buffer.
func (h *half) finish() bool {
	if !h.fpdu(h.buf, h.need, h.start, &h.from) {
		return false
	}
	h.drop()
	return true
}

// fpdu passes on an FPDU that takes size bytes of the stream, of which raw was captured. It reports false if
// it is not an FPDU.
func (h *half) fpdu(raw []byte, size int, start uint64, from *span) bool {
	c := h.conn
	b := raw
	if h.marked {
		c.t.scratch = RemoveMarkers(c.t.scratch[:0], raw, start-h.base)
		b = c.t.scratch
	}
	if len(b) < FPDUHeaderLen+ControlLen {
		h.out.interrupted() // cut: nobody is told of it
		return len(raw) < size
	}
	length := int(binary.BigEndian.Uint16(b))
	end := min(FPDUHeaderLen+length, len(b))
	u := b[FPDUHeaderLen:end:end]
	if len(u) < ControlLen || plausible(u, length) < 0 {
		return false
	}
	damaged := false
	if len(raw) == size && c.crc != crcOff && !c.t.o.NoCRC && !c.check(h, raw, start) {
		if h.unproven && c.goodCRCs > 0 {
			return false
		}
		sent := &c.c.Sent[c.side(h)]
		sent.BadCRC++
		if binary.LittleEndian.Uint32(raw[len(raw)-CRCLen:]) == 0 {
			sent.ZeroCRC++ // the sender makes none
		} else {
			damaged = c.goodCRCs > 4*(sent.BadCRC-1)
		}
		c.t.BadCRC++
	}
	h.unproven = false
	if h.fpdus == 0 {
		c.proveSetup(h, from.last)
	}
	h.fpdus++
	h.framing.decoded(ULPDU(u), size)
	if size > int(c.c.MTU) {
		c.c.MTU = uint32(size)
	}
	h.more = !ULPDU(u).Control().Last()
	if len(u) >= ULPDU(u).HeaderLen() {
		if c.t.shown != nil {
			h.show(u, length, raw, start, damaged, from)
		}
		h.out.segment(h, u, length, start, start+uint64(size), from)
	} else {
		h.out.interrupted()
	}
	h.parts = h.parts[:0]
	return true
}
