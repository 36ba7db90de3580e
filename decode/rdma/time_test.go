package rdma

import (
	"math"
	"testing"
	"time"
)

func TestBetween(t *testing.T) {
	for _, c := range []struct {
		from, to int64
		want     time.Duration
	}{
		{7, 7, 0},
		{7, 6, -time.Nanosecond},
		{-5, 5, 10},
		{-5e18, 5e18, math.MaxInt64},
		{5e18, -5e18, -math.MaxInt64},
		{math.MinInt64, math.MaxInt64, math.MaxInt64},
		{math.MaxInt64, math.MinInt64, -math.MaxInt64},
		{0, math.MinInt64, -math.MaxInt64},
		{0, math.MaxInt64, math.MaxInt64},
	} {
		if got := Between(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d: %d, want %d", c.from, c.to, got, c.want)
		}
	}
}
