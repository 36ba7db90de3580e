package planner

import (
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// nameOps are the operations on names and attributes.
var nameOps = opTable{
	nfs4.OP_ACCESS:   op4(access4),
	nfs4.OP_CREATE:   op4(create4),
	nfs4.OP_GETATTR:  op4(getattr4),
	nfs4.OP_GETFH:    void4(getfh4),
	nfs4.OP_LINK:     op4(link4),
	nfs4.OP_LOOKUP:   op4(lookup4),
	nfs4.OP_NVERIFY:  op4(nverify4),
	nfs4.OP_PUTFH:    op4(putfh4),
	nfs4.OP_READDIR:  op4(readdir4),
	nfs4.OP_READLINK: void4(readlink4),
	nfs4.OP_REMOVE:   op4(remove4),
	nfs4.OP_RENAME:   op4(rename4),
	nfs4.OP_SECINFO:  op4(secinfo4),
	nfs4.OP_SETATTR:  op4(setattr4),
	nfs4.OP_VERIFY:   op4(verify4),
}

func putfh4(c *compound, a *nfs4.PUTFH4args, _ *nfs4.Status4res) {
	c.about.path = ""
	c.to = c.fh("object", a.Object)
}

func getfh4(c *compound, r *nfs4.GETFH4res) {
	if r != nil {
		c.Current = c.space.shows(c.Current, c.server, r.Resok4.Object)
		c.effects.bind(c.at, c.Current)
	}
}

func lookup4(c *compound, a *nfs4.LOOKUP4args, _ *nfs4.Status4res) {
	s := c.space
	d := c.Current
	c.about.at(a.Objname)
	if c.executed {
		c.effects.looks(d, a.Objname)
	}
	if c.ok {
		c.to = s.find(d, a.Objname, c.handleAfter())
		if o := c.to.real(); o != nil {
			c.deps.After(o.created, plan.DepCreate)
		}
	} else if c.refusedWith(uint32(nfs4.NFS4ERR_NOENT)) {
		s.missing(d, a.Objname)
	}
	c.form.name("objname", a.Objname, s.refIfHandle(c.to))
}

func secinfo4(c *compound, a *nfs4.SECINFO4args, _ *nfs4.SECINFO4res) {
	c.form.name("name", a.Name, 0)
	if c.executed {
		c.effects.looks(c.Current, a.Name)
	}
}

func getattr4(c *compound, a *nfs4.GETATTR4args, r *nfs4.GETATTR4res) {
	c.form.raw("attr_request", &a.AttrRequest)
	if c.executed {
		c.effects.inspects(c.Current)
	}
	if r != nil {
		c.space.attrs4(c.Current, &r.Resok4.ObjAttributes)
	}
}

func setattr4(c *compound, a *nfs4.SETATTR4args, _ *nfs4.SETATTR4res) {
	o := c.Current
	if c.executed {
		c.effects.alters(o)
	}
	c.ids.stateid("stateid", &a.Stateid, plan.OpenState, o, order.Reads)
	fattr4(c, "obj_attributes", &a.ObjAttributes, o)
}

func access4(c *compound, a *nfs4.ACCESS4args, _ *nfs4.ACCESS4res) {
	c.form.u32("access", uint32(a.Access))
	if c.executed {
		c.effects.inspects(c.Current)
	}
}

const comparesAttributes = "VERIFY compares attributes that another server does not have"

func verify4(c *compound, a *nfs4.VERIFY4args, _ *nfs4.Status4res) {
	c.form.raw("obj_attributes", &a.ObjAttributes)
	c.reasons.add(plan.Inferred, comparesAttributes)
}

func nverify4(c *compound, a *nfs4.NVERIFY4args, _ *nfs4.Status4res) {
	c.form.raw("obj_attributes", &a.ObjAttributes)
	c.reasons.add(plan.Inferred, comparesAttributes)
}

func readlink4(c *compound, r *nfs4.READLINK4res) {
	o := c.Current
	c.effects.inspects(o)
	if o = o.real(); r != nil && o != nil {
		o.typ = "symlink"
		o.leadsTo(item(c.v, r.Resok4.Link, true))
	}
}

// create4 is CREATE: objects other than files.
func create4(c *compound, a *nfs4.CREATE4args, _ *nfs4.CREATE4res) {
	f, s := &c.form, c.space
	d := c.Current
	c.about.at(a.Objname)
	f.u32("type", uint32(a.Objtype.Type))
	switch a.Objtype.Type {
	case nfs4.NF4LNK:
		c.linkText("linkdata", a.Objtype.Linkdata)
	case nfs4.NF4BLK, nfs4.NF4CHR:
		f.raw("devdata", &a.Objtype.Devdata)
	}
	f.name("objname", a.Objname, 0)
	f.raw("createattrs", &a.Createattrs)
	if c.executed {
		c.effects.changes(d, a.Objname)
	}
	c.to = d
	switch {
	case c.ok:
		c.to = s.create(c.deps.Flight, c.server, d, a.Objname, c.handleAfter(), types4[a.Objtype.Type])
	case c.refusedWith(uint32(nfs4.NFS4ERR_EXIST)):
		s.find(d, a.Objname, nil)
	case !c.replied:
		c.space.maybe(d, a.Objname, c.op.ID)
	}
}

func remove4(c *compound, a *nfs4.REMOVE4args, _ *nfs4.REMOVE4res) {
	d := c.Current
	c.form.name("target", a.Target, c.space.leads(d, a.Target))
	c.about.at(a.Target)
	if c.executed {
		c.effects.changes(d, a.Target)
		c.effects.unmade(d, a.Target, "")
	}
}

func rename4(c *compound, a *nfs4.RENAME4args, _ *nfs4.RENAME4res) {
	c.form.name("oldname", a.Oldname, c.space.leads(c.Saved, a.Oldname))
	c.form.name("newname", a.Newname, c.space.leads(c.Current, a.Newname))
	c.about.path = c.space.path(c.Saved)
	c.about.at(a.Oldname)
	c.about.detail = "-> " + string(a.Newname)
	if c.executed {
		c.effects.renames(c.Saved, a.Oldname, c.Current, a.Newname)
	}
}

func link4(c *compound, a *nfs4.LINK4args, _ *nfs4.LINK4res) {
	c.form.name("newname", a.Newname, 0)
	c.about.detail = "-> " + string(a.Newname)
	if c.executed {
		c.effects.changes(c.Current, a.Newname)
		c.effects.alters(c.Saved)
	}
	if c.ok {
		c.space.link(c.Saved, c.Current, a.Newname)
	}
}

func readdir4(c *compound, a *nfs4.READDIR4args, r *nfs4.READDIR4res) {
	f, s := &c.form, c.space
	d := c.Current.real()
	c.cookies(d, listerOf(c.v.Tx, c.ids.minor), a.Cookie, a.Cookieverf)
	f.u32("dircount", a.Dircount)
	f.u32("maxcount", a.Maxcount)
	f.raw("attr_request", &a.AttrRequest)
	if c.executed {
		c.effects.lists(d)
	}
	if r == nil || d == nil {
		return
	}
	l := r.Resok4.Reply.Entries
	for i := range l {
		var h []byte
		if l[i].Attrs.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) && c.attrs.Decode(&l[i].Attrs) == nil {
			h = c.attrs.Filehandle
		}
		o := c.space.listed(d, l[i].Name, h)
		if o == nil {
			continue
		}
		c.effects.inspects(o)
		s.attrs4(o, &l[i].Attrs)
		if len(h) > 0 {
			c.effects.bindEntry(c.at, o, l[i].Name)
		}
	}
	c.space.remember(d, c.op.ID, listerOf(c.v.Tx, c.ids.minor), len(l), func(i int) uint64 { return l[i].Cookie }, r.Resok4.Cookieverf)
}

// fattr4 adds attributes to be set on an object, nil for one that is new.
func fattr4(c *compound, n string, f *nfs4.Fattr4, o *obj) {
	c.form.raw(n, f)
	a := c.attrs
	if a.Decode(f) != nil {
		return
	}
	if a.Has(nfs4.FATTR4_MODE) {
		c.about.detail += " mode=0" + strconv.FormatUint(uint64(a.Mode), 8)
	}
	size, sized := a.Size, a.Has(nfs4.FATTR4_SIZE)
	if o = o.real(); o != nil && (c.ok || !c.replied) {
		o.modeChanged = o.modeChanged || a.Has(nfs4.FATTR4_MODE) || a.Has(nfs4.FATTR4_MODE_SET_MASKED)
		o.ownerChanged = o.ownerChanged || a.Has(nfs4.FATTR4_OWNER) || a.Has(nfs4.FATTR4_OWNER_GROUP)
	}
	if sized && c.executed {
		c.effects.resized(o, size)
	}
}
