//go:build !linux

package rocev2

import (
	"net/netip"
	"testing"
)

// bare is a socket of package net.
type bare struct{ *udp }

func openBare(b *testing.B, at netip.AddrPort) *bare {
	u, err := openUDP(at, 4<<20, true)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { u.close() })
	return &bare{u}
}

// recv waits for datagrams.
func (s *bare) recv() (int, error) { return s.udp.recv(true) }
