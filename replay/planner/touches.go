package planner

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// maxTouches is how many places a plan lists for one call. A call with more may have
// changed anything.
const maxTouches = 64

// touches derives what an incomplete call may have changed from the arguments that are there.
// reads says that it changed nothing; neither places nor reads means unknown.
func (x *toucher) touches(v *rpc.View) (list []plan.Touch, reads bool) {
	a, ok := v.Args().(*nfs4.CompoundArgs)
	if !ok {
		return x.touches3(v)
	}
	for i := range a.Ops {
		x.operation(a.Ops[i].Number, &a.Ops[i])
	}
	// The reply may still show the missing operations.
	if r, ok := v.Result().(*nfs4.CompoundRes); ok && v.ResultErr == nil && v.ReplyErr == nil && len(r.Ops) >= len(a.Ops) {
		for i := len(a.Ops); i < len(r.Ops); i++ {
			if e := ops.Operation(r.Ops[i].Number); e == nil || e.Class != ops.Nothing && e.Class != ops.Holds {
				return nil, false
			}
		}
	} else if a.Incomplete {
		return nil, false
	}
	if x.any || len(x.list) > maxTouches {
		return nil, false
	}
	return x.list, len(x.list) == 0
}

// touches3 is touches for a procedure other than COMPOUND.
func (x *toucher) touches3(v *rpc.View) ([]plan.Touch, bool) {
	tx := v.Tx
	e := ops.Procedure(tx.Program, tx.Version, tx.Procedure)
	switch {
	case e == nil:
		return nil, false
	case e.Class == ops.Nothing:
		return nil, true
	case v.Args() == nil:
		return nil, false
	}
	var act ops.Act
	e.Act(v.Args(), &act)
	// The range is known if what follows it is there.
	if w, ok := v.Args().(*nfs3.WRITE3args); ok && w.Data.Length == 0 {
		act.Ranged = false
	}
	x.act(&act)
	if x.any {
		return nil, false
	}
	return x.list, false
}

// toucher collects the places that a call changes. It only looks: unknown objects are not
// prepared for a call that is not replayed.
type toucher struct {
	space          *space
	server         int
	current, saved *obj
	list           []plan.Touch
	any            bool
}

func (x *toucher) operation(number uint32, op *nfs4.Op) {
	e := ops.Operation(number)
	if e == nil {
		x.any = true
		return
	}
	var act ops.Act
	e.Act(op.Body, &act)
	if act.Class == ops.Changes {
		x.act(&act)
	}
	s := x.space
	switch e.Effect {
	case ops.Puts:
		x.current = nil
		if a, ok := op.Body.(*nfs4.PUTFH4args); ok {
			x.current = s.byHandle[handleKey{x.server, string(a.Object)}].real()
		}
	case ops.PutsRoot:
		x.current = s.roots[x.server].real()
	case ops.Descends:
		x.current = x.below(&act)
	case ops.Saves:
		x.saved = x.current
	case ops.Restores:
		x.current = x.saved
	case ops.Keeps:
	default:
		x.current = nil
	}
}

// below is what a name leads to, if that is known.
func (x *toucher) below(act *ops.Act) *obj {
	p := act.Subject()
	if p == nil || !p.Named || len(p.Name) == 0 || x.current == nil {
		return nil
	}
	if n := x.space.names[nameKey{x.current, string(p.Name)}]; n != nil {
		return n.obj.real()
	}
	return nil
}

// act adds the places of a procedure or operation.
func (x *toucher) act(act *ops.Act) {
	places := act.Places()
	if len(places) == 0 {
		x.any = true
		return
	}
	for i := range places {
		p := &places[i]
		var o *obj
		switch p.File {
		case ops.Given:
			o = x.space.byHandle[handleKey{x.server, string(p.Handle)}]
		case ops.Current:
			o = x.current
		case ops.Saved:
			o = x.saved
		}
		if o = o.real(); o == nil {
			x.any = true
			return
		}
		t := plan.Touch{Object: x.space.ref(o), Named: p.Named}
		if p.Named {
			t.Name, t.NameBytes = text(string(bytes.Clone(p.Name)))
		}
		if act.Ranged && p == act.Subject() {
			t.Ranged, t.Offset, t.Length = true, act.Offset, act.Count
		}
		x.list = append(x.list, t)
	}
}
