package crc

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"
)

// TestUpdate compares with hash/crc32, for lengths and places in memory that take all ways.
func TestUpdate(t *testing.T) {
	t.Logf("512 bits: %v", wide)
	r := rand.New(rand.NewPCG(97, 1))
	m := make([]byte, 10000)
	for i := range m {
		m[i] = byte(r.Uint32())
	}
	for n := range 2300 {
		for _, at := range []int{0, 1, 12, n % 64} {
			sum, p := r.Uint32(), m[at:at+n]
			if got, want := Update(sum, p), crc32.Update(sum, crc32.IEEETable, p); got != want {
				t.Fatalf("%d bytes at %d, after %#x: %#x, want %#x", n, at, sum, got, want)
			}
		}
	}
	for range 2000 {
		from, to := r.IntN(len(m)+1), r.IntN(len(m)+1)
		from, to = min(from, to), max(from, to)
		cut := from + r.IntN(to-from+1)
		sum := r.Uint32()
		if got, want := Update(Update(sum, m[from:cut]), m[cut:to]), crc32.Update(sum, crc32.IEEETable, m[from:to]); got != want {
			t.Fatalf("%d and %d bytes at %d, after %#x: %#x, want %#x", cut-from, to-cut, from, sum, got, want)
		}
	}
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), make([]byte, least))
	f.Add(^uint32(0), make([]byte, 4096+17))
	f.Fuzz(func(t *testing.T, sum uint32, p []byte) {
		if got, want := Update(sum, p), crc32.Update(sum, crc32.IEEETable, p); got != want {
			t.Errorf("%#x, want %#x", got, want)
		}
	})
}

func TestAllocations(t *testing.T) {
	p := make([]byte, 4096)
	if n := testing.AllocsPerRun(10, func() { Update(0, p) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"512", 512}, {"1024", 1024}, {"4096", 4096}} {
		p := make([]byte, c.n+12)[12:]
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(c.n))
			for b.Loop() {
				Update(0, p)
			}
		})
		b.Run(c.name+"/library", func(b *testing.B) {
			b.SetBytes(int64(c.n))
			for b.Loop() {
				crc32.Update(0, crc32.IEEETable, p)
			}
		})
	}
}
