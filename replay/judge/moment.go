package judge

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// moments finds the replies that depend on the order in which a server executed concurrent calls:
// for example the size of a file during a WRITE that extends it. Such a difference is not the
// server's fault.
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

// reason is the reason why what a reply says about an object depends on the order of concurrent
// calls; its Code is None if it does not. again says that the call was sent again, and so later.
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

// together calls f for calls that change an object and were in flight together with an op, until
// f returns false.
func (m *moments) together(o *plan.Op, object int, f func(*plan.Op) bool) {
	list := m.changes[object]
	// Those that began before its end, the latest first: concurrent calls are close together.
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

// maxTogether is how many earlier calls are examined for each one, so that the time for a file
// with very many changes does not grow with their square.
const maxTogether = 1024
