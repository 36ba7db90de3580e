package bindings

import (
	"errors"
	"fmt"

	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// MaxIO is how many bytes of data one call may carry.
const MaxIO = 64 << 20

// Form is the form in which one call goes out.
type Form struct {
	Op            *plan.Op
	Session, Slot int  // Slot is -1 outside of sessions
	Newest        bool // state ids as they are now, and not as far behind as captured
	// Substituted says that another open of the file serves for a delegation, or a state, that this server has not given.
	// It may be closed meanwhile. Values set it.
	Substituted bool

	// Adapted says what the server lacks, for which Rewritten has put something else.
	Adapted Lacks
	// Less says that attributes which the captured client set were left out.
	Less bool

	// Note says how the call differs from the captured one, RootReplaced that
	// PUTROOTFH has become PUTFH. Rewritten and Values set them.
	Note         verdict.Code
	RootReplaced bool
	// Closes says that CLOSE replaces DELEGRETURN.
	Closes bool
}

// Values gives symbols their values for one call. It implements plan.Resolver.
type Values struct {
	Clone    *Clone
	Form     *Form
	Memory   Memory
	Callback Callback
}

// Memory lends memory for data.
type Memory interface {
	// Borrow returns n bytes that stay until the call is over.
	Borrow(n int) ([]byte, error)
}

// Callback is where the run listens for calls of the server.
type Callback interface {
	// AppendLocation appends a cb_location.
	AppendLocation(dst []byte) []byte
}

// Unbound says that a symbol has no value, because the call that would have given it
// one failed or was not sent.
type Unbound struct {
	Kind plan.FieldKind
	Ref  int
	why  string
}

func (e *Unbound) Error() string {
	if e.why != "" {
		return e.why
	}
	return fmt.Sprintf("%s %d has no value on this server", e.Kind, e.Ref)
}

// Append implements plan.Resolver.
func (v *Values) Append(dst []byte, o *plan.Op, f *plan.Field) ([]byte, error) {
	w := v.Clone
	switch f.Kind {
	case plan.FieldName:
		return xdr.AppendOpaque(dst, w.name(f)), nil
	case plan.FieldHandle:
		return w.appendHandle(dst, o, f)
	case plan.FieldState:
		return v.appendState(dst, f)
	case plan.FieldClient, plan.FieldVerifier, plan.FieldOwnerID, plan.FieldConfirm, plan.FieldCreateSeq:
		return w.appendClient(dst, f)
	case plan.FieldSession:
		s := &w.Sessions[f.Ref]
		if !s.Bound {
			return dst, &Unbound{Kind: f.Kind, Ref: f.Ref}
		}
		return append(dst, s.ID[:]...), nil
	case plan.FieldSequence, plan.FieldSlot, plan.FieldHighest:
		return v.appendSlot(dst, f)
	case plan.FieldSeqid:
		return xdr.AppendUint32(dst, w.owners[f.Ref]), nil
	case plan.FieldCookie:
		return w.appendCookie(dst, f)
	case plan.FieldLockHost:
		return xdr.AppendOpaque(dst, w.LockOwner(f.Ref).Host), nil
	case plan.FieldLockOwner:
		return xdr.AppendOpaque(dst, w.LockOwner(f.Ref).Name), nil
	case plan.FieldSvid:
		return xdr.AppendUint32(dst, uint32(w.LockOwner(f.Ref).Svid)), nil
	case plan.FieldCookieVerf:
		var verifier [8]byte
		if l := w.cookies[f.Op]; l != nil {
			verifier = l.verifier
		}
		return append(dst, verifier[:]...), nil
	case plan.FieldCtime:
		b := &w.Objects[f.Ref]
		if !b.timed {
			return dst, &Unbound{Kind: f.Kind, Ref: f.Ref, why: "the object's time of last change is not known"}
		}
		return append(dst, b.ctime[:]...), nil
	case plan.FieldCallback:
		return v.Callback.AppendLocation(dst), nil
	}
	return dst, fmt.Errorf("%w %q", plan.ErrField, f.Kind)
}

// name is a component. The base, and what lies above it, have their live names.
func (w *Clone) name(f *plan.Field) []byte {
	if n, ok := w.Names[f.Ref]; ok && f.Ref != 0 {
		return []byte(n)
	}
	return f.Opaque()
}

func (w *Clone) appendHandle(dst []byte, of *plan.Op, f *plan.Field) ([]byte, error) {
	if h := *w.HandleFor(of.Compound, f.Ref); h != nil {
		return xdr.AppendOpaque(dst, h), nil
	}
	o := &w.load.Tables.Objects[f.Ref-1]
	u := &Unbound{Kind: f.Kind, Ref: f.Ref}
	switch o.Origin {
	case plan.Above:
		u.why = "it lies above the base, which this server does not have"
	case plan.Stale:
		u.why = "the captured server refused its handle, too"
	default:
		u.why = fmt.Sprintf("object %d (%s) has no handle on this server", f.Ref, o.Path)
	}
	return dst, u
}

func (w *Clone) appendClient(dst []byte, f *plan.Field) ([]byte, error) {
	c := &w.Clients[f.Ref]
	switch f.Kind {
	case plan.FieldVerifier:
		return append(dst, c.verifier[:]...), nil
	case plan.FieldOwnerID:
		return xdr.AppendOpaque(dst, c.owner), nil
	case plan.FieldConfirm:
		return append(dst, c.confirm[:]...), nil
	case plan.FieldCreateSeq:
		return xdr.AppendUint32(dst, c.createSeq), nil
	}
	if !c.Bound {
		u := &Unbound{Kind: f.Kind, Ref: f.Ref}
		if w.load.Tables.Clients[f.Ref-1].DefinedBy == 0 {
			u.why = fmt.Sprintf("client %d was there before the capture, which does not show how it came to its client id: this server knows no such client", f.Ref)
		}
		return dst, u
	}
	return xdr.AppendUint64(dst, c.ID), nil
}

// appendState appends a state id. Where this server gave no delegation, an open of the
// same file serves, or the anonymous state id.
func (v *Values) appendState(dst []byte, f *plan.Field) ([]byte, error) {
	s := &v.Clone.States[f.Ref]
	t := &v.Clone.load.Tables.States[f.Ref-1]
	if !s.Bound || s.Closed && t.Kind == plan.DelegationState && v.Form.use(f) == ops.Accesses {
		if t.Kind != plan.DelegationState && !s.Refused {
			return dst, &Unbound{Kind: f.Kind, Ref: f.Ref}
		}
		if v.Form.Note = verdict.Undelegated; t.Kind != plan.DelegationState {
			v.Form.Note = verdict.Stateless
		}
		// For access to a file the anonymous one serves, whatever becomes of opens at
		// the same time.
		if v.Form.use(f) == ops.Accesses {
			return append(dst, make([]byte, 16)...), nil
		}
		if s = v.Clone.substitute(t); s == nil {
			return append(dst, make([]byte, 16)...), nil
		}
		v.Form.Substituted = true
	}
	seqid := s.seqid - uint32(f.Value)
	if v.Form.Newest || f.Value >= uint64(s.seqid) {
		// It may be younger than in the capture: reclaimed after a restart.
		seqid = s.seqid
	}
	if f.Zero {
		seqid = 0
	}
	dst = xdr.AppendUint32(dst, seqid)
	return append(dst, s.other[:]...), nil
}

// use is what the operation that a state id belongs to does with it.
func (f *Form) use(a *plan.Field) ops.Use {
	c := f.Op.Compound
	if c == nil {
		return ops.NoUse
	}
	for i := range c.Ops {
		for k := range c.Ops[i].Args {
			if e := ops.Operation(c.Ops[i].Op); &c.Ops[i].Args[k] == a && e != nil {
				return e.Use
			}
		}
	}
	return ops.NoUse
}

// substitute finds an open of the same file by the same client.
func (w *Clone) substitute(t *plan.State) *State {
	for i := range w.load.Tables.States {
		o := &w.load.Tables.States[i]
		if o.Kind == plan.OpenState && o.Object == t.Object && o.Client == t.Client && w.States[i+1].Bound && !w.States[i+1].Closed {
			return &w.States[i+1]
		}
	}
	return nil
}

func (v *Values) appendSlot(dst []byte, f *plan.Field) ([]byte, error) {
	s, slot := &v.Clone.Sessions[f.Ref], v.Form.Slot
	if v.Form.Session != f.Ref || slot < 0 || slot >= len(s.slots) {
		return dst, errors.New("a call in no slot")
	}
	switch f.Kind {
	case plan.FieldSequence:
		return xdr.AppendUint32(dst, s.slots[slot].seq), nil
	case plan.FieldSlot:
		return xdr.AppendUint32(dst, uint32(slot)), nil
	}
	return xdr.AppendUint32(dst, min(uint32(len(s.slots)-1), max(uint32(f.Value), uint32(slot)))), nil
}

func (w *Clone) appendCookie(dst []byte, f *plan.Field) ([]byte, error) {
	l := w.cookies[f.Op]
	if l == nil && len(w.order) > 0 && f.Op < w.order[0] {
		return dst, &Unbound{Kind: f.Kind, Ref: f.Op, why: fmt.Sprintf("call %d, whose listing this one continues, was too long ago: the latest %d entries are kept", f.Op, maxEntries)}
	}
	if l == nil || len(l.cookies) == 0 {
		return dst, &Unbound{Kind: f.Kind, Ref: f.Op, why: fmt.Sprintf("call %d, whose listing this one continues, gave no entries", f.Op)}
	}
	i := len(l.cookies) - 1
	if !f.Zero && f.Value < uint64(i) {
		i = int(f.Value)
	}
	return xdr.AppendUint64(dst, l.cookies[i]), nil
}

// Data implements plan.Resolver.
func (v *Values) Data(_ *plan.Op, f *plan.Field) ([]byte, error) {
	p := f.Data
	switch {
	case p == nil:
		return nil, nil
	case p.Text != nil:
		return p.Text, nil
	case p.Length > MaxIO:
		return nil, fmt.Errorf("%d bytes in one call are too many", p.Length)
	}
	b, err := v.Memory.Borrow(int(p.Length))
	if err != nil {
		return nil, err
	}
	return b, v.Clone.load.Payload(b, p)
}
