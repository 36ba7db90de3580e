package rocev2

import (
	"encoding/binary"
	"hash/crc32"
	"math/bits"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/roce"
)

const (
	udpSize  = 8
	ipv4Size = 20
	ipv6Size = 40
	onesSize = 8 // the place of the local route header, which RoCE does not have

	protoUDP = 17
	flagDF   = 0x4000

	// hash/crc32 is slow on less than fastRun bytes and on what follows the last
	// multiple of fastStep: 48 bytes take twice as long as 64. So some payload is
	// copied behind the headers, and all of it where it fits into icrcRun.
	fastRun  = 64
	fastStep = 16
	icrcRun  = 256
)

// icrc computes the invariant CRCs of packets from one address to another
// (IBTA volume 1, section 7.8.1; annex A17). The masked headers stand ready in
// b; only lengths and identification change from packet to packet.
type icrc struct {
	v6       bool
	n        int // length of what precedes the BTH in b
	src, dst netip.AddrPort
	b        [icrcRun]byte
}

func (c *icrc) set(src, dst netip.AddrPort) {
	c.src, c.dst = src, dst
	clear(c.b[:])
	for i := range onesSize {
		c.b[i] = 0xff
	}
	h := c.b[onesSize:]
	if c.v6 = src.Addr().Is6() && !src.Addr().Is4In6(); c.v6 {
		binary.BigEndian.PutUint32(h, 0x6fffffff) // traffic class and flow label masked
		h[6], h[7] = protoUDP, 0xff               // hop limit masked
		s, d := src.Addr().As16(), dst.Addr().As16()
		copy(h[8:], s[:])
		copy(h[24:], d[:])
		h = h[ipv6Size:]
		c.n = onesSize + ipv6Size + udpSize
	} else {
		h[0], h[1] = 0x45, 0xff // TOS masked
		binary.BigEndian.PutUint16(h[6:], flagDF)
		h[8], h[9], h[10], h[11] = 0xff, protoUDP, 0xff, 0xff // TTL and checksum masked
		s, d := src.Addr().Unmap().As4(), dst.Addr().Unmap().As4()
		copy(h[12:], s[:])
		copy(h[16:], d[:])
		h = h[ipv4Size:]
		c.n = onesSize + ipv4Size + udpSize
	}
	binary.BigEndian.PutUint16(h, src.Port())
	binary.BigEndian.PutUint16(h[2:], dst.Port())
	h[6], h[7] = 0xff, 0xff // checksum masked
}

// start puts the headers of a packet into b, masked, and returns where they end.
// The packet has size bytes from the BTH through the ICRC; hdr is its beginning:
// BTH and extension headers, not more than BTH and RETH.
func (c *icrc) start(size int, id uint16, hdr []byte) int {
	if c.v6 {
		binary.BigEndian.PutUint16(c.b[onesSize+4:], uint16(udpSize+size))
	} else {
		binary.BigEndian.PutUint16(c.b[onesSize+2:], uint16(ipv4Size+udpSize+size))
		binary.BigEndian.PutUint16(c.b[onesSize+4:], id)
	}
	binary.BigEndian.PutUint16(c.b[c.n-4:], uint16(udpSize+size))
	n := c.n + copy(c.b[c.n:], hdr)
	c.b[c.n+4] = 0xff // FECN, BECN and what is reserved
	return n
}

// beside is how many of the next bytes of a packet, of left, go into b behind the
// n that are there.
func beside(n, left int) int {
	switch {
	case left <= icrcRun-n:
		return left
	case n < fastRun:
		return fastRun - n
	}
	return -n & (fastStep - 1)
}

// check verifies packet, BTH through ICRC, received as the index-th of its
// call. It returns the IPv4 identification that makes the ICRC right.
func (c *icrc) check(packet []byte, index uint16, mode ICRCCheck) (id uint16, ok bool) {
	end := len(packet) - roce.ICRCSize
	stored := binary.LittleEndian.Uint32(packet[end:])
	n, rest := c.start(len(packet), index, packet[:roce.BTHSize]), packet[roce.BTHSize:end]
	k := copy(c.b[n:], rest[:beside(n, len(rest))])
	sum := crc32.Update(crc32.Update(0, crc32.IEEETable, c.b[:n+k]), crc32.IEEETable, rest[k:])
	switch {
	case sum == stored:
		return index, true
	case c.v6:
		return 0, false
	}
	// CRCs are linear: the difference is the CRC, from zero, of the difference
	// in the identification and the flags after it, followed by as many zeros
	// as there are bytes behind. Undoing these leaves the differing bytes
	// themselves in the register, and nothing else if nothing else differs.
	d := roce.UnshiftCRC(sum^stored, ipv4Size-4+udpSize+end)
	if rest := d >> 16; rest != 0 && rest != flagDF>>8 {
		return 0, false
	}
	id = index ^ bits.ReverseBytes16(uint16(d))
	if mode == ICRCOwnID && id >= maxSegments {
		return 0, false
	}
	return id, true
}
