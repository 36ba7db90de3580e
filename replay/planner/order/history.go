package order

import "github.com/rpcrdma/toolkit/replay/plan"

// Access is how an op uses a thing that has a history.
type Access uint8

// Accesses. Two reads do not depend on each other, nor do two changes that
// commute (WRITEs, as far as the size is concerned); every other pair does.
const (
	Reads Access = iota
	Commutes
	Writes
)

func conflict(a, b Access) bool { return a != b || a == Writes }

// entry is a use of the range [lo, hi) by an op.
type entry struct {
	lo, hi uint64
	op     int
	end    int64 // of the op: ns from the start
	how    Access
	// covers are entries that this one stands for, because the op depends on
	// them. An op that was called before this one's reply needs them still.
	covers []entry
}

// History is who has used a thing, as far as later ops have to know.
type History struct{ list []entry }

// Limits of a history.
const (
	maxHistory = 512
	maxEdges   = 3 // more are replaced by one
)

// Use records that the op uses the range [lo, hi) of a thing, and adds the resulting dependencies.
//
// A history is bounded without forgetting anything: an op that depends on many entries replaces
// them, and later ops depend on it instead. That adds an order that the captured client kept as
// well.
func (d *Deps) Use(h *History, lo, hi uint64, how Access, kind plan.DepKind) {
	if hi <= lo {
		hi = lo + 1
		if hi == 0 {
			lo, hi = Forever-1, Forever
		}
	}
	own := entry{lo: lo, hi: hi, op: d.Op, end: d.End, how: how}
	edges := 0
	for i := range h.list {
		e := &h.list[i]
		if e.end >= 0 && e.end <= d.start {
			e.covers = nil // all ops from now on were called after it
		}
		if e.op == own.op {
			continue
		}
		edges += d.against(e, &own, kind)
	}
	if d.End < 0 {
		return // without a reply, no op can wait for it
	}
	switch {
	case len(h.list) >= d.uses.maxHistory():
		d.collapse(h, &own, len(h.list)/2, kind)
	case edges > maxEdges:
		d.collapse(h, &own, 0, kind)
	case how == Writes:
		d.settle(h, &own, func(e *entry) bool { return e.lo >= lo && e.hi <= hi })
	}
	if n := len(h.list); n > 0 {
		// The same op again, on the same place or the next.
		if last := &h.list[n-1]; last.op == own.op && last.how == own.how && own.lo >= last.lo && own.lo <= last.hi {
			last.hi = max(last.hi, own.hi)
			last.covers = append(last.covers, own.covers...)
			return
		}
	}
	d.uses.add(d.start)
	if len(h.list) >= 8*maxHistory {
		d.uses.Limit("more than 4096 calls on one file outstanding: dependencies lost")
		h.list = append(h.list[:0], h.list[len(h.list)/2:]...)
	}
	h.list = append(h.list, own)
}

// Look is Use without a record: no later op waits for this one because of it.
func (d *Deps) Look(h *History, lo, hi uint64, how Access, kind plan.DepKind) {
	own := entry{lo: lo, hi: max(hi, lo+1), op: d.Op, end: d.End, how: how}
	for i := range h.list {
		d.against(&h.list[i], &own, kind)
	}
}

// collapse makes own stand for all that it depends on, and for the n oldest.
func (d *Deps) collapse(h *History, own *entry, n int, kind plan.DepKind) {
	kept := h.list[:0]
	all := *own
	for i, e := range h.list {
		collides := e.lo < own.hi && own.lo < e.hi && conflict(e.how, own.how)
		if e.op == own.op || e.end > d.start || i >= n && !collides {
			kept = append(kept, e)
			continue
		}
		d.After(Flight{e.op, e.end}, kind)
		all.lo, all.hi = min(all.lo, e.lo), max(all.hi, e.hi)
		all.covers = append(all.covers, e)
		all.how = Writes
	}
	clear(h.list[len(kept):])
	h.list = kept
	*own = all
}

// settle moves entries that own depends on, or has made itself, below own.
func (d *Deps) settle(h *History, own *entry, which func(*entry) bool) {
	kept := h.list[:0]
	for _, e := range h.list {
		if e.op != own.op && e.end <= d.start && conflict(e.how, own.how) && which(&e) {
			own.covers = append(own.covers, e)
			continue
		}
		kept = append(kept, e)
	}
	clear(h.list[len(kept):])
	h.list = kept
}

// against adds a dependency if two uses collide.
func (d *Deps) against(e, own *entry, kind plan.DepKind) int {
	if e.lo >= own.hi || own.lo >= e.hi || !conflict(e.how, own.how) {
		return 0
	}
	if e.end > d.start {
		n := 0
		for i := range e.covers {
			n += d.against(&e.covers[i], own, kind)
		}
		return n
	}
	d.After(Flight{e.op, e.end}, kind)
	return 1
}

// Empty reports whether no use is known.
func (h *History) Empty() bool { return len(h.list) == 0 }

// shorten forgets unneeded entries, and all but the latest of the rest. It returns how many are
// left.
func (h *History) shorten(now int64, keep int) int {
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

// Forever is behind the last byte of any file.
const Forever = ^uint64(0)
