package planner

import (
	"hash/fnv"

	"github.com/rpcrdma/toolkit/replay/plan"
)

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

// Limits of all histories together. Most captures stay below crowded; from
// there on a history is kept shorter, which adds order that the captured client
// has kept as well. Beyond maxUses, uses are forgotten.
const (
	crowded      = 1 << 16
	crowdHistory = 64
	maxUses      = 1 << 18
)

// use records that the current op uses a range, and adds the resulting dependencies.
//
// A history is bounded without forgetting anything: an op that depends on many entries replaces
// them, and later ops depend on it instead. That adds an order that the captured client kept as
// well.
func (c *call) use(h *history, lo, hi uint64, how access, kind plan.DepKind) {
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
		return // without a reply, no op can wait for it
	}
	switch {
	case len(h.list) >= c.b.maxHistory():
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
	if c.b.uses++; c.b.uses > c.b.maxUses {
		c.b.sweep(c.start)
	}
	if len(h.list) >= 8*maxHistory {
		c.b.limit("more than 4096 calls on one file outstanding: dependencies lost")
		h.list = append(h.list[:0], h.list[len(h.list)/2:]...)
	}
	h.list = append(h.list, own)
}

// collapse makes own stand for all that it depends on, and for the n oldest.
func (c *call) collapse(h *history, own *entry, n int, kind plan.DepKind) {
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

// settle moves entries that own depends on, or has made itself, below own.
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

// against adds a dependency if two uses collide.
func (c *call) against(e, own *entry, kind plan.DepKind) int {
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

// maxHistory is the length from which on one use replaces others in a history.
func (b *Builder) maxHistory() int {
	if b.uses > crowded {
		return crowdHistory
	}
	return maxHistory
}

// sweep makes room for uses. The entries that one covers no longer matter once its own reply has
// come: all later calls were sent after it. If that is not enough, only the latest uses of each
// thing remain.
func (b *Builder) sweep(now int64) {
	for _, keep := range []int{maxHistory, 8, 1} {
		b.uses = 0
		each := func(h *history) { b.uses += h.shorten(now, keep) }
		for _, o := range b.space.objects {
			each(&o.attr)
			if o.details != &none {
				each(&o.details.bytes)
				each(&o.details.dir)
				each(&o.details.locks)
			}
		}
		for _, x := range b.states.statesIn {
			each(&x.uses)
		}
		if keep < maxHistory {
			b.limit("more uses of files and states than are remembered: dependencies lost")
		}
		if b.uses <= maxUses/2 {
			break
		}
	}
	b.maxUses = max(maxUses, 2*b.uses)
}

// shorten forgets unneeded entries, and all but the latest of the rest. It returns how many are
// left.
func (h *history) shorten(now int64, keep int) int {
	if n := len(h.list) - keep; n > 0 {
		h.list = append(make([]entry, 0, keep), h.list[n:]...)
	}
	n := len(h.list)
	for i := range h.list {
		if e := &h.list[i]; e.end >= 0 && e.end <= now || keep == 1 {
			e.covers = nil
		}
		n += len(h.list[i].covers)
	}
	return n
}

const forever = ^uint64(0)

// point is the place of a name in the history of a directory.
func point(name []byte) uint64 {
	f := fnv.New64a()
	f.Write(name)
	return f.Sum64() >> 1
}
