package latency

import (
	"math/rand/v2"
	"slices"
	"testing"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// TestBuckets checks that leastOf leads to the bucket of the histogram that the value itself leads to.
func TestBuckets(t *testing.T) {
	if magnitudes[gatheredDigits] != gatheredBits {
		t.Fatalf("%d digits have %d bits", gatheredDigits, magnitudes[gatheredDigits])
	}
	h := hdr.NewPacked(1, maxValue, gatheredDigits)
	for n := range 63 {
		for range 200 {
			v := min(int64(1)<<n+rand.Int64N(1<<n), maxValue)
			least := leastOf(bucketOf(v))
			h.Reset()
			_ = h.RecordValue(least)
			if h.CountAtValue(v) != 1 {
				t.Fatalf("%d is in another bucket than %d", v, least)
			}
		}
	}
}

// TestGathered compares slots that gather latencies with slots that do not, for times that go back and forth and that
// make the intervals longer.
func TestGathered(t *testing.T) {
	for range 20 {
		m, plain := memory{limit: DefaultMemory}, memory{limit: DefaultMemory}
		a, b := series{spans: newSpans(0), mem: &m}, series{spans: newSpans(0), mem: &plain}
		at, span := int64(1e15), int64(1)<<(10+rand.IntN(20))
		for range 30000 {
			if at += rand.Int64N(span); rand.IntN(50) == 0 {
				at -= rand.Int64N(20 * span)
			}
			v := rand.Int64N(1 << rand.IntN(40))
			a.at(at)
			a.took(v)
			b.at(at).latency.add(v, &plain)
		}
		a.settle()
		b.settle()
		if len(a.slots) != len(b.slots) {
			t.Fatalf("%d and %d slots", len(a.slots), len(b.slots))
		}
		for i := range a.slots {
			x, y := a.slots[i].latency.distribution(), b.slots[i].latency.distribution()
			if x.Count != y.Count || x.Sum != y.Sum || x.Min != y.Min || x.Max != y.Max || !slices.Equal(x.buckets, y.buckets) {
				t.Fatalf("slot %d: %+v, want %+v", i, x, y)
			}
		}
	}
}
