package schedule

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// counts reports whether an edge of the plan is kept.
func counts(k plan.DepKind) bool {
	switch k {
	case plan.DepProgram, plan.DepSlot:
		// capturedOrder makes the program order, and slots are handed out as they
		// become free.
		return false
	}
	return true
}

// edges are what a replay needs beside the edges of the plan, by op ID. All of them
// keep the captured order where the reply was there before the call.
func edges(t *plan.Tables, list []*plan.Op) map[int][]int {
	g := &graph{tables: t, ops: list, out: map[int][]int{}, hosts: map[string]*host{}, opens: map[open][]int{}}
	for _, o := range list {
		g.barrier(o)
		g.shared(o)
	}
	return g.out
}

type graph struct {
	tables *plan.Tables
	ops    []*plan.Op
	out    map[int][]int
	hosts  map[string]*host
	opens  map[open][]int // the ops that use it
}

// host is an address of clients.
type host struct {
	barrier int   // the last op that set up or ended something
	since   []int // ops after it
}

// open is what a server counts as one open.
type open struct{ client, owner, object int }

// barrier makes what sets up and ends client ids and sessions a barrier for all calls
// from the same address: an EXCHANGE_ID may replace the client id of another one, and
// DESTROY_SESSION takes a session away from all that use it.
func (g *graph) barrier(o *plan.Op) {
	name := ""
	if o.Connection > 0 && o.Connection <= len(g.tables.Connections) {
		name = hostOf(g.tables.Connections[o.Connection-1].Client)
	}
	h := g.hosts[name]
	if h == nil {
		h = &host{}
		g.hosts[name] = h
	}
	if h.barrier != 0 {
		g.after(o, h.barrier)
	}
	if o.Role != plan.Sessions {
		h.since = append(h.since, o.ID)
		return
	}
	g.after(o, h.since...)
	h.barrier, h.since = o.ID, h.since[:0]
}

// shared makes an OPEN wait for those before it of the same file by the same owner,
// which are one open to a server (RFC 8881, section 9.9): a CLOSE ends them all.
func (g *graph) shared(o *plan.Op) {
	if o.Compound == nil {
		return
	}
	for i := range o.Binds {
		if b := &o.Binds[i]; b.Kind == plan.FieldState && b.Ref > 0 && g.tables.States[b.Ref-1].DefinedBy == o.ID {
			g.use(o, b.Ref, true)
		}
	}
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		if k := slices.IndexFunc(c.Args, func(f plan.Field) bool { return f.Kind == plan.FieldState }); k >= 0 && c.Args[k].Ref != 0 {
			e := ops.Operation(c.Op)
			g.use(o, c.Args[k].Ref, e != nil && e.EndsState())
		}
	}
}

// use notes that an op uses a state. One that makes or ends it waits for the others.
func (g *graph) use(o *plan.Op, ref int, alone bool) {
	s := &g.tables.States[ref-1]
	if s.Kind != plan.OpenState {
		return
	}
	k := open{s.Client, s.Owner, s.Object}
	if alone {
		g.after(o, g.opens[k]...)
		g.opens[k] = g.opens[k][:0]
	}
	g.opens[k] = append(g.opens[k], o.ID)
}

// after makes an op wait for those that had their reply before it.
func (g *graph) after(o *plan.Op, ids ...int) {
	for _, id := range ids {
		if x := g.ops[id-1]; x.Latency >= 0 && x.Time <= math.MaxInt64-x.Latency && x.Time+x.Latency <= o.Time {
			g.out[o.ID] = append(g.out[o.ID], id)
		}
	}
}

// hostOf is an address without its port.
func hostOf(s string) string {
	if i := strings.LastIndexByte(s, ':'); i > 0 {
		return s[:i]
	}
	return s
}

// capturedOrder makes a call wait for all whose replies were there before it. Calls
// are intervals, from call to reply, so that only the latest of those need an edge: e
// ended before o began, and nothing else began after e's end and ended before o
// began.
func capturedOrder(list []*plan.Op, out map[int][]int) {
	type interval struct {
		id         int
		start, end int64
	}
	var ended []interval
	for _, o := range list {
		if o.Latency >= 0 {
			ended = append(ended, interval{o.ID, o.Time, o.Time + max(o.Latency, 1)})
		}
	}
	slices.SortFunc(ended, func(a, b interval) int { return cmp.Compare(a.end, b.end) })
	order := slices.Clone(list)
	slices.SortStableFunc(order, func(a, b *plan.Op) int { return cmp.Compare(a.Time, b.Time) })
	n, latest := 0, int64(math.MinInt64) // ended[:n] has ended; latest is the latest start of these
	first := 0                           // of those whose end is after latest
	for _, o := range order {
		for n < len(ended) && ended[n].end <= o.Time {
			latest = max(latest, ended[n].start)
			n++
		}
		for first < n && ended[first].end <= latest {
			first++
		}
		for _, x := range ended[first:n] {
			if x.id < o.ID {
				out[o.ID] = append(out[o.ID], x.id)
			}
		}
	}
}
