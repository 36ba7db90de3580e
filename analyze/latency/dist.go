package latency

import (
	"math/bits"
	"slices"

	hdr "github.com/HdrHistogram/hdrhistogram-go"
)

// dist collects durations in nanoseconds. It starts with the values themselves, continues with a sparse
// histogram, and switches to an array when there are enough values to make that worthwhile: 500 groups of
// eight phases would need a gigabyte of arrays, although most groups see few values.
type dist struct {
	tally
	zeros uint64

	digits uint8 // significant digits; 0 until there is a histogram
	small  uint8 // use exactSlot instead of exactValues, and two digits
	exact  []int64
	few    []uint16 // the buckets of the values of a histogram that is loose
	packed *hdr.PackedHistogram
	dense  *hdr.Histogram
	// pending are values that dense has room for, and does not have yet: see flush.
	pending []int64
	memory  int // bytes accounted for
	array   int // bytes of an array that there was no room for; 0 if none was tried
}

// tally is how many values there are, and what they add up to.
type tally struct {
	count          uint64
	sumHigh, sum   uint64
	least, longest int64
}

// pendingValues are added to an array together. Each may miss the cache, since the arrays of all groups do not fit into it:
// one after the other, the processor waits for several at once.
const pendingValues = 64

// memory is the memory that all histograms of a recorder share.
type memory struct {
	used   int
	limit  int  // bytes of histograms before they lose digits
	scarce bool // a histogram had to drop digits
}

const (
	maxValue     = 1 << 62 // largest value that a histogram can hold
	packedChecks = 256     // number of values between two memory checks of a sparse histogram
)

// add records a value. Values are never negative: the recorder leaves out transactions whose clock went
// backwards.
func (d *dist) add(v int64, m *memory) {
	d.tally.add(v)
	if v == 0 {
		d.zeros++
	}
	switch {
	case v == 0: // the case of most phases of most transactions
	case d.dense != nil && v <= d.dense.HighestTrackableValue():
		if d.pending == nil {
			d.pending = make([]int64, 0, pendingValues)
		}
		if d.pending = append(d.pending, v); len(d.pending) == pendingValues {
			d.flush()
		}
	case d.dense != nil:
		d.record(v, 1, m)
	case d.packed != nil:
		_ = d.packed.RecordValue(min(v, maxValue))
		if d.count%packedChecks == 0 {
			d.account(m)
		}
	default:
		d.exact = append(d.exact, v)
		limit := exactValues
		if d.small != 0 {
			limit = exactSlot
		}
		if len(d.exact) >= limit {
			d.pack(m)
		}
	}
}

// add counts a value.
func (t *tally) add(v int64) {
	var carry uint64
	t.sum, carry = bits.Add64(t.sum, uint64(v), 0)
	t.sumHigh += carry
	if t.count == 0 || v < t.least {
		t.least = v
	}
	t.longest = max(t.longest, v)
	t.count++
}

// tallyOf counts values, of which there is one at least.
func tallyOf(list []int64) tally {
	least, longest, sum := list[0], list[0], uint64(0)
	for _, v := range list {
		sum += uint64(v)
		least, longest = min(least, v), max(longest, v)
	}
	if longest>>48 == 0 && len(list) < 1<<15 { // as nearly all are: the sum has no carry
		return tally{uint64(len(list)), 0, sum, least, longest}
	}
	var t tally
	for _, v := range list {
		t.add(v)
	}
	return t
}

// merge adds what others add up to.
func (t *tally) merge(o *tally) {
	if t.count == 0 {
		*t = *o
		return
	}
	var carry uint64
	t.sum, carry = bits.Add64(t.sum, o.sum, 0)
	t.sumHigh += o.sumHigh + carry
	t.least, t.longest = min(t.least, o.least), max(t.longest, o.longest)
	t.count += o.count
}

// loose reports whether the buckets of a small histogram are kept one by one, for now: there are few values, and to put each of
// them into a sparse histogram costs more than to count them once.
func (d *dist) loose() bool { return d.digits != 0 && d.packed == nil && d.dense == nil }

// loosens reports whether a small dist may take n more values as a loose one.
func (d *dist) loosens(n int, m *memory) bool {
	return d.packed == nil && d.dense == nil && len(d.exact)+len(d.few)+n <= looseValues && m.used+4*looseValues <= m.limit
}

// loosen adds values to a small dist that is to be loose, by their buckets: the tally has them.
func (d *dist) loosen(small []uint16, m *memory) {
	d.digits = gatheredDigits
	d.few = append(appendBuckets(d.few, d.exact), small...)
	d.exact = nil
	m.used += 2*cap(d.few) - d.memory
	d.memory = 2 * cap(d.few)
}

// appendBuckets appends the buckets of values.
func appendBuckets(small []uint16, list []int64) []uint16 {
	for _, v := range list {
		small = append(small, uint16(bucketOf(min(v, maxValue))))
	}
	return small
}

// eachFew is each for a loose dist. To count the values in an array takes fewer instructions than to sort them.
func (d *dist) eachFew(f func(low, high int64, n uint64)) {
	first, last := bucketOf(min(d.least, maxValue)), bucketOf(min(d.longest, maxValue))
	counts := make([]uint64, (last-first)/4+1) // of four buckets each: most are empty
	for _, i := range d.few {
		at := uint(int(i) - first)
		counts[at/4] += 1 << (at % 4 * 16)
	}
	for i, four := range counts {
		for four != 0 {
			at := bits.TrailingZeros64(four) &^ 15
			n := four >> at & (1<<16 - 1)
			four &^= (1<<16 - 1) << at
			low, high := boundsOf(first + 4*i + at/16)
			f(low, high, n)
		}
	}
}

// zero counts values of 0.
func (d *dist) zero(n uint64) { d.count, d.zeros, d.least = d.count+n, d.zeros+n, 0 }

// pack moves the values to a sparse histogram.
func (d *dist) pack(m *memory) {
	d.digits = 3
	if d.small != 0 {
		d.digits = 2
	}
	if m.used > m.limit {
		d.digits, m.scarce = 1, true
	}
	d.packed = hdr.NewPacked(1, maxValue, int(d.digits))
	for _, v := range d.exact {
		_ = d.packed.RecordValue(min(v, maxValue))
	}
	if len(d.few) > 0 {
		d.eachFew(func(low, _ int64, n uint64) { _ = d.packed.RecordValues(low, int64(n)) })
	}
	d.exact, d.few = nil, nil
	d.account(m)
}

// account measures how much memory a sparse histogram takes. It replaces it by an array if it has many
// values, or by a coarser one if memory is scarce.
func (d *dist) account(m *memory) {
	size := d.packed.GetMemorySize()
	m.used += size - d.memory
	d.memory = size
	values, limit := d.count-d.zeros, m.limit
	if values < denseFrom {
		limit /= 8
	}
	if (values >= denseFrom || values >= earlyFrom && d.small == 0) && m.used+d.array-d.memory <= limit {
		h := hdr.New(1, room(d.longest), int(d.packed.SignificantFigures()))
		if m.used+h.ByteSize()-d.memory <= limit {
			d.packed.MergeInto(h)
			m.used += h.ByteSize() - d.memory
			d.dense, d.packed, d.memory = h, nil, h.ByteSize()
			return
		}
		d.array = h.ByteSize()
	}
	if m.used > m.limit && d.digits > 1 {
		m.scarce = true
		p := hdr.NewPacked(1, maxValue, 1)
		d.packed.ForEachBucket(func(v, n int64) bool {
			_ = p.RecordValues(v, n)
			return true
		})
		d.packed, d.digits, d.array = p, 1, 0
		m.used += p.GetMemorySize() - d.memory
		d.memory = p.GetMemorySize()
	}
}

// room is the largest value that an array has room for.
func room(longest int64) int64 {
	return min(int64(1)<<min(bits.Len64(uint64(longest))+1, 62), maxValue)
}

// flush adds what is pending to the histogram.
func (d *dist) flush() {
	for _, v := range d.pending {
		_ = d.dense.RecordValue(v)
	}
	d.pending = d.pending[:0]
}

// record adds values to the array and extends it if necessary.
func (d *dist) record(v, n int64, m *memory) {
	v = min(v, maxValue)
	if v > d.dense.HighestTrackableValue() {
		h := hdr.New(1, room(v), int(d.dense.SignificantFigures()))
		h.Merge(d.dense)
		m.used += h.ByteSize() - d.memory
		d.dense, d.memory = h, h.ByteSize()
	}
	_ = d.dense.RecordValues(v, n)
}

// merge moves the contents of o to d.
func (d *dist) merge(o *dist, m *memory) {
	switch {
	case o.count == 0:
		return
	case d.count == 0:
		*d, *o = *o, dist{small: o.small}
		return
	case (d.loose() || o.loose()) && d.loosens(0, m) && o.loosens(0, m):
		d.mergeLoose(o, m)
		return
	case o.digits == 0:
		if d.loose() {
			d.pack(m)
		}
		for _, v := range o.exact {
			d.add(v, m)
		}
		if o.zeros > 0 {
			d.zero(o.zeros)
		}
		*o = dist{small: o.small}
		return
	case d.digits == 0:
		*d, *o = *o, *d
		d.merge(o, m)
		return
	}
	for _, x := range [...]*dist{d, o} {
		if x.loose() { // only one of them is
			x.pack(m)
		}
	}
	if d.packed != nil && o.packed != nil && d.packed.SignificantFigures() == o.packed.SignificantFigures() {
		d.packed.Merge(o.packed)
	} else {
		o.each(func(_, high int64, n uint64) {
			if d.packed != nil {
				_ = d.packed.RecordValues(min(high, maxValue), int64(n))
				return
			}
			d.record(high, int64(n), m)
		})
	}
	d.mergeSums(o)
	d.digits = min(d.digits, o.digits)
	m.used -= o.memory
	*o = dist{small: o.small}
	if d.packed != nil {
		d.account(m)
	}
}

// mergeLoose is merge for two that are loose, or one that is and one of a few exact values. Both together may be too many to stay so.
func (d *dist) mergeLoose(o *dist, m *memory) {
	d.loosen(appendBuckets(o.few, o.exact), m)
	d.mergeSums(o)
	m.used -= o.memory
	*o = dist{small: o.small}
	if len(d.few) > looseValues {
		d.pack(m)
	}
}

// mergeSums adds what o counts besides its histogram.
func (d *dist) mergeSums(o *dist) {
	d.tally.merge(&o.tally)
	d.zeros += o.zeros
}

// clone is a copy, which is accounted for.
func (d *dist) clone(m *memory) dist {
	d.flush()
	c := *d
	c.pending = nil
	if c.digits == 0 {
		c.exact = slices.Clone(c.exact)
		return c
	}
	c.exact, c.few, c.dense = nil, nil, nil
	if d.packed != nil {
		c.packed = d.packed.Clone()
	} else {
		c.packed = hdr.NewPacked(1, maxValue, int(c.digits))
		d.each(func(low, _ int64, n uint64) { _ = c.packed.RecordValues(low, int64(n)) })
	}
	c.memory = c.packed.GetMemorySize()
	m.used += c.memory
	return c
}

// each calls f for each non-zero bucket in ascending order, with its lowest and highest value.
func (d *dist) each(f func(low, high int64, n uint64)) {
	d.flush()
	switch {
	case d.loose():
		d.eachFew(f)
	case d.digits != 0:
		p := d.packed
		if p == nil {
			// Only the buckets in use, rather than an entry for each.
			p = hdr.NewPacked(1, maxValue, int(d.dense.SignificantFigures()))
			p.MergeFrom(d.dense)
		}
		digits := int(p.SignificantFigures())
		p.ForEachBucket(func(v, n int64) bool {
			f(v, highest(v, digits), uint64(n))
			return true
		})
	default:
		slices.Sort(d.exact)
		for i := 0; i < len(d.exact); {
			j := i + 1
			for j < len(d.exact) && d.exact[j] == d.exact[i] {
				j++
			}
			f(d.exact[i], d.exact[i], uint64(j-i))
			i = j
		}
	}
}

// magnitudes are the binary digits, after the first, that a histogram of a number of decimal digits keeps.
var magnitudes = [...]int{0, 4, 7, 10}

// highest is the largest value in the bucket that starts with v.
func highest(v int64, digits int) int64 {
	return v + int64(1)<<max(bits.Len64(uint64(v))-magnitudes[digits]-1, 0) - 1
}

// mean is the mean, rounded down.
func (d *dist) mean() int64 {
	if d.count == 0 {
		return 0
	}
	q, _ := bits.Div64(d.sumHigh, d.sum, d.count)
	return int64(q)
}

// total is the sum, saturated at 64 bits.
func (d *dist) total() int64 {
	if d.sumHigh != 0 || d.sum > 1<<63-1 {
		return 1<<63 - 1
	}
	return int64(d.sum)
}

// distribution converts it to the model.
func (d *dist) distribution() *Distribution {
	if d.count == 0 {
		return &Distribution{}
	}
	x := &Distribution{Count: d.count, Zeros: d.zeros, Sum: d.total(), Mean: d.mean(), Min: d.least, Max: d.longest}
	if d.digits != 0 {
		x.Precision = 1 / float64(int(1)<<magnitudes[d.digits])
	}
	x.buckets = make([]bucket, 0, d.different()+1)
	if d.zeros > 0 {
		x.buckets = append(x.buckets, bucket{0, d.zeros})
	}
	d.each(func(_, high int64, n uint64) {
		x.buckets = append(x.buckets, bucket{min(max(high, d.least), d.longest), n})
	})
	x.percentiles()
	return x
}

// different is how many different values above 0 it can tell of, at most.
func (d *dist) different() int {
	switch {
	case d.packed != nil:
		return int(d.packed.Populated())
	case d.dense != nil:
		return 0 // not known
	}
	return min(len(d.exact)+len(d.few), 256)
}
