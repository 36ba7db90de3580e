package bindings

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// Learn takes in what a reply gives a value to.
func (w *Clone) Learn(o *plan.Op, res xdr.Message) {
	if c, ok := res.(*nfs4.CompoundRes); ok && o.Compound != nil { // it may be in one raw field
		w.LearnStates(o, c)
		w.supports(c)
		w.refuses(o, c)
	} else if w.guards {
		w.learnCtime(o, res)
	}
	for i := range o.Binds {
		w.bind(o, &o.Binds[i], res)
	}
	w.noteUnknownOpen(o, res)
	if w.listings == nil || w.listings[o.ID] {
		if l := cookiesOf(res); l != nil {
			w.list(o.ID, l)
		}
	}
}

// noteUnknownOpen notes an open that the plan has no name for and never closes: the capture lacks its reply, or the captured server gave only
// a delegation.
func (w *Clone) noteUnknownOpen(o *plan.Op, res xdr.Message) {
	c, ok := res.(*nfs4.CompoundRes)
	if !ok || o.ID == 0 || o.Expect != nil && o.Expect.Status != 0 {
		return
	}
	for i := range c.Ops {
		open, ok := c.Ops[i].Body.(*nfs4.OPEN4res)
		if !ok || open.Status != nfs4.NFS4_OK {
			continue
		}
		if _, known := w.byOther[open.Resok4.Stateid.Other]; known {
			continue
		}
		if slices.ContainsFunc(o.Binds, func(b plan.Bind) bool { return b.At == i && b.State == plan.DelegationState }) {
			continue // the run closes it, and keeps the delegation
		}
		if session, _ := SessionOf(o); session > 0 {
			w.Clients[w.load.Tables.Sessions[session-1].Client].unknownOpen = true
		}
	}
}

// Unended reports whether a client has state here that the plan has not ended before, or does not know.
func (w *Clone) Unended(client int) bool {
	if client <= 0 || client >= len(w.Clients) {
		return false
	}
	if w.Clients[client].unknownOpen {
		return true
	}
	for i := range w.load.Tables.States {
		if s := &w.States[i+1]; w.load.Tables.States[i].Client == client && s.Bound && !s.Closed {
			return true
		}
	}
	return false
}

// LearnStates follows sequence numbers and state ids through a COMPOUND, whether or
// not the plan binds them.
func (w *Clone) LearnStates(o *plan.Op, c *nfs4.CompoundRes) {
	for i := range c.Ops {
		code, _, _ := c.Ops[i].Status()
		if i < len(o.Compound.Ops) {
			if code == 0 {
				w.stepped(o, i)
			}
			for k := range o.Compound.Ops[i].Args {
				w.used(&o.Compound.Ops[i].Args[k], c.Ops[i].Number, code)
			}
		}
		if code != 0 {
			continue
		}
		if e := ops.Operation(c.Ops[i].Number); e != nil {
			if e.Outcome(c.Ops[i].Body, &w.outcome); w.outcome.State != nil {
				w.advance(w.outcome.State)
			}
		}
	}
}

// stepped notes what has changed a state without a new state id of its own, and that a
// client has no more to reclaim.
func (w *Clone) stepped(o *plan.Op, at int) {
	c := &o.Compound.Ops[at]
	switch nfs4.NfsOpnum4(c.Op) {
	case nfs4.OP_OPEN_DOWNGRADE, nfs4.OP_LOCKU:
		if ref := workload.StateOf(c); ref > 0 {
			w.step(ref, o, at)
		}
	case nfs4.OP_RECLAIM_COMPLETE:
		if ref, _ := SessionOf(o); ref > 0 {
			w.Clients[w.load.Tables.Sessions[ref-1].Client].Complete = true
		}
	}
}

// used notes that an operation with a symbol was executed.
func (w *Clone) used(a *plan.Field, op, code uint32) {
	switch {
	case a.Kind == plan.FieldSeqid && !ops.KeepsSeqid(nfs4.Nfsstat4(code)):
		w.owners[a.Ref]++
	case code != 0:
	case a.Kind == plan.FieldCreateSeq:
		w.Clients[a.Ref].createSeq++
	case a.Kind == plan.FieldSession && op == uint32(nfs4.OP_DESTROY_SESSION):
		w.Sessions[a.Ref].Bound = false
	case a.Kind == plan.FieldState:
		if e := ops.Operation(op); e != nil && e.EndsState() {
			w.end(a.Ref)
		}
	}
}

// bind gives one symbol its value.
func (w *Clone) bind(o *plan.Op, b *plan.Bind, res xdr.Message) {
	m := Body(res, b.At)
	if m == nil {
		return
	}
	if s, ok := m.(xdr.Status); ok {
		if code, _ := s.StatusCode(); code != 0 {
			w.refused(b)
			return
		}
	}
	e := entry(o, b.At, res)
	switch b.Kind {
	case plan.FieldHandle:
		name := []byte(b.Name)
		if b.NameBytes != nil {
			name = b.NameBytes
		}
		if h := w.handleOf(e, m, name); h != nil {
			*w.HandleFor(o.Compound, b.Ref) = append([]byte(nil), h...)
		}
	case plan.FieldState:
		w.bindStateOf(o, e, b, m)
		if w.States[b.Ref].Bound {
			w.step(b.Ref, o, b.At)
		}
	case plan.FieldClient, plan.FieldConfirm, plan.FieldCreateSeq:
		w.bindClient(b, m)
	case plan.FieldSession:
		if m, ok := m.(*nfs4.CREATE_SESSION4res); ok {
			r := &m.CsrResok4
			w.bindSession(b.Ref, r.CsrSessionid, r.CsrForeChanAttrs.CaMaxrequests)
		}
	}
}

// entry is what is known of the procedure of an op, or of operation at of its COMPOUND.
func entry(o *plan.Op, at int, res xdr.Message) *ops.Entry {
	if c, ok := res.(*nfs4.CompoundRes); ok {
		return ops.Operation(c.Ops[at].Number)
	}
	return ops.Procedure(o.Program, o.Version, o.Procedure)
}

// Body is the result of operation at of a COMPOUND, or res if it is not a COMPOUND; nil if that
// was not executed.
func Body(res xdr.Message, at int) xdr.Message {
	c, ok := res.(*nfs4.CompoundRes)
	if !ok {
		return res
	}
	if at < 0 || at >= len(c.Ops) {
		return nil
	}
	return c.Ops[at].Body
}

// refused notes that this server did not give a lock which the captured one gave. What gives it up has nothing to do here.
func (w *Clone) refused(b *plan.Bind) {
	if b.Kind == plan.FieldState && w.load.Tables.States[b.Ref-1].Kind == plan.LockState && !w.States[b.Ref].Bound {
		w.States[b.Ref].Refused = true
	}
}

func (w *Clone) bindClient(b *plan.Bind, m xdr.Message) {
	c := &w.Clients[b.Ref]
	switch m := m.(type) {
	case *nfs4.EXCHANGE_ID4res:
		switch b.Kind {
		case plan.FieldClient:
			c.ID, c.createSeq, c.Bound = m.EirResok4.EirClientid, m.EirResok4.EirSequenceid, true
		case plan.FieldCreateSeq:
			c.createSeq = m.EirResok4.EirSequenceid
		}
	case *nfs4.SETCLIENTID4res:
		switch b.Kind {
		case plan.FieldClient:
			c.ID, c.confirm, c.Bound = m.Resok4.Clientid, m.Resok4.SetclientidConfirm, true
		case plan.FieldConfirm:
			c.confirm = m.Resok4.SetclientidConfirm
		}
	}
}

func (w *Clone) bindStateOf(o *plan.Op, e *ops.Entry, b *plan.Bind, m xdr.Message) {
	if e == nil {
		return
	}
	e.Outcome(m, &w.outcome)
	id := w.outcome.State
	open := false
	if b.State == plan.DelegationState && e.Gives.Has(ops.State) {
		if w.outcome.Delegation != nil {
			id = w.outcome.Delegation
		} else if w.States[b.Ref].Refused = true; Opens(o, b.At) {
			id = nil
		} else {
			open = id != nil && *id != nfs4.Stateid4{}
		}
	}
	switch {
	case id == nil:
	case e.EndsState():
		w.advance(id)
	default:
		w.bindState(b.Ref, id)
		w.States[b.Ref].Open = open
		if r, ok := m.(*nfs4.OPEN4res); ok && b.State == plan.DelegationState {
			t := r.Resok4.Delegation.DelegationType
			w.States[b.Ref].Times = t == nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG || t == nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG
		}
	}
}

// Opens reports whether the plan has a name for the open that operation at gives. If it has none, the captured server gave only a
// delegation.
func Opens(o *plan.Op, at int) bool {
	return slices.ContainsFunc(o.Binds, func(b plan.Bind) bool {
		return b.At == at && b.Kind == plan.FieldState && b.State != plan.DelegationState
	})
}

// handleOf is the file handle that the results of a procedure or operation return: of an
// entry of a directory if it has a name.
func (w *Clone) handleOf(e *ops.Entry, m xdr.Message, name []byte) []byte {
	switch m := m.(type) {
	case *nfs3.READDIRPLUS3res:
		for i := range m.Resok.Reply.Entries {
			if e := &m.Resok.Reply.Entries[i]; string(e.Name) == string(name) && e.NameHandle.HandleFollows {
				return e.NameHandle.Handle.Data
			}
		}
	case *nfs4.READDIR4res:
		for i := range m.Resok4.Reply.Entries {
			if e := &m.Resok4.Reply.Entries[i]; string(e.Name) == string(name) {
				if a, err := e.Attrs.Attrs(); err == nil && a.Has(nfs4.FATTR4_FILEHANDLE) {
					return a.Filehandle
				}
			}
		}
	default:
		if e != nil && e.Gives.Has(ops.Handle) {
			e.Outcome(m, &w.outcome)
			return w.outcome.Handle
		}
	}
	return nil
}

// cookiesOf is what a listing of names may be continued with; nil if a result is no listing.
func cookiesOf(res xdr.Message) *listing {
	switch res.(type) {
	case *nfs3.READDIR3res, *nfs3.READDIRPLUS3res, *nfs4.CompoundRes:
	default:
		return nil
	}
	l := &listing{}
	switch m := res.(type) {
	case *nfs3.READDIR3res:
		l.verifier = m.Resok.Cookieverf
		for i := range m.Resok.Reply.Entries {
			l.cookies = append(l.cookies, m.Resok.Reply.Entries[i].Cookie)
		}
	case *nfs3.READDIRPLUS3res:
		l.verifier = m.Resok.Cookieverf
		for i := range m.Resok.Reply.Entries {
			l.cookies = append(l.cookies, m.Resok.Reply.Entries[i].Cookie)
		}
	case *nfs4.CompoundRes:
		listed := false
		for i := range m.Ops {
			switch r := m.Ops[i].Body.(type) {
			case *nfs4.READDIR4res:
				listed = true
				l.verifier = r.Resok4.Cookieverf
				for j := range r.Resok4.Reply.Entries {
					l.cookies = append(l.cookies, r.Resok4.Reply.Entries[j].Cookie)
				}
			case *nfs4.LISTXATTRS4res:
				listed = true
				if r.LxrStatus == nfs4.NFS4_OK {
					l.cookies = append(l.cookies, r.LxrValue.LxrCookie)
				}
			}
		}
		if !listed {
			return nil
		}
	default:
		return nil
	}
	return l
}

// learnCtime keeps the time of last change of an object of NFSv3, for guards.
func (w *Clone) learnCtime(o *plan.Op, res xdr.Message) {
	ref := 0
	for i := range o.Args {
		if o.Args[i].Kind == plan.FieldHandle {
			ref = o.Args[i].Ref
			break
		}
	}
	made := 0
	for i := range o.Binds {
		if o.Binds[i].Kind == plan.FieldHandle && o.Binds[i].Name == "" {
			made = o.Binds[i].Ref
		}
	}
	put := func(ref int, p *nfs3.PostOpAttr) {
		if p.AttributesFollow {
			w.changedAt(ref, p.Attributes.Ctime.Seconds, p.Attributes.Ctime.Nseconds)
		}
	}
	switch m := res.(type) {
	case *nfs3.GETATTR3res:
		if m.Status == 0 {
			w.changedAt(ref, m.Resok.ObjAttributes.Ctime.Seconds, m.Resok.ObjAttributes.Ctime.Nseconds)
		}
	case *nfs3.SETATTR3res:
		put(ref, &m.Resok.ObjWcc.After)
	case *nfs3.LOOKUP3res:
		put(made, &m.Resok.ObjAttributes)
		put(ref, &m.Resok.DirAttributes)
	case *nfs3.ACCESS3res:
		put(ref, &m.Resok.ObjAttributes)
	case *nfs3.READ3res:
		put(ref, &m.Resok.FileAttributes)
	case *nfs3.WRITE3res:
		put(ref, &m.Resok.FileWcc.After)
	case *nfs3.COMMIT3res:
		put(ref, &m.Resok.FileWcc.After)
	case *nfs3.CREATE3res:
		put(made, &m.Resok.ObjAttributes)
		put(ref, &m.Resok.DirWcc.After)
	case *nfs3.MKDIR3res:
		put(made, &m.Resok.ObjAttributes)
		put(ref, &m.Resok.DirWcc.After)
	case *nfsacl.GETACL3res:
		put(ref, &m.Resok.Attr)
	}
}
