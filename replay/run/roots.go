package run

import (
	"errors"

	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// symbol is a handle or a state of the plan in one clone.
type symbol struct {
	clone int
	kind  plan.FieldKind
	ref   int
}

// root is the call because of which a symbol has no value here, and what became of it.
type root struct {
	call   verdict.Call
	status string
}

// roots are the calls because of which symbols have no value.
type roots struct {
	clones []*bindings.Clone
	of     map[symbol]root
}

// missing notes what an op that has ended with a status was to give and did not.
func (x *roots) missing(n *schedule.Entry, sent bool, status string, why []verdict.Reason) {
	for i := range n.Op.Binds {
		b := &n.Op.Binds[i]
		s := symbol{n.Clone, b.Kind, b.Ref}
		if _, known := x.of[s]; known || x.has(s) {
			continue
		}
		r := root{verdict.Call{ID: n.Op.ID, XID: n.Op.XID, What: n.Op.What}, status}
		if !sent && len(why) > 0 && why[0].Code == verdict.Follows {
			r = root{why[0].Call, why[0].Now}
		}
		x.of[s] = r
	}
}

// has reports whether a symbol has a value, or is of a kind that is not looked after here.
func (x *roots) has(s symbol) bool {
	w := x.clones[s.clone]
	switch s.kind {
	case plan.FieldHandle:
		return w.Objects[s.ref].Handle != nil || *w.HandleFor(nil, s.ref) != nil
	case plan.FieldState:
		return w.States[s.ref].Bound
	}
	return true
}

// follows names the call because of which another one has no value for a symbol.
func (x *roots) follows(clone int, err error) (verdict.Reason, bool) {
	var u *bindings.Unbound
	if !errors.As(err, &u) {
		return verdict.Reason{}, false
	}
	r, ok := x.of[symbol{clone, u.Kind, u.Ref}]
	return verdict.Reason{Code: verdict.Follows, Call: r.call, Now: r.status}, ok
}
