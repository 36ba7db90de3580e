package world

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Omitted says why an op has nothing to do on this server; None if it has.
func (w *World) Omitted(o *plan.Op) verdict.Code {
	if o.Compound == nil {
		return verdict.None
	}
	for i := range o.Compound.Ops {
		c := &o.Compound.Ops[i]
		op := nfs4.NfsOpnum4(c.Op)
		if op == nfs4.OP_PUTROOTFH && w.NoRoot {
			return verdict.NoRoot
		}
		if ref := workload.StateOf(c); ref != 0 {
			if why := w.idle(op, ref); why != verdict.None {
				return why
			}
		}
	}
	return verdict.None
}

// idle says why an operation on a state has nothing to do; None if it has.
func (w *World) idle(op nfs4.NfsOpnum4, ref int) verdict.Code {
	s := &w.States[ref]
	switch op {
	case nfs4.OP_DELEGRETURN, nfs4.OP_FREE_STATEID, nfs4.OP_TEST_STATEID:
		switch {
		case s.Closed && op == nfs4.OP_DELEGRETURN:
			return verdict.Returned
		case s.Refused, !s.Bound && w.load.Tables.States[ref-1].Kind == plan.DelegationState:
			return verdict.NoDelegation
		}
	case nfs4.OP_CLOSE, nfs4.OP_OPEN_DOWNGRADE, nfs4.OP_LOCKU:
		if s.Refused {
			return verdict.NoState
		}
	case nfs4.OP_OPEN_CONFIRM:
		if s.Bound && !s.Unconfirmed {
			return verdict.NoConfirm
		}
	}
	return verdict.None
}

// Absent reports whether an op that cannot be sent for want of a value has nothing to
// do here: it asks about what lies above the base, or uses a handle that the captured
// server had refused.
func (w *World) Absent(o *plan.Op, u *Unbound) bool {
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
