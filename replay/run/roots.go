package run

import (
	"errors"

	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
)

// symbol is a handle or a state of the plan in one world.
type symbol struct {
	world int
	kind  plan.FieldKind
	ref   int
}

// root is the call because of which a symbol has no value here, and what became of it.
type root struct {
	call   verdict.Call
	status string
}

// missing notes what an op that has ended was to give and did not. c is nil if it was not sent.
func (e *engine) missing(n *schedule.Entry, c *call, why []verdict.Reason) {
	for i := range n.Op.Binds {
		b := &n.Op.Binds[i]
		s := symbol{n.World, b.Kind, b.Ref}
		if _, known := e.roots[s]; known || e.has(s) {
			continue
		}
		r := root{verdict.Call{ID: n.Op.ID, XID: n.Op.XID, What: n.Op.What}, "not sent"}
		switch {
		case c != nil:
			r.status = c.status
		case len(why) > 0 && why[0].Code == verdict.Follows:
			r = root{why[0].Call, why[0].Now}
		}
		if e.roots == nil {
			e.roots = map[symbol]root{}
		}
		e.roots[s] = r
	}
}

// has reports whether a symbol has a value, or is of a kind that is not looked after here.
func (e *engine) has(s symbol) bool {
	w := e.worlds[s.world]
	switch s.kind {
	case plan.FieldHandle:
		return w.Objects[s.ref].Handle != nil
	case plan.FieldState:
		return w.States[s.ref].Bound
	}
	return true
}

// follows names the call because of which another one has no value for a symbol.
func (e *engine) follows(c *call, err error) (verdict.Reason, bool) {
	var u *bindings.Unbound
	if !errors.As(err, &u) {
		return verdict.Reason{}, false
	}
	r, ok := e.roots[symbol{c.world.Number, u.Kind, u.Ref}]
	return verdict.Reason{Code: verdict.Follows, Call: r.call, Now: r.status}, ok
}
