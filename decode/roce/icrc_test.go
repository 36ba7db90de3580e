package roce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
)

// slowICRC computes the ICRC bit by bit over a plain copy of the masked
// packet, in the words of the specification.
func slowICRC(proto link.Proto, net, transport, ib []byte) uint32 {
	net, transport, ib = bytes.Clone(net), bytes.Clone(transport), bytes.Clone(ib)
	lrh := bytes.Repeat([]byte{0xff}, 8)
	switch {
	case proto == link.UDP && net[0]>>4 == 4:
		for _, i := range []int{1, 8, 10, 11} {
			net[i] = 0xff
		}
	case len(net) == 8:
		lrh, net = net, nil
		lrh[0] |= 0xf0
	default:
		if proto == link.InfiniBand {
			net = net[8:]
		}
		net[0] |= 0x0f
		for _, i := range []int{1, 2, 3, 7} {
			net[i] = 0xff
		}
	}
	if proto != link.UDP {
		transport = nil
	} else {
		transport[6], transport[7] = 0xff, 0xff
	}
	ib[4] = 0xff
	r := ^uint32(0)
	for _, part := range [][]byte{lrh, net, transport, ib} {
		for _, v := range part {
			r ^= uint32(v)
			for range 8 {
				r = r>>1 ^ 0xedb88320*(r&1)
			}
		}
	}
	return ^r
}

func TestCheckSamples(t *testing.T) {
	var c Checker
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			f := sampleFrame(t, s.hex)
			if v := c.Check(f); v != Good {
				t.Fatal(v)
			}
			n := len(f.Payload) - ICRCSize
			want := binary.LittleEndian.Uint32(f.Payload[n:])
			if got := slowICRC(f.Proto, f.Net, f.Transport, f.Payload[:n]); got != want {
				t.Errorf("the test's own ICRC is %#x, want %#x", got, want)
			}
			if got, ok := ICRC(f.Proto, f.Net, f.Transport, f.Payload[:n]); got != want || !ok {
				t.Errorf("ICRC is %#x, want %#x", got, want)
			}
			if got := c.Append(f.Proto, f.Net, f.Transport, bytes.Clone(f.Payload[:n])); !bytes.Equal(got, f.Payload) {
				t.Error("Append gives another packet")
			}
			p, ok := NewPath(netip.AddrPortFrom(f.Src, f.SrcPort), netip.AddrPortFrom(f.Dst, f.DstPort))
			if !ok || p.Check(f.Payload, f.IPID) != Good {
				t.Error("the ICRC of the addresses alone is another")
			}
			if got := p.Append(append([]byte("??"), f.Payload[:n]...), 2, f.IPID); !bytes.Equal(got[2:], f.Payload) {
				t.Error("Path.Append gives another packet")
			}
		})
	}
}

// TestCheckEveryBit flips each bit of a packet and looks whether the verdict
// agrees with what routers may change.
func TestCheckEveryBit(t *testing.T) {
	for _, s := range samples {
		f := sampleFrame(t, s.hex)
		var c Checker
		v6 := f.Net[0]>>4 == 6
		flip := func(part []byte, name string, may func(i, bit int) bool) {
			for i := range part {
				for bit := range 8 {
					part[i] ^= 0x80 >> bit
					got := c.Check(f)
					part[i] ^= 0x80 >> bit
					if want := may(i, bit); (got == Good) != want {
						// The version decides how the rest is read.
						if name == "net" && i == 0 && got == NotCheckedUnknown {
							continue
						}
						t.Fatalf("%s: %s byte %d bit %d: %v", s.name, name, i, bit, got)
					}
				}
			}
		}
		flip(f.Net, "net", func(i, bit int) bool {
			if v6 {
				return i == 0 && bit >= 4 || i >= 1 && i <= 3 || i == 7
			}
			return i == 1 || i == 8 || i == 10 || i == 11
		})
		flip(f.Transport, "udp", func(i, bit int) bool { return i >= 6 })
		flip(f.Payload, "payload", func(i, bit int) bool { return i == 4 })
	}
}

// icrcFrame makes a frame of each kind of network header around ib.
func icrcFrame(kind int, ib []byte, r *rand.Rand) *link.Frame {
	random := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	f := &link.Frame{Payload: ib, PayloadLen: len(ib)}
	switch kind {
	case 0:
		f.Proto, f.Net, f.Transport = link.UDP, random(20+4*r.IntN(11)), random(8)
		f.Net[0] = 0x45
	case 1:
		f.Proto, f.Net, f.Transport = link.UDP, random(40+8*r.IntN(4)), random(8)
		f.Net[0] = 0x60 | f.Net[0]&15
	case 2:
		f.Proto, f.Net = link.RoCEv1, random(GRHSize)
		f.Net[0] = 0x60 | f.Net[0]&15
	case 3:
		f.Proto, f.Net = link.InfiniBand, random(LRHSize)
	case 4:
		f.Proto, f.Net = link.InfiniBand, random(LRHSize+GRHSize)
		f.Net[8] = 0x60 | f.Net[8]&15
	}
	return f
}

func TestICRCAgainstSlow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var c Checker
	for kind := range 5 {
		for n := BTHSize; n < 700; n++ {
			ib := make([]byte, n+ICRCSize)
			for i := range ib {
				ib[i] = byte(r.Uint32())
			}
			f := icrcFrame(kind, ib, r)
			sum := slowICRC(f.Proto, f.Net, f.Transport, ib[:n])
			binary.LittleEndian.PutUint32(ib[n:], sum)
			if v := c.Check(f); v != Good {
				t.Fatalf("kind %d, %d bytes: %v", kind, n, v)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	var c Checker
	change := func(do func(f *link.Frame)) Verdict {
		f := sampleFrame(t, sampleSendInv)
		do(f)
		return c.Check(f)
	}
	for _, x := range []struct {
		name string
		do   func(f *link.Frame)
		want Verdict
	}{
		{"as it is", func(f *link.Frame) {}, Good},
		{"payload changed", func(f *link.Frame) { f.Payload[30]++ }, Bad},
		{"cut", func(f *link.Frame) { f.Payload = f.Payload[:100] }, NotCheckedCut},
		{"cut within the ICRC", func(f *link.Frame) { f.Payload = f.Payload[:len(f.Payload)-1] }, NotCheckedCut},
		{"without ICRC", func(f *link.Frame) { f.Payload = f.Payload[:len(f.Payload)-4] }, NotCheckedAbsent},
		{"zeroed", func(f *link.Frame) { clear(f.Payload[len(f.Payload)-4:]) }, NotCheckedZeroed},
		{"no network header", func(f *link.Frame) { f.Net = nil }, NotCheckedUnknown},
		{"short network header", func(f *link.Frame) { f.Net = f.Net[:19] }, NotCheckedUnknown},
		{"IP version 5", func(f *link.Frame) { f.Net[0] = 0x55 }, NotCheckedUnknown},
		{"long network header", func(f *link.Frame) { f.Net = append(f.Net, make([]byte, 300)...) }, NotCheckedUnknown},
		{"no UDP header", func(f *link.Frame) { f.Transport = nil }, NotCheckedUnknown},
		{"TCP", func(f *link.Frame) { f.Proto = link.TCP }, NotCheckedUnknown},
		{"RoCEv1 without GRH", func(f *link.Frame) { f.Proto = link.RoCEv1 }, NotCheckedUnknown},
		{"InfiniBand without LRH", func(f *link.Frame) { f.Proto = link.InfiniBand }, NotCheckedUnknown},
		{"too short", func(f *link.Frame) { f.PayloadLen = 15 }, NotCheckedUnknown},
		{"negative length", func(f *link.Frame) { f.PayloadLen = -5 }, NotCheckedUnknown},
		{"ECN and TTL", func(f *link.Frame) { f.Net[1], f.Net[8], f.Net[10] = 3, 1, 7 }, Good},
	} {
		if got := change(x.do); got != x.want {
			t.Errorf("%s: %v, want %v", x.name, got, x.want)
		}
	}
	if _, ok := c.Sum(link.UDP, nil, nil, nil); ok {
		t.Error("a sum of nothing")
	}
	if _, ok := ICRC(link.RoCEv1, make([]byte, GRHSize), nil, make([]byte, 11)); ok {
		t.Error("a sum of less than a BTH")
	}
	seen := map[string]bool{}
	for v := Unchecked; v <= NotCheckedUnknown; v++ {
		if seen[v.String()] || v.Checked() != (v == Good || v == Bad) {
			t.Errorf("verdict %d: %s", v, v)
		}
		seen[v.String()] = true
	}
	if Verdict(99).String() != "not checked" {
		t.Error("verdict 99 has a name")
	}
	a4, a6 := netip.MustParseAddrPort("192.0.2.1:4791"), netip.MustParseAddrPort("[fd00::1]:4791")
	for _, pair := range [][2]netip.AddrPort{{a4, a6}, {a6, a4}, {{}, a4}, {a4, {}}} {
		if _, ok := NewPath(pair[0], pair[1]); ok {
			t.Errorf("a path from %v to %v", pair[0], pair[1])
		}
	}
}

func TestCheckAllocs(t *testing.T) {
	var c Checker
	f := sampleFrame(t, sampleSendInv)
	if n := minAllocs(func() { c.Check(f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCheck(f *testing.F) {
	for _, s := range samples {
		frame := sampleFrame(f, s.hex)
		f.Add(uint8(link.UDP), frame.Net, frame.Transport, frame.Payload, frame.PayloadLen)
	}
	f.Add(uint8(link.RoCEv1), make([]byte, GRHSize), []byte{}, make([]byte, 20), 20)
	f.Add(uint8(link.InfiniBand), make([]byte, LRHSize), []byte{}, make([]byte, 20), 20)
	f.Add(uint8(link.InfiniBand), make([]byte, LRHSize+GRHSize), []byte{}, make([]byte, 400), 400)
	f.Fuzz(func(t *testing.T, proto uint8, net, transport, payload []byte, declared int) {
		var c Checker
		frame := link.Frame{Proto: link.Proto(proto), Net: net, Transport: transport, Payload: payload, PayloadLen: declared}
		v := c.Check(&frame)
		if !v.Checked() || declared > 1<<16 {
			return
		}
		// The version nibble of GRH and IPv6 counts as 6 whatever it is.
		if frame.Proto == link.RoCEv1 && net[0]>>4 != 6 || len(net) == LRHSize+GRHSize && net[8]>>4 != 6 {
			return
		}
		ib := payload[:declared-ICRCSize]
		good := slowICRC(frame.Proto, net, transport, ib) == binary.LittleEndian.Uint32(payload[declared-ICRCSize:])
		if good != (v == Good) {
			t.Fatalf("%v, but it is %v", v, good)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{20, 60, 280, 1044, 4116} {
		ib := make([]byte, n)
		f := icrcFrame(0, ib, r)
		f.Net = f.Net[:20]
		b.Run(fmt.Sprintf("%dB", n), func(b *testing.B) {
			var c Checker
			b.SetBytes(int64(n))
			for b.Loop() {
				c.Check(f)
			}
		})
	}
}
