package run

import (
	"testing"
)

// TestHighest: from any rate, the highest one that a server keeps up with is found to a tenth, in few steps.
func TestHighest(t *testing.T) {
	for _, c := range []struct{ start, most float64 }{{100, 1234}, {1e6, 1234}, {1234, 1234}, {100, 100.5}, {50, 0}} {
		best, steps := 0.0, 0
		highest(c.start, func(rate float64) (holds, goOn bool) {
			if steps++; rate <= c.most {
				best = max(best, rate)
			}
			return rate <= c.most, steps < 20
		})
		if best > c.most || best < c.most/1.1 || steps >= 20 {
			t.Errorf("from %v: %v of %v, after %d steps", c.start, best, c.most, steps)
		}
	}
}
