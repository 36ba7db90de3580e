package latency

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// TestBuckets checks that the least value of a bucket leads to the bucket of the histogram that the value itself leads to.
func TestBuckets(t *testing.T) {
	if magnitudes[gatheredDigits] != gatheredBits {
		t.Fatalf("%d digits have %d bits", gatheredDigits, magnitudes[gatheredDigits])
	}
	h := hdr.NewPacked(1, maxValue, gatheredDigits)
	for n := range 63 {
		for range 200 {
			v := min(int64(1)<<n+rand.Int64N(1<<n), maxValue)
			least, largest := boundsOf(bucketOf(v))
			if want := highest(least, gatheredDigits); largest != want {
				t.Fatalf("the bucket of %d ends at %d, not %d", v, largest, want)
			}
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
	for round := range 20 {
		m, plain := memory{limit: DefaultMemory}, memory{limit: DefaultMemory}
		interval := time.Duration(round%2) * time.Hour // or chosen
		a, b := series{spans: newSpans(interval), mem: &m}, series{spans: newSpans(interval), mem: &plain}
		at, span := int64(1e15), int64(1)<<(10+rand.IntN(20))
		for i := range 30000 {
			if at += rand.Int64N(span); rand.IntN(50) == 0 {
				at -= rand.Int64N(20 * span)
			}
			v := rand.Int64N(1 << rand.IntN(40))
			if rand.IntN(500) == 0 {
				v = maxValue + rand.Int64N(1<<60)
			}
			a.at(at)
			a.took(v)
			b.at(at).latency.add(v, &plain)
			if i%7001 == 0 {
				a.gather() // as for a live view
			}
		}
		a.settle()
		b.settle()
		if len(a.slots) != len(b.slots) {
			t.Fatalf("%d and %d slots", len(a.slots), len(b.slots))
		}
		for i := range a.slots {
			x, y := a.slots[i].latency.distribution(), b.slots[i].latency.distribution()
			if x.Count != y.Count || x.Zeros != y.Zeros || x.Sum != y.Sum || x.Min != y.Min || x.Max != y.Max || x.Precision != y.Precision ||
				!slices.Equal(x.buckets, y.buckets) {
				t.Fatalf("slot %d: %+v, want %+v", i, x, y)
			}
		}
		a.inUse(t)
	}
}

// TestGatheredLong compares a slot of many values, equal ones or of more buckets than are counted together, with one that does not
// gather them, with memory for an array and without.
func TestGatheredLong(t *testing.T) {
	for name, value := range map[string]func(i int) int64{
		"equal":   func(int) int64 { return 12345 },
		"zeros":   func(i int) int64 { return int64(i % 3) },
		"buckets": func(i int) int64 { return leastOf(i * 7 % (50 << gatheredBits)) },
		"growing": func(i int) int64 { return leastOf(i / 50 % (50 << gatheredBits)) },
	} {
		for _, limit := range []int{192 << 10, DefaultMemory} {
			m, plain := memory{limit: limit}, memory{limit: DefaultMemory}
			a := series{spans: newSpans(time.Hour), mem: &m}
			b := dist{small: 1}
			for i := range 200000 {
				a.at(0)
				a.took(value(i))
				b.add(value(i), &plain)
				if i%70000 == 69999 {
					a.gather()
				}
			}
			a.settle()
			x, y := a.slots[0].latency.distribution(), b.distribution()
			if m.scarce || !slices.Equal(x.buckets, y.buckets) {
				t.Errorf("%s, %d bytes: scarce %v; %d buckets of %d values, want %d of %d", name, limit, m.scarce, len(x.buckets), x.Count, len(y.buckets), y.Count)
			}
			a.inUse(t)
		}
	}
}

// inUse checks that the memory in use is counted.
func (s *series) inUse(t *testing.T) {
	t.Helper()
	used := s.mem.used
	if s.late.counts != nil {
		used -= gatheredSize
	}
	for i := range s.slots {
		d := &s.slots[i].latency
		used -= d.memory
	}
	if used != 0 {
		t.Fatalf("%d bytes are lost", used)
	}
}

// TestGatheredScarce: without room for it, nothing gets lost.
func TestGatheredScarce(t *testing.T) {
	for limit := range 60 {
		m := memory{limit: limit << 10}
		a := series{spans: newSpans(0), mem: &m}
		at, sum := int64(1e15), uint64(0)
		for range 20000 {
			at += rand.Int64N(1 << 20)
			v := rand.Int64N(1 << rand.IntN(30))
			a.at(at)
			a.took(v)
			sum += uint64(v)
		}
		a.settle()
		n := uint64(0)
		for i := range a.slots {
			d := &a.slots[i].latency
			n += d.count
			sum -= d.sum
			each := d.zeros
			d.each(func(_, _ int64, k uint64) { each += k })
			if each != d.count {
				t.Fatalf("limit %d, slot %d: %d of %d values", limit, i, each, d.count)
			}
		}
		if n != 20000 || sum != 0 {
			t.Fatalf("limit %d: %d values, %d ns are missing", limit, n, sum)
		}
		a.inUse(t)
	}
}
