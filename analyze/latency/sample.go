package latency

import "maps"

// Sample collects durations for a consumer with its own intervals, such as a live view: counts, sums and
// percentiles as in a Report. The zero value is ready for use. A Sample is not safe for concurrent use.
type Sample struct {
	d dist
	m memory
}

// Add takes a duration in nanoseconds; one below zero counts as zero.
func (s *Sample) Add(ns int64) {
	s.m.limit = DefaultMemory / 2 // as a Recorder has it
	s.d.add(max(ns, 0), &s.m)
}

// Count is how many durations there are.
func (s *Sample) Count() uint64 { return s.d.count }

// Distribution summarises the durations. The Sample may continue.
func (s *Sample) Distribution() *Distribution { return s.d.distribution() }

// Reset removes all durations.
func (s *Sample) Reset() { *s = Sample{d: dist{exact: s.d.exact[:0]}} }

// Groups returns the current groups in the order in which they were first seen, with Share and Rate zero.
// They share no mutable data with the Recorder, which may continue; another goroutine may read them. Nobody may
// change them: a group to which nothing was added is returned again.
func (r *Recorder) Groups() []*Group {
	out := make([]*Group, len(r.order))
	for i, g := range r.order {
		g.settle(&r.mem)
		if g.shown != nil && g.shown.Count == g.Count {
			out[i] = g.shown
			continue
		}
		x := g.model()
		x.Key = append([]string(nil), x.Key...)
		x.Inline = append([]Inline(nil), x.Inline...)
		statuses := make(map[string]uint64, len(x.Statuses))
		maps.Copy(statuses, x.Statuses)
		x.Statuses = statuses
		out[i], g.shown = x, x
	}
	return out
}

// Merge returns one group with the transactions of several groups, without Key, Share and Rate.
func Merge(groups ...*Group) *Group {
	all := &Group{Key: []string{}, Counts: Counts{Statuses: map[string]uint64{}}, Latency: &Distribution{}}
	if len(groups) > 0 {
		all.Inline = make([]Inline, len(groups[0].Inline))
	}
	all.merge(groups...)
	return all
}
