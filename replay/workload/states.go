package workload

import (
	"slices"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// UsesClient reports whether a session, a state or an owner of the plan belongs to a
// client.
func (w *Workload) UsesClient(id int) bool {
	t := &w.Tables
	return slices.ContainsFunc(t.Sessions, func(s plan.Session) bool { return s.Client == id }) ||
		slices.ContainsFunc(t.States, func(s plan.State) bool { return s.Client == id }) ||
		slices.ContainsFunc(t.Owners, func(o plan.Owner) bool { return o.Client == id })
}

// Example is an op whose connection and user serve for calls of a client that the
// plan does not have: one of that client, or else any of NFSv4. It is nil if there is
// none.
func (w *Workload) Example(client int) *plan.Op {
	if w.Streams() {
		if o := w.known.examples[client]; o != nil {
			return o
		}
		return w.known.examples[0]
	}
	var other *plan.Op
	for _, o := range w.Ops {
		if o.Compound == nil {
			continue
		}
		if other == nil {
			other = o
		}
		found := false
		if w.eachClient(o, func(c int) { found = found || c == client }); found {
			return o
		}
	}
	return other
}

// eachClient calls f for the clients that an op names.
func (w *Workload) eachClient(o *plan.Op, f func(client int)) {
	o.EachField(func(a *plan.Field) {
		if c := w.clientOf(a); c > 0 {
			f(c)
		}
	})
}

// clientOf is the client that a field names, directly or by a session or a state; 0
// if none.
func (w *Workload) clientOf(a *plan.Field) int {
	switch a.Kind {
	case plan.FieldSession:
		return w.Tables.Sessions[a.Ref-1].Client
	case plan.FieldClient:
		return a.Ref
	case plan.FieldState:
		return w.Tables.States[a.Ref-1].Client
	}
	return 0
}

// Minor is the minor version of NFSv4 that a session belongs to.
func (w *Workload) Minor(session int) uint32 {
	if c := w.Tables.Sessions[session-1].Client; c > 0 {
		return w.Tables.Clients[c-1].Minor
	}
	return 1
}

// Delegated reports whether a client was given a delegation.
func (w *Workload) Delegated(client int) bool {
	return slices.ContainsFunc(w.Tables.States, func(s plan.State) bool { return s.Kind == plan.DelegationState && s.Client == client })
}

// Delegates40 reports whether a client of NFSv4.0 was given a delegation.
func (w *Workload) Delegates40() bool {
	return slices.ContainsFunc(w.Tables.States, func(s plan.State) bool {
		return s.Kind == plan.DelegationState && s.Client > 0 && w.Tables.Clients[s.Client-1].Minor == 0
	})
}
