package rocev2

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	verbstap "github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// sealed is a packet with an ICRC as decode computes it.
func sealed(t *testing.T, src, dst netip.AddrPort, id uint16, df bool, ib []byte) []byte {
	t.Helper()
	packet := append(append([]byte(nil), ib...), 0, 0, 0, 0)
	ip := verbstap.AppendUDP(nil, src, dst, id, true, packet)
	n := len(ip) - len(packet)
	if !df {
		ip[6] &^= 0x40
	}
	sum, ok := roce.ICRC(link.UDP, ip[:n-8], ip[n-8:n], ib)
	if !ok {
		t.Fatal("no ICRC")
	}
	binary.LittleEndian.PutUint32(packet[len(ib):], sum)
	return packet
}

func TestICRC(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, addrs := range [][2]string{{"192.0.2.1:50000", "192.0.2.2:4791"}, {"[2001:db8::1]:4791", "[2001:db8::2]:4791"}} {
		src, dst := netip.MustParseAddrPort(addrs[0]), netip.MustParseAddrPort(addrs[1])
		var c icrc
		c.set(src, dst)
		v6 := src.Addr().Is6()
		for _, n := range []int{0, 4, 8, 12, 16, 20, 100, 184, 188, 192, 196, 200, 204, 208, 212, 256, 1024, 4096} {
			ib := make([]byte, roce.BTHSize+n)
			for i := range ib {
				ib[i] = byte(rng.Uint32())
			}
			for range 80 {
				index, id := uint16(rng.IntN(64)), uint16(rng.Uint32())
				p := sealed(t, src, dst, id, true, ib)
				if got, ok := c.check(p, index, ICRCAnyID); !ok || !v6 && got != id {
					t.Fatalf("%v, %d bytes: identification %#x taken for %#x, %v", src, n, id, got, ok)
				}
				if v6 {
					continue
				}
				if _, ok := c.check(p, index, ICRCOwnID); ok != (id < maxSegments || id == index) {
					t.Fatalf("identification %#x of a strange sender: %v", id, ok)
				}
				if got, ok := c.check(sealed(t, src, dst, id, false, ib), index, ICRCAnyID); !ok || got != id {
					t.Fatalf("without DF, %#x taken for %#x, %v", id, got, ok)
				}
				if got, ok := c.check(sealed(t, src, dst, index, true, ib), index, ICRCOwnID); !ok || got != index {
					t.Fatalf("index %d taken for %d, %v", index, got, ok)
				}
			}
		}
	}
}

// A batch seals packets of all sizes, however their payload is divided, as check expects it.
func TestSeal(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, addrs := range [][2]string{{"192.0.2.1:50000", "192.0.2.2:4791"}, {"[2001:db8::1]:4791", "[2001:db8::2]:4791"}} {
		src, dst := netip.MustParseAddrPort(addrs[0]), netip.MustParseAddrPort(addrs[1])
		var c, d icrc
		c.set(src, dst)
		d.set(src, dst)
		b := newBatch(&c, true)
		defer b.free()
		for range 2000 {
			b.reset()
			h := b.header([]int{roce.BTHSize, roce.BTHSize + roce.RETHSize, roce.BTHSize + 4}[rng.IntN(3)])
			for i := range h {
				h[i] = byte(rng.Uint32())
			}
			for range rng.IntN(4) {
				p := make([]byte, rng.IntN([]int{8, 70, 300, 1300}[rng.IntN(4)]))
				for i := range p {
					p[i] = byte(rng.Uint32())
				}
				b.payload(p)
			}
			b.finish(kindRequest, 0, 0, 0)
			packet := b.flatten(nil, &b.segments[0])
			if id, ok := d.check(packet, 0, ICRCAnyID); !ok || id != 0 {
				t.Fatalf("%v: a packet of %d bytes, header %d, in %d parts: identification %d, %v", src, len(packet), len(h), len(b.parts), id, ok)
			}
			want := sealed(t, src, dst, 0, true, packet[:len(packet)-roce.ICRCSize])
			if string(want) != string(packet) {
				t.Fatalf("%v: a packet of %d bytes has another ICRC than decode computes", src, len(packet))
			}
		}
	}
}

// What is damaged is noticed, but for about one packet in 2^15.
func TestICRCDamage(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src, dst := netip.MustParseAddrPort("192.0.2.1:50000"), netip.MustParseAddrPort("192.0.2.2:4791")
	var c icrc
	c.set(src, dst)
	ib := make([]byte, roce.BTHSize+64)
	missed, missedOwn := 0, 0
	const rounds = 100000
	good := sealed(t, src, dst, 0, true, ib)
	p := make([]byte, len(good))
	for range rounds {
		copy(p, good)
		for range 1 + rng.IntN(40) {
			p[rng.IntN(len(p))] ^= byte(1 + rng.IntN(255))
		}
		p[4] = good[4] // not covered
		if string(p) == string(good) {
			continue
		}
		if _, ok := c.check(p, 0, ICRCAnyID); ok {
			missed++
		}
		if _, ok := c.check(p, 0, ICRCOwnID); ok {
			missedOwn++
		}
	}
	if missed > 20 || missedOwn > 1 {
		t.Errorf("of %d damaged packets %d passed, %d with the identification of our own", rounds, missed, missedOwn)
	}
}
