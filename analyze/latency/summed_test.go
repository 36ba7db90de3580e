package latency

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSummed compares it with a sort, for many and few values, most of them the last ones of buckets of three digits.
func TestSummed(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	many := 0
	for round := range 2000 {
		var list []bucket
		top, odd := int64(1)<<rng.IntN(63), 1+rng.IntN(30)
		for range rng.IntN(3000) * (round % 3) / 2 {
			v := rng.Int64N(top)
			if rng.IntN(odd) > 0 {
				place, _ := placeOf(v)
				v = lastOf(place)
			}
			list = append(list, bucket{v, 1 + rng.Uint64N(3)})
		}
		for range rng.IntN(3) {
			list = append(list, bucket{[]int64{0, 1, 2047, 2048, 2049, 4095, math.MaxInt64 - 1, math.MaxInt64}[rng.IntN(8)], 1})
		}
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		counts := make(map[int64]uint64)
		for _, b := range list {
			counts[b.value] += b.count
		}
		var want []bucket
		for v, n := range counts {
			want = append(want, bucket{v, n})
		}
		slices.SortFunc(want, func(a, b bucket) int { return cmp.Compare(a.value, b.value) })
		got := summed(slices.Clone(list))
		if len(got) > 1000 {
			many++
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v\nbecomes %v,\nnot %v", list, got, want)
		}
	}
	if many < 100 {
		t.Errorf("%d times there were many values", many)
	}
}

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
