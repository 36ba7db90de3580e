package unguessable

import (
	"math"
	"testing"
)

// A sequence is a permutation: no number comes again before all have come, and
// all come.
func TestPermutation(t *testing.T) {
	for _, bits := range []int{2, 8, 16} {
		s := NewSequence(bits)
		for lap := range 2 {
			seen := make([]bool, 1<<bits)
			for range seen {
				n := s.Next()
				if n >= 1<<bits || seen[n] {
					t.Fatalf("%d bits, lap %d: %#x comes again, or is too large", bits, lap, n)
				}
				seen[n] = true
			}
		}
	}
}

// Numbers that follow each other have nothing to do with each other.
func TestDistribution(t *testing.T) {
	for _, bits := range []int{24, 32} {
		s := NewSequence(bits)
		const n, cells = 1 << 16, 64
		var values, steps [cells]int
		last := s.Next()
		for range n {
			v := s.Next()
			values[uint64(v)*cells>>bits]++
			steps[uint64((v-last)&uint32(1<<bits-1))*cells>>bits]++
			last = v
		}
		for name, counts := range map[string][cells]int{"numbers": values, "steps": steps} {
			var chi float64
			for _, c := range counts {
				d := float64(c) - float64(n)/cells
				chi += d * d / (float64(n) / cells)
			}
			// 63 degrees of freedom; 160 is beyond ten to the minus nine.
			if chi > 160 || math.IsNaN(chi) {
				t.Errorf("%d bits: %s are not spread evenly: chi squared is %.0f", bits, name, chi)
			}
		}
	}
}

// Two sequences have different keys.
func TestKeys(t *testing.T) {
	a, b, equal := NewSequence(24), NewSequence(24), 0
	for range 1000 {
		if a.Next() == b.Next() {
			equal++
		}
	}
	if equal > 5 {
		t.Errorf("%d of 1000 numbers are the same", equal)
	}
}

func TestAllocations(t *testing.T) {
	s := NewSequence(24)
	if n := testing.AllocsPerRun(100, func() { s.Next() }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkNext(b *testing.B) {
	s := NewSequence(24)
	for b.Loop() {
		s.Next()
	}
}
