package tcp

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// recorder is a Consumer that records its calls, and checks that it
// has no holes.
type recorder struct {
	t     testing.TB
	log   []string
	next  uint64
	data  []byte // the stream, zero where it was skipped
	have  []bool
	first []uint64 // packet numbers by byte
	ready []uint64
	ended bool
	quiet bool
	huge  bool // more was skipped than is worth the memory
}

func (r *recorder) add(format string, args ...any) {
	if !r.quiet {
		r.log = append(r.log, fmt.Sprintf(format, args...))
	}
}

func (r *recorder) advance(offset uint64, n int) {
	r.t.Helper()
	if offset != r.next || n <= 0 || r.ended {
		r.t.Fatalf("%d bytes at %d, expected some at %d (ended %v)", n, offset, r.next, r.ended)
	}
	r.next += uint64(n)
}

func (r *recorder) Data(offset uint64, p []byte, first, ready rdma.Ref) {
	r.advance(offset, len(p))
	if len(p) != cap(p) {
		r.t.Fatalf("slice of %d bytes can grow to %d", len(p), cap(p))
	}
	if first == ready {
		r.add("data %d %s #%d", offset, p, first.Number)
	} else {
		r.add("data %d %s #%d,%d", offset, p, first.Number, ready.Number)
	}
	r.data = append(r.data, p...)
	for range p {
		r.have = append(r.have, true)
		r.first = append(r.first, first.Number)
		r.ready = append(r.ready, ready.Number)
	}
}

func (r *recorder) Skip(offset uint64, n int, why Reason, first, ready rdma.Ref) {
	r.advance(offset, n)
	if first.Seen() != (why == Cut) {
		r.t.Fatalf("skip %s with packet %d", why, first.Number)
	}
	r.add("skip %d %d %s #%d", offset, n, why, ready.Number)
	r.huge = r.huge || n > 1<<20
	if r.quiet && !r.huge {
		r.data = append(r.data, make([]byte, n)...)
		for range n {
			r.have = append(r.have, false)
			r.first = append(r.first, first.Number)
			r.ready = append(r.ready, ready.Number)
		}
	}
}

func (r *recorder) Again(offset uint64, n int, ref rdma.Ref) {
	if n <= 0 {
		r.t.Fatalf("%d bytes again", n)
	}
	r.add("again %d %d #%d", offset, n, ref.Number)
}

func (r *recorder) Differs(offset uint64, n int, ref rdma.Ref) {
	r.add("differs %d %d #%d", offset, n, ref.Number)
}

func (r *recorder) End(offset uint64, how Ending, ref rdma.Ref) {
	if offset != r.next || r.ended {
		r.t.Fatalf("end at %d, expected at %d (ended %v)", offset, r.next, r.ended)
	}
	r.ended = true
	r.add("end %d %d #%d", offset, how, ref.Number)
}

func (r *recorder) Reset(ref rdma.Ref) {
	r.add("reset #%d", ref.Number)
	r.next, r.ended = 0, false
	r.data, r.have, r.first, r.ready = nil, nil, nil, nil
}

// step is a segment, or an acknowledgment of the peer if ack is set.
type step struct {
	seq   uint32
	flags uint8
	data  string
	n     int // declared length; 0 for that of data
	ack   uint32
	time  int64
}

func TestStream(t *testing.T) {
	for _, c := range []struct {
		name  string
		isn   uint32
		opt   Options
		steps []step
		want  string
		stats Stats
	}{
		{name: "in order", steps: []step{{seq: 99, flags: SYN}, {seq: 100, data: "abc"}, {seq: 103, data: "de"}, {seq: 105, flags: FIN, data: "f"}},
			want: "data 0 abc #2; data 3 de #3; data 5 f #4; end 6 1 #4", stats: Stats{Segments: 4}},
		{name: "wrap", steps: []step{{seq: 0xfffffffd, flags: SYN}, {seq: 0xfffffffe, data: "abcd"}, {seq: 2, data: "ef"}},
			want: "data 0 abcd #2; data 4 ef #3", stats: Stats{Segments: 3}},
		{name: "wrap out of order", steps: []step{{seq: 0xfffffffd, flags: SYN}, {seq: 2, data: "ef"}, {seq: 0xfffffffe, data: "abcd"}},
			want: "data 0 abcd #3; data 4 ef #2,3", stats: Stats{Segments: 3, OutOfOrder: 1}},
		{name: "data in SYN", steps: []step{{seq: 99, flags: SYN, data: "ab"}, {seq: 102, data: "c"}},
			want: "data 0 ab #1; data 2 c #2", stats: Stats{Segments: 2}},
		{name: "SYN again", steps: []step{{seq: 99, flags: SYN}, {seq: 100, data: "ab"}, {seq: 99, flags: SYN}, {seq: 102, data: "c"}},
			want: "data 0 ab #2; data 2 c #4", stats: Stats{Segments: 4}},
		{name: "mid-stream", steps: []step{{seq: 500, data: "abc"}, {seq: 490, data: "0123456789"}, {seq: 498, data: "89abcd"}},
			want: "data 0 abc #1; data 3 d #3; again 0 3 #3", stats: Stats{Segments: 3, Early: 12, Again: 3}},
		{name: "mid-stream after bare segment", steps: []step{{seq: 500}, {seq: 503, data: "def"}, {seq: 500, data: "abc"}},
			want: "data 0 abc #3; data 3 def #2,3", stats: Stats{Segments: 2, OutOfOrder: 1}},
		{name: "mid-stream after keep-alive", steps: []step{{seq: 499}, {seq: 500, data: "abc"}},
			want: "data 0 abc #2", stats: Stats{Segments: 1}},
		{name: "mid-stream far from bare segment", steps: []step{{seq: 499}, {seq: 5_000_000, data: "abc"}},
			want: "data 0 abc #2", stats: Stats{Segments: 1}},
		{name: "retransmission", steps: []step{{seq: 0, data: "abcd"}, {seq: 0, data: "abcd"}, {seq: 2, data: "cdef"}},
			want: "data 0 abcd #1; again 0 4 #2; data 4 ef #3; again 2 2 #3", stats: Stats{Segments: 3, Again: 6}},
		{name: "keep-alive", steps: []step{{seq: 10, data: "abcd"}, {seq: 13}, {seq: 13, data: "\x00"}, {seq: 14, data: "e"}},
			want: "data 0 abcd #1; data 4 e #4", stats: Stats{Segments: 3, KeepAlives: 2}},
		{name: "window probe", steps: []step{{seq: 10, data: "abcd"}, {seq: 14, data: "e"}, {seq: 14, data: "efg"}},
			want: "data 0 abcd #1; data 4 e #2; data 5 fg #3; again 4 1 #3", stats: Stats{Segments: 3, Again: 1}},
		{name: "overlap of what waits", steps: []step{{seq: 0, data: "a"}, {seq: 2, data: "c"}, {seq: 4, data: "e"}, {seq: 6, data: "g"}, {seq: 1, data: "BCDEFGH"}},
			want:  "data 0 a #1; data 1 B #5; data 2 c #2,5; differs 2 1 #5; data 3 D #5; data 4 e #3,5; differs 4 1 #5; again 2 1 #5; data 5 F #5; data 6 g #4,5; differs 6 1 #5; again 4 1 #5; data 7 H #5; again 6 1 #5",
			stats: Stats{Segments: 5, OutOfOrder: 3, Again: 3, Differing: 3}},
		{name: "cut", steps: []step{{seq: 0, data: "ab", n: 10}, {seq: 20, data: "u", n: 5}, {seq: 10, n: 10}},
			want: "data 0 ab #1; skip 2 8 cut #1; skip 10 10 cut #3; data 20 u #2,3; skip 21 4 cut #3", stats: Stats{Segments: 3, OutOfOrder: 1, Cut: 22}},
		{name: "lost", steps: []step{{seq: 0, data: "ab"}, {seq: 5, data: "fg"}, {ack: 2}, {ack: 7}, {seq: 7, data: "h"}},
			want: "data 0 ab #1; skip 2 3 lost #4; data 5 fg #2,4; data 7 h #5", stats: Stats{Segments: 3, OutOfOrder: 1, Lost: 3}},
		{name: "acknowledged in part", steps: []step{{seq: 0, data: "ab"}, {seq: 5, data: "fg"}, {ack: 4}, {seq: 2, data: "cde"}},
			want: "data 0 ab #1; skip 2 2 lost #3; data 4 e #4; data 5 fg #2,4; again 2 2 #4", stats: Stats{Segments: 3, OutOfOrder: 1, Lost: 2, Again: 2, Late: 2}},
		{name: "acknowledged before it is seen", steps: []step{{seq: 0, data: "ab"}, {ack: 5}, {seq: 2, data: "cde"}},
			want: "data 0 ab #1; data 2 cde #3", stats: Stats{Segments: 2}},
		{name: "acknowledged and lost", steps: []step{{seq: 0, data: "ab"}, {ack: 7}, {seq: 5, data: "fg"}},
			want: "data 0 ab #1; skip 2 3 lost #3; data 5 fg #3", stats: Stats{Segments: 2, Lost: 3}},
		{name: "lost before FIN", steps: []step{{seq: 0, data: "ab"}, {seq: 5, flags: FIN}, {ack: 6}},
			want: "data 0 ab #1; skip 2 3 lost #3; end 5 1 #3", stats: Stats{Segments: 2, Lost: 3}},
		{name: "acknowledgments far off", steps: []step{{seq: 0, data: "ab"}, {ack: 1<<30 + 100}, {ack: 0x80000000}, {seq: 2, data: "c"}},
			want: "data 0 ab #1; data 2 c #4", stats: Stats{Segments: 2, Ignored: 2}},
		{name: "late", opt: Options{Wait: 5}, steps: []step{{seq: 0, data: "ab"}, {seq: 5, data: "f", time: 10}, {seq: 6, data: "g", time: 15}, {seq: 7, data: "h", time: 16}},
			want: "data 0 ab #1; skip 2 3 late #4; data 5 f #2,4; data 6 g #3,4; data 7 h #4", stats: Stats{Segments: 4, OutOfOrder: 2, Lost: 3}},
		{name: "not late with acknowledgments", opt: Options{Wait: 5}, steps: []step{{seq: 0, data: "ab"}, {ack: 2}, {seq: 5, data: "f"}, {seq: 6, data: "g", time: 99}},
			want: "data 0 ab #1", stats: Stats{Segments: 3, OutOfOrder: 2}},
		{name: "FIN out of order", steps: []step{{seq: 0, data: "ab"}, {seq: 4, flags: FIN, data: "e"}, {seq: 2, data: "cd"}, {seq: 4, flags: FIN, data: "e"}},
			want: "data 0 ab #1; data 2 cd #3; data 4 e #2,3; end 5 1 #3; again 4 1 #4", stats: Stats{Segments: 4, OutOfOrder: 1, Again: 1}},
		{name: "data after FIN", steps: []step{{seq: 0, flags: FIN, data: "ab"}, {seq: 3, data: "de"}, {seq: 1, data: "bcd"}, {seq: 0, data: "ab"}, {seq: 2, flags: FIN}},
			want: "data 0 ab #1; end 2 1 #1; again 0 2 #4", stats: Stats{Segments: 5, Ignored: 2, Again: 2}},
		{name: "FIN before what waits", steps: []step{{seq: 0, data: "ab"}, {seq: 9, data: "j"}, {seq: 5, flags: FIN}, {seq: 2, data: "cdefghi"}},
			want: "data 0 ab #1; data 2 cdefghi #4; data 9 j #2,4", stats: Stats{Segments: 4, OutOfOrder: 1}},
		{name: "RST", steps: []step{{seq: 0, data: "ab"}, {seq: 3, data: "d"}, {seq: 4, flags: RST, data: "text"}, {seq: 4, flags: RST}, {seq: 4, data: "e"}},
			want: "data 0 ab #1; skip 2 1 over #3; data 3 d #2,3; end 4 2 #3", stats: Stats{Segments: 5, OutOfOrder: 1, Lost: 1, Ignored: 1}},
		{name: "RST far off", steps: []step{{seq: 0, data: "ab"}, {seq: 0x70000000, flags: RST}, {seq: 2, data: "c"}},
			want: "data 0 ab #1; data 2 c #3", stats: Stats{Segments: 3, Ignored: 1}},
		{name: "RST alone, then a connection", steps: []step{{flags: RST}, {seq: 99, flags: SYN}, {seq: 100, data: "a"}},
			want: "end 0 2 #1; reset #2; data 0 a #3", stats: Stats{Segments: 3, Resets: 1}},
		{name: "port reuse", steps: []step{{seq: 99, flags: SYN}, {seq: 100, data: "ab"}, {seq: 104, data: "e"}, {seq: 77777, flags: SYN}, {seq: 77778, data: "xy"}, {seq: 77780, flags: FIN}, {seq: 55555, flags: SYN}},
			want: "data 0 ab #2; skip 2 2 over #4; data 4 e #3,4; reset #4; data 0 xy #5; end 2 1 #6; reset #7", stats: Stats{Segments: 7, OutOfOrder: 1, Lost: 2, Resets: 2}},
		{name: "far off", steps: []step{{seq: 0, data: "ab"}, {seq: 1<<30 + 3, data: "x"}, {seq: 0xb0000000, data: "y"}, {seq: 2, data: "c"}},
			want: "data 0 ab #1; data 2 c #4", stats: Stats{Segments: 4, Ignored: 2}},
		{name: "another stream without SYN", steps: []step{{seq: 0, data: "ab"}, {seq: 0x70000000, data: "01"}, {seq: 0x70000002, data: "23"}, {seq: 0x70000004, data: "45"}, {seq: 0x70000006, data: "67"},
			{seq: 0x70000008, data: "89"}, {seq: 0x7000000a, data: "ab"}, {seq: 0x7000000c, data: "cd"}, {seq: 0x7000000e, data: "ef"}, {seq: 0x70000010, data: "gh"}},
			want: "data 0 ab #1; reset #9; data 0 ef #9; data 2 gh #10", stats: Stats{Segments: 10, Ignored: 8, Resets: 1}},
		{name: "buffer full", opt: Options{Buffer: 1024}, steps: []step{{seq: 0, data: "a"}, {seq: 2, data: "c"}, {seq: 4, data: "e"}, {seq: 6, data: "g"}},
			want: "data 0 a #1; skip 1 1 overrun #4; data 2 c #2,4", stats: Stats{Segments: 4, OutOfOrder: 3, Lost: 1}},
		{name: "too many pieces", opt: Options{Segments: 2}, steps: []step{{seq: 0, data: "a"}, {seq: 2, data: "c"}, {seq: 4, data: "e"}, {seq: 6, data: "g"}},
			want: "data 0 a #1; skip 1 1 overrun #4; data 2 c #2,4", stats: Stats{Segments: 4, OutOfOrder: 3, Lost: 1}},
		{name: "larger than the buffer", opt: Options{Buffer: 512}, steps: []step{{seq: 0, data: "a"}, {seq: 2, data: strings.Repeat("c", 600)}, {seq: 602, data: "d"}},
			want: "data 0 a #1; skip 1 1 overrun #2; data 2 " + strings.Repeat("c", 600) + " #2; data 602 d #3", stats: Stats{Segments: 3, Lost: 1}},
		{name: "empty lies", steps: []step{{seq: 0, data: "ab", n: -5}, {seq: 0, data: "ab"}, {seq: 2, data: "cd", n: 1}, {seq: 3, n: 1<<31 - 1}, {seq: 3, data: "d"}},
			want: "data 0 ab #2; data 2 c #3; data 3 d #5", stats: Stats{Segments: 4, Ignored: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &recorder{t: t}
			p := NewPool(c.opt)
			s := NewStream(p, r)
			for i, x := range c.steps {
				ref := rdma.Ref{Number: uint64(i + 1), Time: x.time}
				if x.ack != 0 {
					s.Acked(x.ack, ref)
					continue
				}
				n := x.n
				if n == 0 {
					n = len(x.data)
				}
				s.Segment(x.seq, x.flags, []byte(x.data)[:len(x.data):len(x.data)], n, ref)
			}
			if got := strings.Join(r.log, "; "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if s.Stats() != c.stats {
				t.Errorf("got  %+v\nwant %+v", s.Stats(), c.stats)
			}
			s.Release()
			if p.Used() != 0 || s.Buffered() != 0 {
				t.Errorf("%d bytes are not given back", p.Used())
			}
		})
	}
}

func TestFlush(t *testing.T) {
	r := &recorder{t: t}
	s := NewStream(NewPool(Options{}), r)
	s.Segment(0, 0, []byte("a"), 1, rdma.Ref{Number: 1})
	s.Segment(2, 0, []byte("c"), 1, rdma.Ref{Number: 2})
	s.Segment(4, 0, []byte("e"), 1, rdma.Ref{Number: 3})
	s.Segment(7, FIN, nil, 0, rdma.Ref{Number: 4})
	s.Flush(rdma.Ref{Number: 9})
	want := "data 0 a #1; skip 1 1 over #9; data 2 c #2,9; skip 3 1 over #9; data 4 e #3,9; skip 5 2 over #9; end 7 1 #9"
	if got := strings.Join(r.log, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if !s.Ended() || !s.Started() || s.Next() != 7 {
		t.Error("state")
	}
}

// TestFlushAcked: what was acknowledged behind the last byte is missing, if it can have been in flight.
func TestFlushAcked(t *testing.T) {
	for _, c := range []struct {
		name string
		acks []uint32
		want uint64 // bytes lost
	}{
		{"nothing", nil, 0},
		{"all that was seen", []uint32{1}, 0},
		{"a FIN", []uint32{2}, 0},
		{"data", []uint32{1, 101}, 100},
		{"in steps", []uint32{10 << 20, 20 << 20, 30 << 20}, 30<<20 - 1},
		{"more than was in flight", []uint32{1 << 25}, 0},
		{"more than was in flight, then less", []uint32{101, 1 << 25, 201}, 100},
		{"more than a window", []uint32{3 << 30}, 0},
	} {
		s := NewStream(NewPool(Options{}), &null{})
		s.Segment(0, 0, []byte("a"), 1, rdma.Ref{Number: 1})
		for _, ack := range c.acks {
			s.Acked(ack, rdma.Ref{Number: 2})
		}
		s.Flush(rdma.Ref{Number: 3})
		if got := s.Stats().Lost; got != c.want {
			t.Errorf("%s: %d bytes lost, want %d", c.name, got, c.want)
		}
	}
}

// segment is a part of a stream as a capture has it.
type segment struct {
	at, n    int
	captured int
}

// deliver feeds segments in order; the sequence number of byte 0 is base.
func deliver(s *Stream, base uint32, stream []byte, segments []segment) {
	for i, x := range segments {
		s.Segment(base+uint32(x.at), 0, stream[x.at:x.at+x.captured:x.at+x.captured], x.n, rdma.Ref{Number: uint64(i + 1)})
	}
}

func randomStream(rnd *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rnd.Uint32()) | 1 // never zero
	}
	return b
}

// segmentation cuts [0, n) into segments of random sizes.
func segmentation(rnd *rand.Rand, n int) []segment {
	var list []segment
	for at := 0; at < n; {
		size := min(1+rnd.IntN(1+rnd.IntN(3000)), n-at)
		list = append(list, segment{at, size, size})
		at += size
	}
	return list
}

// disorder moves segments by up to k places.
func disorder(rnd *rand.Rand, list []segment, k int) {
	for i := range list {
		j := min(i+rnd.IntN(k+1), len(list)-1)
		list[i], list[j] = list[j], list[i]
	}
}

// A stream cut up, reordered, repeated and overlapped comes out as it was, and
// each byte with the packet in which it was first seen and the one with which
// all before it had been seen.
func TestReassembly(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	pool := NewPool(Options{Buffer: 8 << 20, Segments: 60000})
	for round := range 100 {
		stream := randomStream(rnd, 1+rnd.IntN(60000))
		list := segmentation(rnd, len(stream))
		for range rnd.IntN(20) { // repeated, and cut differently
			at := rnd.IntN(len(stream))
			n := 1 + rnd.IntN(len(stream)-at)
			list = append(list, segment{at, n, n})
			i := rnd.IntN(len(list))
			list[i], list[len(list)-1] = list[len(list)-1], list[i]
		}
		disorder(rnd, list, []int{0, 1, 5, 100}[round%4])
		isn := rnd.Uint32()
		if round%3 == 0 {
			isn = -uint32(rnd.IntN(60000))
		}
		r := &recorder{t: t, quiet: true}
		s := NewStream(pool, r)
		s.Segment(isn, SYN, nil, 0, rdma.Ref{})
		deliver(s, isn+1, stream, list)
		if !bytes.Equal(r.data, stream) {
			t.Fatalf("round %d: stream differs", round)
		}
		first := make([]uint64, len(stream))
		for i, x := range list {
			for at := x.at; at < x.at+x.n; at++ {
				if first[at] == 0 {
					first[at] = uint64(i + 1)
				}
			}
		}
		ready := uint64(0)
		for i := range stream {
			ready = max(ready, first[i])
			if r.first[i] != first[i] || r.ready[i] != ready || !r.have[i] {
				t.Fatalf("round %d: byte %d first in %d, ready with %d; want %d, %d", round, i, r.first[i], r.ready[i], first[i], ready)
			}
		}
		total := 0
		for _, x := range list {
			total += x.n
		}
		if st := s.Stats(); st.Again != uint64(total-len(stream)) || st.Lost != 0 || st.Ignored != 0 {
			t.Fatalf("round %d: %+v", round, st)
		}
		if pool.Used() != 0 {
			t.Fatalf("round %d: %d bytes not given back", round, pool.Used())
		}
	}
}

// With segments that the capture lacks or has cut, what is delivered is right,
// and what is skipped is exactly what was not captured.
func TestReassemblyWithLoss(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	pool := NewPool(Options{Buffer: 8 << 20, Segments: 60000})
	for round := range 100 {
		stream := randomStream(rnd, 1000+rnd.IntN(60000))
		var list []segment
		captured := make([]bool, len(stream))
		acks := rnd.IntN(2) == 0
		for _, x := range segmentation(rnd, len(stream)) {
			switch rnd.IntN(6) {
			case 0: // lost
				if x.at > 0 {
					continue
				}
			case 1:
				x.captured = rnd.IntN(x.n + 1)
			}
			list = append(list, x)
			for at := x.at; at < x.at+x.captured; at++ {
				captured[at] = true
			}
		}
		if !acks { // disorder and acknowledgments at random do not go together
			disorder(rnd, list[1:], 5)
		}
		base := rnd.Uint32()
		r := &recorder{t: t, quiet: true}
		s := NewStream(pool, r)
		for i, x := range list {
			deliver(s, base, stream, list[i:i+1])
			if acks && rnd.IntN(3) == 0 {
				s.Acked(base+uint32(x.at+x.n), rdma.Ref{Number: uint64(i + 1)})
				if int(s.Next()) != x.at+x.n {
					t.Fatalf("round %d: at %d, acknowledged %d", round, s.Next(), x.at+x.n)
				}
			}
		}
		s.Flush(rdma.Ref{Number: 1 << 30})
		for i := range r.data {
			if r.have[i] != captured[i] || r.have[i] && r.data[i] != stream[i] {
				t.Fatalf("round %d: byte %d: delivered %v, captured %v", round, i, r.have[i], captured[i])
			}
		}
		if last := list[len(list)-1]; acks && len(r.data) != last.at+last.n {
			t.Fatalf("round %d: ended at %d", round, len(r.data))
		}
	}
}

// Whatever the bounds, what is delivered is right and memory is bounded.
func TestReassemblyInSmallBuffers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	for round := range 60 {
		o := Options{Buffer: 1 + rnd.IntN(20000), Segments: 1 + rnd.IntN(20), Total: 1 + rnd.IntN(30000)}
		pool := NewPool(o)
		stream := randomStream(rnd, 60000)
		list := segmentation(rnd, len(stream))
		disorder(rnd, list, 40)
		r := &recorder{t: t, quiet: true}
		s := NewStream(pool, r)
		s.Segment(41, SYN, nil, 0, rdma.Ref{})
		for i := range list {
			deliver(s, 42, stream, list[i:i+1])
			if s.Buffered() > o.Buffer || pool.Used() > o.Total || s.queue != nil && s.queue.len() > o.Segments {
				t.Fatalf("round %d: %d bytes buffered, bounds %+v", round, s.Buffered(), o)
			}
		}
		s.Flush(rdma.Ref{})
		for i := range r.data {
			if r.have[i] && r.data[i] != stream[i] {
				t.Fatalf("round %d: byte %d differs", round, i)
			}
		}
		if len(r.data) != len(stream) || pool.Used() != 0 {
			t.Fatalf("round %d: %d bytes, %d not given back", round, len(r.data), pool.Used())
		}
	}
}

// null is a Consumer that costs nothing.
type null struct{ n int }

func (c *null) Data(_ uint64, p []byte, _, _ rdma.Ref)        { c.n += len(p) }
func (c *null) Skip(_ uint64, n int, _ Reason, _, _ rdma.Ref) { c.n += n }
func (c *null) Again(uint64, int, rdma.Ref)                   {}
func (c *null) Differs(uint64, int, rdma.Ref)                 {}
func (c *null) End(uint64, Ending, rdma.Ref)                  {}
func (c *null) Reset(rdma.Ref)                                {}

func TestStreamAllocs(t *testing.T) {
	p := make([]byte, 1448)
	s := NewStream(NewPool(Options{}), &null{})
	seq := uint32(0)
	s.Segment(seq, 0, p, len(p), rdma.Ref{})
	for name, f := range map[string]func(){
		"in order": func() {
			seq += 1448
			s.Segment(seq, 0, p, len(p), rdma.Ref{})
			s.Acked(seq, rdma.Ref{})
		},
		"out of order": func() {
			seq += 3 * 1448
			s.Segment(seq, 0, p, len(p), rdma.Ref{})
			s.Segment(seq-1448, 0, p, len(p), rdma.Ref{})
			s.Segment(seq-2*1448, 0, p, len(p), rdma.Ref{})
		},
		"again": func() { s.Segment(seq, 0, p, len(p), rdma.Ref{}) },
	} {
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 2, 0, 0, 1, 0, 9, 9, 5, 0, 4, 4, 3, 0, 2, 2, 0x40, 0, 20, 0})
	f.Add([]byte{0xf0, 2, 0, 0, 0xf1, 0, 30, 9, 0x20, 1, 4, 4, 0x10, 4, 0, 0})
	f.Fuzz(func(t *testing.T, script []byte) {
		stream := make([]byte, 520)
		for i := range stream {
			stream[i] = byte(i*37 + 1)
		}
		o := Options{Buffer: 2048, Segments: 8, Total: 4096, Wait: 20}
		pool := NewPool(o)
		r := &recorder{t: t, quiet: true}
		s := NewStream(pool, r)
		const base = 0xffffff80
		for i := uint64(1); len(script) >= 4; script, i = script[4:], i+1 {
			at, flags, n, captured := int(script[0]), script[1], int(script[2]), int(script[3])
			ref := rdma.Ref{Number: i, Time: int64(i)}
			seq := uint32(base) + uint32(at)
			if flags&0x40 != 0 {
				seq += uint32(flags) << 24
			}
			if flags&0x20 != 0 {
				s.Acked(seq, ref)
			} else {
				from := at
				if flags&SYN != 0 {
					from++
				}
				p := stream[from : from+min(n, captured) : from+min(n, captured)]
				s.Segment(seq, flags&7, p, n, ref)
			}
			if r.huge {
				return
			}
			if len(r.data) != int(s.Next()) || s.Buffered() > o.Buffer || pool.Used() != s.Buffered() {
				t.Fatalf("at %d of %d, %d buffered, %d used", s.Next(), len(r.data), s.Buffered(), pool.Used())
			}
			if q := s.queue; q != nil {
				last := s.Next() + 1
				for j := range q.len() {
					w := q.at(j)
					if w.start < last || w.end <= w.start || len(w.data) > int(w.end-w.start) {
						t.Fatalf("piece %d: [%d, %d) after %d", j, w.start, w.end, last)
					}
					last = w.end
				}
			}
			for j, c := range r.data {
				// The sequence number says which byte it must be.
				if k := (s.base + uint32(j) - base) & 0xffffff; r.have[j] && (int(k) >= len(stream) || c != stream[k]) {
					t.Fatalf("byte %d is %d, at %d of the stream", j, c, k)
				}
			}
		}
		s.Flush(rdma.Ref{Number: 1 << 20})
		if pool.Used() != 0 {
			t.Fatalf("%d bytes not given back", pool.Used())
		}
	})
}

func BenchmarkStream(b *testing.B) {
	backwards := make([]uint32, 1000)
	for i := range backwards {
		backwards[i] = uint32(len(backwards) - 1 - i)
	}
	for _, c := range []struct {
		name  string
		size  int
		order []uint32
	}{
		{"InOrder", 1448, []uint32{0, 1, 2, 3}},
		{"OneLate", 1448, []uint32{1, 2, 3, 0}},
		{"Backwards", 1, backwards}, // the worst order of arrival
	} {
		b.Run(c.name, func(b *testing.B) {
			p := make([]byte, c.size)
			s := NewStream(NewPool(Options{}), &null{})
			s.Segment(0, 0, nil, 0, rdma.Ref{})
			b.ReportAllocs()
			seq, i, size := uint32(0), 0, uint32(c.size)
			for b.Loop() {
				s.Segment(seq+c.order[i]*size, 0, p, len(p), rdma.Ref{})
				if i++; i == len(c.order) {
					i = 0
					seq += uint32(len(c.order)) * size
				}
			}
		})
	}
}
