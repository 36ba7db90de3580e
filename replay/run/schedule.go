package run

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
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
	case plan.DepProgram, plan.DepSlot:
		// Program order is made here (see before), and slots are handed out as
		// they become free.
		return false
	}
	return true
}

// arrange makes the nodes of all worlds and finds out what waits for what.
func (e *engine) arrange() {
	ops := e.load.Ops
	e.children = make([][]int32, len(ops)+1)
	parents := make([]int32, len(ops)+1)
	more := e.moreEdges()
	if !e.opt.Relaxed && (e.opt.Timing == Fast || e.opt.Timing == FixedRate) {
		e.before(more)
	}
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
			if e.waitsFor(d.Kind) {
				add(d.Op)
			}
		}
		for _, d := range more[o.ID] {
			add(d)
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

// moreEdges are what this executor needs beside the plan's edges, by op ID. All
// of them keep the captured order where the reply was there before the call.
//
// What sets up and ends client ids and sessions is a barrier for all calls from
// the same address: an EXCHANGE_ID may replace the client id of another one, and
// DESTROY_SESSION takes a session away from all that use it.
//
// Opens of one file by one owner are one open to a server (RFC 8881, section
// 9.9): its CLOSE ends them all, so that an OPEN waits for those before it.
func (e *engine) moreEdges() map[int][]int {
	type open struct{ client, owner, object int }
	type address struct {
		barrier int
		since   []int
	}
	out := map[int][]int{}
	t := &e.load.Tables
	ends := func(id int) int64 {
		o := e.load.Ops[id-1]
		if o.Latency < 0 {
			return 1<<63 - 1
		}
		return o.Time + o.Latency
	}
	opens := map[open][]int{}
	clients := map[string]*address{}
	for _, o := range e.load.Ops {
		host := ""
		if o.Connection > 0 && o.Connection <= len(t.Connections) {
			host = hostOf(t.Connections[o.Connection-1].Client)
		}
		a := clients[host]
		if a == nil {
			a = &address{}
			clients[host] = a
		}
		if a.barrier != 0 && ends(a.barrier) <= o.Time {
			out[o.ID] = append(out[o.ID], a.barrier)
		}
		if o.Role == plan.Sessions {
			for _, id := range a.since {
				if ends(id) <= o.Time {
					out[o.ID] = append(out[o.ID], id)
				}
			}
			a.barrier, a.since = o.ID, a.since[:0]
		} else {
			a.since = append(a.since, o.ID)
		}
		if o.Compound == nil {
			continue
		}
		use := func(ref int, again bool) {
			s := &t.States[ref-1]
			if s.Kind != plan.OpenState {
				return
			}
			k := open{s.Client, s.Owner, s.Object}
			if again {
				for _, id := range opens[k] {
					if ends(id) <= o.Time {
						out[o.ID] = append(out[o.ID], id)
					}
				}
				opens[k] = opens[k][:0]
			}
			opens[k] = append(opens[k], o.ID)
		}
		for i := range o.Binds {
			if b := &o.Binds[i]; b.Kind == plan.FieldState && b.Ref > 0 && t.States[b.Ref-1].DefinedBy == o.ID {
				use(b.Ref, true)
			}
		}
		for i := range o.Compound.Ops {
			c := &o.Compound.Ops[i]
			if s := stateRef(c); s != 0 {
				use(s, closes(c.Op))
			}
		}
	}
	return out
}

// hostOf is an address without its port.
func hostOf(s string) string {
	if i := strings.LastIndexByte(s, ':'); i > 0 {
		return s[:i]
	}
	return s
}

// before adds the captured order: a call waits for all whose replies were there
// before it. Calls are intervals, from call to reply, so that only the latest
// of those need an edge: e ended before o began, and nothing else began after
// e's end and ended before o began.
func (e *engine) before(out map[int][]int) {
	type ended struct {
		id         int
		start, end int64
	}
	var list []ended
	for _, o := range e.load.Ops {
		if o.Latency >= 0 {
			list = append(list, ended{o.ID, o.Time, o.Time + max(o.Latency, 1)})
		}
	}
	slices.SortFunc(list, func(a, b ended) int { return cmp.Compare(a.end, b.end) })
	order := slices.Clone(e.load.Ops)
	slices.SortStableFunc(order, func(a, b *plan.Op) int { return cmp.Compare(a.Time, b.Time) })
	n, latest := 0, int64(-1)<<62 // list[:n] has ended; latest is the greatest start of these
	first := 0                    // of those whose end is after latest
	for _, o := range order {
		for n < len(list) && list[n].end <= o.Time {
			latest = max(latest, list[n].start)
			n++
		}
		for first < n && list[first].end <= latest {
			first++
		}
		for _, x := range list[first:n] {
			if x.id < o.ID {
				out[o.ID] = append(out[o.ID], x.id)
			}
		}
	}
}
