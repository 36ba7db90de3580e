package scrub

import (
	"encoding/binary"
	"math/bits"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// Checksums are linear: that of the copy follows from that of the packet and from how the two differ. So it is as right as before, and as wrong.

// finish completes the checksums of the copy of a packet.
func (s *Scrubber) finish(h *held) {
	if len(h.units) == 0 {
		h.within = len(h.sums)
	}
	for i := len(h.sums) - 1; i >= h.within; i-- { // what is inside comes first
		h.checksum(&h.sums[i])
	}
	for i := range h.units {
		if u := &h.units[i]; u.icrc >= 0 {
			binary.LittleEndian.PutUint32(h.out[u.icrc:], u.error^s.covered(h.out, h, u))
		}
	}
	for i := h.within - 1; i >= 0; i-- {
		h.checksum(&h.sums[i])
	}
}

// invariant notes what is captured of the invariant CRC of a packet of RoCE or InfiniBand, which stands at an offset.
func (s *Scrubber) invariant(h *held, u *unit, at int) {
	if was := binary.LittleEndian.Uint32(h.data[at:]); was != 0 { // else the adapter has removed it
		u.icrc = at
		u.error = was ^ s.covered(h.data, h, u)
	}
}

// covered is the CRC of what the ICRC covers, and of what it leaves out, which does not differ before outer checksums are completed.
func (s *Scrubber) covered(b []byte, h *held, u *unit) uint32 {
	head := h.net
	if h.transport.len() > 0 {
		head.to = h.transport.to
	}
	if head.to == u.bth {
		return roce.Linear(b[head.from:u.icrc])
	}
	s.joined = append(append(s.joined[:0], b[head.from:head.to]...), b[u.bth:u.icrc]...)
	return roce.Linear(s.joined)
}

// summed is a checksum: where it stands, and what it covers.
type summed struct {
	at    int
	parts [3]span
	was   uint64 // the sum of the parts, as captured
	udp   bool
}

func (x *summed) sum(b []byte) (total uint64) {
	for _, p := range x.parts {
		if p.from < p.to {
			total += sum(b[p.from:p.to])
		}
	}
	return total
}

// summed notes the checksum of a header, if it has one. All parts but the last have an even length.
func (h *held) summed(kind link.PartKind, addresses, head, body span) {
	const (
		greChecksum = 0x80
		ofIPv4      = 10
		ofUDP       = 6
		ofTCP       = 16
		ofGRE       = 4
	)
	x := summed{parts: [3]span{addresses, head, body}}
	switch {
	case kind == link.PartIPv4:
		x.at, x.parts = head.from+ofIPv4, [3]span{head}
	case kind == link.PartUDP && binary.BigEndian.Uint16(h.data[head.from+ofUDP:]) != 0:
		x.at, x.udp = head.from+ofUDP, true
	case kind == link.PartTCP:
		x.at = head.from + ofTCP
	case kind == link.PartGRE && h.data[head.from]&greChecksum != 0:
		x.at, x.parts[0] = head.from+ofGRE, span{}
	default:
		return
	}
	x.was = x.sum(h.data)
	h.sums = append(h.sums, x)
}

// checksum completes the checksum of a header.
func (h *held) checksum(x *summed) {
	h.repair(x.at, x.sum(h.out)+3*modulus-x.was)
	if x.udp && binary.BigEndian.Uint16(h.out[x.at:]) == 0 { // which says that there is none
		binary.BigEndian.PutUint16(h.out[x.at:], modulus)
	}
}

// modulus is 2^16 − 1: Internet checksums add words in ones' complement (RFC 1071).
const modulus = 0xffff

// repair completes the checksum at an offset (RFC 1624). The sum of what it covers is so much greater than it was, modulo 65535.
func (h *held) repair(at int, change uint64) {
	if change %= modulus; change == 0 {
		return
	}
	next := (uint64(^binary.BigEndian.Uint16(h.data[at:])) + change) % modulus
	if next == 0 {
		next = modulus // a sum of what is not all zero
	}
	binary.BigEndian.PutUint16(h.out[at:], ^uint16(next))
}

// sum is the sum of the words of b, modulo 65535: as that of words of 64 bits, of which 2^64 − 1 is a multiple (RFC 1071, section 2).
func sum(b []byte) uint64 {
	var s, carry uint64
	for ; len(b) >= 32; b = b[32:] {
		w := (*[32]byte)(b)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(w[:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(w[8:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(w[16:]), carry)
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(w[24:]), carry)
	}
	for len(b) >= 8 {
		s, carry = bits.Add64(s, binary.BigEndian.Uint64(b), carry)
		b = b[8:]
	}
	var rest [8]byte
	copy(rest[:], b)
	s, carry = bits.Add64(s, binary.BigEndian.Uint64(rest[:]), carry)
	return (s%modulus + carry) % modulus
}
