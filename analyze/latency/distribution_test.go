package latency

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHistogramBins compares bins with those that each value is looked up in.
func TestHistogramBins(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		var d Distribution
		for range rng.IntN(200) {
			v := rng.Int64() >> rng.IntN(63)
			if rng.IntN(4) == 0 {
				v = edges[rng.IntN(len(edges))] + rng.Int64N(3) - 1
			}
			d.buckets = append(d.buckets, bucket{v, 1 + rng.Uint64N(3)})
		}
		d.buckets = summed(d.buckets)
		counts := make(map[int64]uint64)
		for _, b := range d.buckets {
			to := edges[len(edges)-1]
			for _, e := range slices.Backward(edges) {
				if b.value <= e {
					to = e
				}
			}
			if b.value == 0 {
				to = 0
			}
			counts[to] += b.count
		}
		for _, bin := range d.Histogram() {
			if counts[bin.To] != bin.Count {
				t.Fatalf("%d values up to %d, not %d: %v", bin.Count, bin.To, counts[bin.To], d.buckets)
			}
			delete(counts, bin.To)
		}
		if len(counts) > 0 {
			t.Fatalf("%v are in no bin: %v", counts, d.buckets)
		}
	}
}
