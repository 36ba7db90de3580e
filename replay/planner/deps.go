package planner

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// rank orders kinds: of two reasons for the same edge, the higher is kept.
var rank = map[plan.DepKind]int{
	plan.DepProgram: 0, plan.DepSlot: 1, plan.DepSize: 2, plan.DepName: 3, plan.DepRange: 4, plan.DepCommit: 5, plan.DepSeqid: 6, plan.DepClient: 7,
	plan.DepCookie: 8, plan.DepState: 9, plan.DepCreate: 10,
}

// dep adds an edge from the current op to an earlier one whose reply came before
// the call.
func (c *call) dep(op int, end int64, kind plan.DepKind) {
	if op == 0 || op >= c.op.ID || end < 0 || end > c.start {
		return
	}
	c.must(op, kind)
}

// must adds an edge whatever the times: the call uses a value that only that reply can have
// provided.
func (c *call) must(op int, kind plan.DepKind) {
	if op == 0 || op >= c.op.ID {
		return
	}
	if d := c.depOn(op); d != nil {
		if d.Kind.Optional() || !kind.Optional() && rank[kind] > rank[d.Kind] {
			if !(kind.Optional() && rank[kind] < rank[d.Kind]) {
				d.Kind = kind
			}
		}
		return
	}
	c.deps = append(c.deps, plan.Dep{Op: op, Kind: kind})
}

// fewDeps is how many edges are searched one by one.
const fewDeps = 16

// depOn is the edge to an op, nil if there is none.
func (c *call) depOn(op int) *plan.Dep {
	if len(c.deps) <= fewDeps {
		for i := range c.deps {
			if c.deps[i].Op == op {
				return &c.deps[i]
			}
		}
		return nil
	}
	for i := len(c.depAt); i < len(c.deps); i++ {
		if c.depAt == nil {
			c.depAt = map[int]int{}
		}
		c.depAt[c.deps[i].Op] = i
	}
	if i, ok := c.depAt[op]; ok {
		return &c.deps[i]
	}
	return nil
}

// window is how many of the latest ops the reduction of edges looks at.
const window = 1024

type ancestors [window / 64]uint64

// graph removes edges that follow from others, if both ends are within the window.
type graph struct {
	above []ancestors // of op n, at n % window; bit m % window is op m
}

// reduce sorts the edges of an op, removes what is superfluous, and remembers
// the op.
func (g *graph) reduce(id int, deps []plan.Dep) []plan.Dep {
	slices.SortStableFunc(deps, func(a, b plan.Dep) int { return cmp.Compare(b.Op, a.Op) })
	var acc ancestors
	kept := deps[:0]
	take := func(optionals bool) {
		for _, d := range deps {
			if d.Kind.Optional() != optionals {
				continue
			}
			if id-d.Op < window {
				if acc.has(d.Op) {
					continue
				}
				if !optionals {
					up := g.above[d.Op%window]
					up.forget(d.Op, id)
					for i := range acc {
						acc[i] |= up[i]
					}
					acc.set(d.Op)
				}
			}
			kept = append(kept, d)
		}
	}
	all := slices.Clone(deps)
	deps, kept = all, kept[:0]
	take(false)
	n := len(kept)
	take(true)
	// Among optional edges: only the same op twice.
	tail := kept[n:]
	tail = slices.CompactFunc(tail, func(a, b plan.Dep) bool { return a.Op == b.Op })
	kept = kept[:n+len(tail)]
	for len(g.above) <= id%window {
		g.above = append(g.above, ancestors{})
	}
	g.above[id%window] = acc
	slices.SortFunc(kept, func(a, b plan.Dep) int { return cmp.Or(cmp.Compare(a.Op, b.Op), cmp.Compare(a.Kind, b.Kind)) })
	return kept
}

func (a *ancestors) has(op int) bool { return a[op%window/64]>>(op%64)&1 != 0 }

func (a *ancestors) set(op int) { a[op%window/64] |= 1 << (op % 64) }

// forget clears the bits of ops n with from < n ≤ to, modulo the window: they
// stand for ops that are too old now.
func (a *ancestors) forget(from, to int) {
	for n := from + 1; n <= to; {
		if n%64 == 0 && to-n >= 63 {
			a[n%window/64] = 0
			n += 64
			continue
		}
		a[n%window/64] &^= 1 << (n % 64)
		n++
	}
}
