package endpoint

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs/rocev2"
)

// fabric makes providers for both ends of a test.
type fabric struct {
	name string
	// pair returns the provider that listens, where, and the one that dials.
	pair func(t testing.TB, tap verbs.Tap) (server verbs.Provider, at netip.AddrPort, client verbs.Provider)
}

var fabrics = []fabric{
	{"loop", func(t testing.TB, _ verbs.Tap) (verbs.Provider, netip.AddrPort, verbs.Provider) {
		p := newLoop(t, loop.Options{Async: true})
		return p, anywhere, p
	}},
	{"iwarp", func(t testing.TB, tap verbs.Tap) (verbs.Provider, netip.AddrPort, verbs.Provider) {
		server, client := must(iwarp.New(iwarp.Options{})), must(iwarp.New(iwarp.Options{Tap: tap}))
		t.Cleanup(func() { _, _ = server.Close(), client.Close() })
		return server, anywhere, client
	}},
	{"rocev2", func(t testing.TB, tap verbs.Tap) (verbs.Provider, netip.AddrPort, verbs.Provider) {
		server := must(rocev2.New(rocev2.Options{CheckICRC: rocev2.ICRCOwnID}))
		client := must(rocev2.New(rocev2.Options{CheckICRC: rocev2.ICRCOwnID, Local: address(t), Tap: tap}))
		t.Cleanup(func() { _, _ = server.Close(), client.Close() })
		return server, netip.AddrPortFrom(address(t), 20049), client
	}},
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// address is one of the loopback network whose port 4791 is free, so that tests
// that run side by side do not meet.
func address(t testing.TB) netip.Addr {
	t.Helper()
	for range 100 {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], 127<<24|rand.Uint32()&0xfffffe|1)
		a := netip.AddrFrom4(b)
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, 4791)))
		if err == nil {
			_ = c.Close()
			return a
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Fatal(err)
		}
	}
	t.Fatal("no address of 127.0.0.0/8 has UDP port 4791 free")
	return netip.Addr{}
}

// TestFabrics moves data in all modes over the soft providers.
func TestFabrics(t *testing.T) {
	for _, f := range fabrics {
		if f.name == "loop" {
			continue // TestTable
		}
		t.Run(f.name, func(t *testing.T) {
			runTable(t, f, []int{0, 999, 65537}, []int{4096}, []int{32 << 10})
			for _, model := range []Model{ReadWrite, ReadRead} {
				sp, at, cp := f.pair(t, nil)
				o := Options{Model: model, SegmentSize: 128 << 10}
				_, r := startAt(t, sp, at, cp, nil, o, o)
				var c transport.Call
				for i, q := range requests(1 << 20) {
					if err := try(t, r, &c, &q, true); err != nil {
						t.Errorf("request %d of 1 MiB: %v", i, err)
					}
				}
			}
		})
	}
}
