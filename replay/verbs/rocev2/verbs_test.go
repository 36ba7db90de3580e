package rocev2

import (
	"encoding/binary"
	"errors"
	"flag"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/verbstest"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

var cycles = flag.Int("cycles", 300, "connections that are made and closed in the test for leaks")

// address is one of the 16 million of the loopback network whose port 4791 is
// free, so that tests that run side by side do not meet.
func address(t testing.TB) netip.Addr {
	t.Helper()
	for range 100 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 127<<24|rand.Uint32()&0xfffffe|1)
		a := netip.AddrFrom4(b)
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 4791)))
		if err == nil {
			c.Close()
			return a
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatal("no address of 127.0.0.0/8 has UDP port 4791 free")
	return netip.Addr{}
}

func provider(t testing.TB, opt Options) *Provider {
	t.Helper()
	p, err := New(opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// suite is verbstest between two addresses.
func suite(t testing.TB, opt Options) verbstest.Options {
	server, client := opt, opt
	client.Local = address(t)
	return verbstest.Options{
		New:     func(t testing.TB) verbs.Provider { return provider(t, server) },
		NewPeer: func(t testing.TB) verbs.Provider { return provider(t, client) },
		Listen:  netip.AddrPortFrom(address(t), 0),
		Cycles:  *cycles,
	}
}

func TestVerbs(t *testing.T) { verbstest.Run(t, suite(t, Options{CheckICRC: ICRCOwnID})) }

// freePort is a UDP port that is free at an address, and was not returned
// before.
func freePort(t testing.TB, a netip.Addr) uint16 {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: a.AsSlice()})
	if err != nil {
		t.Fatal(err)
	}
	// It stays taken for others until the test's own sockets are opened.
	port := c.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	c.Close()
	return port
}

// Two providers share an address, each with a port of its own.
func TestVerbsOneAddress(t *testing.T) {
	for _, a := range []netip.Addr{netip.IPv6Loopback(), address(t)} {
		t.Run(a.String(), func(t *testing.T) {
			server := Options{Port: freePort(t, a), Symmetric: true, CheckICRC: ICRCOwnID}
			client := Options{Port: freePort(t, a), Symmetric: true, PeerPort: server.Port, CheckICRC: ICRCOwnID, Local: a}
			verbstest.Run(t, verbstest.Options{
				New:     func(t testing.TB) verbs.Provider { return provider(t, server) },
				NewPeer: func(t testing.TB) verbs.Provider { return provider(t, client) },
				Listen:  netip.AddrPortFrom(a, 0),
				Cycles:  30,
			})
		})
	}
}

// One provider is both ends, through one socket.
func TestVerbsOneProvider(t *testing.T) {
	a := address(t)
	verbstest.Run(t, verbstest.Options{
		New:    func(t testing.TB) verbs.Provider { return provider(t, Options{Local: a}) },
		Listen: netip.AddrPortFrom(a, 0),
		Cycles: 30,
	})
}

// The smallest packets, one by one, and a small window.
func TestVerbsSmall(t *testing.T) {
	o := suite(t, Options{MTU: 256, NoOffload: true, Window: 16000, ReadWindow: 64000})
	o.Cycles, o.Megabytes = 10, 2
	verbstest.Run(t, o)
}

// A slow link with a delay.
func TestVerbsLink(t *testing.T) {
	o := suite(t, Options{Link: verbs.Link{Delay: 200000, Bandwidth: 4e9}, CheckICRC: ICRCOwnID})
	o.Cycles, o.Megabytes = 10, 2
	verbstest.Run(t, o)
}
