package decode

import (
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

// TestSum has packets that differ in one of what a sum covers.
func TestSum(t *testing.T) {
	var tunnels tunnels
	payload := make([]byte, 600)
	f := link.Frame{Proto: link.TCP, SrcPort: 1, DstPort: 2, TCPSeq: 3, TCPAck: 4, Payload: payload, PayloadLen: 600}
	seen := map[uint64]string{}
	note := func(what string, f *link.Frame) {
		t.Helper()
		s := tunnels.sum(f)
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s have one sum", what, other)
		}
		seen[s] = what
	}
	note("a packet", &f)
	for what, change := range map[string]func(f *link.Frame){
		"source port": func(f *link.Frame) { f.SrcPort++ }, "destination port": func(f *link.Frame) { f.DstPort++ },
		"length": func(f *link.Frame) { f.PayloadLen++ }, "sequence number": func(f *link.Frame) { f.TCPSeq++ },
		"acknowledgement":     func(f *link.Frame) { f.TCPAck++ },
		"less than both ends": func(f *link.Frame) { f.Payload = f.Payload[:200] }, "one end": func(f *link.Frame) { f.Payload = f.Payload[:100] },
		"nothing": func(f *link.Frame) { f.Payload = nil },
	} {
		g := f
		change(&g)
		note(what, &g)
	}
	for _, at := range []int{0, 127, 472, 599} {
		payload[at]++
		note(fmt.Sprint("byte ", at), &f)
		payload[at]--
	}
}
