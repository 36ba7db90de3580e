// Package nfsacl serves version 3 of the NFS ACL side protocol, which goes with
// NFSv3 on the same connection: POSIX access control lists.
//
// An object without a list is reported with a list that equals its mode, with a mask, since
// the protocol requires at least four entries (the Linux server does the same). A store that
// keeps no lists (store.ACLStore) accepts lists that a mode can express.
package nfsacl

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
)

type server struct {
	store store.Store
	info  *store.Info
	acls  store.ACLStore // nil if the store keeps none
}

// New makes the program. The caller closes the store. File handles are the same as in
// package v3.
func New(st store.Store) nfsserver.Program {
	s := &server{store: st, info: st.Info()}
	s.acls, _ = st.(store.ACLStore)
	return nfsserver.Program{
		Name: "nfsacl", Number: nfsacl.NFS_ACL_PROGRAM, Version: nfsacl.NFS_ACL_V3,
		NewState: func() any { return new(state) },
		Procedures: []nfsserver.Procedure{
			nfsacl.ACLPROC3_NULL:   {Name: "NULL", Do: nfsserver.Null, Inline: true},
			nfsacl.ACLPROC3_GETACL: {Name: "GETACL", Do: s.getacl},
			nfsacl.ACLPROC3_SETACL: {Name: "SETACL", Do: s.setacl, Cached: true},
		},
	}
}

// state is the memory of a call.
type state struct {
	attr    store.Attr
	wcc     store.Wcc
	acl     store.ACL
	getArgs nfsacl.GETACL3args
	getRes  nfsacl.GETACL3res
	setArgs nfsacl.SETACL3args
	setRes  nfsacl.SETACL3res
}

// known are the bits of a mask.
const known = nfsacl.NA_ACL | nfsacl.NA_ACLCNT | nfsacl.NA_DFACL | nfsacl.NA_DFACLCNT

// attr fills in post_op_attr of an object, if it exists.
func (s *server) attr(h store.Handle, st *state, p *nfs3.PostOpAttr) {
	p.AttributesFollow = false
	if s.store.GetAttr(h, &st.attr) == nil {
		*p = v3.PostOpAttr(s.info, &st.attr)
	}
}

func (s *server) getacl(c *nfsserver.Call) {
	st := c.State.(*state)
	args, res := &st.getArgs, &st.getRes
	if !c.Decode(args) {
		return
	}
	h, err := s.info.Handles.Open(args.Fh.Data)
	if err == nil && args.Mask&^known != 0 {
		err = store.ErrInval
	}
	if err == nil {
		err = s.store.GetAttr(h, &st.attr)
	}
	res.Status = v3.Status(err)
	if err != nil {
		s.attr(h, st, &res.Resfail.Attr)
		c.Reply(res)
		return
	}
	res.Resok.Attr = v3.PostOpAttr(s.info, &st.attr)
	l := &res.Resok.Acl
	l.Mask, l.Aclcnt, l.Dfaclcnt = args.Mask, 0, 0
	l.Aclent, l.Dfaclent = l.Aclent[:0], l.Dfaclent[:0]
	var access, def store.ACL
	if st.attr.ACLs != nil {
		access, def = st.attr.ACLs.Access, st.attr.ACLs.Default
	}
	if args.Mask&(nfsacl.NA_ACL|nfsacl.NA_ACLCNT) != 0 {
		if access == nil {
			st.acl = store.ModeACL(st.acl[:0], st.attr.Mode)
			access = st.acl
		}
		l.Aclent = appendEntries(l.Aclent, access, &st.attr, 0)
		l.Aclcnt = uint32(len(l.Aclent))
	}
	if args.Mask&(nfsacl.NA_DFACL|nfsacl.NA_DFACLCNT) != 0 {
		l.Dfaclent = appendEntries(l.Dfaclent, def, &st.attr, nfsacl.NA_DEFAULT)
		l.Dfaclcnt = uint32(len(l.Dfaclent))
	}
	// Those who ask for the count alone get no list.
	if args.Mask&nfsacl.NA_ACL == 0 {
		l.Aclent = l.Aclent[:0]
	}
	if args.Mask&nfsacl.NA_DFACL == 0 {
		l.Dfaclent = l.Dfaclent[:0]
	}
	c.Reply(res)
}

var types = [...]uint32{
	store.ACLUserObj: nfsacl.NA_USER_OBJ, store.ACLUser: nfsacl.NA_USER, store.ACLGroupObj: nfsacl.NA_GROUP_OBJ,
	store.ACLGroup: nfsacl.NA_GROUP, store.ACLMask: nfsacl.NA_CLASS_OBJ, store.ACLOther: nfsacl.NA_OTHER_OBJ,
}

// appendEntries appends a list in the form of the protocol. Those for the owner
// and the group name them. A list without a mask gets that of its group.
func appendEntries(dst []nfsacl.Aclent, l store.ACL, a *store.Attr, flag uint32) []nfsacl.Aclent {
	masked := slices.ContainsFunc(l, func(e store.ACLEntry) bool { return e.Tag == store.ACLMask })
	group := uint32(0)
	for _, e := range l {
		x := nfsacl.Aclent{Type: types[e.Tag] | flag, Id: e.ID, Perm: uint32(e.Perm)}
		switch e.Tag {
		case store.ACLUserObj:
			x.Id = a.UID
		case store.ACLGroupObj:
			x.Id, group = a.GID, x.Perm
		case store.ACLOther:
			if !masked {
				dst = append(dst, nfsacl.Aclent{Type: nfsacl.NA_CLASS_OBJ | flag, Perm: group})
			}
		}
		dst = append(dst, x)
	}
	return dst
}

// fromEntries reads a list, which is nil if it has no entries. Normal checks whether it is
// valid.
func fromEntries(list []nfsacl.Aclent, count uint32) (store.ACL, error) {
	if uint64(count) != uint64(len(list)) {
		return nil, store.ErrInval
	}
	if len(list) == 0 {
		return nil, nil
	}
	l := make(store.ACL, 0, len(list))
	mask, group := -1, uint8(0)
	for _, x := range list {
		tag := slices.Index(types[1:], x.Type&^nfsacl.NA_DEFAULT) + 1
		if tag == 0 || x.Perm > 7 {
			return nil, store.ErrInval
		}
		e := store.ACLEntry{Tag: store.ACLTag(tag), Perm: uint8(x.Perm), ID: x.Id}
		switch e.Tag {
		case store.ACLMask:
			mask = len(l)
		case store.ACLGroupObj:
			group = e.Perm
		}
		l = append(l, e)
	}
	// The mask that a list without one was given on its way.
	if len(l) == 4 && mask >= 0 && l[mask].Perm == group {
		l = slices.Delete(l, mask, mask+1)
	}
	return l, l.Normal()
}

func (s *server) setacl(c *nfsserver.Call) {
	st := c.State.(*state)
	args, res := &st.setArgs, &st.setRes
	if !c.Decode(args) {
		return
	}
	h, err := s.info.Handles.Open(args.Fh.Data)
	if err == nil {
		err = s.set(c, h, &args.Acl)
	}
	res.Status = v3.Status(err)
	if err != nil {
		s.attr(h, st, &res.Resfail.Attr)
	} else {
		s.attr(h, st, &res.Resok.Attr)
	}
	c.Reply(res)
}

// set sets those lists that the mask names.
func (s *server) set(c *nfsserver.Call, h store.Handle, a *nfsacl.Secattr) error {
	if a.Mask&^known != 0 {
		return store.ErrInval
	}
	var access, def *store.ACL
	for _, x := range []struct {
		bit   uint32
		list  []nfsacl.Aclent
		count uint32
		to    **store.ACL
	}{{nfsacl.NA_ACL, a.Aclent, a.Aclcnt, &access}, {nfsacl.NA_DFACL, a.Dfaclent, a.Dfaclcnt, &def}} {
		if a.Mask&x.bit == 0 {
			continue
		}
		l, err := fromEntries(x.list, x.count)
		if err != nil {
			return err
		}
		*x.to = &l
	}
	st := c.State.(*state)
	if s.acls != nil {
		return s.acls.SetACL(&c.Cred, h, access, def, &st.wcc)
	}
	if def != nil && len(*def) > 0 {
		return store.ErrNotSupp
	}
	if access == nil || len(*access) == 0 {
		return s.store.GetAttr(h, &st.attr) // there is none to be removed
	}
	if err := s.store.GetAttr(h, &st.attr); err != nil {
		return err
	}
	mode, all := access.Mode(st.attr.Mode)
	if !all {
		return store.ErrNotSupp
	}
	return s.store.SetAttr(&c.Cred, h, &store.SetAttr{Mask: store.SetMode, Mode: mode}, &st.wcc)
}
