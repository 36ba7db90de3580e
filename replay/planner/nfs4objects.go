package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// objects4 are the operations on names and attributes.
func (c *call) objects4(x *rpc.Operation) bool {
	f, p, s := &c.form, &c.compound, &c.b.space
	switch a := x.Args.(type) {
	case xdr.Void:
		switch nfs4.NfsOpnum4(x.Number) {
		case nfs4.OP_PUTROOTFH:
			p.cur = s.root(c.server)
		case nfs4.OP_PUTPUBFH:
			p.cur = nil
		case nfs4.OP_SAVEFH:
			p.saved = p.cur
		case nfs4.OP_RESTOREFH:
			p.cur = p.saved
		case nfs4.OP_LOOKUPP:
			if d := p.cur.real(); d != nil && d.now.dir != nil {
				p.cur = d.now.dir
			} else {
				p.cur = s.of(c.server, c.handleAfter())
			}
		case nfs4.OP_GETFH:
			if r, is := x.Result.(*nfs4.GETFH4res); is && c.ok {
				p.cur = s.shows(p.cur, c.server, r.Resok4.Object)
				c.bind(p.at, p.cur)
			}
		case nfs4.OP_READLINK:
			c.inspects(p.cur)
			if r, is := x.Result.(*nfs4.READLINK4res); is && c.ok {
				if o := p.cur.real(); o != nil {
					o.typ = "symlink"
					o.leadsTo(c.item(r.Resok4.Link, true))
				}
			}
		default:
			return false
		}
	case *nfs4.PUTFH4args:
		c.path = ""
		p.cur = c.fh("object", a.Object)
	case *nfs4.LOOKUP4args:
		d := p.cur
		c.at(a.Objname)
		p.cur = nil
		if c.executed() {
			c.looks(d, a.Objname)
		}
		if c.ok {
			p.cur = s.find(d, a.Objname, c.handleAfter())
			if o := p.cur.real(); o != nil && o.created != 0 {
				c.dep(o.created, o.createdAt, plan.DepCreate)
			}
		} else if x.Code == uint32(nfs4.NFS4ERR_NOENT) && x.Result != nil {
			s.missing(d, a.Objname)
		}
		f.name("objname", a.Objname, s.refIfHandle(p.cur))
	case *nfs4.GETATTR4args:
		f.raw("attr_request", &a.AttrRequest)
		if c.executed() {
			c.inspects(p.cur)
		}
		if r, is := x.Result.(*nfs4.GETATTR4res); is && c.ok {
			s.attrs4(p.cur, &r.Resok4.ObjAttributes)
		}
	case *nfs4.ACCESS4args:
		f.u32("access", uint32(a.Access))
		if c.executed() {
			c.inspects(p.cur)
		}
	case *nfs4.VERIFY4args:
		f.raw("obj_attributes", &a.ObjAttributes)
		c.worse(plan.Inferred, "VERIFY compares attributes that another server does not have")
	case *nfs4.NVERIFY4args:
		f.raw("obj_attributes", &a.ObjAttributes)
		c.worse(plan.Inferred, "VERIFY compares attributes that another server does not have")
	case *nfs4.SECINFO4args:
		f.name("name", a.Name, 0)
		if c.executed() {
			c.looks(p.cur, a.Name)
		}
		p.cur = nil
	case *nfs4.CREATE4args:
		c.create4(x, a)
	case *nfs4.REMOVE4args:
		f.name("target", a.Target, c.leads(p.cur, a.Target))
		c.at(a.Target)
		if c.executed() {
			c.changes(p.cur, a.Target)
			c.unmade(p.cur, a.Target, "")
		}
		c.op.Modifies = true
	case *nfs4.RENAME4args:
		f.name("oldname", a.Oldname, c.leads(p.saved, a.Oldname))
		f.name("newname", a.Newname, c.leads(p.cur, a.Newname))
		c.path = s.path(p.saved)
		c.at(a.Oldname)
		c.detail = "-> " + string(a.Newname)
		c.op.Modifies = true
		if c.executed() {
			c.renames(p.saved, a.Oldname, p.cur, a.Newname)
		}
	case *nfs4.LINK4args:
		f.name("newname", a.Newname, 0)
		c.detail = "-> " + string(a.Newname)
		c.op.Modifies = true
		if c.executed() {
			c.changes(p.cur, a.Newname)
			c.alters(p.saved)
		}
		if c.ok {
			s.link(p.saved, p.cur, a.Newname)
		}
	case *nfs4.READDIR4args:
		d := p.cur.real()
		c.cookies(d, a.Cookie, a.Cookieverf)
		f.u32("dircount", a.Dircount)
		f.u32("maxcount", a.Maxcount)
		f.raw("attr_request", &a.AttrRequest)
		if c.executed() {
			c.lists(d)
		}
		if r, is := x.Result.(*nfs4.READDIR4res); is && c.ok && d != nil {
			l := r.Resok4.Reply.Entries
			for i := range l {
				var h []byte
				if l[i].Attrs.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) && c.b.attrs.Decode(&l[i].Attrs) == nil {
					h = c.b.attrs.Filehandle
				}
				o := c.listed(d, l[i].Name, h)
				if o != nil {
					c.inspects(o)
					s.attrs4(o, &l[i].Attrs)
					if len(h) > 0 {
						c.bindEntry(p.at, o, l[i].Name)
					}
				}
			}
			c.remember(d, len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok4.Cookieverf)
		}
	case *nfs4.SETATTR4args:
		if c.executed() {
			c.alters(p.cur)
		}
		c.op.Modifies = true
		c.stateid("stateid", &a.Stateid, plan.OpenState, p.cur, reads)
		c.fattr4("obj_attributes", &a.ObjAttributes, p.cur)
	default:
		return false
	}
	return true
}

// create4 is CREATE: all but files.
func (c *call) create4(x *rpc.Operation, a *nfs4.CREATE4args) {
	f, p, s := &c.form, &c.compound, &c.b.space
	d := p.cur
	c.at(a.Objname)
	f.u32("type", uint32(a.Objtype.Type))
	switch a.Objtype.Type {
	case nfs4.NF4LNK:
		c.linkText("linkdata", a.Objtype.Linkdata)
	case nfs4.NF4BLK, nfs4.NF4CHR:
		f.raw("devdata", &a.Objtype.Devdata)
	}
	f.name("objname", a.Objname, 0)
	f.raw("createattrs", &a.Createattrs)
	c.op.Modifies = true
	if c.executed() {
		c.changes(d, a.Objname)
	}
	switch {
	case c.ok:
		p.cur = s.create(c, d, a.Objname, c.handleAfter(), types4[a.Objtype.Type])
	case x.Result != nil && x.Code == uint32(nfs4.NFS4ERR_EXIST):
		s.find(d, a.Objname, nil)
	case !c.replied:
		c.maybe(d, a.Objname)
	}
}

// maybe notes that a call without a reply may have made a name.
func (c *call) maybe(d *obj, name []byte) {
	if d = d.real(); d != nil && !dots(name) {
		if n := c.b.space.state(d, name); n.obj == nil {
			n.pending = c.op.ID
		}
	}
}
