package bindings

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Rehearse gives every symbol a value that no server has given.
func (w *Clone) Rehearse() {
	for i := 1; i < len(w.Objects); i++ {
		w.Objects[i].Handle = RehearsedHandle(i)
	}
	for i := 1; i < len(w.Clients); i++ {
		w.rehearse(plan.FieldClient, i)
	}
	for i := 1; i < len(w.Sessions); i++ {
		w.rehearse(plan.FieldSession, i)
	}
	for i := 1; i < len(w.States); i++ {
		w.rehearse(plan.FieldState, i)
	}
}

// RehearseStart gives values to what a run has before its first call: objects that are
// there, and clients, sessions and states from before the capture.
func (w *Clone) RehearseStart(there func(object int) bool) {
	t := &w.load.Tables
	for i := range t.Objects {
		if t.Objects[i].Origin == plan.Before && w.Objects[i+1].Handle == nil && there(i+1) {
			w.Objects[i+1].Handle = RehearsedHandle(i + 1)
		}
	}
	for i := range t.Clients {
		if t.Clients[i].DefinedBy == 0 && w.load.UsesClient(i+1) {
			w.rehearse(plan.FieldClient, i+1)
		}
	}
	for i := range t.Sessions {
		if t.Sessions[i].DefinedBy == 0 && w.Clients[t.Sessions[i].Client].Bound {
			w.rehearse(plan.FieldSession, i+1)
		}
	}
	for i := range t.States {
		s := &t.States[i]
		switch {
		case s.DefinedBy != 0:
		case s.Object != 0 && w.Objects[s.Object].Handle != nil && w.Clients[s.Client].Bound &&
			(s.Kind == plan.OpenState || s.Kind == plan.UnknownState || s.Kind == plan.LockState):
			w.rehearse(plan.FieldState, i+1)
		default:
			w.States[i+1].Refused = true
		}
	}
}

// RehearseReply does what a reply like the captured one would do. there tells which
// objects exist by then.
func (w *Clone) RehearseReply(o *plan.Op, there func(object int) bool) {
	for i := range o.Binds {
		b := &o.Binds[i]
		switch b.Kind {
		case plan.FieldHandle:
			if there(b.Ref) && w.Objects[b.Ref].Handle == nil {
				w.Objects[b.Ref].Handle = RehearsedHandle(b.Ref)
			}
		case plan.FieldState:
			if id := w.load.Tables.States[b.Ref-1].Object; id == 0 || there(id) {
				w.rehearse(b.Kind, b.Ref)
				w.States[b.Ref].Unconfirmed = true // a captured OPEN_CONFIRM was asked for
			}
		default:
			w.rehearse(b.Kind, b.Ref)
		}
	}
	if o.Compound == nil || o.Expect == nil || o.Expect.Status != 0 {
		return
	}
	for i := range o.Compound.Ops {
		for k := range o.Compound.Ops[i].Args {
			w.used(&o.Compound.Ops[i].Args[k], o.Compound.Ops[i].Op, uint32(nfs4.NFS4_OK))
		}
	}
}

// rehearse gives one symbol a value.
func (w *Clone) rehearse(k plan.FieldKind, ref int) {
	switch k {
	case plan.FieldClient:
		w.Clients[ref].ID, w.Clients[ref].Bound = uint64(ref), true
	case plan.FieldSession:
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], uint64(ref))
		w.bindSession(ref, id, 1)
	case plan.FieldState:
		w.States[ref] = State{other: RehearsedState(ref), seqid: 1, Bound: true}
	}
}

// RehearsedHandle is the handle that a rehearsal gives an object.
func RehearsedHandle(id int) []byte { return fmt.Appendf(nil, "object %d", id) }

// RehearsedState is what a rehearsal gives a state.
func RehearsedState(ref int) (other [12]byte) {
	binary.BigEndian.PutUint64(other[:], uint64(ref))
	return other
}
