package latency

import (
	"cmp"
	"math"
	"slices"
)

// Distribution summarises many durations. All of them are in nanoseconds.
type Distribution struct {
	Count uint64 `json:"count"`
	Zeros uint64 `json:"zeros"` // how many of Count are zero: the phase did not take place
	Sum   int64  `json:"sum_ns"`
	Mean  int64  `json:"mean_ns"`
	Min   int64  `json:"min_ns"`
	Max   int64  `json:"max_ns"`
	P50   int64  `json:"p50_ns"`
	P90   int64  `json:"p90_ns"`
	P99   int64  `json:"p99_ns"`
	P999  int64  `json:"p999_ns"`
	// Precision is the maximum relative error of a percentile, which is never too low; 0 if percentiles are
	// exact.
	Precision float64 `json:"precision"`

	buckets []bucket // ascending; the first may be the bucket of zero
}

// bucket is a value and how often it was seen.
type bucket struct {
	value int64
	count uint64
}

// Percentile is the value of the nearest rank: the ⌈p/100·n⌉-th smallest. It is
// 0 without values.
func (d *Distribution) Percentile(p float64) int64 {
	rank := nearestRank(p, d.Count)
	var seen uint64
	for _, b := range d.buckets {
		if seen += b.count; seen >= rank && rank > 0 {
			return b.value
		}
	}
	return 0
}

// percentiles sets those that are shown, in one pass.
func (d *Distribution) percentiles() {
	var seen uint64
	at := 0
	for _, p := range [...]struct {
		percent float64
		value   *int64
	}{{50, &d.P50}, {90, &d.P90}, {99, &d.P99}, {99.9, &d.P999}} {
		rank := nearestRank(p.percent, d.Count)
		for at < len(d.buckets) && seen+d.buckets[at].count < rank {
			seen += d.buckets[at].count
			at++
		}
		if *p.value = 0; at < len(d.buckets) && rank > 0 {
			*p.value = d.buckets[at].value
		}
	}
}

// nearestRank is ⌈p/100·n⌉, at least 1 and at most n.
func nearestRank(p float64, n uint64) uint64 {
	if n == 0 {
		return 0
	}
	// p has at most one decimal here. In thousandths the product is exact while n is below 2^53, and
	// 0.999·1000 does not become 999.0000001.
	r := math.Ceil(math.Round(p*10) * float64(n) / 1000)
	return uint64(min(max(r, 1), float64(n)))
}

// Bin is a part of a histogram: the number of values that are at most To and greater than the To of the
// previous bin.
type Bin struct {
	To    int64  `json:"le_ns" parquet:"le_ns"`
	Count uint64 `json:"count" parquet:"count"`
}

// edges are 1, 2 and 5 times the powers of ten, up to about three hours.
var edges = func() []int64 {
	var e []int64
	for unit := int64(1); unit <= 10e12; unit *= 10 {
		e = append(e, unit, 2*unit, 5*unit)
	}
	return e
}()

// Histogram returns the values in bins that end at 1, 2 and 5 times powers of ten nanoseconds, from the first
// to the last non-empty bin. Zero has its own bin. A value within Precision of an edge may fall into the next
// bin.
func (d *Distribution) Histogram() []Bin {
	counts := make([]uint64, len(edges)+1)
	first, last, zeros := len(edges), -1, uint64(0)
	i := 0
	for _, b := range d.buckets {
		if b.value == 0 {
			zeros += b.count
			continue
		}
		for i < len(edges)-1 && edges[i] < b.value {
			i++
		}
		counts[i] += b.count
		first, last = min(first, i), i
	}
	var bins []Bin
	if zeros > 0 {
		bins = append(bins, Bin{0, zeros})
	}
	for i := first; i <= last; i++ {
		bins = append(bins, Bin{edges[i], counts[i]})
	}
	return bins
}

// merge adds the values of others.
func (d *Distribution) merge(others ...*Distribution) {
	for _, o := range others {
		if o == nil || o.Count == 0 {
			continue
		}
		if d.Count == 0 {
			d.Min = o.Min
		}
		sum := saturate(d.Sum, o.Sum)
		if sum == math.MaxInt64 {
			d.Mean = int64((float64(d.Mean)*float64(d.Count) + float64(o.Mean)*float64(o.Count)) / (float64(d.Count) + float64(o.Count)))
		} else {
			d.Mean = sum / int64(d.Count+o.Count)
		}
		d.Min, d.Max = min(d.Min, o.Min), max(d.Max, o.Max)
		d.Count += o.Count
		d.Zeros += o.Zeros
		d.Sum = sum
		d.Precision = max(d.Precision, o.Precision)
		d.buckets = append(d.buckets, o.buckets...)
	}
	d.buckets = summed(d.buckets)
	d.percentiles()
}

// summed puts buckets in order, and makes one of those of the same value. It uses the list.
func summed(list []bucket) []bucket {
	slices.SortFunc(list, func(a, b bucket) int { return cmp.Compare(a.value, b.value) })
	out := list[:0]
	for _, b := range list {
		if n := len(out); n > 0 && out[n-1].value == b.value {
			out[n-1].count += b.count
		} else {
			out = append(out, b)
		}
	}
	return out
}

func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// WithoutZeros is the distribution of the values above zero.
func (d *Distribution) WithoutZeros() *Distribution {
	if d.Zeros == 0 || len(d.buckets) == 0 {
		return d
	}
	x := &Distribution{Count: d.Count - d.Zeros, Sum: d.Sum, Max: d.Max, Precision: d.Precision, buckets: d.buckets[1:]}
	if x.Count > 0 {
		x.Mean, x.Min = x.Sum/int64(x.Count), x.buckets[0].value
	}
	x.percentiles()
	return x
}
