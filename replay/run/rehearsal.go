package run

import (
	"encoding/binary"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// rehearsal encodes the calls of a workload with made-up values, as if the server
// had given all that the plan hopes for, and shows them to a guard.
type rehearsal struct {
	e *engine
	f flight
	r rehearser
}

func newRehearsal(load *Workload, opt Options) *rehearsal {
	w := newWorld(load, 0, opt.Tag)
	g := guard.New(guard.Options{Write: opt.Write, Owner: ownerPrefix(opt.Tag)})
	t := &load.Tables
	for i := range t.Objects {
		h := fmt.Appendf(nil, "object %d", i+1)
		w.objects[i+1].handle = h
		switch {
		case t.Objects[i].Origin == plan.Above:
			g.Above(h)
		case load.below(i + 1):
			g.Base(h)
		}
		if t.Objects[i].Base {
			w.base = h
		}
	}
	e := &engine{opt: opt, load: load, creds: credentials(t), guard: g}
	if w.root = []byte("root"); e.rootIsBase() {
		w.root = w.base
	}
	for i := range t.Clients {
		c := &w.clients[i+1]
		c.id, c.bound = uint64(i+1), true
		g.OwnClient(c.id)
	}
	for i := range t.Sessions {
		var id [16]byte
		binary.BigEndian.PutUint64(id[:], uint64(i+1))
		w.bindSession(i+1, id, 1)
		g.OwnSession(id)
	}
	for i := range t.States {
		var other [12]byte
		binary.BigEndian.PutUint64(other[:], uint64(i+1))
		w.states[i+1] = state{other: other, seqid: 1, bound: true}
		g.OwnState(other)
	}
	h := &rehearsal{e: e}
	h.r.resolver = resolver{e, w, &h.f}
	h.f.world = w
	return h
}

// op says why an op would not be sent, nil if it would.
func (h *rehearsal) op(o *plan.Op) error {
	h.f.op, h.f.slot, h.f.note, h.f.rewrote = o, 0, "", false
	h.f.session = h.e.sessionOf(&h.f)
	if err := h.e.encode(&h.f, &h.r); err != nil {
		return err
	}
	return h.e.guard.Check(&h.f.Message)
}

// rehearser is a resolver for what only replies can tell.
type rehearser struct {
	resolver
	zeros []byte
}

// Append implements plan.Resolver.
func (r *rehearser) Append(dst []byte, o *plan.Op, f *plan.Field) ([]byte, error) {
	switch f.Kind {
	case plan.FieldCookie, plan.FieldCtime:
		return xdr.AppendUint64(dst, 0), nil
	}
	return r.resolver.Append(dst, o, f)
}

// Data implements plan.Resolver: as much as will be sent, whatever it is.
func (r *rehearser) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p == nil:
		return nil, nil
	case p.Text != nil:
		return p.Text, nil
	case p.Length > maxIO:
		return nil, fmt.Errorf("%d bytes in one call are too many", p.Length)
	}
	if uint64(len(r.zeros)) < uint64(p.Length) {
		r.zeros = make([]byte, p.Length)
	}
	return r.zeros[:p.Length], nil
}
