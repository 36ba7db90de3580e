package nfs4

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// wants are the bits of share_access that ask for delegations.
const wants = nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_MASK |
	nfs4.OPEN4_SHARE_ACCESS_WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL |
	nfs4.OPEN4_SHARE_ACCESS_WANT_PUSH_DELEG_WHEN_UNCONTENDED |
	nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS |
	nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION

// openOps executes the operations on open files.
type openOps struct {
	*request
	*objects
	*turns
	*attrReader
	sender *sender
	files  *guard
	wcc    store.Wcc
}

func (x *openOps) open(a *nfs4.OPEN4args) status {
	if st, done := x.begin(x.s.table.Opens.Begin(x.client, &a.Owner, a.Seqid, x.principal())); done {
		return st
	}
	access := uint32(a.ShareAccess)
	if x.minor > 0 {
		access &^= wants
	}
	if access == 0 || access&^nfs4.OPEN4_SHARE_ACCESS_BOTH != 0 || a.ShareDeny&^nfs4.OPEN4_SHARE_DENY_BOTH != 0 {
		return nfs4.NFS4ERR_INVAL
	}
	reclaim := false
	switch a.Claim.Claim {
	case nfs4.CLAIM_NULL:
	case nfs4.CLAIM_PREVIOUS:
		reclaim = true
	case nfs4.CLAIM_FH:
		if x.minor == 0 {
			return nfs4.NFS4ERR_BADXDR
		}
	case nfs4.CLAIM_DELEGATE_CUR:
	case nfs4.CLAIM_DELEG_CUR_FH:
		if x.minor == 0 {
			return nfs4.NFS4ERR_BADXDR
		}
	default:
		return nfs4.NFS4ERR_NOTSUPP // delegations do not outlive a client
	}
	if st := x.s.table.Opens.Admit(x.turn, reclaim); st != ok {
		return st
	}

	o := opening{access: access}
	x.sender.isBy(x.turn.Client())
	st := x.find(a, &o)
	if st == ok {
		st = x.fromDelegation(a, access)
	}
	if st != ok {
		return st
	}
	// From here on x.attr has the attributes of the file.
	sid, confirm, st := x.s.table.Opens.Open(x.turn, x.attr.Handle, access, a.ShareDeny)
	if st != ok {
		return st
	}
	if o.truncate {
		x.set = store.SetAttr{Mask: store.SetSize, Size: o.size}
		x.c.Cred.Bypass = true // as found: the file may be written
		err := x.files.SetAttr(&x.c.Cred, x.attr.Handle, &x.set, &x.wcc)
		x.c.Cred.Bypass = false
		if err != nil {
			// The open stays: the client does not know about it, and closes it together with its
			// next open of the file.
			return statusOf(err)
		}
		x.attr = x.wcc.After
	}
	x.setObject()
	flags := uint32(nfs4.OPEN4_RESULT_LOCKTYPE_POSIX)
	grant := x.delegate(a, access)
	x.setStateid(sid)
	if grant.Type != nfs4.OPEN_DELEGATE_NONE && sid.Seqid == 1 && x.wishes(a, nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION) {
		// The delegation replaces the open, whose stateid no client has seen (RFC 9754, section 3).
		if _, st = x.s.table.Opens.Close(x.client, &sid, x.attr.Handle, x.principal()); st == ok {
			x.setStateid(grant.Stateid)
			sid, flags = nfs4.Stateid4{}, flags|nfs4.OPEN4_RESULT_NO_OPEN_STATEID
		}
	}

	b := sid.Append(x.c.Out)
	b = appendChange(b, &o.dir)
	if confirm {
		flags |= nfs4.OPEN4_RESULT_CONFIRM
	}
	b = xdr.AppendUint32(b, flags)
	b = o.set.append(b)
	x.c.Out = x.appendDelegation(b, a, &grant)
	return ok
}

// claimed is the name in the current directory that an OPEN is for; by is false if it
// is for the current file.
func claimed(a *nfs4.OPEN4args) (name []byte, by bool) {
	switch a.Claim.Claim {
	case nfs4.CLAIM_NULL:
		return a.Claim.File, true
	case nfs4.CLAIM_DELEGATE_CUR:
		return a.Claim.DelegateCurInfo.File, true
	}
	return nil, false
}

// opening is an OPEN that has found its file.
type opening struct {
	access   uint32
	dir      store.Wcc // of the directory
	set      attrSet   // attributes that were set
	truncate bool      // to size, when the shares allow it
	size     uint64
}

// find finds or creates the file of an OPEN and checks the permissions. x.attr
// becomes its attributes.
func (x *openOps) find(a *nfs4.OPEN4args, o *opening) status {
	create := a.Openhow.Opentype == nfs4.OPEN4_CREATE
	name, byName := claimed(a)
	if create && a.Claim.Claim != nfs4.CLAIM_NULL {
		return nfs4.NFS4ERR_INVAL
	}
	if !byName {
		if _, st := x.attributes(); st != ok {
			return st
		}
		if st := x.openable(); st != ok {
			return st
		}
		if a.Claim.Claim == nfs4.CLAIM_PREVIOUS {
			return x.reclaimed(o.access)
		}
		return x.permitted(o.access)
	}
	if st := x.name(name); st != ok {
		return st
	}
	if create {
		return x.findCreate(a, o)
	}
	if err := x.s.store.GetAttr(x.fh, &o.dir.Before); err != nil {
		return statusOf(err)
	}
	o.dir.After, o.dir.Atomic = o.dir.Before, true
	if err := x.s.store.Lookup(&x.c.Cred, x.fh, name, &x.attr); err != nil {
		return x.inDirectory(err, x.fh)
	}
	if st := x.openable(); st != ok {
		return st
	}
	return x.permitted(o.access)
}

// openable says whether x.attr is a file that can be opened (RFC 8881, section
// 18.16.4).
func (x *openOps) openable() status {
	st := x.regular(x.attr.Type)
	if st == nfs4.NFS4ERR_INVAL {
		return nfs4.NFS4ERR_SYMLINK // RFC 7530 has none that fits; Linux answers this
	}
	return st
}

// permitted checks that the file of x.attr may be read or written.
func (x *openOps) permitted(access uint32) status {
	want := store.AccessMask(0)
	if access&nfs4.OPEN4_SHARE_ACCESS_READ != 0 {
		want |= store.AccessRead
	}
	if access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0 {
		if x.s.info.ReadOnly {
			return nfs4.NFS4ERR_ROFS
		}
		want |= store.AccessModify
	}
	have, err := x.s.store.Access(&x.c.Cred, x.attr.Handle, want|store.AccessExecute)
	if err != nil {
		return statusOf(err)
	}
	if have&store.AccessExecute != 0 {
		have |= store.AccessRead // running a program requires reading it
	}
	if have&want != want {
		return nfs4.NFS4ERR_ACCESS
	}
	return ok
}

// reclaimed is permitted for a file that the caller had open, or has just created: its owner may
// have removed its own permission since.
func (x *openOps) reclaimed(access uint32) status {
	st := x.permitted(access)
	if st == nfs4.NFS4ERR_ACCESS && x.c.Cred.UID == x.attr.UID {
		return ok
	}
	return st
}

func (x *openOps) findCreate(a *nfs4.OPEN4args, o *opening) status {
	how := &a.Openhow.How
	c := store.Create{}
	st := ok
	switch how.Mode {
	case nfs4.UNCHECKED4, nfs4.GUARDED4:
		if how.Mode == nfs4.GUARDED4 {
			c.Mode = store.Guarded
		}
		o.set, st = x.takeAttrs(&how.Createattrs, creatable)
	case nfs4.EXCLUSIVE4:
		c.Mode = store.Exclusive
		c.Verifier = binary.BigEndian.Uint64(how.Createverf[:])
		x.set = store.SetAttr{} // the client sets them afterwards
	case nfs4.EXCLUSIVE4_1:
		if x.minor == 0 {
			return nfs4.NFS4ERR_BADXDR
		}
		c.Mode = store.Exclusive
		c.Verifier = binary.BigEndian.Uint64(how.ChCreateboth.CvaVerf[:])
		o.set, st = x.takeAttrs(&how.ChCreateboth.CvaAttrs, creatable)
	default:
		return nfs4.NFS4ERR_BADXDR
	}
	if st != ok {
		return st
	}
	c.Set = x.set
	if c.Mode == store.Unchecked {
		// An existing file is truncated only when the shares allow it.
		c.Set.Mask &^= store.SetSize
	}
	created, err := x.files.Create(&x.c.Cred, x.fh, a.Claim.File, &c, &x.attr, &o.dir)
	if err != nil {
		return x.inDirectory(err, x.fh)
	}
	sized := x.set.Mask&store.SetSize != 0
	switch {
	case created && c.Mode == store.Unchecked:
		o.truncate, o.size = sized && x.set.Size > 0, x.set.Size
		return ok
	case created:
		return ok
	case c.Mode == store.Exclusive:
		// A retransmitted exclusive create finds the file that it has made. So does anyone else
		// who knows the verifier, which need not be secret.
		return x.reclaimed(o.access)
	}
	if st = x.openable(); st != ok {
		return st
	}
	o.set = attrSet{}
	access := o.access
	if sized && x.set.Size == 0 {
		// All other attributes, and other sizes, are for new files (RFC 8881,
		// section 18.16.3).
		o.truncate, o.size = true, 0
		o.set.add(nfs4.FATTR4_SIZE)
		access |= nfs4.OPEN4_SHARE_ACCESS_WRITE
	}
	return x.permitted(access)
}

func (x *openOps) closeOp(a *nfs4.CLOSE4args) status {
	id, st := x.stateid(&a.OpenStateid)
	if st != ok {
		return st
	}
	if st, done := x.begin(x.s.table.Stateids.Begin(x.client, id, a.Seqid, nfs4.OP_CLOSE, x.principal())); done {
		return st
	}
	return x.result(x.s.table.Opens.Close(x.client, id, x.fh, x.principal()))
}

func (x *openOps) openConfirm(a *nfs4.OPEN_CONFIRM4args) status {
	if st, done := x.begin(x.s.table.Stateids.Begin(nil, &a.OpenStateid, a.Seqid, nfs4.OP_OPEN_CONFIRM, x.principal())); done {
		return st
	}
	return x.result(x.s.table.Opens.Confirm(&a.OpenStateid, x.fh, x.principal()))
}

func (x *openOps) openDowngrade(a *nfs4.OPEN_DOWNGRADE4args) status {
	id, st := x.stateid(&a.OpenStateid)
	if st != ok {
		return st
	}
	if st, done := x.begin(x.s.table.Stateids.Begin(x.client, id, a.Seqid, nfs4.OP_OPEN_DOWNGRADE, x.principal())); done {
		return st
	}
	access, deny := uint32(a.ShareAccess), a.ShareDeny
	if x.minor > 0 {
		access &^= wants
	}
	if access&^nfs4.OPEN4_SHARE_ACCESS_BOTH != 0 || deny&^nfs4.OPEN4_SHARE_DENY_BOTH != 0 {
		return nfs4.NFS4ERR_INVAL
	}
	return x.result(x.s.table.Opens.Downgrade(x.client, id, x.fh, access, deny, x.principal()))
}
