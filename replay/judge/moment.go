package judge

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// moments tells which replies depend on the order in which a server executed calls
// that were under way together: the size of a file beside a WRITE that makes it
// longer. Such a difference has nothing to do with the server.
type moments struct {
	load    *workload.Workload
	relaxed bool
	changes map[int][]*plan.Op // by object
}

func newMoments(w *workload.Workload, relaxed bool) *moments {
	m := &moments{load: w, relaxed: relaxed, changes: map[int][]*plan.Op{}}
	for _, o := range w.Ops {
		if !o.Modifies {
			continue
		}
		for _, id := range w.Objects(o) {
			m.changes[id] = append(m.changes[id], o)
		}
	}
	for _, list := range m.changes {
		slices.SortStableFunc(list, func(a, b *plan.Op) int { return cmp.Compare(a.Time, b.Time) })
	}
	return m
}

// reason says why what a reply tells of an object depends on the moment; its Code is
// None if it does not. again is for a call that was sent once more, and so later.
func (m *moments) reason(o *plan.Op, again bool) (why verdict.Reason) {
	for _, id := range m.load.Objects(o) {
		list := m.changes[id]
		if len(list) == 0 || len(list) == 1 && list[0] == o {
			continue
		}
		switch {
		case again:
			why = verdict.Reason{Code: verdict.SentAgain}
		case m.relaxed:
			why = verdict.Reason{Code: verdict.AnyOrder}
		}
		m.together(o, id, func(c *plan.Op) bool {
			why = verdict.Reason{Code: verdict.Together, Was: o.What, Call: verdict.Call{ID: c.ID, XID: c.XID}}
			return false
		})
		if why.Code == verdict.Together {
			return why
		}
	}
	return why
}

// together calls f for calls that change an object and were under way together with an
// op, until it returns false.
func (m *moments) together(o *plan.Op, object int, f func(*plan.Op) bool) {
	list := m.changes[object]
	// Those that began before its end, the latest first: what is under way together
	// is close together.
	n := len(list)
	if o.Latency >= 0 {
		n, _ = slices.BinarySearchFunc(list, o.Time+o.Latency+1, func(c *plan.Op, t int64) int { return cmp.Compare(c.Time, t) })
	}
	for _, c := range slices.Backward(list[max(0, n-maxTogether):n]) {
		if c != o && (o.Latency < 0 || c.Latency < 0 || o.Time <= c.Time+c.Latency) && !f(c) {
			return
		}
	}
}

// maxTogether is how many calls before another one are looked at, so that a file with
// very many changes does not take time that grows with their square.
const maxTogether = 1024
