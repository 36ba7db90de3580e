package roce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/link"
)

// batch glues packets together as UDP segmentation offload does: one IP and
// UDP header, and each packet's ICRC as it was sent alone. step is what the
// sender added to the IPv4 identification from one packet to the next.
func batch(t testing.TB, v6 bool, id, step uint16, packets ...[]byte) *link.Frame {
	t.Helper()
	src, dst := netip.MustParseAddrPort("192.0.2.1:50000"), netip.MustParseAddrPort("192.0.2.2:4791")
	if v6 {
		src, dst = netip.MustParseAddrPort("[fd00::1]:50000"), netip.MustParseAddrPort("[fd00::2]:4791")
	}
	path, ok := NewPath(src, dst)
	if !ok {
		t.Fatal("no path")
	}
	ip := bytes.Clone(path.header[:path.netLen+udpSize])
	for i, p := range packets {
		ip = append(ip, path.Append(bytes.Clone(p), 0, id+uint16(i)*step)...)
	}
	binary.BigEndian.PutUint16(ip[path.netLen+4:], uint16(len(ip)-path.netLen))
	if v6 {
		binary.BigEndian.PutUint16(ip[4:], uint16(len(ip)-40))
	} else {
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint16(ip[4:], id)
	}
	return udpFrame(t, ip)
}

// packet makes a packet with n bytes of payload, and pad.
func packet(op Opcode, psn uint32, n int) []byte {
	p := Packet{Opcode: op, PKey: DefaultPKey, DestQP: 0x1234, PSN: psn & mask24, Pad: uint8(-n & 3)}
	if op.HasRETH() {
		p.RETH = RETHFields{0x1000, 0x77, uint32(n)}
		if op.IsFirst() {
			p.RETH.DMALen = 1 << 20
		}
	}
	b := p.AppendHeaders(nil)
	for i := range n {
		b = append(b, byte(i*7)+byte(psn))
	}
	return append(b, make([]byte, -n&3)...)
}

type part struct {
	op   Opcode
	psn  uint32
	n    int // payload
	icrc Verdict
}

func parts(s *Splitter, f *link.Frame) (list []part) {
	var p Packet
	for s.Reset(f); s.Next(&p); {
		list = append(list, part{p.Opcode, p.PSN, p.PayloadLen, p.ICRC})
	}
	return list
}

var batches = []struct {
	name  string
	parts []part
}{
	{"send", []part{{RCSendFirst, 0xfffffe, 1024, Good}, {RCSendMiddle, 0xffffff, 1024, Good}, {RCSendLast, 0, 333, Good}}},
	{"send, MTU 256", []part{{RCSendFirst, 5, 256, Good}, {RCSendMiddle, 6, 256, Good}, {RCSendLast, 7, 256, Good}}},
	// Together as long as one packet of MTU 512: only the ICRC tells.
	{"send as long as a larger MTU", []part{{RCSendFirst, 5, 256, Good}, {RCSendLast, 6, 240, Good}}},
	{"send, MTU 4096", []part{{RCSendFirst, 5, 4096, Good}, {RCSendMiddle, 6, 4096, Good}, {RCSendLast, 7, 1, Good}}},
	{"write, middle", []part{{RCWriteMiddle, 5, 1024, Good}, {RCWriteMiddle, 6, 1024, Good}, {RCWriteMiddle, 7, 1024, Good}, {RCWriteLast, 8, 1000, Good}}},
	{"write, first shortened", []part{{RCWriteFirst, 5, 512, Good}, {RCWriteMiddle, 6, 512, Good}}},
	{"read response", []part{{RCReadResponseMiddle, 5, 2048, Good}, {RCReadResponseMiddle, 6, 2048, Good}, {RCReadResponseLast, 7, 17, Good}}},
	{"acknowledgements", []part{{RCAcknowledge, 5, 0, Good}, {RCAcknowledge, 9, 0, Good}, {RCAcknowledge, 30, 0, Good}}},
	{"read requests", []part{{RCReadRequest, 5, 0, Good}, {RCReadRequest, 25, 0, Good}}},
	{"notifications", []part{{CNP, 0, 0, Good}, {CNP, 0, 0, Good}}},
	{"small sends", []part{{RCSendOnly, 5, 130, Good}, {RCSendOnly, 6, 132, Good}, {RCSendOnly, 7, 20, Good}}},
	{"many sends", []part{{RCSendOnly, 5, 2000, Good}, {RCSendOnly, 6, 2000, Good}, {RCSendOnly, 7, 2000, Good}, {RCSendOnly, 8, 2000, Good}}},
	{"last and first", []part{{RCSendLast, 5, 1024, Good}, {RCSendFirst, 6, 1024, Good}, {RCSendMiddle, 7, 1024, Good}}},
	{"writes", []part{{RCWriteOnly, 5, 130, Good}, {RCWriteOnly, 6, 131, Good}, {RCWriteOnly, 7, 30, Good}}},
	{"datagrams", []part{{UDSendOnly, 5, 256, Good}, {UDSendOnly, 6, 256, Good}}},
	{"atomics", []part{{RCFetchAdd, 5, 0, Good}, {RCFetchAdd, 6, 0, Good}}},
	{"atomic writes", []part{{RCAtomicWrite, 5, 8, Good}, {RCAtomicWrite, 6, 8, Good}}},
}

// batchPackets makes the packets of a batch; CNPs have their reserved bytes.
func batchPackets(list []part) (packets [][]byte) {
	for _, x := range list {
		n := x.n
		if x.op.IsCNP() {
			n = cnpReserved
		}
		packets = append(packets, packet(x.op, x.psn, n))
	}
	return packets
}

func TestSplit(t *testing.T) {
	for _, c := range batches {
		packets := batchPackets(c.parts)
		want := append([]part(nil), c.parts...)
		for i := range want {
			if want[i].op.IsCNP() {
				want[i].n = cnpReserved
			}
		}
		equal := len(packets[0]) >= len(packets[len(packets)-1])
		for _, p := range packets[1 : len(packets)-1] {
			equal = equal && len(p) == len(packets[0])
		}
		if !equal {
			t.Fatalf("%s: a sender cannot batch these", c.name)
		}
		for _, v6 := range []bool{false, true} {
			for _, step := range []uint16{0, 1} {
				t.Run(fmt.Sprintf("%s/v6=%v/step=%d", c.name, v6, step), func(t *testing.T) {
					f := batch(t, v6, 0xffff, step, packets...)
					for _, skip := range []bool{false, true} {
						s := Splitter{SkipICRC: skip}
						got := parts(&s, f)
						if skip && !s.Segmented() {
							continue // told by the ICRC alone
						}
						if fmt.Sprint(got) != fmt.Sprint(want) {
							t.Errorf("skip %v: got %v, want %v", skip, got, want)
						}
					}
					// Its packets alone are left as they are.
					for i, p := range packets {
						var s Splitter
						got := parts(&s, batch(t, v6, 3, 1, p))
						if fmt.Sprint(got) != fmt.Sprint(want[i:i+1]) || s.Segmented() {
							t.Errorf("alone: got %v, want %v", got, want[i])
						}
					}
				})
			}
		}
	}
}

// TestSplitPayload checks that the parts' payloads are where they belong.
func TestSplitPayload(t *testing.T) {
	packets := batchPackets(batches[0].parts)
	f := batch(t, false, 7, 1, packets...)
	var s Splitter
	var p Packet
	i := 0
	for s.Reset(f); s.Next(&p); i++ {
		h := p.Opcode.HeaderSize()
		if want := packets[i][h : len(packets[i])-int(p.Pad)]; !bytes.Equal(p.Payload, want) || p.Problem != NoProblem {
			t.Errorf("part %d: %d bytes, %q", i, len(p.Payload), p.Problem)
		}
	}
	if i != 3 {
		t.Errorf("%d parts", i)
	}
}

func TestSplitSamples(t *testing.T) {
	for _, c := range samples {
		var s Splitter
		if got := parts(&s, sampleFrame(t, c.hex)); len(got) != 1 || got[0].icrc != Good || got[0].op != c.op || s.Segmented() {
			t.Errorf("%s: %v", c.name, got)
		}
		// What is damaged stays one packet.
		f := sampleFrame(t, c.hex)
		f.Payload[len(f.Payload)-1] ^= 1
		if got := parts(&s, f); len(got) != 1 || got[0].icrc != Bad || s.Segmented() {
			t.Errorf("%s, damaged: %v", c.name, got)
		}
		s.SkipICRC = true
		if got := parts(&s, f); len(got) != 1 || got[0].icrc != Unchecked {
			t.Errorf("%s, unchecked: %v", c.name, got)
		}
	}
}

// TestSplitDamaged damages one packet of a batch.
func TestSplitDamaged(t *testing.T) {
	want := []Verdict{Good, Good, Good}
	packets := batchPackets(batches[0].parts)
	for i := range want {
		f := batch(t, false, 7, 1, packets...)
		f.Payload[i*len(packets[0])+4*i+50] ^= 1
		var s Splitter
		got := parts(&s, f)
		if len(got) != 3 {
			t.Fatalf("part %d damaged: %v", i, got)
		}
		for j := range got {
			if (got[j].icrc == Good) == (i == j) {
				t.Errorf("part %d damaged: part %d is %v", i, j, got[j].icrc)
			}
		}
	}
}

func TestSplitZeroedICRC(t *testing.T) {
	packets := batchPackets(batches[0].parts)
	f := batch(t, false, 7, 1, packets...)
	size := len(packets[0]) + ICRCSize
	for end := size; ; end += size {
		if end > len(f.Payload) {
			clear(f.Payload[len(f.Payload)-4:])
			break
		}
		clear(f.Payload[end-4 : end])
	}
	var s Splitter
	got := parts(&s, f)
	if len(got) != 3 {
		t.Fatal(got)
	}
	for _, x := range got {
		if x.icrc != NotCheckedZeroed {
			t.Error(got)
		}
	}
}

// TestSplitCut cuts a batch as a snaplen does.
func TestSplitCut(t *testing.T) {
	packets := batchPackets(batches[0].parts)
	full := batch(t, false, 7, 1, packets...)
	size := len(packets[0]) + ICRCSize
	for n := BTHSize; n < len(full.Payload); n++ {
		f := *full
		f.Payload = full.Payload[:n:n]
		var s Splitter
		var p Packet
		var got []part
		for s.Reset(&f); s.Next(&p); {
			got = append(got, part{p.Opcode, p.PSN, p.PayloadLen, p.ICRC})
			if len(got) == 1 && n < size && p.Problem != ProblemLength {
				t.Fatalf("cut at %d: problem %q", n, p.Problem)
			}
		}
		want := 1
		if n >= size {
			want = (n + size - 1) / size
		}
		if len(got) != want {
			t.Fatalf("cut at %d: %v, want %d parts", n, got, want)
		}
		if n >= size && got[0].icrc != Good {
			t.Fatalf("cut at %d: %v", n, got)
		}
	}
}

// TestSplitNot gives what must not be taken apart.
func TestSplitNot(t *testing.T) {
	send := func(n int, change func(b []byte)) *link.Frame {
		b := packet(RCSendOnly, 5, n)
		change(b)
		return batch(t, false, 1, 1, b)
	}
	inner := packet(RCSendOnly, 6, 100)
	for _, c := range []struct {
		name    string
		f       *link.Frame
		problem Problem
		icrc    Verdict
	}{
		{"a payload that looks like packets", send(1000, func(b []byte) { copy(b[300:], inner) }), NoProblem, Good},
		{"the same, damaged", func() *link.Frame {
			f := send(1000, func(b []byte) { copy(b[300:], inner) })
			f.Payload[800] ^= 1
			return f
		}(), NoProblem, Bad},
		{"too long, but right", batch(t, false, 1, 1, packet(RCSendOnly, 5, 5000)), NoProblem, Good},
		{"too long and wrong", func() *link.Frame {
			f := batch(t, false, 1, 1, packet(RCSendOnly, 5, 5000))
			f.Payload[800] ^= 1
			return f
		}(), ProblemLength, Bad},
		{"an odd path MTU", batch(t, false, 1, 1, packet(RCSendFirst, 5, 1000)), NoProblem, Good},
		{"a request with payload", batch(t, false, 1, 1, packet(RCReadRequest, 5, 64)), NoProblem, Good},
		{"version", send(6000, func(b []byte) { b[1] = 1 }), ProblemVersion, Good},
	} {
		var s Splitter
		var p Packet
		n := 0
		for s.Reset(c.f); s.Next(&p); n++ {
			if p.Problem != c.problem || p.ICRC != c.icrc || s.Segmented() {
				t.Errorf("%s: %q, %v; want %q, %v", c.name, p.Problem, p.ICRC, c.problem, c.icrc)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d parts", c.name, n)
		}
	}
	var s Splitter
	var p Packet
	if s.Next(&p) {
		t.Error("a packet without a frame")
	}
	for _, f := range []*link.Frame{{}, {Proto: link.UDP, PayloadLen: 9000}, {Proto: link.RoCEv1, Payload: make([]byte, 9000), PayloadLen: 9000}} {
		if got := parts(&s, f); len(got) != 1 {
			t.Errorf("%+v: %v", f, got)
		}
	}
}

// Batches of packets of any sizes, as a receiver may merge them, or a provider that sends an acknowledgement
// after a Send.
var mixtures = []struct {
	name  string
	parts []part
}{
	{"a Send and the acknowledgement behind it", []part{{RCSendOnly, 5, 192, Good}, {RCAcknowledge, 77, 0, Good}}},
	{"an acknowledgement and a Send", []part{{RCAcknowledge, 77, 0, Good}, {RCSendOnly, 5, 192, Good}}},
	{"the end of a message and a new one", []part{{RCSendMiddle, 5, 1024, Good}, {RCSendLast, 6, 17, Good}, {RCWriteFirst, 7, 1024, Good}, {RCWriteLast, 8, 3, Good}, {RCSendOnlyInvalidate, 9, 64, Good}}},
	{"Read Request between", []part{{RCWriteOnly, 5, 700, Good}, {RCReadRequest, 6, 0, Good}, {RCSendOnly, 15, 1, Good}, {RCReadResponseOnly, 3, 4096, Good}, {RCAcknowledge, 4, 0, Good}}},
	{"growing", []part{{RCSendOnly, 1, 0, Good}, {RCSendOnly, 2, 1, Good}, {RCSendOnly, 3, 5, Good}, {RCSendOnly, 4, 4096, Good}}},
	{"another path MTU", []part{{RCSendFirst, 1, 256, Good}, {RCSendMiddle, 2, 512, Good}, {RCSendMiddle, 3, 2048, Good}, {RCSendLast, 4, 1, Good}}},
	{"no path MTU at all", []part{{RCSendFirst, 1, 1000, Good}, {RCSendMiddle, 2, 1000, Good}, {RCSendLast, 3, 1001, Good}}},
	{"connection management behind data", []part{{RCSendOnly, 1, 100, Good}, {UDSendOnly, 2, 256, Good}}},
	{"a manufacturer's", []part{{RCSendOnly, 1, 100, Good}, {0xc5, 2, 40, Good}, {RCSendOnly, 3, 100, Good}}},
}

func TestSplitUnequal(t *testing.T) {
	for _, c := range mixtures {
		for _, v6 := range []bool{false, true} {
			for _, step := range []uint16{0, 1, 2, 0x1234} {
				f := batch(t, v6, 0xffff, step, batchPackets(c.parts)...)
				var s Splitter
				if got := parts(&s, f); fmt.Sprint(got) != fmt.Sprint(c.parts) || !s.Segmented() {
					t.Errorf("%s, v6 %v, step %d: got %v, want %v", c.name, v6, step, got, c.parts)
				}
			}
		}
	}
}

// Any sequence of packets of any size comes apart.
func TestSplitRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	ops := []Opcode{RCSendFirst, RCSendMiddle, RCSendLast, RCSendOnly, RCWriteFirst, RCWriteMiddle, RCWriteLast, RCWriteOnly, RCReadRequest, RCReadResponseFirst, RCReadResponseLast, RCAcknowledge, RCSendOnlyInvalidate, UDSendOnly}
	for range 2000 {
		var want []part
		for bytes := 0; len(want) == 0 || len(want) < 40 && bytes < 50000 && rnd.IntN(6) > 0; {
			x := part{op: ops[rnd.IntN(len(ops))], psn: rnd.Uint32() & mask24, icrc: Good}
			switch opcodes[x.op].payload {
			case payloadMTU:
				x.n = 256 << rnd.IntN(5)
			case payloadAny:
				x.n = rnd.IntN(1 + MaxMTU>>rnd.IntN(13))
			}
			want = append(want, x)
			bytes += x.n
		}
		f := batch(t, rnd.IntN(2) == 0, uint16(rnd.Uint32()), uint16(rnd.IntN(3)), batchPackets(want)...)
		var s Splitter
		if got := parts(&s, f); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

// A damaged packet among packets of other sizes costs no other one.
func TestSplitUnequalDamaged(t *testing.T) {
	list := mixtures[3].parts
	packets := batchPackets(list)
	for damaged := range list {
		f := batch(t, false, 7, 1, packets...)
		at := 0
		for _, p := range packets[:damaged] {
			at += len(p) + ICRCSize
		}
		f.Payload[at+9] ^= 0x40 // in the PSN
		var s Splitter
		got := parts(&s, f)
		if len(got) != len(list) {
			t.Fatalf("part %d damaged: %v", damaged, got)
		}
		for i, x := range got {
			want := list[i]
			if i == damaged {
				want.icrc, x.psn = Bad, want.psn
			}
			if x != want {
				t.Errorf("part %d damaged: part %d is %v", damaged, i, x)
			}
		}
	}
}

// What cannot be taken apart says so.
func TestSplitJoined(t *testing.T) {
	packets := batchPackets([]part{{RCSendOnly, 1, 100, Good}, {RCReadResponseOnly, 3, 4000, Good}, {RCReadResponseOnly, 9, 4000, Good}})
	f := batch(t, false, 7, 1, packets...)
	f.Payload[400] ^= 1
	f.Payload[5000] ^= 1
	var s Splitter
	var p Packet
	var got []string
	for s.Reset(f); s.Next(&p); {
		got = append(got, fmt.Sprintf("%d %v %s", p.PayloadLen, p.ICRC, p.Problem))
	}
	want := []string{"100 good ", "8020 bad " + ProblemJoined.String()}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The kernel's word counts more than a guess: sizes are right without ICRCs and
// of packets that are damaged.
func TestSplitSegment(t *testing.T) {
	list := []part{{RCSendOnly, 5, 192, Good}, {RCSendOnly, 6, 192, Good}, {RCAcknowledge, 77, 0, Good}}
	packets := batchPackets(list)
	size := len(packets[0]) + ICRCSize
	for _, skip := range []bool{false, true} {
		f := batch(t, false, 7, 1, packets...)
		f.Segment = uint16(size)
		f.Payload[30] ^= 1
		clear(f.Payload[2*size-4 : 2*size])
		s := Splitter{SkipICRC: skip}
		got := parts(&s, f)
		want := slices.Clone(list)
		want[0].icrc, want[1].icrc = Bad, NotCheckedZeroed
		if skip {
			want[0].icrc, want[1].icrc, want[2].icrc = Unchecked, Unchecked, Unchecked
		}
		if !slices.Equal(got, want) {
			t.Errorf("skip %v: %v, want %v", skip, got, want)
		}
		for _, segment := range []int{len(f.Payload), len(f.Payload) + 1, 65535} { // one packet
			f = batch(t, false, 7, 1, packets[0])
			f.Segment = uint16(max(segment, len(f.Payload)))
			if got := parts(&s, f); len(got) != 1 || s.Segmented() {
				t.Errorf("segment %d: %v", segment, got)
			}
		}
	}
	f := batch(t, false, 7, 1, packets...)
	f.Segment = 15 // no packet has so little
	var s Splitter
	if got := parts(&s, f); !slices.Equal(got, list) {
		t.Errorf("%v, want %v", got, list)
	}
}

// plausible is a datagram that looks at every fourth byte as if a packet began, with n bytes after the first
// header.
func plausible(t testing.TB, n int) *link.Frame {
	b := packet(RCSendOnly, 5, n)
	for i := BTHSize; i+4 <= len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], uint32(RCSendOnly)<<24|uint32(DefaultPKey))
	}
	f := batch(t, false, 1, 1, b)
	f.Payload[len(f.Payload)-1] ^= 1
	return f
}

// The work for a crafted datagram grows with its length, and no faster.
func TestSplitWork(t *testing.T) {
	for _, n := range []int{1000, 4000, 16000, 64000} {
		f := plausible(t, n)
		var s Splitter
		if got := parts(&s, f); len(got) != 1 {
			t.Errorf("%d bytes: %d packets", n, len(got))
		}
		if spent := sumFactor*len(f.Payload) + sumLeast - s.left; spent > sumFactor*len(f.Payload)+sumLeast+candidateCost+MaxMTU || spent < n/4 {
			t.Errorf("%d bytes: %d summed", n, spent)
		}
		if n == 64000 && s.left >= 0 {
			t.Errorf("%d bytes left: candidates cost nothing", s.left)
		}
	}
	// Nor does it where packets that are right follow such that are not, with
	// places between that look like neither.
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		var packets [][]byte
		for size := 0; size < 60000; {
			p := packet(RCSendOnly, rnd.Uint32(), 4*rnd.IntN(20))
			for i := BTHSize; i+4 <= len(p); i += 4 {
				binary.BigEndian.PutUint32(p[i:], [3]uint32{0, 0x0400ffff, rnd.Uint32()}[rnd.IntN(3)])
			}
			packets = append(packets, p)
			size += len(p) + ICRCSize
		}
		f := batch(t, rnd.IntN(2) == 0, 1, 1, packets...)
		for i := rnd.IntN(64); i < len(f.Payload); i += 16 + rnd.IntN(1+rnd.IntN(300)) {
			f.Payload[i] ^= 0x10
		}
		var s Splitter
		got := parts(&s, f)
		if s.left < -len(f.Payload)-2*MaxMTU || len(got) == 0 {
			t.Fatalf("%d bytes left, %d packets", s.left, len(got))
		}
	}
	// Headers within the payload of packets that are right do not exhaust it.
	inner := packet(RCSendOnly, 6, 4)
	var packets [][]byte
	for range 15 {
		b := packet(RCReadResponseOnly, 5, 4096)
		for at := 16; at+64 < len(b); at += 64 {
			copy(b[at:], inner)
		}
		packets = append(packets, b)
	}
	var s Splitter
	if got := parts(&s, batch(t, false, 1, 1, packets...)); len(got) != len(packets) {
		t.Errorf("%d packets, want %d", len(got), len(packets))
	}
}

// All bits of an ICRC count, those that differ from the one expected only where
// an identification would not be included.
func TestSplitWitness(t *testing.T) {
	list := mixtures[0].parts
	packets := batchPackets(list)
	end := len(packets[0])
	for bit := range 32 {
		f := batch(t, false, 7, 1, packets...)
		x := ^crc32.Update(^uint32(1<<bit), crc32.IEEETable, make([]byte, end-BTHSize))
		stored := f.Payload[end : end+ICRCSize]
		binary.LittleEndian.PutUint32(stored, binary.LittleEndian.Uint32(stored)^x)
		var s Splitter
		if got := parts(&s, f); len(got) != 2 || got[0].icrc != Bad || got[1] != list[1] {
			t.Errorf("bit %d: %v", bit, got)
		}
	}
}

func TestUnshiftCRC(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	zeros := make([]byte, 65535)
	for _, n := range []int{0, 1, 2, 3, 255, 256, 257, 1000, 4096, 65535, rnd.IntN(65536), rnd.IntN(65536)} {
		v := rnd.Uint32()
		shifted := ^crc32.Update(^v, crc32.IEEETable, zeros[:n])
		if got := UnshiftCRC(shifted, n); got != v {
			t.Errorf("%d zeros: %#x, want %#x", n, got, v)
		}
	}
}

func TestSplitAllocs(t *testing.T) {
	var s Splitter
	var p Packet
	for _, f := range []*link.Frame{
		sampleFrame(t, sampleSendInv),
		batch(t, false, 7, 1, batchPackets(batches[0].parts)...),
		batch(t, false, 7, 1, batchPackets(batches[10].parts)...),
		batch(t, false, 7, 5, batchPackets(mixtures[3].parts)...),
		plausible(t, 9000),
	} {
		if n := minAllocs(func() {
			for s.Reset(f); s.Next(&p); {
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	add := func(frame *link.Frame, segment uint16) {
		f.Add(frame.Net, frame.Transport, frame.Payload, frame.PayloadLen, segment)
	}
	for _, s := range samples {
		add(sampleFrame(f, s.hex), 0)
	}
	for _, c := range append(batches, mixtures...) {
		packets := batchPackets(c.parts)
		add(batch(f, false, 7, 1, packets...), 0)
		add(batch(f, true, 7, 1, packets...), uint16(len(packets[0])+ICRCSize))
	}
	add(batch(f, false, 7, 0x100, batchPackets(mixtures[3].parts)...), 0)
	add(plausible(f, 3000), 0)
	f.Fuzz(func(t *testing.T, net, transport, payload []byte, declared int, segment uint16) {
		frame := link.Frame{Proto: link.UDP, Net: net, Transport: transport, Payload: payload, PayloadLen: declared % (1 << 17), Segment: segment}
		for _, skip := range []bool{false, true} {
			s := Splitter{SkipICRC: skip}
			var p Packet
			n, size, at := 0, 0, 0
			for s.Reset(&frame); s.Next(&p); n++ {
				size += len(p.Payload)
				if n > len(payload)/(BTHSize+ICRCSize)+1 || size > len(payload) {
					t.Fatalf("%d packets with %d bytes in %d", n, size, len(payload))
				}
				if s.left < -len(payload)-2*MaxMTU {
					t.Fatalf("packet %d: %d bytes left to sum", n, s.left)
				}
				// What is right is right on its own.
				if s.Segmented() && p.ICRC == Good {
					alone := frame
					alone.Net, alone.Transport, alone.Segment = bytes.Clone(net), bytes.Clone(transport), 0
					alone.Payload, alone.PayloadLen = payload[at:s.at], s.at-at
					binary.BigEndian.PutUint16(alone.Transport[4:], uint16(udpSize+s.at-at))
					if s.kind == kindIPv4 {
						binary.BigEndian.PutUint16(alone.Net[2:], uint16(len(net)+udpSize+s.at-at))
						binary.BigEndian.PutUint16(alone.Net[4:], s.id)
					} else {
						binary.BigEndian.PutUint16(alone.Net[4:], uint16(len(net)-40+udpSize+s.at-at))
					}
					var c Checker
					if v := c.Check(&alone); v != Good {
						t.Fatalf("packet %d at %d, %d bytes: alone it is %v", n, at, s.at-at, v)
					}
				}
				at = s.at
			}
			if n == 0 && len(payload) > 0 || n > 1 && !s.Segmented() {
				t.Fatalf("%d packets, segmented %v", n, s.Segmented())
			}
			if s.Segmented() && s.at < min(len(payload), frame.PayloadLen) {
				t.Fatalf("ended at %d of %d", s.at, len(payload))
			}
		}
	})
}

func BenchmarkSplitter(b *testing.B) {
	run := func(name string, f *link.Frame, skip bool) {
		b.Run(name, func(b *testing.B) {
			s := Splitter{SkipICRC: skip}
			var p Packet
			b.SetBytes(int64(len(f.Payload)))
			for b.Loop() {
				for s.Reset(f); s.Next(&p); {
				}
			}
		})
	}
	for _, skip := range []bool{false, true} {
		note := ""
		if skip {
			note = ", ICRC not checked"
		}
		run("acknowledge"+note, sampleFrame(b, sampleAck), skip)
		run("send"+note, sampleFrame(b, sampleSendInv), skip)
		run("middle"+note, batch(b, false, 1, 1, packet(RCSendMiddle, 5, 1024)), skip)
	}
	bad := batch(b, false, 1, 1, packet(RCSendOnly, 5, 1024))
	bad.Payload[100] ^= 1
	run("bad ICRC", bad, false)
	run("a Send and its ACK", batch(b, false, 7, 1, batchPackets(mixtures[0].parts)...), false)
	run("crafted, 64 KB", plausible(b, 64000), false)
	run("three at once", batch(b, false, 7, 1, batchPackets(batches[0].parts)...), false)
}
