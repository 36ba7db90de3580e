package planner

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// facts collects what an executor has to know of the ops before it reads them.
type facts struct {
	root     bool
	examples map[int]plan.Example // by client; 0: any of NFSv4
}

// add takes in an op.
func (f *facts) add(s *states, o *plan.Op) {
	if o.Compound == nil {
		return
	}
	if f.examples == nil {
		f.examples = map[int]plan.Example{}
	}
	example := func(client int) {
		if _, ok := f.examples[client]; !ok {
			f.examples[client] = plan.Example{Client: client, Connection: o.Connection, Credential: o.Credential}
		}
	}
	example(0)
	o.EachField(func(a *plan.Field) {
		if c := s.clientOf(a); c != nil {
			example(c.ID)
		}
	})
	f.root = f.root || slices.ContainsFunc(o.Compound.Ops, func(c plan.CompoundOp) bool { return nfs4.NfsOpnum4(c.Op) == nfs4.OP_PUTROOTFH })
}

// clientOf is the client that a field names, directly or by a session or a state; nil if none.
func (s *states) clientOf(a *plan.Field) *client {
	switch {
	case a.Ref <= 0:
	case a.Kind == plan.FieldSession && a.Ref <= len(s.sessIn):
		return s.sessIn[a.Ref-1].client
	case a.Kind == plan.FieldClient && a.Ref <= len(s.clientsIn):
		return s.clientsIn[a.Ref-1]
	case a.Kind == plan.FieldState && a.Ref <= len(s.statesIn):
		return s.statesIn[a.Ref-1].client
	}
	return nil
}

// header is what is written. All objects have their numbers.
func (f *facts) header(s *space) *plan.Facts {
	h := &plan.Facts{Root: f.root}
	for _, e := range f.examples {
		h.Examples = append(h.Examples, e)
	}
	slices.SortFunc(h.Examples, func(a, b plan.Example) int { return cmp.Compare(a.Client, b.Client) })
	for i, o := range s.byID {
		o = o.real()
		up := o.parent.real()
		if o.isBase {
			up = s.up[o].real()
		}
		if up != nil && up != o && up.origin == plan.Above && (o.isBase || o.origin == plan.Above) {
			h.Above = append(h.Above, plan.Ascent{Object: i + 1, Parent: s.ref(up)})
		}
	}
	return h
}
