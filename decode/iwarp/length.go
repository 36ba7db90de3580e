package iwarp

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// A wrong ULPDU length takes the FPDUs after it for payload, up to 64 KiB. Waiting for the end of such an
// FPDU would be too late even if its CRC then shows the error: by that time the peer has answered what was swallowed.
// So each segment that an FPDU reaches into is examined: if it starts with an FPDU that continues the
// sequence of messages, and the FPDU under way is odd, the length of the latter is wrong.
//
// The payload of an FPDU can hold what looks like an FPDU, by intention too. It takes two things to give one
// up: what the segment contains, and how the sender has cut the stream, which payload cannot imitate.

const (
	bitsSequence = 24 // the message sequence number is one of the next
	bitsKnown    = 24 // the steering tag has been used
	bitsCRC      = 32 // the CRC is right
	bitsZero     = 8  // it is zero, on a connection without CRCs
	bitsOverrun  = 60 // what they must be worth together
)

// framing is what a half remembers to judge a length.
type framing struct {
	largest  int       // bytes of the largest FPDU that was followed by another
	segment  int       // bytes of the largest segment
	previous int       // bytes of the segment before
	next     [3]uint32 // message sequence number expected, by queue
	known    [3]bool
	hint     bool // the tagged FPDU below stood at the start of a segment, but proved nothing
	stag     uint32
	to       uint64

	pieces []piece // the segments in half.buf, by stream offset

	pointed uint64 // markers before this offset of the stream have been looked at
	past    int    // those of them that point to a later FPDU than the one under way

	astray bool   // bytes have been given up since from
	from   uint64 // stream offset
	packet rdma.Ref
}

// note records the segments of an FPDU under way.
func (f *framing) note(at uint64, ref rdma.Ref) {
	if n := len(f.pieces); n < maxPieces && (n == 0 || f.pieces[n-1].ref.Number != ref.Number) {
		f.pieces = append(f.pieces, piece{at, ref})
	}
}

// decoded records an FPDU.
func (f *framing) decoded(u ULPDU, size int) {
	f.largest = max(f.largest, size)
	f.hint = false
	if c := u.Control(); !c.Tagged() && len(u) >= UntaggedLen {
		if q := Untagged(u).QN(); q < uint32(len(f.next)) {
			f.next[q], f.known[q] = Untagged(u).MSN(), true
			if c.Last() {
				f.next[q]++
			}
		}
	}
}

// overrun reports whether the segment p starts an FPDU although another is under way, whose length must be
// wrong then.
func (h *half) overrun(p []byte) bool {
	f := &h.framing
	if h.marked {
		return h.pointedPast()
	}
	if h.conn.verdict != Yes || h.have == 0 || h.need == 0 || len(p) < headLen {
		return false
	}
	if h.need <= f.largest && f.previous >= f.segment {
		return false // such FPDUs are usual, and the sender has filled its segment
	}
	bits := bitsBoundary
	for at, first := 0, true; at+headLen <= len(p); first = false {
		length := int(binary.BigEndian.Uint16(p[at:]))
		size := FPDULen(length)
		b := plausible(p[at+FPDUHeaderLen:], length)
		if b < 0 {
			return false
		}
		bits += b
		u := ULPDU(p[at+FPDUHeaderLen:])
		if u.Control().Tagged() {
			bits += h.taggedEvidence(Tagged(u), length, first)
		} else if q := Untagged(u).QN(); q < uint32(len(f.next)) && f.known[q] && f.precedes(q, Untagged(u), h.have) {
			bits += bitsSequence
		}
		if at+size > len(p) {
			break
		}
		n := h.crcEvidence(p[at : at+size])
		if n < 0 {
			return false
		}
		bits += n
		if at += size; at == len(p) {
			bits += bitsBoundary
		}
		if bits >= bitsOverrun {
			break
		}
	}
	return bits >= bitsOverrun
}

// pointedPast reports whether two markers in the FPDU under way point to FPDUs that start later: then its length is
// wrong. One alone may be damaged.
func (h *half) pointedPast() bool {
	f := &h.framing
	if h.need == 0 || len(h.buf) != h.have {
		return false
	}
	if f.pointed <= h.start {
		f.pointed, f.past = h.start+1, 0
	}
	for {
		m := f.pointed + -(f.pointed-h.base)%MarkerInterval
		if m+MarkerLen > h.pos {
			return false
		}
		f.pointed = m + 1
		marker := h.buf[m-h.start:]
		at := m - uint64(binary.BigEndian.Uint16(marker[2:]))
		if at == m {
			at += MarkerLen // it stands before the FPDU
		}
		if at > h.start+MarkerLen && at < h.pos && binary.BigEndian.Uint16(marker) == 0 && h.plausibleHead(h.buf[at-h.start:], at) {
			if f.past++; f.past == 2 {
				return true
			}
		}
	}
}

// precedes reports whether the message sequence number of u is expected, or one of those that have bytes of
// stream make possible before it.
func (f *framing) precedes(q uint32, u Untagged, have int) bool {
	d := u.MSN() - f.next[q]
	if u.MO() == 0 {
		return d > 0 && d <= uint32(have/headLen+1) || d == 0
	}
	return d == 0
}

// taggedEvidence is what a tagged FPDU at the start of a segment is worth.
func (h *half) taggedEvidence(u Tagged, length int, first bool) (bits int) {
	f, c := &h.framing, h.conn
	stag, to := u.STag(), u.TO()
	switch {
	case f.hint && f.stag == stag && f.to == to:
		bits = bitsNext
	case h.uses(stag):
		bits = bitsKnown
	default:
		reads := &c.peer(h).out
		for seq := reads.oldestRead; seq < reads.reads.next && seq < reads.oldestRead+16; seq++ {
			if r := reads.reads.at(seq); r != nil && !r.done && r.sinkSTag == stag && to-r.sinkTO < uint64(r.op.Length) {
				bits = bitsKnown
				break
			}
		}
	}
	if first || f.hint {
		f.hint, f.stag, f.to = true, stag, to+uint64(length-TaggedLen)
	}
	return bits
}

// uses reports whether the FPDU under way, or the latest Write, has that steering tag.
func (h *half) uses(stag uint32) bool {
	if len(h.buf) >= headLen {
		if u := ULPDU(h.buf[FPDUHeaderLen:]); u.Control().Tagged() && Tagged(u).STag() == stag {
			return true
		}
	}
	w := &h.out.writes
	if w.next == 0 {
		return false
	}
	last := w.at(w.next - 1)
	return last != nil && last.op.Handle == stag
}

// crcEvidence is what the CRC of a whole FPDU is worth; -1 if it is wrong.
func (h *half) crcEvidence(raw []byte) int {
	c := h.conn
	field := binary.LittleEndian.Uint32(raw[len(raw)-CRCLen:])
	switch {
	case c.t.o.NoCRC:
		return 0
	case c.crc == crcOn && field != checksum(raw[:len(raw)-CRCLen]):
		return -1
	case c.crc == crcOn:
		return bitsCRC
	case field == 0:
		return bitsZero
	}
	return 0
}

// follows reports whether an FPDU can start with rest, at offset at: it does if there is too little to tell.
func (h *half) follows(rest []byte, at uint64) bool {
	return h.marked || len(rest) < FPDUHeaderLen+ControlLen || h.plausibleHead(rest, at)
}

// torn reports whether a segment in the buffer starts with what can only be an FPDU.
func (h *half) torn() bool {
	f := &h.framing
	for i := 1; i < len(f.pieces); i++ {
		from, to := f.pieces[i].start-h.start, uint64(len(h.buf))
		if i+1 < len(f.pieces) {
			to = f.pieces[i+1].start - h.start
		}
		p := h.buf[from:to]
		if len(p) < headLen || !h.plausibleHead(p, h.start+from) {
			continue
		}
		if n := FPDULen(int(binary.BigEndian.Uint16(p))); n <= len(p) && h.crcEvidence(p[:n]) > 0 {
			return true
		}
	}
	return false
}

// wrong reports whether the CRC of a whole FPDU is wrong, if CRCs are in use. It changes nothing.
func (h *half) wrong(raw []byte) bool {
	c := h.conn
	return !h.marked && c.crc == crcOn && c.goodCRCs > 0 && !c.t.o.NoCRC && checksum(raw[:len(raw)-CRCLen]) != binary.LittleEndian.Uint32(raw[len(raw)-CRCLen:])
}

// giveUp records that the FPDU at offset from is given up, because its length cannot be right.
func (h *half) giveUp(from uint64, ref rdma.Ref) {
	f := &h.framing
	if f.astray {
		return
	}
	f.astray, f.from, f.packet, f.hint = true, from, ref, false
}

// implausible records that no FPDU starts at offset from, where the one before ends: one of the two is wrong.
func (h *half) implausible(from uint64, ref rdma.Ref) {
	if h.conn.verdict == Yes && h.fpdus > 0 && !h.unproven {
		h.giveUp(from, ref)
	}
}

// regained counts what was given up before offset at.
func (h *half) regained(at uint64) {
	f := &h.framing
	if !f.astray || h.conn.verdict != Yes {
		return
	}
	f.astray = false
	n := uint64(0)
	if at > f.from {
		n = at - f.from
	}
	c := h.conn
	side := c.side(h)
	t := &c.t.Misframed
	if t.Count == 0 {
		t.First, t.Offset = f.packet.Number, f.from
	}
	t.Count++
	t.Bytes += n
	c.c.Sent[side].Gaps += n
	if c.verdict == Yes && !c.closed {
		c.t.handler.Event(c.c, side, rdma.EventGap, uint32(min(n, 1<<32-1)), f.packet)
	}
}
