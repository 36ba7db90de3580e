package session

import (
	"math"
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
