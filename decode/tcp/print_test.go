package tcp

import (
	"bytes"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// kept is a consumer that keeps the bytes since the last Reset.
type kept struct {
	null
	data    []byte
	resets  int
	differs int
}

func (k *kept) Data(_ uint64, p []byte, _, _ rdma.Ref) { k.data = append(k.data, p...) }
func (k *kept) Differs(uint64, int, rdma.Ref)          { k.differs++ }
func (k *kept) Reset(rdma.Ref)                         { k.resets++; k.data = nil }

// TestSequenceNumbersReused: another stream with the sequence numbers of the one
// before, whose SYN was not captured. Nothing of it is lost.
func TestSequenceNumbersReused(t *testing.T) {
	for _, back := range []int{1, 2, 5, 20} {
		var k kept
		s := NewStream(NewPool(Options{}), &k)
		number := uint64(0)
		feed := func(seq uint32, p []byte) {
			number++
			s.Segment(seq, 0, p, len(p), rdma.Ref{Time: int64(number), Number: number})
		}
		for i := range 30 {
			feed(uint32(1000+100*i), bytes.Repeat([]byte{byte(i)}, 100))
		}
		var want []byte
		for i := range 40 {
			p := bytes.Repeat([]byte{byte(100 + i)}, 100)
			want = append(want, p...)
			feed(uint32(1000+100*(30-back+i)), p)
		}
		if back == 1 {
			// One segment that differs may be anybody's: the next goes on.
			if k.resets != 0 || k.differs != 1 || len(k.data) != 3000+3900 {
				t.Errorf("back %d: %d resets, %d differ, %d bytes", back, k.resets, k.differs, len(k.data))
			}
			continue
		}
		if k.resets != 1 || k.differs != 2 || !bytes.Equal(k.data, want) {
			t.Errorf("back %d: %d resets, %d differ, %d bytes, want %d", back, k.resets, k.differs, len(k.data), len(want))
		}
	}
}

// TestRepetitions: segments that are sent again as they were, in other pieces too,
// do not differ.
func TestRepetitions(t *testing.T) {
	var k kept
	s := NewStream(NewPool(Options{}), &k)
	data := make([]byte, 10000)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	number := uint64(0)
	for _, size := range []int{100, 250, 1000, 100, 99, 37} {
		for at := 0; at < len(data); at += size {
			number++
			p := data[at:min(at+size, len(data))]
			s.Segment(uint32(1000+at), 0, p, len(p), rdma.Ref{Time: int64(number), Number: number})
		}
	}
	if k.resets != 0 || k.differs != 0 || !bytes.Equal(k.data, data) {
		t.Errorf("%d resets, %d differ", k.resets, k.differs)
	}
}

// TestOverlapDiffers: a segment that is cut in another way than those that it
// repeats is compared where their words are known, whether all or a part of it is
// old.
func TestOverlapDiffers(t *testing.T) {
	data := make([]byte, 4000)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	for _, c := range []struct {
		name     string
		at, n    int // of the segment
		first, k int // bytes changed in it
		want     int
	}{
		{"the same bytes", 500, 1000, 0, 0, 0},
		{"all other", 500, 1000, 0, 1000, 1},
		{"the beginning of the second", 900, 300, 100, 8, 1},
		{"a quarter of the second", 1150, 300, 100, 8, 1},
		{"the end of the second", 1500, 1000, 492, 8, 1},
		{"between the words", 1010, 200, 0, 200, 0},
		{"a part is new, the same bytes", 2500, 1500, 0, 0, 0},
		{"a part is new, others", 2500, 1500, 0, 500, 1},
	} {
		var k kept
		s := NewStream(NewPool(Options{}), &k)
		for i := range 3 {
			s.Segment(uint32(1000+1000*i), 0, data[1000*i:1000*(i+1)], 1000, rdma.Ref{Time: int64(i), Number: uint64(i + 1)})
		}
		p := bytes.Clone(data[c.at : c.at+c.n])
		for i := range c.k {
			p[c.first+i] ^= 0x55
		}
		s.Segment(uint32(1000+c.at), 0, p, len(p), rdma.Ref{Time: 9, Number: 9})
		if k.differs != c.want || k.resets != 0 {
			t.Errorf("%s: %d differ, %d resets", c.name, k.differs, k.resets)
		}
		if end := min(max(3000, c.at+c.n), len(k.data)); !bytes.Equal(k.data[:3000], data[:3000]) || end != len(k.data) {
			t.Errorf("%s: %d bytes, or not the first ones", c.name, len(k.data))
		}
	}
}

func BenchmarkPrint(b *testing.B) {
	p := make([]byte, 1448)
	b.SetBytes(int64(len(p)))
	s := &Stream{}
	for b.Loop() {
		s.remember(1, p, len(p))
	}
}

// TestBelongs: segments with other bytes whose acknowledgment is of the connection do not replace it.
func TestBelongs(t *testing.T) {
	var k kept
	s := NewStream(NewPool(Options{}), &k)
	s.Belongs(true)
	number := uint64(0)
	feed := func(at int, c byte) {
		number++
		s.Segment(uint32(1000+100*at), 0, bytes.Repeat([]byte{c}, 100), 100, rdma.Ref{Time: int64(number), Number: number})
	}
	for i := range 30 {
		feed(i, byte(i))
	}
	for i := range 10 {
		feed(20+i, 'x')
	}
	for i := range 10 {
		feed(30+i, byte(i))
	}
	if k.resets != 0 || k.differs != 10 || len(k.data) != 4000 || bytes.IndexByte(k.data, 'x') >= 0 {
		t.Errorf("%d resets, %d differ, %d bytes", k.resets, k.differs, len(k.data))
	}
	if !s.Knows(5100) || s.Knows(5000+near) || s.Knows(1<<31) {
		t.Error("the wrong acknowledgments are known")
	}
}
