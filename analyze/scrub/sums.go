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
		s.icrc(h, &h.units[i])
	}
	for i := h.within - 1; i >= 0; i-- {
		h.checksum(&h.sums[i])
	}
}

// icrc completes the invariant CRC of a packet of RoCE or InfiniBand. What it leaves out does not differ yet.
func (s *Scrubber) icrc(h *held, u *unit) {
	if u.icrc < 0 {
		return
	}
	was := binary.LittleEndian.Uint32(h.data[u.icrc:])
	if was == 0 {
		return // the adapter has removed it
	}
	head := h.net
	if h.transport.len() > 0 {
		head.to = h.transport.to
	}
	binary.LittleEndian.PutUint32(h.out[u.icrc:], was^s.covered(h.data, head, u)^s.covered(h.out, head, u))
}

// covered is the CRC of what the ICRC covers, and of what it leaves out.
func (s *Scrubber) covered(b []byte, head span, u *unit) uint32 {
	if head.to == u.bth {
		return roce.Linear(b[head.from:u.icrc])
	}
	s.joined = append(append(s.joined[:0], b[head.from:head.to]...), b[u.bth:u.icrc]...)
	return roce.Linear(s.joined)
}

// checksum completes the checksum of a header.
func (h *held) checksum(x *summed) {
	const greChecksum = 0x80
	at := x.head.from
	switch x.kind {
	case link.PartIPv4:
		h.repair(at+10, h.change(x.head))
	case link.PartUDP:
		at += 6
		if binary.BigEndian.Uint16(h.data[at:]) == 0 {
			return // none
		}
		h.repair(at, h.change(x.addresses)+h.change(x.head)+h.change(x.body))
		if binary.BigEndian.Uint16(h.out[at:]) == 0 {
			binary.BigEndian.PutUint16(h.out[at:], modulus)
		}
	case link.PartTCP:
		h.repair(at+16, h.change(x.addresses)+h.change(x.head)+h.change(x.body))
	case link.PartGRE:
		if h.data[at]&greChecksum != 0 {
			h.repair(at+4, h.change(x.head)+h.change(x.body))
		}
	}
}

// modulus is 2^16 − 1: Internet checksums add words in ones' complement (RFC 1071).
const modulus = 0xffff

// change is by how much the sum of the words of a part, modulo 65535, is greater than it was.
func (h *held) change(p span) uint64 {
	return (sum(h.out[p.from:p.to]) + modulus - sum(h.data[p.from:p.to])) % modulus
}

// repair completes the checksum at an offset (RFC 1624), which covers parts that have changed so. All but the last have an even length.
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
