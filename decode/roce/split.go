package roce

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/internal/wire"
	"github.com/rpcrdma/toolkit/decode/link"
)

// Splitter decodes the packets of captured frames and verifies their ICRCs.
// A frame holds one packet, as a rule. But a capture taken where a sender uses
// UDP segmentation offload, or a receiver merges datagrams, shows several
// packets back to back in one datagram, all of the length of the first one but
// the last, which may be shorter. The headers of such a datagram are those of
// its first packet, but for their lengths.
//
//	for s.Reset(frame); s.Next(&packet); {
//		…
//	}
//
// A datagram is only taken apart if it cannot be one packet — its payload is
// longer than any path MTU or not one that its opcode allows — or if its ICRC
// is wrong, and if in addition the ICRC of the first part is right. Where
// there is no ICRC to go by, the second part's header has to continue the
// first one's. An ordinary packet pays a look at its length for this.
//
// The zero value is ready for use.
type Splitter struct {
	// SkipICRC leaves ICRCs unchecked, but for datagrams of several packets.
	SkipICRC bool

	check Checker
	frame *link.Frame
	kind  kind
	state splitState
	size  int // of all packets but the last; 0 if there is one only
	at    int // offset of the next packet in the payload
	index int
	step  uint16 // IPv4 identification of a packet less that of the one before
}

type splitState uint8

const (
	splitDone splitState = iota
	splitStart
	splitNext
)

// Reset starts with a frame, which must not change until Next has returned
// false.
func (s *Splitter) Reset(f *link.Frame) {
	s.frame, s.state = f, splitStart
}

// Next decodes the next packet of the frame into p, its ICRC verdict included.
// It returns false if there is none: if the frame is finished, or if nothing
// of its further packets was captured. p.Problem tells whether p is fit for
// use.
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
func (s *Splitter) Segmented() bool { return s.size != 0 }

// first decodes the frame as one packet, and finds out whether it is.
func (s *Splitter) first(p *Packet) bool {
	f := s.frame
	s.state, s.size = splitDone, 0
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

// suspect takes the frame apart if it holds several packets. p is the frame
// decoded as one.
func (s *Splitter) suspect(p *Packet, illegal bool) bool {
	f := s.frame
	s.kind = classify(f.Proto, f.Net, f.Transport)
	if s.kind == kindIPv4 || s.kind == kindIPv6 {
		if size := s.find(p, illegal); size != 0 {
			s.size, s.at, s.index, s.step = size, 0, 0, 1
			s.state = splitNext
			return s.next(p)
		}
	}
	if !illegal {
		return true
	}
	if !s.SkipICRC {
		p.ICRC = s.check.Check(f)
	}
	if p.Problem == "" && p.ICRC != Good {
		p.Problem = ProblemLength
	}
	return true
}

// maxTries bounds the work that a crafted datagram can cause.
const maxTries = 8

// find returns the size of the first of several packets, or 0. What sizes are
// possible follows from the opcode; for the rest, the second packet is looked
// for by what its header must be.
func (s *Splitter) find(p *Packet, illegal bool) int {
	info := &opcodes[p.Opcode]
	base := int(info.size) + ICRCSize
	switch {
	case p.TVer != 0 || info.flags == 0:
		return 0
	case info.payload == payloadMTU:
		for mtu := 256; mtu <= MaxMTU; mtu <<= 1 {
			if s.try(base+mtu, illegal) {
				return base + mtu
			}
		}
		return 0
	case info.payload == payloadFixed:
		if size := base + int(info.fixed); s.try(size, illegal) {
			return size
		}
		return 0
	case p.Headers.Has(HasRETH): // RDMA Write Only says its length
		if n := p.RETH.DMALen; n <= MaxMTU {
			if size := base + int(n+3)&^3; s.try(size, illegal) {
				return size
			}
		}
		return 0
	}
	b := s.frame.Payload
	b = b[:min(len(b), base+MaxMTU+BTHSize)]
	tries, psn := 0, (p.PSN+1)&mask24
	for size := base; size+BTHSize <= len(b) && tries < maxTries; size += 4 {
		// The PSN first: there may be a thousand places to look at.
		if binary.BigEndian.Uint32(b[size+bthAckReq:])&mask24 == psn && s.follows(size) {
			if s.try(size, illegal) {
				return size
			}
			tries++
		}
	}
	return 0
}

// follows reports whether what stands at offset size looks like the packet
// after the one at offset 0: for the same queue pair, with the next PSN. That
// leaves less than one in 2^60 to chance.
func (s *Splitter) follows(size int) bool {
	b := s.frame.Payload
	if size+BTHSize > len(b) {
		return false
	}
	x, y := BTH(b[:BTHSize]), BTH(b[size:size+BTHSize])
	return (x.PSN()+1-y.PSN())&mask24 == 0 && y.DestQP() == x.DestQP() && y.PKey() == x.PKey() &&
		y.TVer() == 0 && y.Opcode().Service() == x.Opcode().Service() && y.Opcode().IsDefined()
}

// try reports whether the first packet has this size. illegal says that the
// datagram cannot be one packet.
func (s *Splitter) try(size int, illegal bool) bool {
	f := s.frame
	if size+BTHSize+ICRCSize > f.PayloadLen || size > len(f.Payload) {
		return false
	}
	follows := s.follows(size)
	if !illegal && !follows {
		return false
	}
	return s.verdict(f.Payload[:size], 0) == Good || illegal && follows
}

// verdict checks the ICRC of a packet, n identifications after the first.
func (s *Splitter) verdict(b []byte, n uint16) Verdict {
	f := s.frame
	id := wire.Get16(f.Net, 4) + n
	end := len(b) - ICRCSize
	return verdict(s.check.sum(s.kind, f.Net, f.Transport, b[:end], true, id), b[end:])
}

// next decodes the next of several packets.
func (s *Splitter) next(p *Packet) bool {
	f := s.frame
	if s.at >= f.PayloadLen || s.at >= len(f.Payload) {
		s.state = splitDone
		return false
	}
	n := min(s.size, f.PayloadLen-s.at)
	b := f.Payload[s.at:min(s.at+n, len(f.Payload))]
	Decode(b, n, p)
	switch {
	case n < BTHSize+ICRCSize:
		p.ICRC = NotCheckedUnknown
	case len(b) == n:
		index := uint16(s.index)
		p.ICRC = s.verdict(b, index*s.step)
		// Segmentation counts the identification up. A receiver that merges
		// datagrams also takes those which a sender numbered all alike.
		if p.ICRC == Bad && s.step == 1 && index == 1 && s.kind == kindIPv4 {
			if s.verdict(b, 0) == Good {
				p.ICRC, s.step = Good, 0
			}
		}
	case len(b) == n-ICRCSize:
		p.ICRC = NotCheckedAbsent
	default:
		p.ICRC = NotCheckedCut
	}
	s.at += n
	s.index++
	return true
}
