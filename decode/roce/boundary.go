package roce

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
)

// The end of a packet that others follow in one datagram is found by its ICRC, which covers its length. A
// packet ends where the next base transport header begins, or with the datagram. So every place where a
// header may begin is a candidate, and the CRC continues from one to the next: each byte is summed once,
// whatever the number of candidates.

// joint is where a packet starts whose end is searched for.
type joint struct {
	at    int    // its offset in the payload
	first uint16 // the lowest IPv4 identification that it may have
	reach uint16 // how many more it may have
}

// found is where a packet ends.
type found struct {
	size int    // BTH through ICRC; 0 if there is none
	good bool   // its ICRC says so
	id   uint16 // the IPv4 identification that it was sent with, if it does
}

const (
	// sumFactor bounds the work that a crafted datagram can cause: at most this many times its length, plus
	// sumLeast, is summed or searched for headers.
	sumFactor = 8
	sumLeast  = 4096
	// candidateCost is the cost of a candidate, in bytes summed: the masked headers are summed again with its
	// length in them, and two or four multiplications undo the bytes after them.
	candidateCost = 128
)

// measure searches for the end of the packet at j.
func (s *Splitter) measure(j joint) found {
	s.alone = false
	b, n := s.from(j.at)
	if len(b) < BTHSize+ICRCSize || s.left < 0 {
		return found{}
	}
	h := BTH(b[:BTHSize])
	info := &opcodes[h.Opcode()]
	if h.TVer() != 0 || info.flags == 0 {
		return found{}
	}
	f, c := s.frame, &s.check
	head := c.head(s.kind, f.Net, f.Transport) + copy(c.scratch[icrcLead+icrcOnes+len(f.Net)+udpSize:], h)
	c.scratch[head-BTHSize+bthECN] = 0xff
	start := aligned(head)
	pkey := h.PKey()
	data, done := ^uint32(0), BTHSize
	most := min(len(b), int(info.size)+ICRCSize+MaxMTU)
	s.alone = true
	for end := int(info.size) + ICRCSize; end <= most; end += 4 {
		if end = candidate(b[:most], end, n, pkey); end > most {
			s.left -= most - done
			break
		}
		s.alone = s.alone && end == n
		stop := end - ICRCSize
		if s.left -= stop - done + candidateCost; s.left < 0 {
			break
		}
		data = crc32.Update(data, crc32.IEEETable, b[done:stop])
		done = stop
		// The CRC register after the headers, according to the stored ICRC and according to the headers.
		c.alone(s.kind, len(f.Net), end, j.first)
		x := UnshiftCRC(data^binary.LittleEndian.Uint32(b[stop:]), stop-BTHSize)
		x ^= ^crc32.Update(^uint32(0), crc32.IEEETable, c.scratch[start:head])
		if x == 0 {
			return found{end, true, j.first}
		}
		if s.kind == kindIPv4 && j.reach > 0 {
			x = UnshiftCRC(x, len(f.Net)-4+udpSize+BTHSize)
			if id, ok := identification(x, j.first); ok && id-j.first <= j.reach {
				return found{end, true, id}
			}
		}
	}
	return found{}
}

// identification is the IPv4 identification that would make an ICRC right that is wrong for id. x is the
// difference, without the zeros that stand for what follows the field.
func identification(x uint32, id uint16) (uint16, bool) {
	return id ^ bits.ReverseBytes16(uint16(x)), x>>16 == 0
}

// candidate is the first place from at, in steps of four, where a packet may end. b has n bytes on the wire.
// A packet ends with all of them, or where the next header of the same partition may begin. The result is
// beyond b if there is no candidate.
func candidate(b []byte, at, n int, pkey uint16) int {
	for ; at+4 <= len(b); at += 4 {
		key := binary.BigEndian.Uint16(b[at+bthPKey:])
		if (key == pkey || key|0x8000 == DefaultPKey) && begins(b, at, n, pkey) {
			return at
		}
	}
	if at == n || at <= len(b) && begins(b, at, n, pkey) {
		return at
	}
	return len(b) + 4
}

// begins reports whether b[at:], of n bytes on the wire, may be a packet of the same partition as the
// previous one, or of the default partition.
func begins(b []byte, at, n int, pkey uint16) bool {
	if n-at < BTHSize+ICRCSize || at+4 > len(b) {
		return n-at >= BTHSize+ICRCSize
	}
	key := binary.BigEndian.Uint16(b[at+bthPKey:])
	return (key == pkey || key|0x8000 == DefaultPKey) &&
		b[at+bthFlags]&maskTVer == 0 && opcodes[b[at+bthOpcode]].flags != 0
}

// maxTries bounds the places where measure is tried after a damaged packet.
const maxTries = 8

// recover searches for the end of the packet at the given offset, whose ICRC is wrong: the place where a
// packet with a right ICRC begins. first and reach are the identifications that such a packet may have.
func (s *Splitter) recover(at int, first, reach uint16) int {
	b, n := s.from(at)
	if len(b) < BTHSize {
		return 0
	}
	info := &opcodes[b[bthOpcode]]
	pkey, most := BTH(b[:BTHSize]).PKey(), min(len(b)-1, int(info.size)+ICRCSize+MaxMTU)
	end := int(info.size) + ICRCSize
	for range maxTries {
		if s.left < 0 {
			return 0
		}
		from := end
		end = candidate(b[:most], end, n, pkey)
		if s.left -= max(min(end, most)-from, 0); end > most {
			break
		}
		if s.measure(joint{at + end, first, reach}).good {
			return end
		}
		end += 4
	}
	return 0
}

// continued is the size of a packet, given what its opcode allows and the header of the packet that continues
// it. It is for frames that cannot be one packet and have no usable ICRC.
func (s *Splitter) continued(at int, p *Packet) int {
	info := &opcodes[p.Opcode]
	base := int(info.size) + ICRCSize
	switch {
	case p.TVer != 0 || info.flags == 0 || s.left < 0:
		return 0
	case info.payload == payloadMTU:
		for mtu := 256; mtu <= MaxMTU; mtu <<= 1 {
			if s.follows(at, base+mtu) {
				return base + mtu
			}
		}
		return 0
	case info.payload == payloadFixed:
		if size := base + int(info.fixed); s.follows(at, size) {
			return size
		}
		return 0
	case p.Headers.Has(HasRETH): // RDMA Write Only says its length
		if n := p.RETH.DMALen; n <= MaxMTU {
			if size := base + int(n+3)&^3; s.follows(at, size) {
				return size
			}
		}
		return 0
	}
	b, _ := s.from(at)
	b = b[:min(len(b), base+MaxMTU+BTHSize)]
	psn := (p.PSN + 1) & mask24
	for size := base; size+BTHSize <= len(b); size += 4 {
		// Check the PSN first: there may be a thousand places to examine.
		if binary.BigEndian.Uint32(b[size+bthAckReq:])&mask24 == psn && s.follows(at, size) {
			s.left -= size
			return size
		}
	}
	s.left -= len(b)
	return 0
}

// follows reports whether the bytes at offset at+size look like the packet after the one at at: the same
// queue pair and the next PSN. The probability of a chance match is below 2^-60.
func (s *Splitter) follows(at, size int) bool {
	b, n := s.from(at)
	if size+BTHSize > len(b) || size+BTHSize+ICRCSize > n {
		return false
	}
	x, y := BTH(b[:BTHSize]), BTH(b[size:size+BTHSize])
	return (x.PSN()+1-y.PSN())&mask24 == 0 && y.DestQP() == x.DestQP() && y.PKey() == x.PKey() &&
		y.TVer() == 0 && y.Opcode().Service() == x.Opcode().Service() && y.Opcode().IsDefined()
}

// from is the captured part of the payload from an offset, and its length on the wire.
func (s *Splitter) from(at int) ([]byte, int) {
	f := s.frame
	b := f.Payload[:min(len(f.Payload), f.PayloadLen)]
	return b[min(at, len(b)):], f.PayloadLen - at
}
