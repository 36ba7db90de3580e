package decode

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
)

// TestPlace compares places with those of tunnels that remember nothing of the packet before, for hosts, tunnels and capture points that share
// bytes, and for more pairs than are kept.
func TestPlace(t *testing.T) {
	for _, pairs := range []int{4, 300, maxTunnelPairs + 500} {
		t.Run(fmt.Sprint(pairs), func(t *testing.T) {
			r := rand.New(rand.NewPCG(114, uint64(pairs)))
			var short, long tunnels
			short.begin(nil)
			long.begin(nil)
			n := max(5000, 3*pairs)
			for i := range n {
				pair := r.IntN(pairs)
				if late := min(8, pairs); i > n/2 && r.IntN(2) == 0 { // some are new when no more are kept
					pair = pairs + r.IntN(late)
				}
				var net [20]byte
				binary.BigEndian.PutUint32(net[12:], uint32(pair)<<4)
				binary.BigEndian.PutUint32(net[16:], uint32(pair)<<4+uint32(r.IntN(3)))
				f := link.Frame{Proto: link.UDP, SrcPort: 7, DstPort: 4791, Payload: []byte{byte(r.IntN(3)), 1, 2}, PayloadLen: 3}
				f.Src, f.Dst = netip.AddrFrom4([4]byte(net[12:])), netip.AddrFrom4([4]byte(net[16:]))
				if r.IntN(2) == 0 {
					f.Src, f.Dst = f.Dst, f.Src
				}
				if r.IntN(3) > 0 {
					f.Net = net[:] // or all are in one place
				}
				if r.IntN(3) > 0 {
					f.Tunnels = append(f.Tunnels, link.Tunnel{Type: link.VXLAN, HasID: true, ID: uint32(r.IntN(3))})
				}
				if r.IntN(3) == 0 {
					f.Tunnels = append(f.Tunnels, link.Tunnel{Type: link.ERSPAN, HasID: true, ID: uint32(r.IntN(2))})
				}
				if r.IntN(50) == 0 {
					f.Proto = link.Fragment
				}
				p := capture.Packet{Tap: uint16(r.IntN(3))}
				clear(long.recent[:])
				long.tapOf = 0
				tap, tenant := short.place(&p, &f)
				if wantTap, want := long.place(&p, &f); tap != wantTap || tenant != want {
					t.Fatalf("%+v: capture point %d, tenant %d; want %d, %d", f, tap, tenant, wantTap, want)
				}
			}
			if len(short.hosts) != len(long.hosts) || len(short.taps) != len(long.taps) {
				t.Errorf("%d and %d hosts, %d and %d capture points", len(short.hosts), len(long.hosts), len(short.taps), len(long.taps))
			}
		})
	}
}

// TestCopyWithin: what comes much later with the same bytes is no copy.
func TestCopyWithin(t *testing.T) {
	for later, shared := range map[int64]bool{0: true, 2e9: true, -2e9: true, 3600e9: false, -3600e9: false} {
		var all tunnels
		all.begin(nil)
		f := link.Frame{Proto: link.UDP, SrcPort: 7, DstPort: 4791, Payload: []byte{1, 2, 3}, PayloadLen: 3}
		f.Src, f.Dst = netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		const then = 1_700_000_000_000_000_000
		_, bare := all.place(&capture.Packet{Time: then}, &f)
		f.Tunnels = append(f.Tunnels, link.Tunnel{Type: link.VXLAN, HasID: true, ID: 5})
		if _, wrapped := all.place(&capture.Packet{Time: then + later}, &f); (wrapped == bare) != shared {
			t.Errorf("%d ns later: tenants %d and %d", later, bare, wrapped)
		}
	}
}

// TestSum compares packets that differ in one of what a sum covers, or are cut, with one that is whole.
func TestSum(t *testing.T) {
	var tunnels tunnels
	whole := link.Frame{Proto: link.TCP, SrcPort: 1, DstPort: 2, TCPSeq: 3, TCPAck: 4, Payload: make([]byte, 600), PayloadLen: 600}
	of := tunnels.sum(&whole)
	for _, c := range []struct {
		name   string
		change func(f *link.Frame)
		equal  bool
	}{
		{"a copy", func(*link.Frame) {}, true},
		{"source port", func(f *link.Frame) { f.SrcPort++ }, false},
		{"destination port", func(f *link.Frame) { f.DstPort++ }, false},
		{"length", func(f *link.Frame) { f.PayloadLen++ }, false},
		{"length of a whole one", func(f *link.Frame) { f.Payload, f.PayloadLen = f.Payload[:599], 599 }, false},
		{"sequence number", func(f *link.Frame) { f.TCPSeq++ }, false},
		{"acknowledgement", func(f *link.Frame) { f.TCPAck++ }, false},
		{"first byte", func(f *link.Frame) { f.Payload[0]++ }, false},
		{"byte of the head", func(f *link.Frame) { f.Payload[35]++ }, false},
		{"byte behind it", func(f *link.Frame) { f.Payload[36]++ }, false},
		{"byte 127", func(f *link.Frame) { f.Payload[127]++ }, false},
		{"byte in the middle", func(f *link.Frame) { f.Payload[300]++ }, true},
		{"byte 472", func(f *link.Frame) { f.Payload[472]++ }, false},
		{"last byte", func(f *link.Frame) { f.Payload[599]++ }, false},
		{"cut behind the head", func(f *link.Frame) { f.Payload = f.Payload[:36] }, true},
		{"cut in the head", func(f *link.Frame) { f.Payload = f.Payload[:35] }, false},
		{"nothing captured", func(f *link.Frame) { f.Payload = nil }, false},
		{"cut, first byte", func(f *link.Frame) { f.Payload = f.Payload[:200]; f.Payload[0]++ }, false},
		{"cut, source port", func(f *link.Frame) { f.Payload = f.Payload[:200]; f.SrcPort++ }, false},
	} {
		f := whole
		f.Payload = bytes.Clone(whole.Payload)
		c.change(&f)
		if got := tunnels.sum(&f); got.equal(of) != c.equal || of.equal(got) != c.equal {
			t.Errorf("%s: equal is %v", c.name, got.equal(of))
		}
	}
	cut := whole
	cut.Payload = cut.Payload[:100]
	of = tunnels.sum(&cut)
	cut.Payload = cut.Payload[:40]
	if !of.equal(tunnels.sum(&cut)) {
		t.Error("cut at different places")
	}
}
