//go:build unix

package arena

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func addr(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// Buffers are zeroed, do not overlap, and large ones begin at a page.
func TestAllocAndFree(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	released := 0
	p := Pool{Release: func(*Block) { released++ }}
	type buffer struct {
		mem []byte
		tag byte
	}
	var live []buffer
	check := func(b buffer) {
		for i, v := range b.mem {
			if v != b.tag {
				t.Fatalf("byte %d of a buffer of %d was changed", i, len(b.mem))
			}
		}
	}
	for i := range 4000 {
		if len(live) > 0 && r.IntN(5) < 2 {
			n := r.IntN(len(live))
			check(live[n])
			p.Free(live[n].mem)
			live[n] = live[len(live)-1]
			live = live[:len(live)-1]
			continue
		}
		n := r.IntN(300)
		switch r.IntN(20) {
		case 0:
			n = r.IntN(100000)
		case 1:
			if i%50 == 0 {
				n = 3<<20 + r.IntN(3<<20)
			}
		}
		b, err := p.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != n || cap(b) != max(n, 1) {
			t.Fatalf("Alloc(%d) has length %d, capacity %d", n, len(b), cap(b))
		}
		check(buffer{b, 0})
		if n >= 4096 && addr(b)%4096 != 0 {
			t.Errorf("%d bytes at %#x", n, addr(b))
		}
		if block := p.Find(b); block == nil || n > 0 && p.Find(b[n-1:]) != block {
			t.Error("a buffer is not in its block")
		}
		x := buffer{b, byte(i) | 1}
		for j := range b {
			b[j] = x.tag
		}
		live = append(live, x)
	}
	p.Close()
	for _, b := range live {
		check(b) // memory stays until it is freed
		p.Free(b.mem)
	}
	if n := len(p.list()); n > 0 {
		t.Errorf("%d blocks left", n)
	}
	if released == 0 {
		t.Error("no block was announced")
	}
	if _, err := p.Alloc(1); err == nil {
		t.Error("Alloc after Close")
	}
}

func TestStrangers(t *testing.T) {
	var p Pool
	b, err := p.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	heap := make([]byte, 100)
	if p.Find(heap) != nil {
		t.Error("memory of others was found")
	}
	if p.Find(unsafe.Slice(unsafe.SliceData(b), minBlock+1)) != nil {
		t.Error("a slice over the end of its block was found")
	}
	p.Free(heap)
	p.Free(b[1:])
	p.Free(b)
	p.Free(b) // twice
	c, _ := p.Alloc(100)
	d, _ := p.Alloc(100)
	if addr(c) == addr(d) {
		t.Error("a buffer that was freed twice was given out twice")
	}
	for _, n := range []int{-1, math.MaxInt} {
		if _, err := p.Alloc(n); err == nil {
			t.Errorf("Alloc(%d) worked", n)
		}
	}
}

func TestAllocations(t *testing.T) {
	var p Pool
	for range 3 {
		b, _ := p.Alloc(4096)
		p.Free(b)
	}
	if n := testing.AllocsPerRun(100, func() {
		b, _ := p.Alloc(4096)
		if p.Find(b) == nil {
			t.Error("not found")
		}
		p.Free(b)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
