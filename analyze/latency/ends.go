package latency

import (
	"cmp"
	"math"
	"slices"
)

// ends counts calls in flight of which only the largest number matters. Few of them are in no order, and whether some have ended is only
// looked up if there might be more than ever before.
type ends struct {
	n    int   // in flight, or ended since pass was called
	now  int64 // when the newest call began
	many bool  // the heap of level is in order
	// level has nothing but the ends, how many were lost, and the latest time. Those that were lost stay in n.
	level level
}

// fewEnds is how many ends may be in no order after pass.
const fewEnds = 64

// enter takes a call, and returns how many are in flight. As long as there are no more than the most that there have been, it may return too
// many, but not more than that.
func (e *ends) enter(start, end int64, most int, budget *int) int {
	l := &e.level
	switch {
	case l.started && wasSet(l.now, start):
		e.pass(math.MaxInt64, budget)
		l.now = start
	case start < e.now: // the clock went back
		e.pass(e.now, budget)
	case e.n >= most || e.many || *budget < soleRoom || end == start:
		e.pass(start, budget)
	}
	if !l.started || start > l.now {
		l.started, l.now = true, start
	}
	if e.now = start; end == start {
		e.now-- // it has not ended as long as no later one comes
	}
	e.n++
	x := event{at: end, change: -1}
	if e.many || *budget <= 0 {
		e.level.push(x, budget)
	} else {
		*budget--
		e.level.heap = append(e.level.heap, x)
	}
	return e.n
}

// pass leaves out the calls that have ended.
func (e *ends) pass(now int64, budget *int) {
	l := &e.level
	before := len(l.heap)
	if e.many {
		for len(l.heap) > 0 && l.heap[0].at <= now {
			l.pop(budget)
		}
		e.n -= before - len(l.heap)
		e.many = len(l.heap) > fewEnds/2
		return
	}
	kept := l.heap[:0]
	for _, x := range l.heap {
		if x.at > now {
			kept = append(kept, x)
		}
	}
	l.heap = kept
	e.n -= before - len(kept)
	*budget += before - len(kept)
	if len(kept) > fewEnds {
		slices.SortFunc(kept, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		e.many = true
	}
}

// take makes it what is in flight of a level.
func (e *ends) take(l *level, budget *int) {
	e.level.started, e.level.now = l.started, l.now
	e.n, e.now, e.many = l.n, l.now-1, true // none of them has ended before the newest call
	if len(l.heap) > 0 {
		e.now = min(e.now, l.heap[0].at-1) // if the clock went back, the earliest end is before the latest time
	}
	e.level.heap = append(e.level.heap[:0], l.heap...)
	*budget -= len(l.heap)
}
