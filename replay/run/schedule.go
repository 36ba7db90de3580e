package run

import (
	"container/heap"
	"time"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// node is an op of one world that has not been sent.
type node struct {
	op      *plan.Op
	world   *world
	missing int32         // replies that it waits for
	due     time.Duration // from the start of the replay
	ready   time.Duration // when the last reply that it waited for was there
}

// agenda orders nodes by the time at which they are due.
type agenda []*node

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	switch {
	case a[i].due != a[j].due:
		return a[i].due < a[j].due
	case a[i].op.ID != a[j].op.ID:
		return a[i].op.ID < a[j].op.ID
	}
	return a[i].world.number < a[j].world.number
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(*node)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	n := (*a)[last]
	(*a)[last] = nil
	*a = (*a)[:last]
	return n
}

// waitsFor reports whether an edge counts in this run.
func (e *engine) waitsFor(k plan.DepKind) bool {
	switch k {
	case plan.DepProgram:
		return e.opt.ProgramOrder && (e.opt.Timing == Fast || e.opt.Timing == FixedRate)
	case plan.DepSlot:
		return false // slots are handed out as they become free
	}
	return true
}

// arrange makes the nodes of all worlds and finds out what waits for what.
func (e *engine) arrange() {
	ops := e.load.Ops
	e.children = make([][]int32, len(ops)+1)
	parents := make([]int32, len(ops)+1)
	for i, o := range ops {
		seen := map[int]bool{}
		add := func(dep int) {
			if dep > 0 && dep < o.ID && !seen[dep] {
				seen[dep] = true
				e.children[dep] = append(e.children[dep], int32(i))
				parents[o.ID]++
			}
		}
		for _, d := range o.Deps {
			// The order of what sets clients up matters even where nothing says
			// so: an EXCHANGE_ID may replace the client id of another one.
			if e.waitsFor(d.Kind) || d.Kind == plan.DepProgram && d.Op > 0 && (o.Role == plan.Sessions || ops[d.Op-1].Role == plan.Sessions) {
				add(d.Op)
			}
		}
		if e.opt.Timing == Think {
			add(o.After)
		}
	}
	e.nodes = make([][]node, len(e.worlds))
	for wi, w := range e.worlds {
		nodes := make([]node, len(ops))
		for i, o := range ops {
			nodes[i] = node{op: o, world: w, missing: parents[o.ID], due: e.dueAt(i, wi)}
			if nodes[i].missing == 0 {
				e.agenda = append(e.agenda, &nodes[i])
			}
		}
		e.nodes[wi] = nodes
	}
	heap.Init(&e.agenda)
}

// dueAt is when an op is to be sent, apart from what it waits for.
func (e *engine) dueAt(i, clone int) time.Duration {
	o := e.load.Ops[i]
	switch e.opt.Timing {
	case AsCaptured:
		return time.Duration(float64(o.Time) / e.opt.Speed)
	case Think:
		if o.After == 0 {
			return time.Duration(float64(o.Time) / e.opt.Speed)
		}
	case FixedRate:
		n := i*len(e.worlds) + clone
		return time.Duration(float64(n) / e.opt.Rate * float64(time.Second))
	}
	return 0
}

// over tells those who waited for an op that its reply is there.
func (e *engine) over(n *node, at time.Duration) {
	nodes := e.nodes[n.world.number]
	for _, i := range e.children[n.op.ID] {
		c := &nodes[i]
		c.ready = max(c.ready, at)
		if e.opt.Timing == Think && c.op.After == n.op.ID {
			c.due = at + time.Duration(float64(c.op.Think)/e.opt.Speed)
		}
		if c.missing--; c.missing == 0 {
			heap.Push(&e.agenda, c)
		}
	}
}
