package rocev2

import (
	"net/netip"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// bare is a socket that the poller of the runtime knows, as those of package net.
type bare struct {
	*udp
	polled syscall.RawConn
}

func openBare(b *testing.B, at netip.AddrPort) *bare {
	u, err := openUDP(at, 4<<20, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { u.close() })
	fd := -1
	if err := u.raw.Control(func(old uintptr) { fd, err = unix.Dup(int(old)) }); err != nil {
		b.Fatal(err)
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		b.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "udp")
	b.Cleanup(func() { f.Close() })
	polled, err := f.SyscallConn()
	if err != nil {
		b.Fatal(err)
	}
	return &bare{u, polled}
}

// recv waits for datagrams.
func (s *bare) recv() (int, error) {
	err := s.polled.Read(func(fd uintptr) bool {
		s.received, s.errno = 0, 0
		s.read(fd)
		return s.received > 0 || s.errno != 0
	})
	if err == nil && s.errno != 0 {
		err = s.errno
	}
	return s.received, err
}
