package latency

import (
	"math/bits"
	"slices"
)

// dist collects durations in nanoseconds: a few as they are, more of them in a histogram.
type dist struct {
	tally
	zeros uint64

	digits uint8 // significant digits; 0 until there is a histogram
	small  uint8 // use exactSlot instead of exactValues, and two digits
	exact  []int64
	counts histogram
	memory int // bytes accounted for
}

// tally is how many values there are, and what they add up to.
type tally struct {
	count          uint64
	sumHigh, sum   uint64
	least, longest int64
}

// memory is the memory that all histograms of a recorder share.
type memory struct {
	used   int
	limit  int  // bytes of histograms before they lose digits
	scarce bool // a histogram had to drop digits
}

const maxValue = 1 << 62 // largest value that a histogram can hold

// most is how many values are kept as they are, and digits how many a histogram has.
func (d *dist) most() (values int, digits uint8) {
	if d.small != 0 {
		return exactSlot, 2
	}
	return exactValues, 3
}

// add records a value. Values are never negative: the recorder leaves out transactions whose clock went
// backwards.
func (d *dist) add(v int64, m *memory) {
	d.tally.add(v)
	switch {
	case v == 0: // the case of most phases of most transactions
		d.zeros++
	case d.digits != 0:
		d.record(v, 1, m)
	default:
		d.exact = append(d.exact, v)
		if values, _ := d.most(); len(d.exact) >= values {
			d.begin(m)
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

// zero counts values of 0.
func (d *dist) zero(n uint64) { d.count, d.zeros, d.least = d.count+n, d.zeros+n, 0 }

// begin moves the values to a histogram.
func (d *dist) begin(m *memory) {
	_, d.digits = d.most()
	if m.used > m.limit {
		d.digits, m.scarce = 1, true
	}
	d.counts.magnitude = magnitudes[d.digits]
	for _, v := range d.exact {
		d.record(v, 1, m)
	}
	d.exact = nil
}

// record counts values in the histogram. If memory is scarce, that loses digits.
func (d *dist) record(v int64, n uint64, m *memory) {
	bytes := d.counts.add(min(v, maxValue), n)
	if bytes == 0 {
		return
	}
	d.memory += bytes
	if m.used += bytes; m.used > m.limit && d.digits > 1 {
		m.scarce = true
		d.coarsen(1, m)
	}
}

// coarsen makes the histogram one of fewer digits.
func (d *dist) coarsen(digits uint8, m *memory) {
	fine := d.counts
	m.used -= d.memory
	d.memory, d.digits, d.counts = 0, digits, histogram{magnitude: magnitudes[digits]}
	fine.each(func(least, _ int64, n uint64) { d.record(least, n, m) })
}

// merge moves the contents of o to d.
func (d *dist) merge(o *dist, m *memory) {
	switch {
	case o.count == 0:
		return
	case d.count == 0:
		*d, *o = *o, dist{small: o.small}
		return
	case d.digits == 0 && o.digits != 0:
		*d, *o = *o, *d
	}
	if o.digits == 0 {
		for _, v := range o.exact {
			d.add(v, m)
		}
		if o.zeros > 0 {
			d.zero(o.zeros)
		}
	} else {
		if o.digits < d.digits {
			d.coarsen(o.digits, m)
		}
		o.counts.each(func(least, _ int64, n uint64) { d.record(least, n, m) })
		d.tally.merge(&o.tally)
		d.zeros += o.zeros
		m.used -= o.memory
	}
	*o = dist{small: o.small}
}

// include adds the contents of o, which stays as it is.
func (d *dist) include(o *dist, m *memory) {
	c := dist{tally: o.tally, zeros: o.zeros, digits: o.digits, small: o.small, exact: slices.Clone(o.exact)}
	c.counts.magnitude = o.counts.magnitude
	o.counts.each(func(least, _ int64, n uint64) { c.record(least, n, m) })
	d.merge(&c, m)
}

// each calls f for each value, or bucket, above 0 in ascending order, with its least and its largest value.
func (d *dist) each(f func(least, largest int64, n uint64)) {
	slices.Sort(d.exact)
	for i := 0; i < len(d.exact); {
		j := i + 1
		for j < len(d.exact) && d.exact[j] == d.exact[i] {
			j++
		}
		f(d.exact[i], d.exact[i], uint64(j-i))
		i = j
	}
	d.counts.each(f)
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
	x.buckets = make([]bucket, 0, min(len(d.exact)+4*len(d.counts.pages), 256)+1)
	if d.zeros > 0 {
		x.buckets = append(x.buckets, bucket{0, d.zeros})
	}
	d.each(func(_, largest int64, n uint64) {
		x.buckets = append(x.buckets, bucket{min(max(largest, d.least), d.longest), n})
	})
	x.percentiles()
	return x
}
