package link

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
)

// split cuts an IP packet without extension headers into fragments whose
// payloads have the sizes that size returns.
func split(packet []byte, id uint16, size func() int) [][]byte {
	head := 20
	if packet[0]>>4 == 6 {
		head = 40
	}
	payload := packet[head:]
	var parts [][]byte
	for at := 0; at < len(payload); {
		n := min(size()&^7, len(payload)-at)
		parts = append(parts, piece(packet, id, at, n))
		at += n
	}
	return parts
}

// piece is the fragment [at, at+n) of an IP packet's payload.
func piece(packet []byte, id uint16, at, n int) []byte {
	if packet[0]>>4 == 4 {
		p := join(packet[:20], packet[20+at:20+at+n])
		binary.BigEndian.PutUint16(p[2:], uint16(20+n))
		binary.BigEndian.PutUint16(p[4:], id)
		frag := uint16(at / 8)
		if at+n < len(packet)-20 {
			frag |= 0x2000
		}
		binary.BigEndian.PutUint16(p[6:], frag)
		return p
	}
	more := 0
	if at+n < len(packet)-40 {
		more = 1
	}
	p := join(packet[:40], []byte{packet[6], 0}, be16(at|more), be16(0), be16(int(id)), packet[40+at:40+at+n])
	p[6] = ipFragment
	binary.BigEndian.PutUint16(p[4:], uint16(8+n))
	return p
}

func add(r *Reassembler, packet []byte, now int64) *Frame {
	f := decode(capture.LinkRaw, packet)
	return r.Add(&f, now)
}

// Datagrams cut, shuffled, repeated and overlapped come out as they were.
func TestReassemble(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	r := NewReassembler(ReassemblerOptions{})
	for round := range 500 {
		data := counting(rnd.IntN(60000) + 100)
		rnd.Shuffle(len(data), func(i, j int) { data[i], data[j] = data[j], data[i] })
		id := uint16(round)
		packet := ip4(ipUDP, 0, nil, udp(data))
		binary.BigEndian.PutUint16(packet[4:], id)
		if round%2 == 1 {
			packet = ip6(ipTCP, tcp(nil, data))
		}
		parts := split(packet, id, func() int { return 1024 + rnd.IntN(3000) })
		if len(parts) < 2 {
			continue
		}
		head := len(packet) - len(data)
		if round%2 == 0 {
			head -= 8
		} else {
			head -= 20
		}
		for range rnd.IntN(5) {
			at := rnd.IntN(len(packet)-head) &^ 7
			n := min(rnd.IntN(4000)&^7+8, len(packet)-head-at)
			parts = append(parts, piece(packet, id, at, n))
		}
		rnd.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		var got *Frame
		for _, p := range parts {
			if got = add(r, p, int64(round)); got != nil {
				break
			}
		}
		whole := decode(capture.LinkRaw, packet)
		if got == nil || got.Proto != whole.Proto || got.PayloadLen != len(data) || !bytes.Equal(got.Payload, data) {
			t.Fatalf("round %d of %d parts: %+v", round, len(parts), got)
		}
		if !bytes.Equal(got.Net, whole.Net) || !bytes.Equal(got.Transport, whole.Transport) || got.Src != whole.Src || got.DstPort != whole.DstPort {
			t.Fatalf("round %d: headers %x, want %x", round, got.Net, whole.Net)
		}
	}
	if s := r.Stats(); s.Bad != 0 || s.EvictedFor+s.EvictedOld != 0 || s.Datagrams < 480 {
		t.Errorf("%+v", s)
	}
}

// The extension headers of the unfragmentable part stay.
func TestReassembleExtensionHeaders(t *testing.T) {
	r := NewReassembler(ReassemblerOptions{})
	payload := udp(counting(200))
	chain := join([]byte{ipRouting, 0, 7: 0}, []byte{ipAuth, 0, 7: 0}, []byte{ipFragment, 4, 23: 0})
	var got *Frame
	for _, at := range []int{104, 0} {
		n, more := 104, 1
		if at > 0 {
			n, more = len(payload)-at, 0
		}
		got = add(r, ip6(ipHopByHop, join(chain, []byte{ipDestination, 0}, be16(at|more), be16(0), be16(1),
			join([]byte{ipUDP, 0, 7: 0}, payload)[at:][:n+8*(1-more)])), 0)
	}
	want := ip6(ipHopByHop, join(chain, []byte{ipUDP, 0, 7: 0}, payload))
	want[40+8+8] = ipDestination
	if got == nil || got.Proto != UDP || !bytes.Equal(got.Payload, payload[8:]) || !bytes.Equal(got.Net, want[:len(want)-len(payload)]) {
		t.Fatalf("%+v", got)
	}
}

// The bytes seen first win.
func TestReassembleOverlap(t *testing.T) {
	r := NewReassembler(ReassemblerOptions{})
	one, two := ip4(ipUDP, 0, nil, udp(bytes.Repeat([]byte{1}, 100))), ip4(ipUDP, 0, nil, udp(bytes.Repeat([]byte{2}, 100)))
	add(r, piece(one, 1, 40, 24), 0)
	add(r, piece(two, 1, 0, 48), 0)
	got := add(r, piece(two, 1, 48, 60), 0)
	want := join(bytes.Repeat([]byte{2}, 32), bytes.Repeat([]byte{1}, 24), bytes.Repeat([]byte{2}, 44))
	if got == nil || !bytes.Equal(got.Payload, want) {
		t.Fatalf("%+v", got)
	}
	if s := r.Stats(); s.Overlaps != 2 || s.Differing != 2 || s.Datagrams != 1 {
		t.Errorf("%+v", s)
	}
}

// Where the capture cut a fragment, the rebuilt payload ends.
func TestReassembleCut(t *testing.T) {
	r := NewReassembler(ReassemblerOptions{})
	data := counting(3000)
	packet := ip4(ipUDP, 0, nil, udp(data))
	parts := split(packet, 1, func() int { return 1000 })
	var got *Frame
	for i, p := range parts {
		var f Frame
		if i == 1 {
			Decode(capture.LinkRaw, p[:200], uint32(len(p)), &f)
		} else {
			Decode(capture.LinkRaw, p, uint32(len(p)), &f)
		}
		got = r.Add(&f, 0)
	}
	if want := 1000 + 180 - 8; got == nil || got.PayloadLen != len(data) || !bytes.Equal(got.Payload, data[:want]) {
		t.Fatalf("%d of %d bytes", len(got.Payload), got.PayloadLen)
	}
}

// A datagram has met congestion if one of its fragments has.
func TestReassembleECN(t *testing.T) {
	r := NewReassembler(ReassemblerOptions{})
	packet := ip4(ipUDP, 0, nil, udp(counting(100)))
	packet[1] = 2
	marked := bytes.Clone(packet)
	marked[1] = 3
	add(r, piece(packet, 1, 0, 48), 0)
	if got := add(r, piece(marked, 1, 48, 60), 0); got == nil || got.ECN != 3 {
		t.Errorf("%+v", got)
	}
}

func TestReassembleRejects(t *testing.T) {
	big := ip4(ipUDP, 0, nil, udp(counting(200)))
	ends := func(at, n int) []byte { // a last fragment at any place
		p := piece(big, 1, 0, n)
		binary.BigEndian.PutUint16(p[6:], uint16(at/8))
		return p
	}
	more := func(at, n int) []byte {
		p := ends(at, n)
		p[6] |= 0x20
		return p
	}
	for name, parts := range map[string][][]byte{
		"length not of 8": {more(0, 21)},
		"empty":           {more(0, 0)},
		"beyond 64 KiB":   {ends(65528, 16)},
		"two ends":        {ends(80, 8), ends(96, 8)},
		"beyond the end":  {ends(80, 8), more(88, 8)},
		"end before":      {more(160, 8), ends(80, 8)},
	} {
		r := NewReassembler(ReassemblerOptions{})
		for _, p := range parts {
			if got := add(r, p, 0); got != nil {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if r.Stats().Bad != 1 {
			t.Errorf("%s: %+v", name, r.Stats())
		}
	}
	r := NewReassembler(ReassemblerOptions{})
	f := decode(capture.LinkRaw, big)
	if r.Add(&f, 0) != nil || r.Stats().Bad != 1 {
		t.Error("took a whole datagram for a fragment")
	}
}

func TestReassembleBounds(t *testing.T) {
	packet := ip4(ipUDP, 0, nil, udp(counting(60000)))
	r := NewReassembler(ReassemblerOptions{Datagrams: 10, Bytes: 300 << 10, Timeout: time.Second})
	for id := range 1000 {
		add(r, piece(packet, uint16(id), 0, 16), int64(id))
	}
	if r.Open() != 10 || r.Stats().EvictedFor != 990 {
		t.Errorf("%d open, %+v", r.Open(), r.Stats())
	}
	for id := range 1000 {
		add(r, piece(packet, uint16(id), 59992, 16), int64(id))
		if r.bytes > 300<<10 {
			t.Fatalf("%d bytes", r.bytes)
		}
	}
	if add(r, piece(packet, 5000, 0, 16), 2e9); r.Open() != 1 || r.Stats().EvictedOld == 0 {
		t.Errorf("%d open, %+v", r.Open(), r.Stats())
	}
	// Every other piece of 8 bytes: the number of runs is bounded.
	for at := 0; at < 8000; at += 16 {
		add(r, piece(packet, 6000, at, 8), 2e9)
	}
	if r.Stats().Bad == 0 {
		t.Error("thousands of runs are kept")
	}
	for r.oldest != nil {
		r.drop(r.oldest)
	}
	if r.bytes != 0 || r.newest != nil || r.Open() != 0 {
		t.Errorf("%d bytes left", r.bytes)
	}
}

func TestReassembleAllocs(t *testing.T) {
	r := NewReassembler(ReassemblerOptions{})
	packet := ip4(ipUDP, 0, nil, udp(counting(4000)))
	var frames []Frame
	for _, p := range split(packet, 1, func() int { return 1480 }) {
		frames = append(frames, decode(capture.LinkRaw, p))
	}
	run := func() {
		for i := range frames {
			r.Add(&frames[i], 0)
		}
	}
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzReassemble(f *testing.F) {
	f.Add([]byte{0, 0, 8, 1, 0, 1, 8, 0, 0, 9, 0, 0})
	f.Add([]byte{1, 4, 8, 1, 1, 0, 40, 1, 1, 5, 8, 0, 1, 5, 8, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		r := NewReassembler(ReassemblerOptions{Datagrams: 4, Bytes: 40 << 10, Timeout: 50})
		data := counting(2048)
		for now := int64(0); len(script) >= 4; script, now = script[4:], now+1 {
			fr := Frame{Proto: Fragment, Src: client4, Dst: server4, FragmentProto: ipUDP, Net: ip4(ipUDP, 0, nil, nil),
				FragmentID: uint32(script[0] & 7), FragmentOffset: uint32(script[1]) * 8, PayloadLen: int(script[2]) * 8, MoreFragments: script[3]&1 != 0}
			fr.Payload = data[:min(fr.PayloadLen, int(script[3])*9)]
			if script[0]&8 != 0 {
				fr.Src, fr.Dst = client6, server6
				fr.Net = ip6(ipFragment, make([]byte, 8))
			}
			if script[3]&2 != 0 {
				fr.FragmentOffset *= 32
			}
			if got := r.Add(&fr, now); got != nil && got.PayloadLen < len(got.Payload) {
				t.Fatalf("%+v", got)
			}
			if r.bytes > 40<<10+maxSpare*(128<<10) || len(r.open) > 4 {
				t.Fatalf("%d bytes in %d datagrams", r.bytes, len(r.open))
			}
		}
		n := 0
		for d := r.oldest; d != nil; d = d.newer {
			n++
			for i := 1; i < len(d.ranges); i++ {
				if d.ranges[i-1].to >= d.ranges[i].from {
					t.Fatalf("ranges %v", d.ranges)
				}
			}
		}
		if n != len(r.open) {
			t.Fatalf("list of %d, table of %d", n, len(r.open))
		}
	})
}

// TestReassembleIncomplete has datagrams that lack fragments, and some that come twice.
func TestReassembleIncomplete(t *testing.T) {
	packet := ip4(ipUDP, 0, nil, udp(counting(100)))
	for _, c := range []struct {
		name                  string
		pieces                [][2]int // offset and length
		incomplete, differing uint64
	}{
		{"whole", [][2]int{{0, 48}, {48, 60}}, 0, 0},
		{"first only", [][2]int{{0, 48}}, 1, 0},
		{"each twice", [][2]int{{0, 48}, {0, 48}, {48, 60}, {48, 60}}, 0, 0},
		{"all twice", [][2]int{{0, 48}, {48, 60}, {0, 48}, {48, 60}}, 0, 0},
		{"a part of a third time", [][2]int{{0, 48}, {48, 60}, {0, 48}}, 0, 0},
	} {
		for _, late := range []bool{false, true} {
			r := NewReassembler(ReassemblerOptions{})
			for _, x := range c.pieces {
				add(r, piece(packet, 1, x[0], x[1]), 0)
			}
			if late {
				r.expire(31e9)
			} else {
				r.Flush()
			}
			if s := r.Stats(); s.Incomplete != c.incomplete || s.Differing != c.differing || r.Open() != 0 {
				t.Errorf("%s: %+v", c.name, s)
			}
		}
	}

	// What the capture cut of one copy is not compared.
	r := NewReassembler(ReassemblerOptions{})
	first := piece(packet, 1, 0, 48)
	cut := decode(capture.LinkRaw, first)
	cut.Payload = cut.Payload[:20:20]
	r.Add(&cut, 0)
	add(r, first, 0)
	if s := r.Stats(); s.Overlaps != 1 || s.Differing != 0 {
		t.Errorf("cut: %+v", s)
	}
	r = NewReassembler(ReassemblerOptions{}) // and the other way round
	add(r, first, 0)
	r.Add(&cut, 0)
	if s := r.Stats(); s.Overlaps != 1 || s.Differing != 0 {
		t.Errorf("cut: %+v", s)
	}
	other := bytes.Clone(first)
	other[25]++
	add(r, other, 0)
	if s := r.Stats(); s.Overlaps != 2 || s.Differing != 1 {
		t.Errorf("other bytes: %+v", s)
	}
}
