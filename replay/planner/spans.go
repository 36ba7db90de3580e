package planner

import "sort"

// span is a range of a file.
type span struct{ from, to uint64 }

// spans are ranges that do not touch, in order.
type spans []span

// maxSpans bounds their number: when it is exceeded, neighbours are joined.
const maxSpans = 4096

func (s *spans) add(from, to uint64) {
	if from >= to {
		return
	}
	l := *s
	i := sort.Search(len(l), func(i int) bool { return l[i].to >= from })
	j := i
	for j < len(l) && l[j].from <= to {
		from, to = min(from, l[j].from), max(to, l[j].to)
		j++
	}
	if j > i {
		l[i] = span{from, to}
		*s = append(l[:i+1], l[j:]...)
		return
	}
	l = append(l, span{})
	copy(l[i+1:], l[i:])
	l[i] = span{from, to}
	if len(l) > maxSpans {
		i = max(i, 1)
		l[i-1].to = l[i].to
		l = append(l[:i], l[i+1:]...)
	}
	*s = l
}

// gaps calls f for each part of [from, to) that no span covers.
func (s spans) gaps(from, to uint64, f func(from, to uint64)) {
	i := sort.Search(len(s), func(i int) bool { return s[i].to > from })
	for ; i < len(s) && s[i].from < to; i++ {
		if s[i].from > from {
			f(from, s[i].from)
		}
		from = s[i].to
	}
	if from < to {
		f(from, to)
	}
}
