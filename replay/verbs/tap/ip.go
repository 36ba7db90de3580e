package tap

import (
	"encoding/binary"
	"net/netip"
)

// Protocol numbers.
const (
	protoTCP = 6
	protoUDP = 17
)

// Sizes in bytes.
const (
	ipv4Len   = 20
	ipv6Len   = 40
	tcpLen    = 20
	udpLen    = 8
	maxPacket = 65535
)

// appendIP appends an IP header for n bytes of payload.
func appendIP(b []byte, proto uint8, src, dst netip.Addr, id uint16, n int) []byte {
	if src.Is4() {
		start := len(b)
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(ipv4Len+n))
		b = binary.BigEndian.AppendUint16(b, id)
		b = append(b, 0x40, 0, 64, proto, 0, 0) // don't fragment
		s, d := src.As4(), dst.As4()
		b = append(append(b, s[:]...), d[:]...)
		binary.BigEndian.PutUint16(b[start+10:], ^fold(sum(0, b[start:])))
		return b
	}
	b = append(b, 0x60, 0, 0, 0)
	b = binary.BigEndian.AppendUint16(b, uint16(n))
	b = append(b, proto, 64)
	s, d := src.As16(), dst.As16()
	return append(append(b, s[:]...), d[:]...)
}

// transportSum returns the checksum of a TCP segment or UDP datagram with its pseudo
// header.
func transportSum(proto uint8, src, dst netip.Addr, segment []byte) uint16 {
	s, d := src.AsSlice(), dst.AsSlice()
	t := sum(sum(0, s), d) + uint64(proto) + uint64(len(segment))
	return ^fold(sum(t, segment))
}

// sum adds 16-bit words to t; only the last call may have an odd length.
func sum(t uint64, b []byte) uint64 {
	for len(b) >= 8 {
		v := binary.BigEndian.Uint64(b)
		t += v>>48 + v>>32&0xffff + v>>16&0xffff + v&0xffff
		b = b[8:]
	}
	for len(b) >= 2 {
		t += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) > 0 {
		t += uint64(b[0]) << 8
	}
	return t
}

func fold(t uint64) uint16 {
	for t > 0xffff {
		t = t>>16 + t&0xffff
	}
	return uint16(t)
}

// samePlain makes addresses of one connection comparable and of one family.
func samePlain(local, remote netip.AddrPort) (netip.AddrPort, netip.AddrPort) {
	a, b := local.Addr().Unmap().WithZone(""), remote.Addr().Unmap().WithZone("")
	if a.Is4() != b.Is4() {
		a, b = netip.AddrFrom16(a.As16()), netip.AddrFrom16(b.As16())
	}
	return netip.AddrPortFrom(a, local.Port()), netip.AddrPortFrom(b, remote.Port())
}
