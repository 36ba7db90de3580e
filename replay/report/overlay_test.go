package report

import (
	"testing"
	"time"
)

func TestOverlay(t *testing.T) {
	s := time.Second
	of := func(list ...span) *curve {
		c := &curve{}
		for _, x := range list {
			c.add(x)
		}
		return c
	}
	out := overlay(of(span{0, 20 * s}, span{10 * s, 20 * s}), of(span{0, 40 * s}), 40*s)
	if len(out) != overlayBins {
		t.Fatal(len(out))
	}
	for i, b := range out {
		want := 0.0
		switch {
		case i < overlayBins/4:
			want = 1
		case i < overlayBins/2:
			want = 2
		}
		if b.Original != want || b.Replay != 1 {
			t.Errorf("bin %d: %+v, want %g", i, b, want)
		}
	}
	if overlay(of(), of(), 0) != nil {
		t.Error("an overlay of nothing")
	}
}

func TestSamplesQuantiles(t *testing.T) {
	var s samples
	for i := range 1000 {
		s.add(time.Duration(1000 - i))
	}
	got := s.spread()
	want := Spread{Count: 1000, Min: 1, Mean: 500, P50: 500, P90: 900, P99: 990, Max: 1000}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for range 3 * maxSamples {
		s.add(7)
	}
	if len(s.values) > maxSamples || s.spread().P50 != 7 || s.spread().Max != 1000 {
		t.Errorf("%d values, %+v", len(s.values), s.spread())
	}
}
