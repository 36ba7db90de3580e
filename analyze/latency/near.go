package latency

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
)

// near are values that the histogram of a dist does not have yet, in counters of 8 bits for the ranges of values that occur: to
// add one of them to a sparse histogram costs a search, and the array of a histogram is many times as long and seldom in the cache.
// A counter that is full is emptied into the histogram, which is sparse.
type near struct {
	// base is for countUsual, by the exponent of a float64, modulo 64: the place of a value in counts is the sum of it and of the exponent
	// with the digits that matter.
	base   [64]int32
	at     [64]uint8 // by range: which part of counts it has, counted from 1
	counts []uint8
	// late are values that are not counted yet. Each counter may miss the cache: one value after the other, the processor waits for
	// several at once.
	late [lateValues]int64
	n    int // of late
}

const (
	nearDigits = 3    // of the histograms
	nearBits   = 10   // magnitudes of these
	nearFrom   = 512  // number of values below which a dist has counters only if there is much memory
	nearLeast  = 1024 // bytes of the counters of a range
	nearFixed  = 640  // bytes without any
	nearFull   = 1<<8 - 1
	lateValues = 32
)

// places are the range of a value and its place in there: a bucket of the histogram.
func (near) places(v int64) (span, place int) {
	span = (bits.Len64(uint64(v)|1<<nearBits) - nearBits - 1) & 63
	digits := int(v >> span) // at most nearBits+1 binary ones
	return span + digits>>nearBits, digits & (1<<nearBits - 1)
}

// least is the least value of a bucket.
func (near) least(span, place int) int64 {
	if span == 0 {
		return int64(place)
	}
	return int64(place+1<<nearBits) << (span - 1)
}

// nearer makes room for counters if there is memory for them.
func (d *dist) nearer(m *memory) {
	limit := m.limit / 2
	if d.count-d.zeros < nearFrom {
		limit = m.limit / 8
	}
	if d.near == nil && d.digits == nearDigits && m.used+nearFixed+4*nearLeast <= limit {
		d.near = newNear()
		d.nearMemory = nearFixed
		m.used += nearFixed
	}
}

func newNear() *near {
	n := &near{}
	for i := range n.base {
		n.base[i] = noBase
	}
	return n
}

// addNear adds a value above 0.
func (d *dist) addNear(v int64, m *memory) {
	n := d.near
	n.late[n.n&(lateValues-1)] = v
	if n.n++; n.n == lateValues {
		d.countLate(m)
	}
}

// countLate counts late values.
func (d *dist) countLate(m *memory) {
	var small [lateValues]uint16
	n := d.near.n
	d.near.n = 0
	d.countNear(d.near.late[:n], small[:], m)
}

// addAll is add for several values above 0, which the tally is of; small gets their buckets of two digits.
func (d *dist) addAll(list []int64, sum *tally, small []uint16, m *memory) {
	if d.near != nil {
		d.tally.merge(sum)
		d.countNear(list, small, m)
		return
	}
	appendBuckets(small[:0], list)
	for _, v := range list {
		d.add(v, m)
	}
}

// countNear counts values, and finds their buckets of two digits; those for which there is no room go to the histogram.
func (d *dist) countNear(list []int64, small []uint16, m *memory) {
	refused := false
	for {
		n := d.near.countUsual(list, small)
		if n == len(list) {
			break
		}
		v := min(list[n], maxValue)
		small[n] = uint16(bucketOf(v))
		refused = !d.countRare(v, 1, m) || refused
		list, small = list[n+1:], small[n+1:]
	}
	if refused {
		d.account(m)
	}
}

// countUsual counts values, up to the first one that countRare has to count, and returns how many there were. A float64 has what places
// says in its first bits: the exponent and the digits after the first. So it has what bucketOf says.
func (n *near) countUsual(list []int64, small []uint16) int {
	counts := n.counts
	small = small[:len(list)]
	for i, v := range list {
		b := math.Float64bits(float64(v))
		place := uint(int(n.base[b>>mantissaBits&63]) + int(b>>(mantissaBits-nearBits)))
		if place >= uint(len(counts)) || counts[place] == nearFull {
			return i
		}
		counts[place]++
		small[i] = uint16(b>>(mantissaBits-gatheredBits) - firstSmall)
	}
	return len(list)
}

const (
	mantissaBits = 52
	// firstExponent is the biased exponent of a float64 that belongs to range 0 by places, firstSmall what its first bits are more than
	// bucketOf says.
	firstExponent = 1023 + nearBits - 1
	firstSmall    = (1023 + gatheredBits - 1) << gatheredBits
	// usualSpans are the ranges from 1 on of which a float64 has all values exactly.
	usualSpans = mantissaBits + 1 - nearBits
	noBase     = math.MinInt32
)

// countRare counts a value n times: one in a range without counters yet, or whose counter is full, or several times. It returns false if
// there is no room.
func (d *dist) countRare(v int64, times uint8, m *memory) bool {
	n := d.near
	span, place := n.places(v)
	part := int(n.at[span])
	if part == 0 {
		if m.used+nearLeast > m.limit/2 {
			_ = d.packed.RecordValues(v, int64(times))
			return false
		}
		m.used += nearLeast
		d.nearMemory += nearLeast
		n.counts = append(n.counts, make([]uint8, 1<<nearBits)...)
		part = len(n.counts) >> nearBits
		n.at[span] = uint8(part)
		if exponent := firstExponent + span; span > 0 && span <= usualSpans {
			n.base[exponent&63] = int32((part - 1 - exponent) << nearBits)
		}
	}
	c := &n.counts[(part-1)<<nearBits+place]
	if *c > nearFull-times {
		_ = d.packed.RecordValues(v, int64(*c))
		*c = 0
	}
	*c += times
	return true
}

// mergeNear moves what the counters of o have to those of d.
func (d *dist) mergeNear(o *dist, m *memory) {
	o.settleLate()
	at := nearCursor{near: o.near}
	for at.next() {
		d.countRare(at.least, at.n, m)
	}
	clear(o.near.counts)
}

// gather gives the histogram what it does not have yet.
func (d *dist) gather() {
	if d.near == nil {
		return
	}
	d.settleLate()
	at := nearCursor{near: d.near}
	for at.next() {
		_ = d.packed.RecordValues(at.least, int64(at.n))
	}
	clear(d.near.counts)
}

// settleLate gives late values to the counters, and those for which there are none to the histogram.
func (d *dist) settleLate() {
	var small [lateValues]uint16
	n := d.near
	list := n.late[:n.n]
	n.n = 0
	for {
		usual := n.countUsual(list, small[:])
		if usual == len(list) {
			return
		}
		_ = d.packed.RecordValue(min(list[usual], maxValue))
		list = list[usual+1:]
	}
}

// eachNear is each, for values of which the counters have some, and the histogram others: it calls f once for a bucket.
func (d *dist) eachNear(f func(low, high int64, n uint64)) {
	d.settleLate()
	at := nearCursor{near: d.near}
	more := at.next()
	d.packed.ForEachBucket(func(v, n int64) bool {
		for ; more && at.least < v; more = at.next() {
			f(at.least, highest(at.least, nearDigits), uint64(at.n))
		}
		if more && at.least == v {
			n += int64(at.n)
			more = at.next()
		}
		f(v, highest(v, nearDigits), uint64(n))
		return true
	})
	for ; more; more = at.next() {
		f(at.least, highest(at.least, nearDigits), uint64(at.n))
	}
}

// appendTo appends what the counters have to the list of a distribution with such extremes, as dist.distribution does it.
func (n *near) appendTo(list []bucket, least, longest int64) []bucket {
	for span, part := range n.at {
		if part == 0 {
			continue
		}
		counts := (*[1 << nearBits]uint8)(n.counts[(int(part)-1)<<nearBits:])
		low := n.least(span, 0)
		shift := max(span-1, 0) & 63
		for at := 0; at < len(counts); at += 8 {
			for eight := binary.LittleEndian.Uint64(counts[at:]); eight != 0; {
				bit := bits.TrailingZeros64(eight) & 56
				high := low + int64(at+bit/8+1)<<shift - 1
				list = append(list, bucket{min(max(high, least), longest), eight >> bit & nearFull})
				eight &^= nearFull << bit
			}
		}
	}
	return list
}

// nearCursor goes through the counters above 0, from the least value to the largest.
type nearCursor struct {
	near   *near
	spans  int                   // ranges begun
	counts *[1 << nearBits]uint8 // of the last of them
	at     int                   // its counters begun
	eight  uint64                // the last eight of these, without those that were found
	least  int64
	n      uint8
}

// next finds the next counter, and reports whether there is one.
func (x *nearCursor) next() bool {
	for x.eight == 0 {
		if x.counts != nil && x.at&31 == 0 {
			x.at = skipZeros(x.counts, x.at)
		}
		if x.counts != nil && x.at < len(x.counts) {
			x.eight = binary.LittleEndian.Uint64(x.counts[x.at:])
			x.at += 8
			continue
		}
		if x.spans == len(x.near.at) {
			return false
		}
		if part := int(x.near.at[x.spans]); part > 0 {
			x.counts, x.at = (*[1 << nearBits]uint8)(x.near.counts[(part-1)<<nearBits:]), 0
		}
		x.spans++
	}
	bit := bits.TrailingZeros64(x.eight) & 56
	x.n = uint8(x.eight >> bit)
	x.eight &^= nearFull << bit
	x.least = x.near.least(x.spans-1, x.at-8+bit/8)
	return true
}

// skipZeros is at, or a later multiple of 8 before which there are only zeros from at on.
func skipZeros(counts *[1 << nearBits]uint8, at int) int {
	for ; at <= len(counts)-32; at += 32 {
		x := counts[at:]
		if binary.LittleEndian.Uint64(x)|binary.LittleEndian.Uint64(x[8:])|binary.LittleEndian.Uint64(x[16:])|binary.LittleEndian.Uint64(x[24:]) != 0 {
			break
		}
	}
	return at
}

// cloneNear is a copy of the counters; nil if there are none, or not much memory for it. It is accounted for.
func (d *dist) cloneNear(m *memory) *near {
	if d.near == nil || m.used+d.nearMemory > m.limit/4 {
		return nil
	}
	m.used += d.nearMemory
	n := *d.near
	n.counts = bytes.Clone(n.counts)
	return &n
}

// leave gives the histogram everything, and the memory back.
func (d *dist) leave(m *memory) {
	d.gather()
	m.used -= d.nearMemory
	d.near, d.nearMemory = nil, 0
}
