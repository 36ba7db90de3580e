package text

import (
	"math"
	"testing"
)

func TestWithin(t *testing.T) {
	for _, test := range []struct {
		first, last int64
		want        string
	}{
		{5, 5, "0ns"}, {5, 1005, "1.000µs"}, {5, 4, "an unknown time"}, {math.MaxInt64, math.MinInt64, "an unknown time"},
		{math.MinInt64, math.MaxInt64, "9223372037s"},
	} {
		if got := Within(test.first, test.last); got != test.want {
			t.Errorf("%d to %d: %s, want %s", test.first, test.last, got, test.want)
		}
	}
}
