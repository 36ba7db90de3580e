package roce

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/link"
)

// Splitter decodes the packets of captured frames and verifies their ICRCs. A frame holds one packet,
// usually. But a capture taken where a sender uses UDP segmentation offload, or a receiver merges datagrams,
// shows several packets back to back in one datagram. Such a datagram has the headers of its first
// packet, except for their lengths.
//
//	for s.Reset(frame); s.Next(&packet); {
//		…
//	}
//
// Where the kernel has told the size of the segments (link.Frame.Segment), all packets have it but the last,
// which may be shorter. Else a datagram is only taken apart if it cannot be one packet — its payload is
// longer than any path MTU or not one that its opcode allows — or if its ICRC is wrong. Then the ICRC tells
// where a packet ends, whatever the sizes of the packets are. Where a packet is damaged, cut by the capture
// or has no ICRC, the size of those before it tells, the packet after it if that one is intact, or for what
// cannot be one packet, a header that continues its own. If none of this does, the rest of the datagram is
// given as one packet, and Problem says so unless it could be one. A packet of the fast path pays a look at its
// length for all this.
//
// The zero value is ready for use.
type Splitter struct {
	// SkipICRC leaves ICRCs unchecked, except in datagrams of several packets that can only be split by them.
	SkipICRC bool

	check   Checker
	frame   *link.Frame
	kind    kind
	state   splitState
	segment int  // size of all packets but the last, if the kernel reported it; otherwise 0
	same    int  // size of the packets so far; 0 if they differ
	at      int  // offset of the next packet in the payload
	index   int  // of the next packet
	several bool // the frame holds several packets
	alone   bool // measure saw no header after the packet
	left    int  // bytes that may still be summed
	id      uint16
	step    uint16 // difference between the identifications of a packet and the previous one
}

type splitState uint8

const (
	splitDone splitState = iota
	splitStart
	splitNext
)

// Reset starts a frame, which must not change until Next has returned false.
func (s *Splitter) Reset(f *link.Frame) {
	s.frame, s.state = f, splitStart
}

// Next decodes the next packet of the frame into p, including its ICRC verdict. It returns false if the frame
// is finished, or if no part of its remaining packets was captured. p.Problem says whether p is usable.
func (s *Splitter) Next(p *Packet) bool {
	switch s.state {
	case splitStart:
		return s.first(p)
	case splitNext:
		return s.next(p)
	}
	return false
}

// Segmented reports whether the frame of the last Next holds several packets.
func (s *Splitter) Segmented() bool { return s.several }

// first decodes the frame as one packet, and determines whether it is one.
func (s *Splitter) first(p *Packet) bool {
	f := s.frame
	s.state, s.several = splitDone, false
	if n := int(f.Segment); n >= BTHSize+ICRCSize && n < f.PayloadLen && s.begin(n) {
		return s.next(p)
	}
	Decode(f.Payload, f.PayloadLen, p)
	illegal := p.impossible()
	if !illegal {
		if s.SkipICRC {
			return true
		}
		p.ICRC = s.check.Check(f)
		if p.ICRC != Bad {
			return true
		}
	}
	return s.suspect(p, illegal)
}

// impossible reports whether no single packet of this opcode can have this
// length.
func (p *Packet) impossible() bool {
	n := p.PayloadLen
	info := &opcodes[p.Opcode]
	switch info.payload {
	case payloadMTU:
		return n > MaxMTU || n&(n-1) != 0 || n < 256
	case payloadFixed:
		return n > int(info.fixed)
	}
	return n > MaxMTU
}

// begin prepares to split the frame, if it is of a kind that can hold several packets.
func (s *Splitter) begin(segment int) bool {
	f := s.frame
	s.kind = classify(f.Proto, f.Net, f.Transport)
	if s.kind != kindIPv4 && s.kind != kindIPv6 || f.PayloadLen <= 0 {
		return false
	}
	s.state, s.several, s.segment = splitNext, true, segment
	s.at, s.index, s.same = 0, 0, 0
	s.left = sumFactor*len(f.Payload) + sumLeast
	s.id, s.step = 0, 1
	if s.kind == kindIPv4 {
		s.id = wire.Get16(f.Net, 4)
	}
	return true
}

// suspect splits the frame if it holds several packets. p is the frame decoded as one.
func (s *Splitter) suspect(p *Packet, illegal bool) bool {
	f := s.frame
	if s.begin(0) {
		if x := s.end(p, illegal); x.size != f.PayloadLen {
			return s.take(p, x)
		}
		s.state, s.several = splitDone, false
	}
	if !illegal {
		return true
	}
	if !s.SkipICRC {
		p.ICRC = s.check.Check(f)
	}
	if p.Problem == NoProblem && p.ICRC != Good {
		p.Problem = ProblemLength
	}
	return true
}

// end finds the end of the packet at s.at: the end of the data if the rest is one packet, or if nothing
// better is known. p is the rest decoded as one packet, and illegal means that it cannot be one.
func (s *Splitter) end(p *Packet, illegal bool) found {
	b, n := s.from(s.at)
	j := joint{at: s.at, first: s.id}
	if s.index > 0 {
		// Segmentation increments the identification. A receiver that merges datagrams also merges those that
		// a sender numbered alike or in any other way.
		j.first, j.reach = s.id+s.step, 0xffff
	}
	// What is usual is tried first.
	if size := s.likelySize(p, b, n); size != 0 && s.intact(b[:size], j.first) {
		return found{size, true, j.first}
	}
	if x := s.measure(j); x.good {
		return x
	}
	// The packet is damaged, cut, or without an ICRC.
	if s.same != 0 && begins(b, s.same, n, BTH(b).PKey()) {
		return found{size: s.same}
	}
	reach := uint16(1)
	if s.index > 0 {
		reach = 2
	}
	if !s.alone {
		if size := s.recover(s.at, s.id, reach); size != 0 {
			return found{size: size}
		}
	}
	if illegal {
		if size := s.continued(s.at, p); size != 0 {
			return found{size: size}
		}
	}
	return found{size: n}
}

// likelySize is the most likely size of the packet in b, of n bytes on the wire; 0 if there is none.
func (s *Splitter) likelySize(p *Packet, b []byte, n int) int {
	switch info := &opcodes[p.Opcode]; {
	case s.same != 0: // as segmentation offload makes them
		return min(s.same, n, len(b))
	case info.payload == payloadMTU:
		for mtu := 256; mtu <= MaxMTU; mtu <<= 1 {
			if size := int(info.size) + mtu + ICRCSize; size < len(b) && begins(b, size, n, p.PKey) {
				return size
			}
		}
	}
	return 0
}

// intact reports whether the ICRC of a packet is right.
func (s *Splitter) intact(b []byte, id uint16) bool {
	f, end := s.frame, len(b)-ICRCSize
	if end < BTHSize {
		return false
	}
	s.left -= end
	return s.check.sum(s.kind, f.Net, f.Transport, b[:end], true, id) == binary.LittleEndian.Uint32(b[end:])
}

// next decodes the next of several packets.
func (s *Splitter) next(p *Packet) bool {
	b, n := s.from(s.at)
	if len(b) == 0 || n <= 0 {
		s.state = splitDone
		return false
	}
	if s.segment != 0 {
		return s.take(p, found{size: min(s.segment, n)})
	}
	Decode(b, n, p)
	illegal := p.impossible()
	x := s.end(p, illegal)
	s.take(p, x)
	if x.size == n && illegal && p.ICRC != Good && p.Problem == NoProblem {
		p.Problem = ProblemJoined
	}
	return true
}

// take decodes the next packet, whose end is known.
func (s *Splitter) take(p *Packet, x found) bool {
	b, _ := s.from(s.at)
	b = b[:min(len(b), x.size)]
	Decode(b, x.size, p)
	switch {
	case x.good:
		p.ICRC = Good
		s.sent(x.id)
	case x.size < BTHSize+ICRCSize:
		p.ICRC = NotCheckedUnknown
	case s.segment != 0 && s.SkipICRC:
	case len(b) == x.size:
		p.ICRC = s.identify(b)
	case len(b) == x.size-ICRCSize:
		p.ICRC = NotCheckedAbsent
	default:
		p.ICRC = NotCheckedCut
	}
	if s.index == 0 {
		s.same = x.size
	} else if x.size != s.same {
		s.same = 0
	}
	s.at += x.size
	s.index++
	return true
}

// sent records the identification of the packet.
func (s *Splitter) sent(id uint16) {
	if s.index == 1 && id == s.id {
		s.step = 0
	}
	s.id = id
}

// identify checks the ICRC of the packet and determines the identification it was sent with.
func (s *Splitter) identify(b []byte) Verdict {
	id := s.id
	if s.index > 0 {
		id += s.step
	}
	f, end := s.frame, len(b)-ICRCSize
	sum := s.check.sum(s.kind, f.Net, f.Transport, b[:end], true, id)
	v := verdict(sum, b[end:])
	if v == Bad && s.kind == kindIPv4 && s.index > 0 {
		x := UnshiftCRC(sum^binary.LittleEndian.Uint32(b[end:]), len(f.Net)-4+udpSize+end)
		if other, ok := identification(x, id); ok {
			id, v = other, Good
		}
	}
	s.sent(id)
	return v
}
