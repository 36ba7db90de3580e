package rocev2

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/verbstest"
)

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
		Cycles:  300,
	}
}

func TestVerbs(t *testing.T) { verbstest.Run(t, suite(t, Options{CheckICRC: ICRCOwnID})) }
