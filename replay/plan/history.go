package plan

import "hash/fnv"

// access is how an op uses a thing that has a history.
type access uint8

// Accesses. Two reads do not depend on each other, nor do two changes that
// commute (WRITEs, as far as the size is concerned); every other pair does.
const (
	reads access = iota
	commutes
	writes
)

func conflict(a, b access) bool { return a != b || a == writes }

// entry is a use of the range [lo, hi) by an op.
type entry struct {
	lo, hi uint64
	op     int
	end    int64 // of the op: ns from the start
	how    access
	// covers are entries that this one stands for, because the op depends on
	// them. An op that was called before this one's reply needs them still.
	covers []entry
}

// history is who has used a thing, as far as later ops have to know.
type history struct{ list []entry }

// Limits of a history.
const (
	maxHistory = 512
	maxEdges   = 3 // more are replaced by one
)

const forever = ^uint64(0)

// use adds the use of a range by the op at hand, and the dependencies that
// follow.
//
// A history is bounded without forgetting anything: where an op depends on many
// entries, it takes their place, and what would have depended on them depends
// on it. That adds an order that the captured client has kept as well.
func (c *call) use(h *history, lo, hi uint64, how access, kind DepKind) {
	if hi <= lo {
		hi = lo + 1
		if hi == 0 {
			lo, hi = forever-1, forever
		}
	}
	own := entry{lo: lo, hi: hi, op: c.op.ID, end: c.end, how: how}
	edges := 0
	for i := range h.list {
		e := &h.list[i]
		if e.end >= 0 && e.end <= c.start {
			e.covers = nil // all ops from now on were called after it
		}
		if e.op == own.op {
			continue
		}
		edges += c.against(e, &own, kind)
	}
	if c.end < 0 {
		return // nobody can wait for it
	}
	switch {
	case len(h.list) >= maxHistory:
		c.collapse(h, &own, len(h.list)/2, kind)
	case edges > maxEdges:
		c.collapse(h, &own, 0, kind)
	case how == writes:
		c.settle(h, &own, func(e *entry) bool { return e.lo >= lo && e.hi <= hi })
	}
	if n := len(h.list); n > 0 {
		// The same op again, on the same place or the next.
		if last := &h.list[n-1]; last.op == own.op && last.how == own.how && own.lo >= last.lo && own.lo <= last.hi {
			last.hi = max(last.hi, own.hi)
			last.covers = append(last.covers, own.covers...)
			return
		}
	}
	if len(h.list) >= 8*maxHistory {
		c.b.limit("more than 4096 calls on one file outstanding: dependencies lost")
		h.list = append(h.list[:0], h.list[len(h.list)/2:]...)
	}
	h.list = append(h.list, own)
}

// against adds a dependency if two uses collide.
func (c *call) against(e, own *entry, kind DepKind) int {
	if e.lo >= own.hi || own.lo >= e.hi || !conflict(e.how, own.how) {
		return 0
	}
	if e.end > c.start {
		n := 0
		for i := range e.covers {
			n += c.against(&e.covers[i], own, kind)
		}
		return n
	}
	c.dep(e.op, e.end, kind)
	return 1
}

// settle moves entries below own that own depends on, or that are its.
func (c *call) settle(h *history, own *entry, which func(*entry) bool) {
	kept := h.list[:0]
	for _, e := range h.list {
		if e.op != own.op && e.end <= c.start && conflict(e.how, own.how) && which(&e) {
			own.covers = append(own.covers, e)
			continue
		}
		kept = append(kept, e)
	}
	clear(h.list[len(kept):])
	h.list = kept
}

// collapse makes own stand for all that it depends on, and for the n oldest.
func (c *call) collapse(h *history, own *entry, n int, kind DepKind) {
	kept := h.list[:0]
	all := *own
	for i, e := range h.list {
		collides := e.lo < own.hi && own.lo < e.hi && conflict(e.how, own.how)
		if e.op == own.op || e.end > c.start || i >= n && !collides {
			kept = append(kept, e)
			continue
		}
		c.dep(e.op, e.end, kind)
		all.lo, all.hi = min(all.lo, e.lo), max(all.hi, e.hi)
		all.covers = append(all.covers, e)
		all.how = writes
	}
	clear(h.list[len(kept):])
	h.list = kept
	*own = all
}

// point is the place of a name in the history of a directory.
func point(name []byte) uint64 {
	f := fnv.New64a()
	f.Write(name)
	return f.Sum64() >> 1
}
