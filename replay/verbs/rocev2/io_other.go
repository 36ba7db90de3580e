//go:build !linux

package rocev2

import (
	"net"
	"net/netip"
)

// udp is a UDP socket of package net. The system chooses the identification of its
// packets, so that only peers that check ICRCs as ICRCAnyID does, or not at all, accept
// them.
type udp struct {
	conn   *net.UDPConn
	gso    bool
	buffer int
	bufs   []byte
	n      int
	src    netip.AddrPort
}

func openUDP(local netip.AddrPort, buffer int, _ bool) (*udp, error) {
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(local))
	if err != nil {
		return nil, err
	}
	u := &udp{conn: c, buffer: 128 << 10, bufs: make([]byte, 1<<16)}
	if c.SetReadBuffer(buffer) == nil {
		u.buffer = buffer
	}
	return u, nil
}

func (u *udp) close() error { return u.conn.Close() }

func (u *udp) recv(bool) (int, error) {
	n, src, err := u.conn.ReadFromUDPAddrPort(u.bufs)
	u.n, u.src = n, src
	if err != nil {
		return 0, err
	}
	return 1, nil
}

func (u *udp) message(int) (b []byte, size int, src netip.AddrPort) {
	return u.bufs[:u.n], u.n, netip.AddrPortFrom(u.src.Addr().Unmap(), u.src.Port())
}

type batchSys struct{ flat []byte }

func (s *batchSys) init(*batch) {}

func (u *udp) send(b *batch, first int, dst netip.AddrPort) (int, error) {
	for i := first; i < len(b.messages); i++ {
		b.sys.flat = b.flatten(b.sys.flat[:0], &b.segments[b.messages[i].segment])
		if err := u.sendOne(b.sys.flat, dst); err != nil {
			return i - first, err
		}
	}
	return len(b.messages) - first, nil
}

func (u *udp) sendOne(packet []byte, dst netip.AddrPort) error {
	_, err := u.conn.WriteToUDPAddrPort(packet, dst)
	return err
}

func full(error) bool      { return false }
func noOffload(error) bool { return false }
