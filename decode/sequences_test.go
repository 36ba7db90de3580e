package decode

import (
	"cmp"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
)

// feed gives a sender's numbers to s, as packets 1, 2, ….
func feed(s *sequences, numbers ...uint32) {
	all := []link.Tunnel{{Type: link.VXLAN}, {Type: link.ERSPAN, Version: 2, ID: 7, Sequenced: true}}
	for i, n := range numbers {
		all[1].Sequence = n
		s.note(&capture.Packet{Number: uint64(i + 1)}, all, 0)
	}
}

func TestSequences(t *testing.T) {
	var interleaved, constant, straggler []uint32
	for i := range uint32(1500) {
		straggler = append(straggler, i)
	}
	straggler = append(straggler, 3, 1500, 1501)
	for i := range uint32(50) {
		interleaved = append(interleaved, 100+i, 700+i)
		constant = append(constant, 3)
	}
	for _, c := range []struct {
		name    string
		numbers []uint32
		want    Sequences
	}{
		{"none missing", []uint32{5, 6, 7, 8}, Sequences{Packets: 4}},
		{"two missing", []uint32{5, 6, 9, 10}, Sequences{ERSPAN: true, Packets: 4, Missing: 2, First: 3}},
		{"wrap around", []uint32{1<<32 - 2, 1<<32 - 1, 0, 2}, Sequences{ERSPAN: true, Packets: 4, Missing: 1, First: 4}},
		{"late", []uint32{5, 6, 8, 7, 9, 10, 11, 12}, Sequences{Packets: 8}},
		{"again", []uint32{5, 6, 8, 8, 9, 10, 11, 12}, Sequences{ERSPAN: true, Packets: 8, Missing: 1, First: 3}},
		{"earlier than the first", []uint32{5, 3, 6, 7, 8}, Sequences{ERSPAN: true, Packets: 5, Missing: 1}},
		{"the sender begins anew", []uint32{5000, 5001, 5002, 5003, 5004, 1, 2, 4}, Sequences{ERSPAN: true, Packets: 8, Missing: 1, First: 8}},
		{"filled, then others missing", []uint32{5, 7, 6, 8, 9, 11}, Sequences{ERSPAN: true, Packets: 6, Missing: 1, First: 6}},
		{"one comes very late", straggler, Sequences{Packets: 1503}},
		{"a constant", constant, Sequences{}},
		{"two counters", interleaved, Sequences{}},
		{"no packets", nil, Sequences{}},
	} {
		var s sequences
		feed(&s, c.numbers...)
		got := s.sum()
		if c.name == "earlier than the first" {
			got.First = 0 // nothing is known of what is missing before it came
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// TestSequencesCount: in whatever order packets come, within the window, exactly those that did not come are missing.
func TestSequencesCount(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		type packet struct{ number, comes uint32 }
		var packets []packet
		for i := range uint32(2000) {
			comes := i
			if rnd.IntN(30) == 0 {
				comes += rnd.Uint32N(sequenceWindow)
			}
			if rnd.IntN(20) > 0 {
				packets = append(packets, packet{i, comes})
			}
			if rnd.IntN(30) == 0 {
				packets = append(packets, packet{i, comes + rnd.Uint32N(3)})
			}
		}
		slices.SortStableFunc(packets, func(a, b packet) int { return cmp.Compare(a.comes, b.comes) })
		first := rnd.Uint32()
		var numbers, d []uint32
		for _, x := range packets {
			numbers = append(numbers, first+x.number)
			d = append(d, x.number)
		}
		var s sequences
		feed(&s, numbers...)
		slices.Sort(d)
		d = slices.Compact(d)
		want := uint64(d[len(d)-1]-d[0]) + 1 - uint64(len(d))
		var got uint64
		for _, q := range s.senders {
			got += q.missing
		}
		if got != want {
			t.Fatalf("%d missing, want %d", got, want)
		}
	}
}

// TestManySenders: what is remembered of senders is bounded, and those that are remembered cost nothing.
func TestManySenders(t *testing.T) {
	var s sequences
	all := []link.Tunnel{{Type: link.GRE, HasID: true, Sequenced: true}}
	p := new(capture.Packet)
	for i := range uint32(4 * maxSenders) {
		all[0].ID, all[0].Src = i, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
		s.note(p, all, 0)
	}
	if n := len(s.senders); n != maxSenders {
		t.Errorf("%d senders are remembered", n)
	}
	all[0].ID, all[0].Src = 0, netip.AddrFrom4([4]byte{10, 0, 0, 0})
	if n := testing.AllocsPerRun(1000, func() {
		all[0].Sequence += 2
		s.note(p, all, 0)
	}); n != 0 {
		t.Errorf("%v allocations for a packet", n)
	}
}

func TestSequencesSince(t *testing.T) {
	was := Sequences{ERSPAN: true, Packets: 100, Missing: 4, First: 7}
	now := Sequences{ERSPAN: true, Packets: 150, Missing: 6, First: 7}
	if got, want := now.Since(was), (Sequences{ERSPAN: true, Packets: 50, Missing: 2, First: 7}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := was.Since(now); got != (Sequences{}) { // late packets have filled gaps
		t.Errorf("%+v of packets that have come since", got)
	}
}
