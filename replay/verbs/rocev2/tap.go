package rocev2

import (
	"encoding/binary"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// tap shows packets as they are on the wire: with IP and UDP headers.
type tap struct {
	to  verbs.Tap
	mu  sync.Mutex
	buf []byte
}

func (t *tap) init(to verbs.Tap) { t.to = to }

func (t *tap) on() bool { return t.to != nil }

// packet shows one packet, BTH through ICRC.
func (t *tap) packet(src, dst netip.AddrPort, id uint16, b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = appendHeaders(t.buf[:0], src, dst, id, len(b))
	n := len(t.buf) - udpSize
	t.buf = append(t.buf, b...)
	putUDPChecksum(t.buf, n, src, dst)
	t.to.Packet(time.Now(), t.buf)
}

// batch shows the packets of a batch, with the identifications that the kernel
// will give them.
func (t *tap) batch(b *batch, src, dst netip.AddrPort) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for i := range b.messages {
		m := &b.messages[i]
		for j := range m.segments {
			s := &b.segments[m.segment+j]
			t.buf = appendHeaders(t.buf[:0], src, dst, uint16(j), int(s.size))
			n := len(t.buf) - udpSize
			t.buf = b.flatten(t.buf, s)
			putUDPChecksum(t.buf, n, src, dst)
			t.to.Packet(now, t.buf)
		}
	}
}

// appendHeaders appends the headers of IP and UDP for n bytes of payload.
func appendHeaders(b []byte, src, dst netip.AddrPort, id uint16, n int) []byte {
	if a := src.Addr(); a.Is6() && !a.Is4In6() {
		b = append(b, 0x60, 0, 0, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(udpSize+n))
		b = append(b, protoUDP, 64)
		s, d := a.As16(), dst.Addr().As16()
		b = append(append(b, s[:]...), d[:]...)
	} else {
		at := len(b)
		b = append(b, 0x45, 0)
		b = binary.BigEndian.AppendUint16(b, uint16(ipv4Size+udpSize+n))
		b = binary.BigEndian.AppendUint16(b, id)
		b = binary.BigEndian.AppendUint16(b, flagDF)
		b = append(b, 64, protoUDP, 0, 0)
		s, d := a.Unmap().As4(), dst.Addr().Unmap().As4()
		b = append(append(b, s[:]...), d[:]...)
		binary.BigEndian.PutUint16(b[at+10:], ^fold(sum16(0, b[at:])))
	}
	b = binary.BigEndian.AppendUint16(b, src.Port())
	b = binary.BigEndian.AppendUint16(b, dst.Port())
	b = binary.BigEndian.AppendUint16(b, uint16(udpSize+n))
	return append(b, 0, 0)
}

// putUDPChecksum fills in the checksum of the UDP header at b[at:].
func putUDPChecksum(b []byte, at int, src, dst netip.AddrPort) {
	s, d := src.Addr().Unmap().AsSlice(), dst.Addr().Unmap().AsSlice()
	n := len(b) - at
	sum := sum16(sum16(sum16(uint64(protoUDP)+uint64(n), s), d), b[at:])
	v := ^fold(sum)
	if v == 0 {
		v = 0xffff
	}
	binary.BigEndian.PutUint16(b[at+6:], v)
}

// sum16 adds the 16-bit words of b.
func sum16(sum uint64, b []byte) uint64 {
	for len(b) >= 4 {
		sum += uint64(binary.BigEndian.Uint32(b))
		b = b[4:]
	}
	switch len(b) {
	case 3:
		sum += uint64(b[0])<<8 + uint64(b[1]) + uint64(b[2])<<8
	case 2:
		sum += uint64(b[0])<<8 + uint64(b[1])
	case 1:
		sum += uint64(b[0]) << 8
	}
	return sum
}

func fold(sum uint64) uint16 {
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
