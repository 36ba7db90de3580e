package tap

import (
	"encoding/binary"
	"net/netip"
)

// MaxDatagram is the payload of the largest UDP datagram in bytes, over IPv4.
const MaxDatagram = maxPacket - ipv4Len - udpLen

// AppendUDP appends an IP packet with a UDP datagram to dst. id is the IPv4
// identification; the ICRC of RoCEv2 covers it, so it has to be the one that was sent.
// With sum false the datagram has no checksum, as rxe sends it over IPv4.
func AppendUDP(dst []byte, from, to netip.AddrPort, id uint16, sum bool, payload ...[]byte) []byte {
	from, to = samePlain(from, to)
	n := udpLen
	for _, p := range payload {
		n += len(p)
	}
	dst = appendIP(dst, protoUDP, from.Addr(), to.Addr(), id, n)
	at := len(dst)
	dst = binary.BigEndian.AppendUint16(dst, from.Port())
	dst = binary.BigEndian.AppendUint16(dst, to.Port())
	dst = binary.BigEndian.AppendUint16(dst, uint16(n))
	dst = append(dst, 0, 0)
	for _, p := range payload {
		dst = append(dst, p...)
	}
	if sum || !from.Addr().Is4() {
		s := transportSum(protoUDP, from.Addr(), to.Addr(), dst[at:])
		if s == 0 {
			s = 0xffff // zero means none
		}
		binary.BigEndian.PutUint16(dst[at+6:], s)
	}
	return dst
}
