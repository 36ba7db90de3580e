package session

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSeriesOverflow: times at the end of what can be counted, as FuzzModel has found.
func TestSeriesOverflow(t *testing.T) {
	var x series
	x.add(0, 5, 1, 1)
	x.add(math.MaxInt64-7, math.MaxInt64, 1, 1)
	busy := int64(0)
	for _, v := range x.list {
		busy += v.Busy
	}
	if busy != 12 || len(x.list) > maxIntervals {
		t.Errorf("%d busy, %d intervals", busy, len(x.list))
	}
}

// TestSeriesShort compares intervals with those of calls none of which is taken to lie in the same one as the call before.
func TestSeriesShort(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for range 300 {
		var x, y series
		at := int64(rng.IntN(5)) * firstInterval
		for range 200 {
			if at += rng.Int64N(firstInterval / 2); rng.IntN(20) == 0 {
				at += rng.Int64N(20*firstInterval) - 10*firstInterval
			}
			from, to := at, at+rng.Int64N(firstInterval)-firstInterval/8
			if rng.IntN(8) == 0 {
				to = x.to - rng.Int64N(2)
			}
			highest, target := rng.Uint32N(9), rng.Uint32N(3)
			x.add(from, to, highest, target)
			y.addAnywhere(from, to, highest, target)
			if x.length != y.length || !slices.Equal(x.list, y.list) {
				t.Fatalf("%+v\nnot %+v", x, y)
			}
		}
	}
}
