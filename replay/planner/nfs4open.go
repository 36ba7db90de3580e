package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// openOps are OPEN and the operations related to it.
var openOps = opTable{
	nfs4.OP_OPEN:           op4(open4),
	nfs4.OP_OPEN_CONFIRM:   op4(openConfirm4),
	nfs4.OP_OPEN_DOWNGRADE: op4(openDowngrade4),
}

func open4(c *compound, a *nfs4.OPEN4args, r *nfs4.OPEN4res) {
	f := &c.form
	d := c.Current.real()
	cl := c.ids.clientOf(a.Owner.Clientid)
	w := c.states.owner(cl, "open", a.Owner.Owner)
	c.ids.seqid("seqid", w, a.Seqid)
	f.u32("share_access", uint32(a.ShareAccess))
	f.u32("share_deny", a.ShareDeny)
	c.ids.clientID("owner.clientid", a.Owner.Clientid)
	f.text("owner.owner", a.Owner.Owner)
	f.raw("openhow", &a.Openhow)
	claims(c, d, &a.Claim)
	name, named := ops.OpenName(a)
	if c.refusedWith(uint32(nfs4.NFS4ERR_ACCESS)) {
		// It depends on the mode of the file, or of its directory.
		c.effects.inspects(d)
		if named && d != nil {
			c.effects.inspects(c.space.state(d, name).obj)
		}
	}
	if !named {
		c.to = c.Current
		opened(c, r, d, w, a)
		return
	}
	create := a.Openhow.Opentype == nfs4.OPEN4_CREATE
	c.about.at(name)
	if c.executed {
		if create {
			c.effects.changes(d, name)
		} else {
			c.effects.looks(d, name)
		}
	}
	switch {
	case !c.replied:
		if create {
			c.space.maybe(d, name, c.op.ID)
		}
	case r != nil:
		c.to = openedByName(c, d, name, a, r)
		opened(c, r, c.to, w, a)
	case c.refusedWith(uint32(nfs4.NFS4ERR_NOENT)):
		c.space.missing(d, name)
	case c.refusedWith(uint32(nfs4.NFS4ERR_EXIST)):
		c.space.find(d, name, nil)
	}
}

// claims adds the claim of an OPEN in a directory, or of the file itself.
func claims(c *compound, d *obj, a *nfs4.OpenClaim4) {
	f := &c.form
	f.u32("claim", uint32(a.Claim))
	switch a.Claim {
	case nfs4.CLAIM_NULL:
		f.name("file", a.File, c.space.leads(d, a.File))
	case nfs4.CLAIM_PREVIOUS:
		f.u32("delegate_type", uint32(a.DelegateType))
	case nfs4.CLAIM_DELEGATE_CUR:
		c.ids.stateid("delegate_stateid", &a.DelegateCurInfo.DelegateStateid, plan.DelegationState, nil, order.Reads)
		f.name("file", a.DelegateCurInfo.File, c.space.leads(d, a.DelegateCurInfo.File))
	case nfs4.CLAIM_DELEGATE_PREV:
		f.name("file", a.FileDelegatePrev, c.space.leads(d, a.FileDelegatePrev))
	case nfs4.CLAIM_DELEG_CUR_FH:
		c.ids.stateid("oc_delegate_stateid", &a.OcDelegateStateid, plan.DelegationState, d, order.Reads)
	}
}

// openedByName is the file that an OPEN has found or made.
func openedByName(c *compound, d *obj, name []byte, a *nfs4.OPEN4args, r *nfs4.OPEN4res) *obj {
	f, s := &c.form, c.space
	h := c.handleAfter()
	create := a.Openhow.Opentype == nfs4.OPEN4_CREATE
	unchecked := create && a.Openhow.How.Mode == nfs4.UNCHECKED4
	existed := !create
	if unchecked && d != nil {
		n := s.state(d, name)
		existed = n.obj != nil || !n.touched && !n.absent && r.Resok4.Cinfo.Before == r.Resok4.Cinfo.After
	}
	if !existed {
		return s.create(c.deps.Flight, c.server, d, name, h, "file")
	}
	found := s.find(d, name, h)
	if o := found.real(); o != nil {
		c.deps.After(o.created, plan.DepCreate)
	}
	if last := &f.fields[len(f.fields)-1]; last.Kind == plan.FieldName {
		last.Ref = s.refIfHandle(found)
	}
	if unchecked {
		truncates(c, &a.Openhow.How.Createattrs, found)
	}
	return found
}

// truncates is an OPEN of an existing file that sets its size.
func truncates(c *compound, f *nfs4.Fattr4, o *obj) {
	if f.Attrmask.Has(nfs4.FATTR4_SIZE) && c.attrs.Decode(f) == nil {
		c.effects.resized(o, c.attrs.Size)
	}
}

// opened learns from the results of OPEN.
func opened(c *compound, r *nfs4.OPEN4res, o *obj, w *owner, a *nfs4.OPEN4args) {
	if r == nil || !c.ok {
		return
	}
	if o = o.real(); o != nil && o.typ == "" {
		o.typ = "file"
	}
	c.effects.saw(o)
	s := c.states
	if x := c.ids.given(c.at, &r.Resok4.Stateid, plan.OpenState, o, w); x != nil {
		x.Access |= uint32(a.ShareAccess) & (nfs4.OPEN4_SHARE_ACCESS_READ | nfs4.OPEN4_SHARE_ACCESS_WRITE)
		c.deps.Use(&x.uses, 0, 1, order.Writes, plan.DepState)
	}
	if id := r.Resok4.Delegation.Stateid(); id != nil {
		if x := c.ids.given(c.at, id, plan.DelegationState, o, nil); x != nil {
			x.client = s.clientsIn[w.Client-1]
		}
	}
}

func openConfirm4(c *compound, a *nfs4.OPEN_CONFIRM4args, r *nfs4.OPEN_CONFIRM4res) {
	o := c.Current.real()
	st := c.ids.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, order.Writes)
	c.ids.seqid("seqid", c.ids.ownerOf(st, "open"), a.Seqid)
	if r != nil {
		c.ids.given(c.at, &r.Resok4.OpenStateid, plan.OpenState, o, nil)
	}
}

func openDowngrade4(c *compound, a *nfs4.OPEN_DOWNGRADE4args, r *nfs4.OPEN_DOWNGRADE4res) {
	o := c.Current.real()
	st := c.ids.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, order.Writes)
	c.ids.seqid("seqid", c.ids.ownerOf(st, "open"), a.Seqid)
	c.form.u32("share_access", uint32(a.ShareAccess))
	c.form.u32("share_deny", a.ShareDeny)
	if r != nil {
		c.ids.given(c.at, &r.Resok4.OpenStateid, plan.OpenState, o, nil)
	}
}
