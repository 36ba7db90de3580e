package extract

import (
	"cmp"
	"slices"
	"sort"
)

type span struct{ from, to uint64 }

// spans are the ranges of a file that something is known of. What comes in no
// order is merged with the rest from time to time: thousands of ranges that do not
// touch cost no more time than those that do.
type spans struct {
	list   []span // do not touch, in order
	recent []span
	high   uint64 // end of the last of recent
}

// maxRecent is how many ranges wait to be merged.
const maxRecent = 4096

// add adds a range. It returns by how many the number of ranges has grown.
func (s *spans) add(from, to uint64) int {
	if from >= to {
		return 0
	}
	if n := len(s.list); n > 0 && len(s.recent) == 0 {
		last := &s.list[n-1]
		switch {
		case from >= last.from && from <= last.to:
			last.to = max(last.to, to)
			return 0
		case from > last.to:
			s.list = append(s.list, span{from, to})
			return 1
		}
	}
	if n := len(s.recent); n > 0 {
		if last := &s.recent[n-1]; from >= last.from && from <= last.to {
			last.to = max(last.to, to)
			s.high = max(s.high, to)
			return 0
		}
	}
	s.recent = append(s.recent, span{from, to})
	s.high = max(s.high, to)
	if len(s.recent) >= maxRecent {
		before := len(s.list) + len(s.recent) - 1
		return len(s.merge()) - before
	}
	return 1
}

// cut forgets what lies at and beyond an offset. It returns by how many the
// number of ranges has become less.
func (s *spans) cut(from uint64) int {
	before := len(s.list) + len(s.recent)
	i := sort.Search(len(s.list), func(i int) bool { return s.list[i].to > from })
	if i < len(s.list) {
		if s.list[i].from < from {
			s.list[i].to = from
			i++
		}
		s.list = s.list[:i]
	}
	if s.high > from {
		kept := s.recent[:0]
		s.high = 0
		for _, x := range s.recent {
			if x.to = min(x.to, from); x.from < x.to {
				kept = append(kept, x)
				s.high = max(s.high, x.to)
			}
		}
		s.recent = kept
	}
	return before - len(s.list) - len(s.recent)
}

// bytes is the length of all ranges below an offset.
func (s *spans) bytes(end uint64) (n uint64) {
	for _, x := range s.merge() {
		if x.from >= end {
			break
		}
		n += min(x.to, end) - x.from
	}
	return n
}

// holes calls f for the ranges below an offset that are not known, until it
// returns false.
func (s *spans) holes(end uint64, f func(span) bool) {
	at := uint64(0)
	for _, x := range s.merge() {
		if x.from >= end {
			break
		}
		if x.from > at && !f(span{at, x.from}) {
			return
		}
		at = x.to
	}
	if at < end {
		f(span{at, end})
	}
}

// within returns what is in both.
func (s *spans) within(o *spans) spans {
	var out spans
	a, b := s.merge(), o.merge()
	for i, j := 0, 0; i < len(a) && j < len(b); {
		if from, to := max(a[i].from, b[j].from), min(a[i].to, b[j].to); from < to {
			out.list = append(out.list, span{from, to})
		}
		if a[i].to < b[j].to {
			i++
		} else {
			j++
		}
	}
	return out
}

// merge returns all ranges.
func (s *spans) merge() []span {
	if len(s.recent) == 0 {
		return s.list
	}
	slices.SortFunc(s.recent, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	out := make([]span, 0, len(s.list)+len(s.recent))
	take := func(x span) {
		if n := len(out); n > 0 && x.from <= out[n-1].to {
			out[n-1].to = max(out[n-1].to, x.to)
			return
		}
		out = append(out, x)
	}
	i := 0
	for _, x := range s.recent {
		for i < len(s.list) && s.list[i].from <= x.from {
			take(s.list[i])
			i++
		}
		take(x)
	}
	for _, x := range s.list[i:] {
		take(x)
	}
	s.list, s.recent, s.high = out, s.recent[:0], 0
	if len(out) < maxRecent/8 {
		s.recent = nil
	}
	return s.list
}
