package window

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
)

// What goes in comes out, in order, unchanged, and with what was noted.
func TestWindow(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for _, limit := range []int{1, 1000, 100 << 10, 4 << 20} {
		var want [][]byte
		out := uint64(0)
		late := 0
		w := New(limit, func(p *capture.Packet, v *[]int) {
			out++
			if p.Number != out || !bytes.Equal(p.Data, want[out-1]) {
				t.Fatalf("limit %d: packet %d as %d", limit, p.Number, out)
			}
			if len(*v) == 0 || (*v)[0] != int(out) {
				t.Fatalf("limit %d: packet %d: value %v", limit, out, *v)
			}
			*v = (*v)[:0]
		})
		for n := uint64(1); n <= 3000; n++ {
			b := make([]byte, rnd.IntN(2000))
			if rnd.IntN(100) == 0 {
				b = make([]byte, 300<<10)
			}
			for i := range b {
				b[i] = byte(n) + byte(i)
			}
			want = append(want, b)
			v := w.At(n) // before the packet is there
			*v = append(*v, int(n))
			w.Add(&capture.Packet{Number: n, Data: b})
			if back := uint64(rnd.IntN(50)); back < n {
				if v := w.At(n - back); v == nil {
					late++
				} else if (*v)[0] != int(n-back) {
					t.Fatalf("value %v of %d", *v, n-back)
				}
			}
			if n%1000 == 0 {
				next := w.first
				w.Each(func(p *capture.Packet, v *[]int) {
					if p.Number != next || !bytes.Equal(p.Data, want[next-1]) || (*v)[0] != int(next) {
						t.Fatalf("limit %d: packet %d, want %d", limit, p.Number, next)
					}
					next++
				})
				if next != n+1 {
					t.Fatalf("limit %d: visited up to %d of %d", limit, next, n)
				}
			}
			if w.Bytes() > max(limit, 300<<10+overhead) {
				t.Fatalf("limit %d: %d bytes", limit, w.bytes)
			}
		}
		w.Flush()
		if out != 3000 || w.bytes != 0 || w.At(1) != nil || w.At(5000) != nil {
			t.Errorf("limit %d: %d packets came out, %d bytes left", limit, out, w.bytes)
		}
		if limit < 2000 && late == 0 || limit > 2<<20 && late > 0 {
			t.Errorf("limit %d: %d late", limit, late)
		}
	}
}

// On the steady path nothing is allocated.
func TestWindowAllocations(t *testing.T) {
	w := New(1<<20, func(*capture.Packet, *int) {})
	data := make([]byte, 1000)
	n := uint64(0)
	add := func() {
		n++
		w.Add(&capture.Packet{Number: n, Data: data})
	}
	for range 20000 {
		add()
	}
	if a := testing.AllocsPerRun(5000, add); a != 0 {
		t.Errorf("%v allocations per packet", a)
	}
}

// Numbers that jump do no harm.
func TestWindowJump(t *testing.T) {
	var got []uint64
	w := New(1<<20, func(p *capture.Packet, _ *int) { got = append(got, p.Number) })
	for _, n := range []uint64{1, 2, 10, 11, 3} {
		w.Add(&capture.Packet{Number: n})
	}
	w.Flush()
	if len(got) != 5 {
		t.Error(got)
	}
}

// Numbers without a packet leave holes, beside which everything stays.
func TestHoles(t *testing.T) {
	var out []uint64
	w := New(1<<20, func(p *capture.Packet, v *int) {
		if *v != int(p.Number) {
			t.Errorf("value %d of %d", *v, p.Number)
		}
		out = append(out, p.Number)
		*v = 0
	})
	in := []uint64{3, 4, 7, 200, 201, 1 << 40, 1<<40 + 2}
	for _, n := range in {
		if v := w.At(n); v != nil { // before the packet is there
			*v = int(n)
		}
		*w.Add(&capture.Packet{Number: n, Data: []byte("abc")}) = int(n)
	}
	if w.Packet(1<<40+1) != nil || w.Packet(1<<40+2) == nil {
		t.Error("a hole is a packet")
	}
	w.Flush()
	if !slices.Equal(out, in) || w.Bytes() != 0 {
		t.Errorf("out %v, in %v; %d bytes", out, in, w.Bytes())
	}
}
