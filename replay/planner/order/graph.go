package order

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// window is how many of the latest ops the reduction of edges looks at.
const window = 1024

type ancestors [window / 64]uint64

// Graph removes edges that follow from others, if both ends are within the window.
type Graph struct {
	above []ancestors // of op n, at n % window; bit m % window is op m
}

// Reduce sorts the edges of an op, removes what is superfluous, and remembers
// the op.
func (g *Graph) Reduce(id int, deps []plan.Dep) []plan.Dep {
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
