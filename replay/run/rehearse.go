package run

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/world"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// rehearsal encodes the calls of a workload with made-up values, as if the server had
// given all that the plan hopes for, and shows them to a guard.
type rehearsal struct {
	e      *engine
	c      call
	values rehearsed
}

func newRehearsal(load *workload.Workload, opt Options) *rehearsal {
	w := world.New(load, 1, opt.Tag)[0]
	w.Rehearse()
	g := guard.New(guard.Options{Write: opt.Write, Owner: world.OwnerPrefix(opt.Tag)})
	t := &load.Tables
	for i := range t.Objects {
		h := w.Objects[i+1].Handle
		switch {
		case t.Objects[i].Origin == plan.Above:
			g.Above(h)
		case load.Below(i + 1):
			g.Base(h)
		}
		if t.Objects[i].Base {
			w.Base = h
		}
	}
	if w.Root = []byte("root"); load.RootIsBase() {
		w.Root = w.Base
	}
	for i := range t.Clients {
		g.OwnClient(w.Clients[i+1].ID)
	}
	for i := range t.Sessions {
		g.OwnSession(w.Sessions[i+1].ID)
	}
	for i := range t.States {
		g.OwnState(world.RehearsedState(i + 1))
	}
	h := &rehearsal{e: &engine{opt: opt, load: load, creds: credentials(t), guard: g}}
	h.c.world = w
	h.values.Values = world.Values{World: w, Form: &h.c.form, Callback: h.e.probe.listener}
	return h
}

// op says why an op would not be sent; nil if it would.
func (h *rehearsal) op(o *plan.Op) error {
	h.c.form = world.Form{Op: o}
	h.c.form.Session, _ = world.SessionOf(o)
	if err := h.e.encode(&h.c, &h.values); err != nil {
		return err
	}
	return h.e.guard.Check(&h.c.Message)
}

// rehearsed also gives values to what only replies can tell.
type rehearsed struct {
	world.Values
	zeros []byte
}

// Append implements plan.Resolver.
func (r *rehearsed) Append(dst []byte, o *plan.Op, f *plan.Field) ([]byte, error) {
	switch f.Kind {
	case plan.FieldCookie, plan.FieldCtime:
		return xdr.AppendUint64(dst, 0), nil
	}
	return r.Values.Append(dst, o, f)
}

// Data implements plan.Resolver: as much as would be sent, whatever it is.
func (r *rehearsed) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p == nil:
		return nil, nil
	case p.Text != nil:
		return p.Text, nil
	case p.Length > world.MaxIO:
		return nil, fmt.Errorf("%d bytes in one call are too many", p.Length)
	}
	if uint64(len(r.zeros)) < uint64(p.Length) {
		r.zeros = make([]byte, p.Length)
	}
	return r.zeros[:p.Length], nil
}
