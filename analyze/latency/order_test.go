package latency

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestInOrder compares it with a sort, for lists of any number of ascending parts.
func TestInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 3000 {
		var list []bucket
		for range rng.IntN(9) {
			v := rng.Int64N(20)
			for range rng.IntN(12) {
				list = append(list, bucket{v, rng.Uint64N(3)})
				v += rng.Int64N(4)
			}
		}
		want := slices.Clone(list)
		slices.SortStableFunc(want, func(a, b bucket) int { return cmp.Compare(a.value, b.value) })
		if got := inOrder(slices.Clone(list)); !slices.Equal(got, want) {
			t.Fatalf("%v\nbecomes %v,\nnot %v", list, got, want)
		}
	}
}
