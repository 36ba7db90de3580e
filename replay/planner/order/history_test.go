package order

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// use is one op of the model: what it did, and when.
type modelUse struct {
	lo, hi     uint64
	how        Access
	start, end int64
}

// TestHistory feeds random uses to a history and checks the resulting order against the rule: a
// use waits for each earlier conflicting one whose reply had come before its call.
func TestHistory(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		uses := &Uses{Max: MaxUses, Limit: func(string) {}}
		var h History
		var g Graph
		var d Deps
		n := 200
		if seed%8 == 0 {
			n = 2 * maxHistory // so that entries are put together
		}
		all := make([]modelUse, 0, n)
		deps := make([][]plan.Dep, 0, n)
		at := int64(0)
		for i := range n {
			at += int64(r.IntN(10))
			u := modelUse{start: at, end: at + int64(r.IntN(int(10+seed*5)))}
			if r.IntN(20) == 0 {
				u.end = -1 // no reply
			}
			u.lo = uint64(r.IntN(64))
			u.hi = u.lo + 1 + uint64(r.IntN(8))
			if r.IntN(30) == 0 {
				u.hi = Forever
			}
			u.how = Access(r.IntN(3))
			if seed%8 == 0 && i < n-50 {
				u.how = Commutes
			}
			d.Begin(Flight{Op: i + 1, End: u.end}, u.start, uses)
			d.Use(&h, u.lo, u.hi, u.how, plan.DepRange)
			all = append(all, u)
			deps = append(deps, slices.Clone(g.Reduce(i+1, d.List())))
			if len(h.list) > maxHistory+1 && seed < 3 {
				t.Fatalf("seed %d: %d entries", seed, len(h.list))
			}
		}
		closure := closures(deps, nil)
		for j, u := range all {
			for i, e := range all[:j] {
				must := e.end >= 0 && e.end <= u.start && e.lo < u.hi && u.lo < e.hi && conflict(e.how, u.how)
				if must && !closure[j][i] {
					t.Fatalf("seed %d: op %d does not wait for op %d", seed, j+1, i+1)
				}
				if closure[j][i] && !(e.end >= 0 && e.end <= u.start) {
					t.Fatalf("seed %d: op %d waits for op %d, whose reply came later", seed, j+1, i+1)
				}
			}
		}
	}
}

// closures returns for each op all earlier ones that it waits for, directly or not.
func closures(deps [][]plan.Dep, which func(plan.DepKind) bool) [][]bool {
	all := make([][]bool, len(deps))
	for j := range deps {
		all[j] = make([]bool, j)
		for _, d := range deps[j] {
			if which != nil && !which(d.Kind) {
				continue
			}
			all[j][d.Op-1] = true
			for i, is := range all[d.Op-1] {
				all[j][i] = all[j][i] || is
			}
		}
	}
	return all
}

// TestReduce checks that the reduction of edges does not change the order, with and without the
// optional edges.
func TestReduce(t *testing.T) {
	kinds := []plan.DepKind{plan.DepCreate, plan.DepRange, plan.DepState, plan.DepSlot, plan.DepProgram}
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 2))
		var g Graph
		n := 300
		if seed == 0 {
			n = window + 200
		}
		before, after := make([][]plan.Dep, n), make([][]plan.Dep, n)
		edges := 0
		for i := range n {
			seen := map[int]bool{}
			for range r.IntN(5) {
				if i == 0 {
					break
				}
				back := r.IntN(min(i, 40))
				if r.IntN(20) == 0 {
					back = r.IntN(i)
				}
				op := i - back
				if op < 1 || seen[op] {
					continue
				}
				seen[op] = true
				before[i] = append(before[i], plan.Dep{Op: op, Kind: kinds[r.IntN(len(kinds))]})
			}
			after[i] = g.Reduce(i+1, append([]plan.Dep(nil), before[i]...))
			edges += len(before[i]) - len(after[i])
		}
		if edges == 0 {
			t.Errorf("seed %d: no edge was removed", seed)
		}
		for _, which := range []func(plan.DepKind) bool{nil, func(k plan.DepKind) bool { return !k.Optional() }, func(k plan.DepKind) bool { return k != plan.DepProgram }} {
			a, b := closures(before, which), closures(after, which)
			for j := range a {
				for i := range a[j] {
					if a[j][i] != b[j][i] {
						t.Fatalf("seed %d: op %d waits for op %d: %v, reduced %v", seed, j+1, i+1, a[j][i], b[j][i])
					}
				}
			}
		}
	}
}

// TestSweep exhausts the room for uses.
func TestSweep(t *testing.T) {
	h := History{}
	for i := range 100 {
		h.list = append(h.list, entry{op: i, end: int64(i), covers: []entry{{op: 1000 + i}}})
	}
	if n := h.shorten(49, maxHistory); n != 150 || h.list[49].covers != nil || h.list[50].covers == nil {
		t.Errorf("%d left", n)
	}
	if n := h.shorten(49, 8); n != 16 || h.list[7].op != 99 {
		t.Errorf("%d left, the last is %d", n, h.list[7].op)
	}
	if n := h.shorten(49, 1); n != 1 || h.list[0].op != 99 {
		t.Errorf("%d left", n)
	}
}
