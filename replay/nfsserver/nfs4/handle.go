package nfs4

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// setFH makes h the current filehandle.
func (x *compound) setFH(h store.Handle) {
	x.fh, x.hasFH, x.hasSid = h, true, false
	x.moved = true
}

// setObject makes the object of x.attr the current one.
func (x *compound) setObject() {
	x.setFH(x.attr.Handle)
	x.attrAt = x.index
}

func (x *compound) putfh(a *nfs4.PUTFH4args) status {
	h, err := x.s.info.Handles.Open(a.Object)
	if err != nil {
		return statusOf(err)
	}
	if err = x.s.store.GetAttr(h, &x.attr); err != nil {
		return statusOf(err)
	}
	x.setFH(h)
	x.attrAt = x.index
	return ok
}

func (x *compound) putrootfh() status {
	x.setFH(x.s.root)
	return ok
}

func (x *compound) getfh() status {
	x.c.Out = x.s.appendHandle(x.c.Out, x.fh)
	if x.attrAt+1 == x.index {
		x.attrAt = x.index
	}
	return ok
}

func (x *compound) savefh() status {
	x.saved, x.hasSaved = x.fh, true
	x.savedSid, x.hasSavedSid = x.sid, x.hasSid
	return ok
}

func (x *compound) restorefh() status {
	x.setFH(x.saved)
	x.sid, x.hasSid = x.savedSid, x.hasSavedSid
	return ok
}

// name checks a component (RFC 8881, section 14.5 and 15.1.2).
func (x *compound) name(b []byte) status {
	switch {
	case len(b) == 0:
		return nfs4.NFS4ERR_INVAL
	case uint64(len(b)) > uint64(x.s.info.MaxName):
		return nfs4.NFS4ERR_NAMETOOLONG
	case string(b) == ".", string(b) == "..":
		return nfs4.NFS4ERR_BADNAME
	case bytes.IndexByte(b, 0) >= 0, bytes.IndexByte(b, '/') >= 0:
		return nfs4.NFS4ERR_BADCHAR
	}
	return ok
}

// inDirectory turns the error of an operation in the directory fh: what is a
// symbolic link instead is told apart from other objects (RFC 8881, section
// 15.1.2.10).
func (x *compound) inDirectory(err error, fh store.Handle) status {
	st := statusOf(err)
	if st == nfs4.NFS4ERR_NOTDIR {
		var a store.Attr
		if x.s.store.GetAttr(fh, &a) == nil && a.Type == store.Symlink {
			return nfs4.NFS4ERR_SYMLINK
		}
	}
	return st
}

func (x *compound) lookup(a *nfs4.LOOKUP4args) status {
	if st := x.name(a.Objname); st != ok {
		return st
	}
	if err := x.s.store.Lookup(&x.c.Cred, x.fh, a.Objname, &x.attr); err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.setObject()
	return ok
}

func (x *compound) lookupp() status {
	if x.fh == x.s.root {
		return nfs4.NFS4ERR_NOENT
	}
	h, err := x.s.store.Parent(&x.c.Cred, x.fh)
	if err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.setFH(h)
	return ok
}

func (x *compound) access(a *nfs4.ACCESS4args) status {
	at, st := x.attributes()
	if st != ok {
		return st
	}
	known := uint32(nfs4.ACCESS4_READ | nfs4.ACCESS4_MODIFY | nfs4.ACCESS4_EXTEND)
	switch at.Type {
	case store.Directory:
		known |= nfs4.ACCESS4_LOOKUP | nfs4.ACCESS4_DELETE
	case store.Regular:
		known |= nfs4.ACCESS4_EXECUTE
	default:
		known |= nfs4.ACCESS4_EXECUTE
	}
	if x.minor >= 2 && x.s.info.Xattrs {
		known |= nfs4.ACCESS4_XAREAD | nfs4.ACCESS4_XAWRITE | nfs4.ACCESS4_XALIST
	}
	want := a.Access & known
	have, err := x.s.store.Access(&x.c.Cred, x.fh, store.AccessMask(want))
	if err != nil {
		return statusOf(err)
	}
	x.c.Out = xdr.AppendUint32(xdr.AppendUint32(x.c.Out, want), uint32(have)&want)
	return ok
}

// secinfo says how to authenticate: only as with this server everywhere.
func (x *compound) secinfo(a *nfs4.SECINFO4args) status {
	if st := x.name(a.Name); st != ok {
		return st
	}
	var at store.Attr
	if err := x.s.store.Lookup(&x.c.Cred, x.fh, a.Name, &at); err != nil {
		return x.inDirectory(err, x.fh)
	}
	x.appendFlavors()
	return ok
}

func (x *compound) secinfoNoName(a *nfs4.SECINFO_NO_NAME4args) status {
	switch a.Style {
	case nfs4.SECINFO_STYLE4_CURRENT_FH:
	case nfs4.SECINFO_STYLE4_PARENT:
		if x.fh == x.s.root {
			return nfs4.NFS4ERR_NOENT
		}
		if _, err := x.s.store.Parent(&x.c.Cred, x.fh); err != nil {
			return x.inDirectory(err, x.fh)
		}
	default:
		return nfs4.NFS4ERR_INVAL
	}
	x.appendFlavors()
	return ok
}

func (x *compound) appendFlavors() {
	b := xdr.AppendUint32(x.c.Out, 2)
	b = xdr.AppendUint32(b, uint32(nfs4.AUTH_SYS))
	x.c.Out = xdr.AppendUint32(b, uint32(nfs4.AUTH_NONE))
	if x.minor > 0 {
		x.hasFH = false // RFC 8881, section 2.6.3.1.1.8: it is used up
	}
}
