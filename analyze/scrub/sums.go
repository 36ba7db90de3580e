package scrub

import (
	"crypto/subtle"
	"encoding/binary"
	"hash/crc32"

	"github.com/rpcrdma/toolkit/decode/link"
)

// Checksums are linear: that of the copy follows from that of the packet and from how the two differ. So it is as right as before, and as wrong.

// finish replaces addresses and completes the copy of a packet.
func (s *Scrubber) finish(h *held) {
	for _, p := range h.places {
		to := p.at + placeSizes[p.kind]
		if s.opt.KeepAddresses {
			h.keep(p.at, to)
		} else {
			s.addresses.replace(p.kind, h.out[p.at:to], h.data[p.at:to])
		}
	}
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

// icrc completes the invariant CRC of a packet of RoCE or InfiniBand. What it leaves out does not differ.
func (s *Scrubber) icrc(h *held, u *unit) {
	if u.icrc < 0 {
		return
	}
	was := binary.LittleEndian.Uint32(h.data[u.icrc:])
	if was == 0 {
		return // the adapter has removed it
	}
	head := span{h.net.from, h.net.to}
	if h.transport.len() > 0 {
		head.to = h.transport.to
	}
	s.diff = s.diff[:0]
	from := u.bth
	if head.to == u.bth {
		from = head.from
	} else {
		s.differ(h.data[head.from:head.to], h.out[head.from:head.to])
	}
	end := u.icrc
	if u.blank {
		end = u.payload.from // what follows differs from zero
	}
	s.differ(h.data[from:end], h.out[from:end])
	binary.LittleEndian.PutUint32(h.out[u.icrc:], was^linear(crc32.IEEETable, s.diff, h.data[end:u.icrc]))
}

// differ appends how two parts differ.
func (s *Scrubber) differ(a, b []byte) {
	at := len(s.diff)
	s.diff = append(s.diff, a...)
	subtle.XORBytes(s.diff[at:], a, b)
}

// linear is a CRC of a and b without what is added to it at its beginning and its end.
func linear(t *crc32.Table, a, b []byte) uint32 {
	return ^crc32.Update(crc32.Update(^uint32(0), t, a), t, b)
}

// checksum completes the checksum of a header.
func (h *held) checksum(x *summed) {
	const greChecksum = 0x80
	at, parts := x.head.from, [3]span{x.addresses, x.head, x.body}
	switch x.kind {
	case link.PartIPv4:
		at, parts = at+10, [3]span{x.head}
	case link.PartUDP:
		if at += 6; binary.BigEndian.Uint16(h.data[at:]) == 0 {
			return // none
		}
	case link.PartTCP:
		at += 16
	case link.PartGRE:
		if h.data[at]&greChecksum == 0 {
			return
		}
		at, parts = at+4, [3]span{x.head, x.body}
	default:
		return
	}
	h.repair(at, parts[:]...)
	if x.kind == link.PartUDP && binary.BigEndian.Uint16(h.out[at:]) == 0 {
		binary.BigEndian.PutUint16(h.out[at:], 0xffff)
	}
}

// repair completes the checksum at offset at (RFC 1071, RFC 1624) of parts of which all but the last have an even length.
func (h *held) repair(at int, parts ...span) {
	const modulus = 0xffff
	was, is := uint64(0), uint64(0)
	for _, p := range parts {
		was += sum(h.data[p.from:p.to])
		is += sum(h.out[p.from:p.to])
	}
	was, is = was%modulus, is%modulus
	if was == is {
		return
	}
	old := uint64(^binary.BigEndian.Uint16(h.data[at:]))
	next := (old + is + modulus - was) % modulus
	if next == 0 {
		next = modulus // a sum of what is not all zero
	}
	binary.BigEndian.PutUint16(h.out[at:], ^uint16(next))
}

// sum is the sum of the words of b, modulo 65535.
func sum(b []byte) (s uint64) {
	for ; len(b) >= 8; b = b[8:] {
		v := binary.BigEndian.Uint64(b)
		s += v>>32 + v&0xffffffff
	}
	for ; len(b) >= 2; b = b[2:] {
		s += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) > 0 {
		s += uint64(b[0]) << 8
	}
	return s
}
