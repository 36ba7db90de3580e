package wire

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// TestSum64 changes one bit, one byte, and the length of inputs: no two sums are equal, and half of the bits of a
// sum change.
func TestSum64(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := make(map[uint64]bool)
	changed, compared := 0, 0
	for n := range 300 {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		sum := Sum64(0, b)
		if seen[sum] {
			t.Fatalf("%d bytes: the sum of others", n)
		}
		seen[sum] = true
		for range 50 * min(n, 1) {
			i, bit := rng.IntN(n), byte(1)<<rng.IntN(8)
			b[i] ^= bit
			other := Sum64(0, b)
			b[i] ^= bit
			if other == sum {
				t.Fatalf("%d bytes: bit of byte %d does not matter", n, i)
			}
			changed += bits.OnesCount64(other ^ sum)
			compared++
		}
	}
	if mean := float64(changed) / float64(compared); mean < 31 || mean > 33 {
		t.Errorf("%.1f of 64 bits change with one of the input", mean)
	}
	if zero := Sum64(0, make([]byte, 100)); zero == Sum64(0, make([]byte, 101)) || zero == Sum64(1, make([]byte, 100)) {
		t.Error("zeros")
	}
	for n := 8; n <= 300; n++ { // each word, with zeros all around it
		b := make([]byte, n)
		zero := Sum64(0, b)
		for i := range b {
			if b[i] = 1; Sum64(0, b) == zero {
				t.Fatalf("%d bytes: zeros hide byte %d", n, i)
			}
			b[i] = 0
		}
	}
	pattern, all := make([]byte, 300), uint64(0)
	for n := range pattern {
		pattern[n] = byte(n*n + 7*n)
		all = Sum64(all, pattern[:n])
	}
	if all != 6653880954491860090 {
		t.Errorf("sum of sums of all lengths: %d", all)
	}
	if Sum64(0, []byte("the same in each process")) != 0xc6f74890d23e5574 {
		t.Errorf("%#x", Sum64(0, []byte("the same in each process")))
	}
}

func BenchmarkSum64(b *testing.B) {
	p := make([]byte, 256)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		Sum64(1, p)
	}
}
