package latency

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// TestBuckets: each value is in the bucket whose bounds enclose it, the buckets follow one another without a gap, and none is wider
// than its part of the value.
func TestBuckets(t *testing.T) {
	for _, magnitude := range magnitudes[1:] {
		last := int64(-1)
		for bucket := range bucketOf(maxValue, magnitude) + 1 {
			least, largest := boundsOf(bucket, magnitude)
			if least != last+1 || largest < least || (largest-least)>>(max(bits.Len64(uint64(least))-1-int(magnitude), 0)) > 0 {
				t.Fatalf("magnitude %d: bucket %d is from %d to %d, after %d", magnitude, bucket, least, largest, last)
			}
			v := least + rand.Int64N(largest-least+1)
			for _, v := range []int64{least, v, largest} {
				if got := bucketOf(v, magnitude); got != bucket {
					t.Fatalf("magnitude %d: %d is in bucket %d, want %d", magnitude, v, got, bucket)
				}
			}
			last = largest
		}
	}
}

// TestHistogramCounts compares a histogram with a map, for values that are far apart and come in any order, and the bytes that it
// says it takes with those of its pages.
func TestHistogramCounts(t *testing.T) {
	for range 200 {
		h := histogram{magnitude: magnitudes[1+rand.IntN(3)]}
		want := make(map[int64]uint64)
		took, span := 0, 1+rand.IntN(62)
		for range rand.IntN(2000) {
			v, n := 1+rand.Int64N(1<<span), uint64(1+rand.IntN(3))
			took += h.add(v, n)
			least, _ := boundsOf(bucketOf(v, h.magnitude), h.magnitude)
			want[least] += n
		}
		last := int64(0)
		h.each(func(least, _ int64, n uint64) {
			if least <= last || want[least] != n {
				t.Fatalf("%d values at %d, after %d; want %d", n, least, last, want[least])
			}
			last = least
			delete(want, least)
		})
		if len(want) > 0 {
			t.Fatalf("%d buckets are missing", len(want))
		}
		bytes := pointerSize * cap(h.pages)
		for _, p := range h.pages {
			if p != nil {
				bytes += pageSize
			}
		}
		if bytes != took {
			t.Fatalf("%d bytes, but it says %d", bytes, took)
		}
	}
}

// TestSeriesScarce: when memory runs short, a series keeps all values, and counts the memory that it has.
func TestSeriesScarce(t *testing.T) {
	for limit := range 60 {
		m := memory{limit: limit << 10}
		a := series{spans: newSpans(time.Duration(0)), mem: &m}
		at, sum := int64(1e15), uint64(0)
		for range 20000 {
			at += rand.Int64N(1 << 20)
			v := rand.Int64N(1 << rand.IntN(30))
			a.at(at)
			a.took(v)
			sum += uint64(v)
		}
		a.settle()
		n, used := uint64(0), 0
		for i := range a.slots {
			d := &a.slots[i].latency
			n += d.count
			sum -= d.sum
			used += d.memory
			each := d.zeros
			d.each(func(_, _ int64, k uint64) { each += k })
			if each != d.count {
				t.Fatalf("limit %d, slot %d: %d of %d values", limit, i, each, d.count)
			}
		}
		if n != 20000 || sum != 0 || used != m.used {
			t.Fatalf("limit %d: %d values, %d ns are missing, %d bytes of %d", limit, n, sum, used, m.used)
		}
	}
}
