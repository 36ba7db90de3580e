package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// learn takes in what a reply gives a value to.
func (e *engine) learn(f *flight, res xdr.Message) {
	w, o := f.world, f.op
	if c, ok := res.(*nfs4.CompoundRes); ok && o.Compound != nil { // it may be in one raw field
		e.compoundState(w, o, c)
	} else {
		e.learnCtime(w, o, res)
	}
	for i := range o.Binds {
		e.bind(w, o, &o.Binds[i], res)
	}
	if e.listings[o.ID] {
		if l := cookiesOf(res); l != nil {
			w.cookies[o.ID] = l
		}
	}
}

// body is the result that a Bind means.
func body(res xdr.Message, at int) xdr.Message {
	c, ok := res.(*nfs4.CompoundRes)
	if !ok {
		return res
	}
	if at < 0 || at >= len(c.Ops) {
		return nil
	}
	return c.Ops[at].Body
}

func (e *engine) bind(w *world, o *plan.Op, b *plan.Bind, res xdr.Message) {
	m := body(res, b.At)
	if m == nil {
		return
	}
	if s, ok := m.(xdr.Status); ok {
		if code, _ := s.StatusCode(); code != 0 {
			return
		}
	}
	switch b.Kind {
	case plan.FieldHandle:
		name := []byte(b.Name)
		if b.NameBytes != nil {
			name = b.NameBytes
		}
		if h := handleOf(m, name); h != nil {
			w.objects[b.Ref].handle = append([]byte(nil), h...)
		}
	case plan.FieldState:
		e.bindState(w, b, m)
	case plan.FieldClient:
		c := &w.clients[b.Ref]
		switch m := m.(type) {
		case *nfs4.EXCHANGE_ID4res:
			c.id, c.createSeq, c.bound = m.EirResok4.EirClientid, m.EirResok4.EirSequenceid, true
		case *nfs4.SETCLIENTID4res:
			c.id, c.confirm, c.bound = m.Resok4.Clientid, m.Resok4.SetclientidConfirm, true
		}
	case plan.FieldConfirm:
		if m, ok := m.(*nfs4.SETCLIENTID4res); ok {
			w.clients[b.Ref].confirm = m.Resok4.SetclientidConfirm
		}
	case plan.FieldCreateSeq:
		if m, ok := m.(*nfs4.EXCHANGE_ID4res); ok {
			w.clients[b.Ref].createSeq = m.EirResok4.EirSequenceid
		}
	case plan.FieldSession:
		if m, ok := m.(*nfs4.CREATE_SESSION4res); ok {
			r := &m.CsrResok4
			w.bindSession(b.Ref, r.CsrSessionid, r.CsrForeChanAttrs.CaMaxrequests)
			e.freed = append(e.freed, &w.sessions[b.Ref])
		}
	}
	_ = o
}

// handleOf is the file handle that a result gives; name is that of a directory
// entry.
func handleOf(m xdr.Message, name []byte) []byte {
	post := func(p *nfs3.PostOpFh3) []byte {
		if p.HandleFollows {
			return p.Handle.Data
		}
		return nil
	}
	switch m := m.(type) {
	case *nfs3.LOOKUP3res:
		return m.Resok.Object.Data
	case *nfs3.CREATE3res:
		return post(&m.Resok.Obj)
	case *nfs3.MKDIR3res:
		return post(&m.Resok.Obj)
	case *nfs3.SYMLINK3res:
		return post(&m.Resok.Obj)
	case *nfs3.MKNOD3res:
		return post(&m.Resok.Obj)
	case *nfs3.READDIRPLUS3res:
		for i := range m.Resok.Reply.Entries {
			if e := &m.Resok.Reply.Entries[i]; string(e.Name) == string(name) {
				return post(&e.NameHandle)
			}
		}
	case *nfs4.GETFH4res:
		return m.Resok4.Object
	case *nfs4.READDIR4res:
		for i := range m.Resok4.Reply.Entries {
			if e := &m.Resok4.Reply.Entries[i]; string(e.Name) == string(name) {
				if a, err := e.Attrs.Attrs(); err == nil && a.Has(nfs4.FATTR4_FILEHANDLE) {
					return a.Filehandle
				}
			}
		}
	}
	return nil
}

func (e *engine) bindState(w *world, b *plan.Bind, m xdr.Message) {
	switch m := m.(type) {
	case *nfs4.OPEN4res:
		if b.State != plan.DelegationState {
			w.bindState(b.Ref, m.Resok4.Stateid)
			return
		}
		switch d := &m.Resok4.Delegation; d.DelegationType {
		case nfs4.OPEN_DELEGATE_READ:
			w.bindState(b.Ref, d.Read.Stateid)
		case nfs4.OPEN_DELEGATE_WRITE:
			w.bindState(b.Ref, d.Write.Stateid)
		default:
			w.states[b.Ref].refused = true
		}
	case *nfs4.OPEN_CONFIRM4res:
		w.bindState(b.Ref, m.Resok4.OpenStateid)
	case *nfs4.OPEN_DOWNGRADE4res:
		w.bindState(b.Ref, m.Resok4.OpenStateid)
	case *nfs4.LOCK4res:
		w.bindState(b.Ref, m.Resok4.LockStateid)
	case *nfs4.LOCKU4res:
		w.bindState(b.Ref, m.LockStateid)
	case *nfs4.CLOSE4res:
		w.learnState(m.OpenStateid)
	case *nfs4.COPY4res:
		if ids := m.CrResok4.CrResponse.WrCallbackId; len(ids) > 0 {
			w.bindState(b.Ref, ids[0])
		}
	case *nfs4.LAYOUTGET4res:
		w.bindState(b.Ref, m.LogrResok4.LogrStateid)
	}
}

// compoundState follows sequence numbers and state ids through a COMPOUND,
// whether or not the plan binds them.
func (e *engine) compoundState(w *world, o *plan.Op, c *nfs4.CompoundRes) {
	for i := range c.Ops {
		code, _, _ := c.Ops[i].Status()
		if i < len(o.Compound.Ops) {
			for j := range o.Compound.Ops[i].Args {
				a := &o.Compound.Ops[i].Args[j]
				switch {
				case a.Kind == plan.FieldSeqid && !client.KeepsSeqid(nfs4.Nfsstat4(code)):
					w.owners[a.Ref]++
				case a.Kind == plan.FieldCreateSeq && code == 0:
					w.clients[a.Ref].createSeq++
				case a.Kind == plan.FieldSession && code == 0 && c.Ops[i].Number == uint32(nfs4.OP_DESTROY_SESSION):
					w.sessions[a.Ref].bound = false
				case a.Kind == plan.FieldState && code == 0 && closes(c.Ops[i].Number):
					w.states[a.Ref].closed = true
				}
			}
		}
		if code != 0 {
			continue
		}
		switch m := c.Ops[i].Body.(type) {
		case *nfs4.CLOSE4res:
			w.learnState(m.OpenStateid)
		case *nfs4.LOCKU4res:
			w.learnState(m.LockStateid)
		case *nfs4.LOCK4res:
			w.learnState(m.Resok4.LockStateid)
		case *nfs4.OPEN4res:
			w.learnState(m.Resok4.Stateid)
		case *nfs4.OPEN_CONFIRM4res:
			w.learnState(m.Resok4.OpenStateid)
		case *nfs4.OPEN_DOWNGRADE4res:
			w.learnState(m.Resok4.OpenStateid)
		}
	}
}

func closes(op uint32) bool {
	return op == uint32(nfs4.OP_CLOSE) || op == uint32(nfs4.OP_DELEGRETURN) || op == uint32(nfs4.OP_FREE_STATEID)
}

// cookiesOf is what a directory listing may be continued with.
func cookiesOf(res xdr.Message) *listing {
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
		for i := range m.Ops {
			if r, ok := m.Ops[i].Body.(*nfs4.READDIR4res); ok {
				l.verifier = r.Resok4.Cookieverf
				for j := range r.Resok4.Reply.Entries {
					l.cookies = append(l.cookies, r.Resok4.Reply.Entries[j].Cookie)
				}
			}
		}
	default:
		return nil
	}
	return l
}

// learnCtime keeps the time of last change of an object of NFSv3, for guards.
func (e *engine) learnCtime(w *world, o *plan.Op, res xdr.Message) {
	if !e.guards {
		return
	}
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
			w.putCtime(ref, p.Attributes.Ctime.Seconds, p.Attributes.Ctime.Nseconds)
		}
	}
	switch m := res.(type) {
	case *nfs3.GETATTR3res:
		if m.Status == 0 {
			w.putCtime(ref, m.Resok.ObjAttributes.Ctime.Seconds, m.Resok.ObjAttributes.Ctime.Nseconds)
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
