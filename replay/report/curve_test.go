package report

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCurve: with more calls than are kept one by one, the overlay is what it is with all of them,
// but for the width of the intervals.
func TestCurve(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	var c curve
	var all []span
	at := time.Duration(0)
	for range 2*maxSpans + 17 {
		at += time.Duration(rnd.Int64N(int64(10 * time.Millisecond)))
		s := span{at, at + time.Duration(rnd.Int64N(int64(time.Second)))}
		all = append(all, s)
		c.add(s)
	}
	if c.spans != nil || len(c.busy) != maxBins {
		t.Fatalf("%d spans, %d intervals", len(c.spans), len(c.busy))
	}
	var want [overlayBins]float64
	width := (c.end + overlayBins - 1) / overlayBins
	for _, s := range all {
		cut(s, width, func(b int, share float64) { want[b] += share })
	}
	for range 2 { // the second time it must be the same
		for i, b := range overlay(&curve{}, &c, c.end) {
			if math.Abs(b.Replay-want[i]) > 0.02*want[i] {
				t.Errorf("interval %d: %g, want %g", i, b.Replay, want[i])
			}
		}
	}
}
