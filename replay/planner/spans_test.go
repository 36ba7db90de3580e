package planner

import (
	"math/rand/v2"
	"testing"
)

func TestSpans(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var s spans
		var model [200]bool
		for range 60 {
			from := r.IntN(190)
			to := from + r.IntN(10)
			s.add(uint64(from), uint64(to))
			for i := from; i < to; i++ {
				model[i] = true
			}
			var got [200]bool
			s.gaps(0, 200, func(from, to uint64) {
				if from >= to {
					t.Fatalf("empty gap %d-%d", from, to)
				}
				for i := from; i < to; i++ {
					got[i] = true
				}
			})
			for i := range model {
				if model[i] == got[i] {
					t.Fatalf("seed %d: %d is covered: %v", seed, i, model[i])
				}
			}
		}
	}
}
