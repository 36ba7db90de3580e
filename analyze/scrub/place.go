package scrub

import (
	"cmp"
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// place writes the copy of a Send to the packets that carried it.
func (s *Scrubber) place(c *rdma.Connection, x *rdma.Send, out []byte, segments []fpdu) {
	switch c.Fabric {
	case rdma.TCP:
		s.record(flowFrom(c, x.From), x.Sequence, x.Data, out)
	case rdma.UDP:
		s.datagram(x.Last.Number, x.Data, out)
	case rdma.IWARP:
		for i := range segments {
			g := &segments[i]
			if from := int(g.offset); from < len(out) {
				s.rewrite(g, out[from:min(from+g.length, len(out))], false)
			}
		}
	default:
		s.packets(c, x, out)
	}
}

// packets writes a Send over RoCE or InfiniBand.
func (s *Scrubber) packets(c *rdma.Connection, x *rdma.Send, out []byte) {
	parts := s.parts[:0]
	for _, p := range x.Parts {
		if p.Kind == rdma.PartData {
			parts = append(parts, p)
		}
	}
	s.parts = parts
	if len(parts) == 0 {
		s.change(x.Last.Number, c.Header.PSN, x.Data, out)
		return
	}
	first := parts[0].Header.PSN
	slices.SortStableFunc(parts, func(a, b rdma.Part) int {
		return cmp.Compare(rdma.PSNDiff(a.Header.PSN, first), rdma.PSNDiff(b.Header.PSN, first))
	})
	at := 0
	for _, p := range parts {
		to := min(at+int(p.Bytes), len(out))
		if at < to {
			s.change(p.Ref.Number, p.Header.PSN, x.Data[at:to], out[at:to])
		}
		at = to
	}
}

// datagram writes a message of UDP.
func (s *Scrubber) datagram(number uint64, was, is []byte) {
	if s.window.Packet(number) == nil {
		s.stats.Late++
		return
	}
	h := s.window.At(number)
	if h.fragment != nil {
		s.fill(h.fragment.of, was, is)
		return
	}
	put(h.data, h.out, h.payload, was, is)
}

// Record marks (RFC 5531, section 11).
const (
	markSize     = 4
	lastFragment = 1 << 31
	// mostFragments bounds the fragments of a record that are looked at.
	mostFragments = 4096
)

// record writes a message of TCP, between the marks of its record.
func (s *Scrubber) record(flow uint64, sequence uint32, was, is []byte) {
	for range mostFragments {
		s.raw = s.read(s.raw[:0], flow, sequence, markSize)
		if len(s.raw) < markSize {
			return
		}
		mark := binary.BigEndian.Uint32(s.raw)
		s.write(flow, sequence, s.raw, s.raw)
		sequence += markSize
		n := int(mark &^ lastFragment)
		if k := min(n, len(was)); k > 0 {
			s.write(flow, sequence, was[:k], is[:k])
			was, is = was[k:], is[k:]
		}
		if mark&lastFragment != 0 || len(was) == 0 {
			return
		}
		sequence += uint32(n)
	}
}

// fpdu is where an FPDU of iWARP lies.
type fpdu struct {
	flow     uint64
	sequence uint32
	marker   int    // bytes before the first marker; −1 without markers
	header   int    // bytes of length and DDP header
	length   int    // bytes of the payload
	offset   uint32 // of the payload in its message, if it is untagged
	follows  bool   // nothing is missing before it
}

// Sizes of MPA.
const (
	markerEvery = iwarp.MarkerInterval
	markerLen   = iwarp.MarkerLen
	crcLen      = iwarp.CRCLen
)

// sender is one side of a connection.
type sender struct {
	c    *rdma.Connection
	side rdma.Side
}

// Bounds of what is remembered of Sends under way over iWARP.
const (
	maxSenders  = 4096
	maxSegments = 4096
)

// Segment is decode.Observer.Segment: the headers of an FPDU are known, and what it carries if that is one of them.
func (o *observer) Segment(c *rdma.Connection, x *rdma.Segment) {
	s := (*Scrubber)(o)
	s.fpdu = fpdu{}
	u := iwarp.ULPDU(x.Data)
	if x.Malformed || len(u) < iwarp.ControlLen || len(u) < u.HeaderLen() {
		return
	}
	g := fpdu{
		flow: flowFrom(c, x.From), sequence: x.Sequence, marker: x.Marker,
		header: iwarp.FPDUHeaderLen + u.HeaderLen(), length: x.Length - u.HeaderLen(), follows: x.Follows,
	}
	op := u.Control().Opcode()
	payload := u[u.HeaderLen():]
	switch {
	case op.IsSend():
		g.offset = iwarp.Untagged(u).MO()
		s.noteSegment(sender{c, x.From}, &g)
		payload = nil
	case op == iwarp.OpReadRequest && x.Length == u.HeaderLen()+iwarp.ReadRequestLen:
	case op == iwarp.OpTerminate && len(payload) >= iwarp.TerminateLen:
		payload = payload[:quoted(iwarp.Terminate(payload))]
	default: // data
		payload = nil
	}
	s.fpdu = g
	s.rewrite(&g, payload, false)
}

// quoted is the size of a Terminate message up to the end of the headers that it quotes.
func quoted(t iwarp.Terminate) int {
	n := iwarp.TerminateLen + len(t.DDPHeader()) + len(t.ReadRequest())
	if _, ok := t.SegmentLength(); ok {
		n += 2
	}
	return n
}

// noteSegment remembers a segment of a Send.
func (s *Scrubber) noteSegment(k sender, g *fpdu) {
	list := s.untagged[k]
	if g.offset == 0 {
		list = list[:0]
	}
	if len(list) >= maxSegments {
		return
	}
	if len(list) == 0 && len(s.untagged) >= maxSenders {
		clear(s.untagged)
	}
	s.untagged[k] = append(list, *g)
}

// segments returns the FPDUs that carried a Send over iWARP, nil on other fabrics.
func (s *Scrubber) segments(c *rdma.Connection, x *rdma.Send) []fpdu {
	if c.Fabric != rdma.IWARP {
		return nil
	}
	return s.untagged[sender{c, x.From}]
}

// rewrite copies an FPDU with this payload, as far as it goes; the rest is zero. With all, it is copied as it is.
func (s *Scrubber) rewrite(g *fpdu, payload []byte, all bool) {
	if g.flow == 0 {
		return
	}
	body := g.header + g.length
	size := (body+3)&^3 + crcLen
	if g.marker >= 0 {
		size = marked(size, g.marker)
	}
	s.raw = s.read(s.raw[:0], g.flow, g.sequence, size)
	if !s.trusted(g, s.raw, size) {
		if !g.follows {
			return
		}
		payload, all = nil, false
	}
	if all {
		s.write(g.flow, g.sequence, s.raw, s.raw)
		return
	}
	next := append(s.next[:0], s.raw...)
	s.next = next
	skip := g.header // of what is neither marker nor padding: the headers stay, then comes the payload
	for at := 0; at < len(next); {
		to := len(next) // or where the next marker begins
		if g.marker >= 0 {
			since := at - g.marker
			switch r := since % markerEvery; {
			case since < 0:
				to = min(to, g.marker)
			case r < markerLen:
				at += markerLen - r
				continue
			default:
				to = min(to, at+markerEvery-r)
			}
		}
		part := next[at:to]
		at = to
		n := min(skip, len(part))
		part, skip = part[n:], skip-n
		n = copy(part, payload)
		clear(part[n:])
		payload = payload[n:]
	}
	s.crc(s.raw, next, size)
	s.write(g.flow, g.sequence, s.raw, next)
}

// trusted reports whether an FPDU is what the decoder took it for: after a loss it may have been wrong about markers, and names are taken
// for numbers. b is what was captured of it.
func (s *Scrubber) trusted(g *fpdu, b []byte, size int) bool {
	if len(b) < size {
		return false
	}
	end := size - crcLen
	if constant(b[end:size], 0) { // CRCs are off
		return g.follows || s.aligned(g.flow, g.sequence, size)
	}
	return crc32.Checksum(b[:end], castagnoli) == binary.LittleEndian.Uint32(b[end:])
}

// marked is the size of an FPDU of n bytes with its markers.
func marked(n, first int) int {
	size := n
	for at := first; at < size; at += markerEvery {
		size += markerLen
	}
	return size
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// crc completes the CRC of an FPDU that was captured as a whole; else it stays zero. No marker stands before or in it, since it ends with the
// FPDU and a marker belongs to what follows it.
func (s *Scrubber) crc(was, is []byte, size int) {
	end := size - crcLen
	if len(was) < size || constant(was[end:size], 0) { // CRCs are off
		return
	}
	x := binary.LittleEndian.Uint32(was[end:]) ^ crc32.Checksum(was[:end], castagnoli) ^ crc32.Checksum(is[:end], castagnoli)
	binary.LittleEndian.PutUint32(is[end:], x)
}
