package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// acl3 reports a call of the ACL protocol that accompanies NFSv3, on the same connection and with
// the same file handles.
func acl3(tx *transaction.Transaction) bool {
	return tx.Program == nfsacl.NFS_ACL_PROGRAM && tx.Version == nfsacl.NFS_ACL_V3 && tx.Procedure <= nfsacl.ACLPROC3_SETACL
}

// proceduresACL are procedures3 for NFSACL.
var proceduresACL = [...]func(c *call3) bool{
	nfsacl.ACLPROC3_GETACL: proc(getacl3),
	nfsacl.ACLPROC3_SETACL: proc(setacl3),
}

func getacl3(c *call3, a *nfsacl.GETACL3args, r *nfsacl.GETACL3res) {
	o := c.fh("fh", a.Fh.Data)
	c.form.u32("mask", a.Mask)
	c.effects.inspects(o)
	if r != nil && o != nil {
		o.post3(&r.Resok.Attr)
		o.learnACL(&r.Resok.Acl)
	}
}

func setacl3(c *call3, a *nfsacl.SETACL3args, r *nfsacl.SETACL3res) {
	o := c.fh("fh", a.Fh.Data)
	c.form.raw("acl", &a.Acl)
	c.effects.alters(o)
	if o = o.real(); o == nil || !c.ok && c.replied {
		return
	}
	o.modeChanged, o.aclChanged = true, true
	if r != nil {
		o.post3(&r.Resok.Attr)
	}
}

// learnACL keeps the lists that an object had before the capture, unless they are equivalent to
// its mode.
func (o *obj) learnACL(a *nfsacl.Secattr) {
	const both = nfsacl.NA_ACL | nfsacl.NA_DFACL
	o = o.real()
	if o == nil || o.origin != plan.Before || o.aclChanged || o.modeChanged || o.acl != nil || a.Mask&nfsacl.NA_ACL == 0 {
		return
	}
	if len(a.Dfaclent) == 0 && plainACL(a.Aclent) {
		return
	}
	set := *a
	set.Mask &= both
	set.Aclcnt, set.Dfaclcnt = uint32(len(a.Aclent)), uint32(len(a.Dfaclent))
	if o.s.b.room.full() {
		return
	}
	o.own().acl = set.Append(nil)
	o.s.b.room.take(len(o.acl))
}

// plainACL reports whether a list is equivalent to a mode: owner, group, others and a mask equal
// to the group, which the protocol requires in addition.
func plainACL(list []nfsacl.Aclent) bool {
	var group, mask uint32
	for i := range list {
		switch list[i].Type {
		case nfsacl.NA_USER_OBJ, nfsacl.NA_OTHER_OBJ:
		case nfsacl.NA_GROUP_OBJ:
			group = list[i].Perm
		case nfsacl.NA_CLASS_OBJ:
			mask = list[i].Perm
		default:
			return false
		}
	}
	return len(list) <= 3 || mask == group
}
