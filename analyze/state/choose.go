package state

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// View is what a tap saw of a connection, and how well.
type View struct {
	Seen *Seen
	Tap  string // Unit.Name
	// Near is the median time from a call, with its data, to the first packet of the answer, in nanoseconds; Timed is
	// how many calls have such a time.
	Near  int64
	Timed uint64
}

// Choose decides which views count: for each connection, those of one tap. That is the tap nearest the responder, where
// Near is least. Taps that saw less than half of the calls of the one that saw most are not considered. The
// result does not depend on the order of the views.
func Choose(views []View) (counts []bool) {
	counts = make([]bool, len(views))
	choose(views, func(i int, yes bool, _ int) { counts[i] = yes })
	return counts
}

// choose calls f for each view: whether it counts, and how many taps saw the connection. It returns how many views are doubtful:
// see Chooser.Doubtful.
func choose(views []View, f func(view int, counts bool, taps int)) int {
	seen := make([]*Seen, len(views))
	for i := range views {
		seen[i] = views[i].Seen
	}
	groups := Groups(seen)
	for _, same := range groups {
		best, taps := nearest(views, same)
		for _, i := range same {
			f(i, views[i].Tap == best, taps)
		}
	}
	return doubtful(views, seen, groups)
}

// doubtful counts views that would be the same connection as one of another tap, if their times were not so far apart, and if
// neither tap saw the connection that the other one saw at the other one's time.
func doubtful(views []View, seen []*Seen, groups [][]int) int {
	type sight struct {
		group int
		tap   string
	}
	group, sights := make([]int, len(views)), make(map[sight]bool)
	for g, same := range groups {
		for _, i := range same {
			group[i] = g
			sights[sight{g, views[i].Tap}] = true
		}
	}
	saw := func(tap, of int) bool { return sights[sight{group[of], views[tap].Tap}] }
	alike := make(map[int]bool)
	equal(seen, func(order []int) {
		for i, a := range order {
			for _, b := range order[i+1 : min(len(order), i+1+nearby)] {
				x, y := seen[a], seen[b]
				if (!alike[a] || !alike[b]) && apart(x.Last, y.First) && x.Calls.share(&y.Calls) && !saw(a, b) && !saw(b, a) {
					alike[a], alike[b] = true, true
				}
			}
		}
	})
	return len(alike)
}

// nearest is the tap nearest the responder, and of how many.
func nearest(views []View, same []int) (name string, of int) {
	type tap struct {
		name string
		n    uint64
		most uint64 // of one view
		near int64  // of that view
	}
	var taps []*tap
	byName := make(map[string]*tap)
	for _, i := range same {
		v := &views[i]
		t := byName[v.Tap]
		if t == nil {
			t = &tap{name: v.Tap, near: math.MaxInt64}
			byName[v.Tap] = t
			taps = append(taps, t)
		}
		if sum, carry := bits.Add64(t.n, v.Timed, 0); carry == 0 {
			t.n = sum
		}
		if v.Timed > t.most || v.Timed == t.most && v.Timed > 0 && v.Near < t.near {
			t.most, t.near = v.Timed, v.Near
		}
	}
	of = len(taps)
	most := uint64(0)
	for _, t := range taps {
		most = max(most, t.n)
	}
	taps = slices.DeleteFunc(taps, func(t *tap) bool { return t.n < most/2 })
	return slices.MinFunc(taps, func(a, b *tap) int {
		return cmp.Or(cmp.Compare(a.near, b.near), cmp.Compare(b.n, a.n), strings.Compare(a.name, b.name))
	}).name, of
}

// Median finds the median of many durations, within 1/32. The zero value is empty; it takes no more than some
// kilobytes.
type Median struct {
	counts map[uint16]uint64
	n      uint64
}

const medianBits = 5

// Add adds a duration in nanoseconds, which is not negative.
func (m *Median) Add(ns int64) {
	if ns < 0 {
		return
	}
	if m.counts == nil {
		m.counts = make(map[uint16]uint64)
	}
	shift := max(bits.Len64(uint64(ns))-medianBits-1, 0)
	m.counts[uint16(shift)<<(medianBits+1)|uint16(ns>>shift)]++
	m.n++
}

// Merge adds what o has.
func (m *Median) Merge(o *Median) {
	for k, n := range o.counts {
		if m.counts == nil {
			m.counts = make(map[uint16]uint64)
		}
		m.counts[k] += n
	}
	m.n += o.n
}

// Value is the median, rounded down, and of how many durations.
func (m *Median) Value() (ns int64, n uint64) {
	keys := make([]uint16, 0, len(m.counts))
	for k := range m.counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b uint16) int { return cmp.Compare(low(a), low(b)) })
	var seen uint64
	for _, k := range keys {
		if seen += m.counts[k]; 2*seen >= m.n {
			return low(k), m.n
		}
	}
	return 0, 0
}

// low is the least duration of a bucket.
func low(k uint16) int64 {
	return int64(k&(1<<(medianBits+1)-1)) << (k >> (medianBits + 1))
}
