package run

import (
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/prepare"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// rehearsal encodes the calls of a workload with made-up values and shows them to a guard. It
// assumes that the server answers as the captured one did, provided that the earlier calls were
// sent and their objects exist.
type rehearsal struct {
	opt    Options
	load   *workload.Workload
	codec  codec
	guard  *guard.Guard
	c      call
	values rehearsed
	done   map[int]bool // ops that were sent, with what they need: whether, of those that make an object
	// prepared: objects from before the capture exist.
	prepared bool
}

func newRehearsal(load *workload.Workload, opt Options, prepared bool) *rehearsal {
	w := bindings.New(load, 1, opt.Tag)[0]
	g := guard.New(guard.Options{Write: opt.Write, Owner: bindings.OwnerPrefix(opt.Tag), LockHost: bindings.LockPrefix(opt.Tag)})
	t := &load.Tables
	for _, h := range prepare.Rehearse(load, w, opt.Directory, opt.Clones > 1 && !opt.Shared) {
		g.Above(h)
	}
	g.Base(w.Base)
	for i := range t.Objects {
		if load.Below(i + 1) {
			g.Base(bindings.RehearsedHandle(i + 1))
		}
	}
	for i := range t.Clients {
		g.OwnClient(uint64(i + 1))
	}
	all := bindings.New(load, 1, opt.Tag)[0]
	all.Rehearse()
	for i := range t.Sessions {
		g.OwnSession(all.Sessions[i+1].ID)
	}
	for i := range t.States {
		g.OwnState(bindings.RehearsedState(i + 1))
	}
	h := &rehearsal{opt: opt, load: load, codec: codec{creds: credentials(t)}, guard: g, done: map[int]bool{}, prepared: prepared}
	for i := range t.Objects {
		if by := t.Objects[i].CreatedBy; by > 0 {
			h.done[by] = false
		}
	}
	h.c.clone = w
	h.values.Values = bindings.Values{Clone: w, Form: &h.c.form, Callback: h.codec.callback}
	w.RehearseStart(h.there)
	return h
}

// there reports whether an object exists after the calls so far.
func (h *rehearsal) there(id int) bool {
	for steps := 0; id > 0 && steps <= len(h.load.Tables.Objects); steps++ {
		switch o := &h.load.Tables.Objects[id-1]; {
		case o.Base:
			return true
		case o.Origin == plan.Created:
			return h.done[o.CreatedBy]
		case o.Origin == plan.Above:
			return h.c.clone.Objects[id].Handle != nil
		case o.Origin == plan.Stale || !h.prepared:
			return false
		default:
			id = o.Parent // which may be missing
		}
	}
	return true
}

// op returns the reason why an op would not be sent; nil if it would be.
func (h *rehearsal) op(o *plan.Op) error {
	if o.Modifies && !h.opt.Write {
		return &guard.Refused{Reason: guard.ReadOnly}
	}
	if why := h.c.clone.Omitted(o); why != verdict.None {
		return errors.New(report.Sentence(&verdict.Reason{Code: why}))
	}
	h.c.form = bindings.Form{Op: o}
	h.c.form.Session, _ = bindings.SessionOf(o)
	if err := h.codec.encode(&h.c, &h.values); err != nil {
		return h.unbuilt(o, err)
	}
	if err := h.guard.Check(&h.c.Message); err != nil {
		return err
	}
	h.answered(o)
	return nil
}

// delegated reports whether an op has nothing to do unless the server gives a delegation.
func (h *rehearsal) delegated(o *plan.Op) bool {
	w := h.c.clone
	for i := 0; o.Compound != nil && i < len(o.Compound.Ops); i++ {
		ref := workload.StateOf(&o.Compound.Ops[i])
		if ref == 0 || h.load.Tables.States[ref-1].Kind != plan.DelegationState {
			continue
		}
		was := w.States[ref]
		w.States[ref] = bindings.State{Refused: true}
		without := w.Omitted(o)
		w.States[ref] = was
		if without != verdict.None {
			return true
		}
	}
	return false
}

// answered applies the effect of the reply, if the op's names exist.
func (h *rehearsal) answered(o *plan.Op) {
	found := true
	o.EachField(func(f *plan.Field) {
		if f.Kind == plan.FieldName && f.Ref > 0 && h.load.Tables.Objects[f.Ref-1].CreatedBy != o.ID && !h.there(f.Ref) {
			found = false
		}
	})
	if found {
		if _, makes := h.done[o.ID]; makes {
			h.done[o.ID] = true
		}
		h.c.clone.RehearseReply(o, h.there)
	}
}

// unbuilt says in general terms why a call could not be encoded, so that equal reasons can
// be counted.
func (h *rehearsal) unbuilt(o *plan.Op, err error) error {
	var u *bindings.Unbound
	switch {
	case !errors.As(err, &u):
		return err
	case h.c.clone.Absent(o, u):
		return errors.New("it is about a directory above the base, or a handle that the captured server had refused: nothing to do")
	case u.Kind == plan.FieldHandle && h.load.Tables.Objects[u.Ref-1].Origin == plan.Before:
		return errors.New("its file or directory was there before the capture, and is not made here")
	case u.Kind == plan.FieldHandle:
		return errors.New("its file or directory comes from a call that is not sent, or fails")
	case u.Kind == plan.FieldState:
		return errors.New("its open or lock comes from a call that is not sent, or fails")
	case u.Kind == plan.FieldSession || u.Kind == plan.FieldClient:
		return errors.New("its client id or session comes from a call that is not sent, or fails")
	}
	return err
}

// rehearsed also makes up the values that only replies can provide.
type rehearsed struct {
	bindings.Values
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

// Data implements plan.Resolver: the right length, with any content.
func (r *rehearsed) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p == nil:
		return nil, nil
	case p.Text != nil:
		return p.Text, nil
	case p.Length > bindings.MaxIO:
		return nil, fmt.Errorf("%d bytes in one call are too many", p.Length)
	}
	if uint64(len(r.zeros)) < uint64(p.Length) {
		r.zeros = make([]byte, p.Length)
	}
	return r.zeros[:p.Length], nil
}
