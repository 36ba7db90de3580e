package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// nameOps are the operations on names and attributes.
var nameOps = opTable{
	nfs4.OP_ACCESS:   op4((*call).access4),
	nfs4.OP_CREATE:   op4((*call).create4),
	nfs4.OP_GETATTR:  op4((*call).getattr4),
	nfs4.OP_GETFH:    void4((*call).getfh4),
	nfs4.OP_LINK:     op4((*call).link4),
	nfs4.OP_LOOKUP:   op4((*call).lookup4),
	nfs4.OP_NVERIFY:  op4((*call).nverify4),
	nfs4.OP_PUTFH:    op4((*call).putfh4),
	nfs4.OP_READDIR:  op4((*call).readdir4),
	nfs4.OP_READLINK: void4((*call).readlink4),
	nfs4.OP_REMOVE:   op4((*call).remove4),
	nfs4.OP_RENAME:   op4((*call).rename4),
	nfs4.OP_SECINFO:  op4((*call).secinfo4),
	nfs4.OP_SETATTR:  op4((*call).setattr4),
	nfs4.OP_VERIFY:   op4((*call).verify4),
}

func (c *call) putfh4(a *nfs4.PUTFH4args, _ *nfs4.Status4res) {
	c.path = ""
	c.compound.to = c.fh("object", a.Object)
}

func (c *call) getfh4(r *nfs4.GETFH4res) {
	if p := &c.compound; r != nil {
		p.Current = c.b.space.shows(p.Current, c.server, r.Resok4.Object)
		c.bind(p.at, p.Current)
	}
}

func (c *call) lookup4(a *nfs4.LOOKUP4args, _ *nfs4.Status4res) {
	p, s := &c.compound, &c.b.space
	d := p.Current
	c.at(a.Objname)
	if c.executed() {
		c.looks(d, a.Objname)
	}
	if c.ok {
		p.to = s.find(d, a.Objname, c.handleAfter())
		if o := p.to.real(); o != nil && o.created.Op != 0 {
			c.deps.After(o.created, plan.DepCreate)
		}
	} else if c.refusedWith(nfs4.NFS4ERR_NOENT) {
		s.missing(d, a.Objname)
	}
	c.form.name("objname", a.Objname, s.refIfHandle(p.to))
}

func (c *call) secinfo4(a *nfs4.SECINFO4args, _ *nfs4.SECINFO4res) {
	c.form.name("name", a.Name, 0)
	if c.executed() {
		c.looks(c.compound.Current, a.Name)
	}
}

func (c *call) getattr4(a *nfs4.GETATTR4args, r *nfs4.GETATTR4res) {
	c.form.raw("attr_request", &a.AttrRequest)
	if c.executed() {
		c.inspects(c.compound.Current)
	}
	if r != nil {
		c.b.space.attrs4(c.compound.Current, &r.Resok4.ObjAttributes)
	}
}

func (c *call) setattr4(a *nfs4.SETATTR4args, _ *nfs4.SETATTR4res) {
	o := c.compound.Current
	if c.executed() {
		c.alters(o)
	}
	c.stateid("stateid", &a.Stateid, plan.OpenState, o, order.Reads)
	c.fattr4("obj_attributes", &a.ObjAttributes, o)
}

func (c *call) access4(a *nfs4.ACCESS4args, _ *nfs4.ACCESS4res) {
	c.form.u32("access", uint32(a.Access))
	if c.executed() {
		c.inspects(c.compound.Current)
	}
}

const comparesAttributes = "VERIFY compares attributes that another server does not have"

func (c *call) verify4(a *nfs4.VERIFY4args, _ *nfs4.Status4res) {
	c.form.raw("obj_attributes", &a.ObjAttributes)
	c.worse(plan.Inferred, comparesAttributes)
}

func (c *call) nverify4(a *nfs4.NVERIFY4args, _ *nfs4.Status4res) {
	c.form.raw("obj_attributes", &a.ObjAttributes)
	c.worse(plan.Inferred, comparesAttributes)
}

func (c *call) readlink4(r *nfs4.READLINK4res) {
	o := c.compound.Current
	c.inspects(o)
	if o = o.real(); r != nil && o != nil {
		o.typ = "symlink"
		o.leadsTo(c.item(r.Resok4.Link, true))
	}
}

// create4 is CREATE: objects other than files.
func (c *call) create4(a *nfs4.CREATE4args, _ *nfs4.CREATE4res) {
	f, p, s := &c.form, &c.compound, &c.b.space
	d := p.Current
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
	if c.executed() {
		c.changes(d, a.Objname)
	}
	p.to = d
	switch {
	case c.ok:
		p.to = s.create(c, d, a.Objname, c.handleAfter(), types4[a.Objtype.Type])
	case c.refusedWith(nfs4.NFS4ERR_EXIST):
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

func (c *call) remove4(a *nfs4.REMOVE4args, _ *nfs4.REMOVE4res) {
	d := c.compound.Current
	c.form.name("target", a.Target, c.leads(d, a.Target))
	c.at(a.Target)
	if c.executed() {
		c.changes(d, a.Target)
		c.unmade(d, a.Target, "")
	}
}

func (c *call) rename4(a *nfs4.RENAME4args, _ *nfs4.RENAME4res) {
	p := &c.compound
	c.form.name("oldname", a.Oldname, c.leads(p.Saved, a.Oldname))
	c.form.name("newname", a.Newname, c.leads(p.Current, a.Newname))
	c.path = c.b.space.path(p.Saved)
	c.at(a.Oldname)
	c.detail = "-> " + string(a.Newname)
	if c.executed() {
		c.renames(p.Saved, a.Oldname, p.Current, a.Newname)
	}
}

func (c *call) link4(a *nfs4.LINK4args, _ *nfs4.LINK4res) {
	p := &c.compound
	c.form.name("newname", a.Newname, 0)
	c.detail = "-> " + string(a.Newname)
	if c.executed() {
		c.changes(p.Current, a.Newname)
		c.alters(p.Saved)
	}
	if c.ok {
		c.b.space.link(p.Saved, p.Current, a.Newname)
	}
}

func (c *call) readdir4(a *nfs4.READDIR4args, r *nfs4.READDIR4res) {
	f, s := &c.form, &c.b.space
	d := c.compound.Current.real()
	c.cookies(d, a.Cookie, a.Cookieverf)
	f.u32("dircount", a.Dircount)
	f.u32("maxcount", a.Maxcount)
	f.raw("attr_request", &a.AttrRequest)
	if c.executed() {
		c.lists(d)
	}
	if r == nil || d == nil {
		return
	}
	l := r.Resok4.Reply.Entries
	for i := range l {
		var h []byte
		if l[i].Attrs.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) && c.b.attrs.Decode(&l[i].Attrs) == nil {
			h = c.b.attrs.Filehandle
		}
		o := c.listed(d, l[i].Name, h)
		if o == nil {
			continue
		}
		c.inspects(o)
		s.attrs4(o, &l[i].Attrs)
		if len(h) > 0 {
			c.bindEntry(c.compound.at, o, l[i].Name)
		}
	}
	c.remember(d, len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok4.Cookieverf)
}

// fattr4 adds attributes to be set on an object, nil for one that is new.
func (c *call) fattr4(n string, f *nfs4.Fattr4, o *obj) {
	c.form.raw(n, f)
	a := &c.b.attrs
	if a.Decode(f) != nil {
		return
	}
	if a.Has(nfs4.FATTR4_MODE) {
		c.detail += " mode=0" + strconv.FormatUint(uint64(a.Mode), 8)
	}
	size, sized := a.Size, a.Has(nfs4.FATTR4_SIZE)
	if o = o.real(); o != nil && (c.ok || !c.replied) {
		o.modeChanged = o.modeChanged || a.Has(nfs4.FATTR4_MODE) || a.Has(nfs4.FATTR4_MODE_SET_MASKED)
		o.ownerChanged = o.ownerChanged || a.Has(nfs4.FATTR4_OWNER) || a.Has(nfs4.FATTR4_OWNER_GROUP)
	}
	if sized && c.executed() {
		c.resized(o, size)
	}
}
