package decode

import (
	"encoding/binary"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/wrap"
)

// sameAsFull compares a FastPacket with what the complete decoders return for the same
// frame. It returns false if the frame was left to them.
func sameAsFull(t *testing.T, d *roce.FastDecoder, lt capture.LinkType, b []byte) bool {
	t.Helper()
	var unit [1]roce.Unit
	one := []capture.Packet{{Link: lt, Length: uint32(len(b)), Data: b}}
	var f link.Frame
	link.Decode(lt, b, uint32(len(b)), &f)
	route := d.RouteOf(&one[0])
	group := [1]uint16{9}
	if q := route; q != nil {
		q.Group = 7
		if d.Groups(one, group[:]) != 1 || group[0] != 7 {
			t.Fatalf("no group, or not its: %d", group[0])
		}
		q.Group = 0
	}
	if d.Groups(one, group[:]) != 0 {
		t.Fatal("the group of a packet that has none")
	}
	if q := route; q != nil && (q.Src != f.Src || q.Dst != f.Dst || f.Proto != link.UDP || f.DstPort != RoCEPort || len(f.Tunnels) > 0) {
		t.Fatalf("from %v to %v by the headers alone, and %+v", q.Src, q.Dst, f)
	}
	if d.Decode(one, unit[:]) == 0 {
		return false
	}
	l := unit[0].Fast
	if route != l.Route {
		t.Fatalf("a packet of the fast path whose Route is %v by the headers alone, and %v", route, l.Route)
	}
	leanAsFull(t, &l, &f, b)
	if d.Inner(&one[0], &f, &unit) {
		t.Fatal("Inner takes what Decode has taken")
	}
	return true
}

// leanAsFull compares a FastPacket with what the complete decoders return for the frame f, which lies in b.
func leanAsFull(t *testing.T, l *roce.FastPacket, f *link.Frame, b []byte) {
	t.Helper()
	if f.Proto != link.UDP || f.DstPort != RoCEPort || f.Problem != link.NoProblem {
		t.Fatalf("taken for RoCEv2: %+v", f)
	}
	var s roce.Splitter
	s.Reset(f)
	var p, more roce.Packet
	if !s.Next(&p) || s.Next(&more) {
		t.Fatal("not one packet")
	}
	if p.Problem != roce.NoProblem || p.ICRC != roce.Good || p.Cut {
		t.Fatalf("taken for good: %+v", p)
	}
	full := roce.FastPacket{
		Route: l.Route, VA: p.RETH.VA, RKey: p.RETH.RKey | p.IETH, DMALen: p.RETH.DMALen, DestQP: p.DestQP, PSN: p.PSN,
		MSN: p.AETH.MSN, At: l.At, PayloadLen: uint16(p.PayloadLen), SrcPort: f.SrcPort, Tag: l.Tag, Opcode: p.Opcode,
		Syndrome: p.AETH.Syndrome, Pad: p.Pad, Traffic: f.DSCP()<<2 | f.ECN, SE: p.SE, AckReq: p.AckReq,
	}
	if *l != full {
		t.Fatalf("\n %+v\nwant\n %+v", *l, full)
	}
	if l.VLAN() != f.VLAN || l.Priority() != f.Priority || l.DSCP() != f.DSCP() || l.Marked() != (f.ECN == link.CongestionExperienced) {
		t.Fatalf("%+v, want %+v", l, f)
	}
	if l.Route.Src != f.Src || l.Route.Dst != f.Dst {
		t.Fatalf("%v to %v, want %v to %v", l.Route.Src, l.Route.Dst, f.Src, f.Dst)
	}
	if n := len(p.Payload); n > 0 && &b[l.At] != &p.Payload[0] {
		t.Fatalf("payload at %d", l.At)
	}
}

// innerAsFull is sameAsFull for a packet in a tunnel, or of another link type.
func innerAsFull(t *testing.T, d *roce.FastDecoder, lt capture.LinkType, b []byte) bool {
	t.Helper()
	p := capture.Packet{Link: lt, Length: uint32(len(b)), Data: b}
	var f link.Frame
	var u [1]roce.Unit
	link.Decode(lt, b, p.Length, &f)
	if !d.Inner(&p, &f, &u) {
		return false
	}
	leanAsFull(t, &u[0].Fast, &f, b)
	return true
}

// firstBatch is what a Reader returns first of a capture.
func firstBatch(t testing.TB, name string) []capture.Packet {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var b capture.Batch
	if err := r.Read(&b); err != nil {
		t.Fatal(err)
	}
	return b.Packets
}

func vxlan(t *testing.T) wrap.Kind {
	t.Helper()
	kinds := wrap.Kinds(5)
	i := slices.IndexFunc(kinds, func(k wrap.Kind) bool { return k.Name == "vxlan" })
	if i < 0 {
		t.Fatal("no VXLAN")
	}
	return kinds[i]
}

// TestInnerElsewhere has frames that do not lie in the packet, that end before what is in them does, and that segmentation offload has joined.
func TestInnerElsewhere(t *testing.T) {
	packets := firstBatch(t, "../samples/rocev2-nfs3-basic.pcap.zst")
	w := wrap.New(vxlan(t), 7)
	n := 0
	for i := range packets {
		var d roce.FastDecoder
		var f link.Frame
		var u [1]roce.Unit
		b, _ := w.Frame(packets[i].Data, int(packets[i].Length))
		p := capture.Packet{Link: capture.LinkEthernet, Data: b, Length: uint32(len(b))}
		link.Decode(p.Link, b, p.Length, &f)
		if !d.Inner(&p, &f, &u) {
			continue
		}
		n++
		f.Segment = 100
		if d.Inner(&p, &f, &u) {
			t.Fatal("joined")
		}
		f.Segment = 0
		for _, other := range [][]byte{slices.Clone(b), b[:40], b[len(b)-40:], nil} {
			p.Data = other
			if d.Inner(&p, &f, &u) {
				t.Fatal("not in this packet")
			}
		}
		// The outer UDP datagram ends early.
		const udp = 14 + 20 + 4
		binary.BigEndian.PutUint16(b[udp:], binary.BigEndian.Uint16(b[udp:])-1)
		if innerAsFull(t, &d, p.Link, b) {
			t.Fatal("cut")
		}
	}
	if n < 100 {
		t.Errorf("%d packets", n)
	}
}

// TestInner compares the fast path of packets in tunnels, of every kind and one in another, with the long one.
func TestInner(t *testing.T) {
	for _, name := range []string{"../samples/rocev2-nfs41-ipv6.pcap.zst", "../samples/rocev2-nfs3-basic.pcap.zst"} {
		packets := firstBatch(t, name)
		overlay := wrap.New(vxlan(t), 3)
		rnd := rand.New(rand.NewPCG(115, 1))
		for _, k := range wrap.Kinds(0x155) {
			var d roce.FastDecoder
			w := wrap.New(k, 7)
			direct, inner := 0, 0
			for i := range packets[:min(len(packets), 600)] {
				p := &packets[i]
				fast := sameAsFull(t, &d, p.Link, p.Data)
				if int(p.Length) > len(p.Data) {
					continue // cut
				}
				from := p.Data
				switch i % 4 {
				case 1: // an overlay behind the wrapping
					from, _ = overlay.Frame(from, len(from))
				case 2:
					from = slices.Concat(from[:12], []byte{0x81, 0, 0xa0, 42}, from[12:])
				}
				frame, _ := w.Frame(from, len(from))
				got := innerAsFull(t, &d, k.Link, frame)
				if got && !fast {
					t.Fatalf("%s: packet %d is fast in a tunnel only", k.Name, p.Number)
				}
				if fast {
					direct++
				}
				if got {
					inner++
				}
				if i%16 == 0 {
					x := slices.Clone(frame)
					for range 200 {
						bit := rnd.IntN(8 * len(x))
						x[bit/8] ^= 1 << (bit % 8)
						innerAsFull(t, &d, k.Link, x)
						x[bit/8] ^= 1 << (bit % 8)
					}
					for n := range x {
						innerAsFull(t, &d, k.Link, x[:n:n])
					}
				}
			}
			if inner < direct*4/5 && k.Name != "ipoib" { // which is InfiniBand
				t.Errorf("%s in %s: %d packets went the short way, %d without it", name, k.Name, inner, direct)
			}
		}
	}
}

// fastLinks are the link types of packets that may be on the fast path.
var fastLinks = []capture.LinkType{
	capture.LinkEthernet, capture.LinkSLL, capture.LinkSLL2, capture.LinkRaw, capture.LinkRawBSD, capture.LinkRawOpenBSD, capture.LinkIPv4, capture.LinkIPv6,
}

// framed calls f with an Ethernet frame, and with the same packet in other frames. fast says that it may be fast there.
func framed(b []byte, f func(lt capture.LinkType, b []byte, fast bool)) {
	f(capture.LinkEthernet, b, true)
	tags := []byte{0x88, 0xa8, 0x60, 7, 0x81, 0, 0xa0, 42, 0x91, 0, 0, 1}
	for n := 4; n <= len(tags); n += 4 {
		f(capture.LinkEthernet, slices.Concat(b[:12], tags[:n], b[12:]), n <= 8)
	}
	sll := append(make([]byte, 14), b[12:]...)
	f(capture.LinkSLL, sll, true)
	f(capture.LinkSLL, slices.Concat(sll[:14], tags[:4], sll[14:]), true)
	f(capture.LinkSLL2, slices.Concat(b[12:14], make([]byte, 18), b[14:]), true)
	f(capture.LinkSLL2, slices.Concat(tags[:2], make([]byte, 18), tags[2:8], b[12:]), true)
	for _, lt := range fastLinks[3:] {
		f(lt, b[14:], true)
	}
	f(capture.LinkNull, append([]byte{2, 0, 0, 0}, b[14:]...), false)
}

// TestFastPacket compares the fast path with the long one.
func TestFastPacket(t *testing.T) {
	files, _ := filepath.Glob("../samples/rocev2-*.pcap*")
	if len(files) < 5 {
		t.Fatal(files)
	}
	for i, name := range files {
		if testing.Short() && i%4 != 0 {
			continue
		}
		r, err := capture.Open([]string{name}, capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var d roce.FastDecoder
		var b capture.Batch
		short, all := 0, 0
		for {
			if err = r.Read(&b); err != nil {
				break
			}
			for i := range b.Packets {
				p := &b.Packets[i]
				if int(p.Length) > len(p.Data) {
					continue // cut
				}
				all++
				fast := sameAsFull(t, &d, p.Link, p.Data)
				if fast {
					short++
				}
				if i%16 == 1 {
					framed(p.Data, func(lt capture.LinkType, b []byte, may bool) {
						if got := sameAsFull(t, &d, lt, b); got != (fast && may) {
							t.Fatalf("%s: packet %d, link type %d: fast %v", name, p.Number, lt, got)
						}
					})
				}
				// Damaged anywhere, it must not pass: the ICRC covers it, or
				// the lengths do.
				if i%16 == 0 {
					x := append([]byte(nil), p.Data...)
					x[len(x)/2] ^= 0x10
					sameAsFull(t, &d, p.Link, x)
				}
				if i%256 == 0 { // each bit of the headers
					x := append([]byte(nil), p.Data...)
					for bit := range 8 * min(len(x), 70) {
						x[bit/8] ^= 1 << (bit % 8)
						framed(x, func(lt capture.LinkType, b []byte, _ bool) { sameAsFull(t, &d, lt, b) })
						x[bit/8] ^= 1 << (bit % 8)
					}
					framed(x, func(lt capture.LinkType, b []byte, _ bool) {
						for n := range min(len(b), 80) {
							sameAsFull(t, &d, lt, b[:n:n])
						}
					})
				}
			}
		}
		if err != io.EOF {
			t.Fatal(err)
		}
		r.Close()
		if all > 500 && short < all*4/5 {
			t.Errorf("%s: %d of %d packets went the short way", name, short, all)
		}
	}
}

func FuzzFastPacket(f *testing.F) {
	for _, name := range []string{"../samples/rocev2-nfs41-ipv6.pcap.zst", "../samples/rocev2-nfs3-basic.pcap.zst"} {
		seen := map[byte]bool{}
		for _, p := range firstBatch(f, name) {
			var fr link.Frame
			link.Decode(p.Link, p.Data, p.Length, &fr)
			if fr.DstPort == RoCEPort && len(fr.Payload) > 16 && len(p.Data) < 400 && !seen[fr.Payload[0]] {
				seen[fr.Payload[0]] = true
				f.Add(slices.Concat(p.Data[:12], []byte{0x81, 0, 0x60, 42}, p.Data[12:]))
				framed(p.Data, func(_ capture.LinkType, b []byte, _ bool) { f.Add(slices.Clone(b)) })
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		var d roce.FastDecoder
		for _, lt := range fastLinks {
			sameAsFull(t, &d, lt, b)
			// Almost no input has a right ICRC: give it one.
			var fr link.Frame
			link.Decode(lt, b, uint32(len(b)), &fr)
			if n := fr.PayloadLen; n == len(fr.Payload) && n > roce.BTHSize+roce.ICRCSize {
				var c roce.Checker
				if sum, ok := c.Sum(fr.Proto, fr.Net, fr.Transport, fr.Payload[:n-roce.ICRCSize]); ok {
					binary.LittleEndian.PutUint32(fr.Payload[n-roce.ICRCSize:], sum)
				}
			}
			sameAsFull(t, &d, lt, b)
		}
	})
}

func BenchmarkLean(b *testing.B) {
	packets := firstBatch(b, "../samples/rocev2-nfs3-meta.pcap.zst")
	var d roce.FastDecoder
	units := make([]roce.Unit, len(packets))
	b.ReportAllocs()
	for b.Loop() {
		for n := 0; n < len(units); n++ {
			n += d.Decode(packets[n:], units[n:])
		}
	}
}
