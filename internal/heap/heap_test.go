package heap

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSorts(t *testing.T) {
	less := func(a, b int) bool { return a < b }
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var list, want, got []int
		for range rnd.IntN(40) {
			x := rnd.IntN(20)
			list, want = Push(list, x, less), append(want, x)
		}
		if len(list) > 0 { // another one in place of the first
			i := slices.Index(want, list[0])
			list[0] = rnd.IntN(20)
			want[i] = list[0]
			Fix(list, less)
		}
		slices.Sort(want)
		for len(list) > 0 {
			var x int
			x, list = Pop(list, less)
			got = append(got, x)
		}
		if !slices.Equal(got, want) {
			t.Fatal(got, want)
		}
	}
}
