package latency

import (
	"encoding/json"
	"math"
	"testing"
)

// TestSpan: a span whose end comes before its beginning is unknown, as are the rates in it; known ones are numbers as encoding/json
// writes them.
func TestSpan(t *testing.T) {
	for _, test := range []struct {
		first, last int64
		span, rate  string
	}{
		{10, 9, "null", "null"}, {math.MaxInt64, math.MinInt64, "null", "null"}, {7, 7, "0", "0"}, {0, 2e9, "2000000000", "1.5"},
		{math.MinInt64, math.MaxInt64, "9223372036854775807", "3.2526065174565133e-10"},
	} {
		s := spanOf(test.first, test.last)
		span, err := json.Marshal(s)
		if err != nil || string(span) != test.span || s.Known() != (test.span != "null") {
			t.Errorf("%d to %d: %s, %v, want %s", test.first, test.last, span, err, test.span)
		}
		rate, err := json.Marshal(s.per(3))
		var got, want any
		if err == nil {
			err = json.Unmarshal(rate, &got)
		}
		if json.Unmarshal([]byte(test.rate), &want); err != nil || got != want {
			t.Errorf("%d to %d: %s, %v, want %s", test.first, test.last, rate, err, test.rate)
		}
	}
	for _, f := range []float64{0, 1, 0.1, 18.384083426720863, 73186.17244000403, 1234567.8, 1e20} {
		got, err := json.Marshal(Rate(f))
		if want, _ := json.Marshal(f); err != nil || string(got) != string(want) {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
	if r := spanOf(2, 1).per(3).Rounded(1000); r != "-" {
		t.Errorf("%q", r)
	}
}
