package bindings

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Step is what an operation of op Op has done to an open or a lock.
type Step struct {
	Op   int
	Kind StepKind
	// Access and Deny belong to Opened and Narrowed.
	Access, Deny uint32
	// Type, Offset and Length belong to Locked and Unlocked; Open is the state that a first lock
	// was made with, 0 if it was not the first.
	Type           nfs4.NfsLockType4
	Open           int
	Offset, Length uint64
}

// StepKind is what a step does.
type StepKind uint8

// Kinds of steps.
const (
	Opened   StepKind = iota // OPEN
	Narrowed                 // OPEN_DOWNGRADE
	Locked                   // LOCK
	Unlocked                 // LOCKU
)

// maxSteps is how many steps of a state are remembered.
const maxSteps = 256

// step notes what operation at of an op does to a state.
func (w *Clone) step(ref int, o *plan.Op, at int) {
	if o.ID == 0 || o.Compound == nil || at < 0 || at >= len(o.Compound.Ops) {
		return // not of the plan
	}
	a, ok := w.args.Of(o).(*nfs4.CompoundArgs)
	if !ok || at >= len(a.Ops) {
		return
	}
	x := Step{Op: o.ID}
	switch a := a.Ops[at].Body.(type) {
	case *nfs4.OPEN4args:
		x.Kind, x.Access, x.Deny = Opened, uint32(a.ShareAccess), uint32(a.ShareDeny)
	case *nfs4.OPEN_DOWNGRADE4args:
		x.Kind, x.Access, x.Deny = Narrowed, uint32(a.ShareAccess), uint32(a.ShareDeny)
	case *nfs4.LOCK4args:
		x.Kind, x.Type, x.Offset, x.Length = Locked, a.Locktype, a.Offset, a.Length
		if a.Locker.NewLockOwner {
			x.Open = workload.StateOf(&o.Compound.Ops[at])
		}
	case *nfs4.LOCKU4args:
		x.Kind, x.Type, x.Offset, x.Length = Unlocked, a.Locktype, a.Offset, a.Length
	default:
		return
	}
	s := &w.States[ref]
	if len(s.Steps) < maxSteps {
		s.Steps = append(s.Steps, x)
	} else {
		s.More = true
	}
}
