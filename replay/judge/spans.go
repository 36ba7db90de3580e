package judge

import (
	"cmp"
	"math"
	"slices"
)

// spans are ranges with times; overlap finds whether one of them overlaps a given range. They are
// a tree over the ranges in the order of their starts: each node has the greatest end and the
// earliest time of those below it.
type spans struct {
	list []span
	tree []span // node i has the children 2i and 2i+1; from is not used
	size int
}

type span struct {
	from, to uint64
	at       int64
}

func (s *spans) index() {
	slices.SortFunc(s.list, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for s.size = 1; s.size < len(s.list); s.size *= 2 {
	}
	s.tree = make([]span, 2*s.size)
	for i := range s.tree {
		s.tree[i].at = math.MaxInt64
	}
	copy(s.tree[s.size:], s.list)
	for i := s.size - 1; i > 0; i-- {
		a, b := s.tree[2*i], s.tree[2*i+1]
		s.tree[i] = span{to: max(a.to, b.to), at: min(a.at, b.at)}
	}
}

// maxLooks is how many nodes one query visits. Ranges crafted to need more are not found, and
// explain nothing.
const maxLooks = 4096

// overlap reports whether a range overlaps [from, to) whose time is not after now.
func (s *spans) overlap(from, to uint64, now int64) bool {
	if s == nil || from >= to {
		return false
	}
	// Those that start before to.
	end, _ := slices.BinarySearchFunc(s.list, to, func(x span, t uint64) int { return cmp.Compare(x.from, t) })
	looks := 0
	var look func(i, first, n int) bool
	look = func(i, first, n int) bool {
		looks++
		x := &s.tree[i]
		switch {
		case first >= end || x.to <= from || x.at > now || looks > maxLooks:
			return false
		case n == 1:
			return true
		}
		return look(2*i, first, n/2) || look(2*i+1, first+n/2, n/2)
	}
	return look(1, 0, s.size)
}

// parts are spans that are added one by one: the latest ones in a list, the others in trees, each
// more than twice as large as the next.
type parts struct {
	latest []span
	trees  []*spans
}

const maxLatest = 32

func (p *parts) add(x span) {
	if p.latest = append(p.latest, x); len(p.latest) < maxLatest {
		return
	}
	t := &spans{list: p.latest}
	p.latest = nil
	for n := len(p.trees); n > 0 && len(p.trees[n-1].list) <= 2*len(t.list); n = len(p.trees) {
		t.list = append(t.list, p.trees[n-1].list...)
		p.trees = p.trees[:n-1]
	}
	t.index()
	p.trees = append(p.trees, t)
}

// overlap is like spans.overlap.
func (p *parts) overlap(from, to uint64, now int64) bool {
	if p == nil || from >= to {
		return false
	}
	for _, x := range p.latest {
		if x.from < to && from < x.to && x.at <= now {
			return true
		}
	}
	for _, t := range p.trees {
		if t.overlap(from, to, now) {
			return true
		}
	}
	return false
}

// all are the spans, in any order.
func (p *parts) all() []span {
	list := p.latest[:len(p.latest):len(p.latest)]
	for _, t := range p.trees {
		list = append(list, t.list...)
	}
	return list
}
