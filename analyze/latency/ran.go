package latency

import (
	"cmp"
	"slices"
	"strings"
)

// ran is what began in an interval, if Options.Ran asks for it: calls by group, and the slowest of them.
type ran struct {
	groups []ranGroup // in the order in which they came
	slow   Ran
}

type ranGroup struct {
	index int // of Recorder.order
	count uint64
	sum   int64
}

// maxRan bounds the groups distinguished in one interval; further ones are counted in Slot.Calls only.
const maxRan = 256

func (x *ran) add(index int, count uint64, sum int64) {
	for i := range x.groups {
		if g := &x.groups[i]; g.index == index {
			g.count += count
			g.sum += sum
			if i > 0 && g.count > x.groups[i-1].count { // what is frequent is found soon
				x.groups[i], x.groups[i-1] = x.groups[i-1], x.groups[i]
			}
			return
		}
	}
	if len(x.groups) < maxRan {
		x.groups = append(x.groups, ranGroup{index, count, sum})
	}
}

func (x *ran) merge(o *ran) {
	if o == nil {
		return
	}
	for _, g := range o.groups {
		x.add(g.index, g.count, g.sum)
	}
	if o.slow.Total > x.slow.Total {
		x.slow = o.slow
	}
}

// RanGroup is one group of the calls that began in an interval.
type RanGroup struct {
	Key   []string
	Count uint64
	Sum   int64 // of their latencies
}

// Ran is the slowest of the calls that began in an interval.
type Ran struct {
	XID        uint32
	Connection int
	CallFrame  uint64
	ReplyFrame uint64
	Operation  string
	Total      int64 // 0: there is none
}

// Ran returns the groups of the calls that began in the interval, those with most time first, and the slowest
// call. It needs Options.Ran. At most 256 groups are distinguished.
func (s *Slot) Ran() ([]RanGroup, Ran) {
	if s.ran == nil {
		return nil, Ran{}
	}
	return s.groups, s.ran.slow
}

// describe names the groups of an interval. Groups whose names became equal later are one.
func (s *Slot) describe(order []*group) {
	if s.ran == nil {
		return
	}
	at := make(map[string]int)
	for _, g := range s.ran.groups {
		key := order[g.index].labels
		k := strings.Join(key, "\x00")
		i, ok := at[k]
		if !ok {
			i = len(s.groups)
			at[k] = i
			s.groups = append(s.groups, RanGroup{Key: key})
		}
		s.groups[i].Count += g.count
		s.groups[i].Sum += g.sum
	}
	slices.SortStableFunc(s.groups, func(a, b RanGroup) int {
		return cmp.Or(cmp.Compare(b.Sum, a.Sum), cmp.Compare(b.Count, a.Count), slices.Compare(a.Key, b.Key))
	})
}
