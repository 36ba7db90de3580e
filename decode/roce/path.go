package roce

import (
	"encoding/binary"
	"net/netip"
)

// Path computes the ICRCs of packets that a program sends or receives through a UDP socket, where it never
// sees the IP header. The addresses determine all that the ICRC covers, except for the IPv4 identification
// and the "don't fragment" bit. Linux sends identification 0 and the bit set from an unconnected socket with
// IP_MTU_DISCOVER set to IP_PMTUDISC_DO or _PROBE; segment i of a UDP_SEGMENT batch is sent with
// identification i.
//
// A Path is not safe for concurrent use.
type Path struct {
	check  Checker
	kind   kind
	netLen int
	header [GRHSize + udpSize]byte
}

// NewPath makes the Path of packets from src to dst, both IPv4 or both IPv6.
// It returns false for other addresses.
func NewPath(src, dst netip.AddrPort) (*Path, bool) {
	p := new(Path)
	s, d := src.Addr().Unmap(), dst.Addr().Unmap()
	h := p.header[:]
	switch {
	case s.Is4() && d.Is4():
		p.kind, p.netLen = kindIPv4, 20
		h[0], h[6], h[9] = 0x45, 0x40, 17
		copy(h[12:], s.AsSlice())
		copy(h[16:], d.AsSlice())
	case s.Is6() && d.Is6():
		p.kind, p.netLen = kindIPv6, 40
		h[0], h[6] = 0x60, 17
		copy(h[8:], s.AsSlice())
		copy(h[24:], d.AsSlice())
	default:
		return nil, false
	}
	u := h[p.netLen:]
	binary.BigEndian.PutUint16(u, src.Port())
	binary.BigEndian.PutUint16(u[2:], dst.Port())
	return p, true
}

// Sum is the ICRC of ib, a packet from the BTH through the pad bytes, sent
// with IPv4 identification id.
func (p *Path) Sum(ib []byte, id uint16) uint32 {
	if len(ib) < BTHSize {
		return 0
	}
	return p.check.sum(p.kind, p.header[:p.netLen], p.header[p.netLen:p.netLen+udpSize], ib, true, id)
}

// Append appends the ICRC to b, whose packet starts with the BTH at b[start:].
func (p *Path) Append(b []byte, start int, id uint16) []byte {
	return binary.LittleEndian.AppendUint32(b, p.Sum(b[start:], id))
}

// Check verifies a received datagram with IPv4 identification id.
func (p *Path) Check(b []byte, id uint16) Verdict {
	n := len(b) - ICRCSize
	if n < BTHSize {
		return NotCheckedUnknown
	}
	return verdict(p.Sum(b[:n], id), b[n:])
}
