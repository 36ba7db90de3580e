package latency

import (
	"math"
	"time"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// spans divides time into intervals that start at multiples of their length, so that series collected
// separately can be aligned. If there would be too many, the intervals become longer.
type spans struct {
	interval int64 // ns
	auto     bool  // lengths of 1, 2, 10, 20, 100 … ms
	started  bool
	first    int64 // number of the first interval since 1970
	n        int   // intervals
	most     int   // maximum number of intervals
}

// autoInterval is the initial length of intervals if none is given.
const autoInterval = int64(time.Millisecond)

// Limits of what can be requested. Times are nanoseconds in 64 bits, and the numbers of their intervals must
// leave room for differences.
const (
	leastInterval   = time.Microsecond
	longestInterval = int64(1) << 61
)

func newSpans(interval time.Duration) spans {
	if interval <= 0 {
		return spans{interval: autoInterval, auto: true, most: maxAutoSlots}
	}
	return spans{interval: int64(max(interval, leastInterval)), most: maxSlots}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// factor is the factor by which the intervals grow next.
func (s *spans) factor() int64 {
	if !s.auto {
		return 2
	}
	for p := autoInterval; p <= longestInterval/10; p *= 10 {
		if s.interval == p {
			return 2
		}
	}
	return 5
}

// place finds the interval of a time. before is how many intervals have to be inserted in front; place calls
// coarsen as often as necessary.
func (s *spans) place(t int64, coarsen func(factor int64)) (index, before int) {
	for {
		i := floorDiv(t, s.interval)
		if !s.started {
			s.started, s.first, s.n = true, i, 1
			return 0, 0
		}
		lo, hi := min(i, s.first), max(i, s.first+int64(s.n)-1)
		if hi-lo < int64(s.most) {
			before = int(s.first - lo)
			s.first, s.n = lo, int(hi-lo)+1
			return int(i - lo), before
		}
		f := s.factor()
		last := floorDiv(s.first+int64(s.n)-1, f)
		coarsen(f)
		s.first = floorDiv(s.first, f)
		s.n = int(last-s.first) + 1
		s.interval *= f
	}
}

// slot is one interval of a series.
type slot struct {
	calls, errors uint64
	bytes, data   uint64 // of RPC messages; moved by RDMA
	latency       dist
	retransmits   uint64
	area          float64 // calls in flight × ns, without those of full
	full          int     // calls that were in flight throughout, from this interval on: a difference
	most          int     // maximum number of calls in flight
	creditsUsed   int
	granted       uint32 // lowest grant
	ran           *ran   // nil unless asked for
}

// add counts a transaction.
func (x *slot) add(tx *transaction.Transaction, failed bool) {
	x.calls++
	x.bytes += tx.Call.Bytes + tx.Reply.Bytes
	x.data += tx.ReadBytes + tx.WriteBytes
	x.retransmits += uint64(tx.Retransmits)
	if failed {
		x.errors++
	}
}

// counters are all counts.
func (x *slot) counters() []*uint64 {
	return []*uint64{&x.calls, &x.errors, &x.bytes, &x.data, &x.retransmits}
}

// merge moves what o has to x. It reports whether a sum is too large: it is the largest number then.
func (x *slot) merge(o *slot, m *memory) (overflow bool) {
	overflow = saturatedAll(x.counters(), o.counters())
	x.area += o.area
	x.most = max(x.most, o.most)
	x.creditsUsed = max(x.creditsUsed, o.creditsUsed)
	if o.granted != 0 && (x.granted == 0 || o.granted < x.granted) {
		x.granted = o.granted
	}
	overflow = x.latency.join(&o.latency, m) || overflow
	if x.ran == nil {
		x.ran = o.ran
	} else {
		x.ran.merge(o.ran)
	}
	return overflow
}

// series collects what happened over time. A transaction belongs to the interval in which its call began.
type series struct {
	spans
	slots []slot
	mem   *memory
	last  int // the slot found last, and the times that it covers
	from  int64
	to    int64
}

// took adds the latency of a transaction to the slot found last.
func (s *series) took(v int64) { s.slots[s.last].latency.add(v, s.mem) }

// at returns the slot of a time. It is valid until the next call.
func (s *series) at(t int64) *slot {
	if t >= s.from && t < s.to {
		return &s.slots[s.last]
	}
	i, before := s.place(t, s.coarsen)
	if before > 0 {
		s.slots = append(make([]slot, before, before+len(s.slots)), s.slots...)
	}
	for len(s.slots) < s.n {
		s.slots = append(s.slots, slot{latency: dist{small: 1}})
	}
	for j := range before {
		s.slots[j].latency.small = 1
	}
	s.last = i
	s.from = (s.first + int64(i)) * s.interval
	s.to = s.from + s.interval
	return &s.slots[i]
}

// index is the slot index of a time that has been seen.
func (s *series) index(t int64) int { return int(floorDiv(t, s.interval) - s.first) }

// coarsen merges several slots into one.
func (s *series) coarsen(f int64) {
	s.settle()
	s.from, s.to = 0, 0
	base := floorDiv(s.first, f)
	kept := 0
	for i := range s.slots {
		j := int(floorDiv(s.first+int64(i), f) - base)
		if j == i {
			kept = j + 1
			continue
		}
		if j == kept {
			s.slots[j] = s.slots[i]
			s.slots[i] = slot{latency: dist{small: 1}}
			kept++
			continue
		}
		s.slots[j].merge(&s.slots[i], s.mem)
		s.slots[i] = slot{latency: dist{small: 1}}
	}
	clear(s.slots[kept:])
	s.slots = s.slots[:kept]
}

// settle converts the differences to areas.
func (s *series) settle() {
	level := 0
	for i := range s.slots {
		level += s.slots[i].full
		s.slots[i].full = 0
		s.slots[i].area += float64(level) * float64(s.interval)
	}
}

// flight records a call that was in flight from start to end.
func (s *series) flight(start, end int64) {
	if end < start {
		return
	}
	if start >= s.from && end < s.to { // most calls; index divides
		s.slots[s.last].area += float64(end - start)
		return
	}
	s.at(start)
	s.at(end) // this may move or merge the other slots
	a, b := s.index(start), s.index(end)
	if a == b {
		s.slots[a].area += float64(end - start)
		return
	}
	s.slots[a].area += float64((s.first+int64(a)+1)*s.interval - start)
	s.slots[b].area += float64(end - (s.first+int64(b))*s.interval)
	s.slots[a+1].full++
	s.slots[b].full--
}

// counts are event counts over time, by kind.
type counts struct {
	spans
	slots [][numTroubles]uint32
}

func (c *counts) add(t int64, k TroubleKind) {
	i, before := c.place(t, c.coarsen)
	if before > 0 {
		c.slots = append(make([][numTroubles]uint32, before, before+len(c.slots)), c.slots...)
	}
	for len(c.slots) < c.n {
		c.slots = append(c.slots, [numTroubles]uint32{})
	}
	if v := &c.slots[i][k]; *v < math.MaxUint32 {
		*v++
	}
}

// coarsen merges several slots into one.
func (c *counts) coarsen(f int64) {
	base := floorDiv(c.first, f)
	var out [][numTroubles]uint32
	for i := range c.slots {
		j := int(floorDiv(c.first+int64(i), f) - base)
		for len(out) <= j {
			out = append(out, [numTroubles]uint32{})
		}
		for n, v := range c.slots[i] {
			out[j][n] += min(v, math.MaxUint32-out[j][n])
		}
	}
	c.slots = out
}
