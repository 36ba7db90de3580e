package bindings

import (
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Omitted says why an op has nothing to do on this server; None if it has.
func (w *Clone) Omitted(o *plan.Op) verdict.Code {
	if w.asksAgain(o) {
		return verdict.NotAsked
	}
	if o.Compound == nil {
		return verdict.None
	}
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		e := ops.Operation(c.Op)
		if e == nil {
			continue
		}
		if e.Effect == ops.PutsRoot && w.NoRoot {
			return verdict.NoRoot
		}
		if ref := workload.StateOf(c); ref != 0 {
			if why := w.idle(e.Use, ref); why != verdict.None {
				return why
			}
		}
	}
	return verdict.None
}

// idle says why an operation that uses a state has nothing to do; None if it has.
func (w *Clone) idle(use ops.Use, ref int) verdict.Code {
	s := &w.States[ref]
	switch use {
	case ops.Returns, ops.Frees, ops.Asks:
		switch {
		case s.Closed && use == ops.Returns:
			return verdict.Returned
		case s.Open && w.Latest(ref):
		case s.Open:
			return verdict.NoDelegation // an OPEN of the plan has the same state id, and its CLOSE ends both
		case s.Refused, !s.Bound && w.load.Tables.States[ref-1].Kind == plan.DelegationState:
			return verdict.NoDelegation
		}
	case ops.Closes, ops.Narrows:
		if s.Refused {
			return verdict.NoState
		}
	case ops.Confirms:
		if s.Bound && !s.Unconfirmed {
			return verdict.NoConfirm
		}
	}
	return verdict.None
}

// Absent reports whether an op that cannot be sent for want of a value has nothing to
// do here: it asks about what lies above the base, or uses a handle that the captured
// server had refused.
func (w *Clone) Absent(o *plan.Op, u *Unbound) bool {
	if u.Kind != plan.FieldHandle || u.Ref <= 0 {
		return false
	}
	switch w.load.Tables.Objects[u.Ref-1].Origin {
	case plan.Above:
		return !o.Modifies
	case plan.Stale:
		return true
	}
	return false
}
