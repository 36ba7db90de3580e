package diagnosis

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestNth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		list := make([]int64, 1+rng.IntN(200))
		for i := range list {
			list[i] = rng.Int64N(1 + rng.Int64N(300))
		}
		sorted := slices.Sorted(slices.Values(list))
		n := rng.IntN(len(list))
		if got := nth(list, n); got != sorted[n] {
			t.Fatalf("nth(%v, %d) = %d, want %d", sorted, n, got, sorted[n])
		}
	}
}
