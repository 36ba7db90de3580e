package schedule

import (
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
		// The captured order contains the program order, and slots are handed out as they
		// become free.
		return false
	}
	return true
}

// graph finds what a replay needs beside the edges of the plan. All of them keep the captured
// order where the reply was there before the call. It holds ops by number: those that have left
// the window are over, and are forgotten.
type graph struct {
	tables *plan.Tables
	hosts  map[string]*host
	opens  map[open]*users
	sweep  int // how many opens there may be before those without users are removed
}

// host is an address of clients.
type host struct {
	barrier int   // the last op that set up or ended something
	since   users // ops after it
}

// open is what a server counts as one open.
type open struct{ client, owner, object int }

// users are ops, in order.
type users struct {
	ids  []int
	full int // at this length those that are over are removed
}

func (u *users) add(id, first int) {
	if len(u.ids) >= u.full {
		i, _ := slices.BinarySearch(u.ids, first)
		u.ids = append(u.ids[:0], u.ids[i:]...)
		u.full = 2*len(u.ids) + 16
	}
	u.ids = append(u.ids, id)
}

// edges appends the ops of the window that an op waits for.
func (g *graph) edges(dst []int, o *plan.Op, s *Schedule) []int {
	return g.shared(g.barrier(dst, o, s), o, s)
}

// barrier makes what sets up and ends client ids and sessions a barrier for all calls
// from the same address: an EXCHANGE_ID may replace the client id of another one, and
// DESTROY_SESSION takes a session away from all that use it.
func (g *graph) barrier(dst []int, o *plan.Op, s *Schedule) []int {
	name := ""
	if o.Connection > 0 && o.Connection <= len(g.tables.Connections) {
		name = hostOf(g.tables.Connections[o.Connection-1].Client)
	}
	h := g.hosts[name]
	if h == nil {
		h = &host{}
		g.hosts[name] = h
	}
	dst = s.after(dst, o, h.barrier)
	if o.Role != plan.Sessions {
		h.since.add(o.ID, s.first)
		return dst
	}
	dst = s.after(dst, o, h.since.ids...)
	h.barrier, h.since.ids = o.ID, h.since.ids[:0]
	return dst
}

// shared makes an OPEN wait for those before it of the same file by the same owner,
// which are one open to a server (RFC 8881, section 9.9): a CLOSE ends them all.
func (g *graph) shared(dst []int, o *plan.Op, s *Schedule) []int {
	if o.Compound == nil {
		return dst
	}
	for i := range o.Binds {
		if b := &o.Binds[i]; b.Kind == plan.FieldState && b.Ref > 0 && g.tables.States[b.Ref-1].DefinedBy == o.ID {
			dst = g.use(dst, o, s, b.Ref, true)
		}
	}
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		if k := slices.IndexFunc(c.Args, func(f plan.Field) bool { return f.Kind == plan.FieldState }); k >= 0 && c.Args[k].Ref != 0 {
			e := ops.Operation(c.Op)
			dst = g.use(dst, o, s, c.Args[k].Ref, e != nil && e.EndsState())
		}
	}
	return dst
}

// use notes that an op uses a state. One that makes or ends it waits for the others.
func (g *graph) use(dst []int, o *plan.Op, s *Schedule, ref int, alone bool) []int {
	st := &g.tables.States[ref-1]
	if st.Kind != plan.OpenState {
		return dst
	}
	k := open{st.Client, st.Owner, st.Object}
	u := g.opens[k]
	if u == nil {
		g.forget(s.first)
		u = &users{}
		g.opens[k] = u
	}
	if alone {
		dst = s.after(dst, o, u.ids...)
		u.ids = u.ids[:0]
	}
	u.add(o.ID, s.first)
	return dst
}

// forget removes the opens whose users are all over, from time to time.
func (g *graph) forget(first int) {
	if len(g.opens) < g.sweep {
		return
	}
	for k, u := range g.opens {
		if n := len(u.ids); n == 0 || u.ids[n-1] < first {
			delete(g.opens, k)
		}
	}
	g.sweep = 2*len(g.opens) + 1024
}

// after appends those ops of the window that had their reply before an op.
func (s *Schedule) after(dst []int, o *plan.Op, ids ...int) []int {
	for _, id := range ids {
		p := s.slot(id)
		if p == nil {
			continue
		}
		if x := p.op; x.Latency >= 0 && x.Time <= math.MaxInt64-x.Latency && x.Time+x.Latency <= o.Time {
			dst = append(dst, id)
		}
	}
	return dst
}

// hostOf is an address without its port.
func hostOf(s string) string {
	if i := strings.LastIndexByte(s, ':'); i > 0 {
		return s[:i]
	}
	return s
}
