package nfs4

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// mechanism is the Kerberos mechanism, 1.2.840.113554.1.2.2 (RFC 1964, section 1).
var mechanism = []byte{0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// wrongSecurity reports whether an operation would set a filehandle that must not be used
// with the flavor of the call. Only asking for the allowed flavors is permitted (RFC 8881,
// section 2.6.3.1.1).
func (x *compound) wrongSecurity(number uint32) bool {
	switch nfs4.NfsOpnum4(number) {
	case nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_PUTPUBFH:
	default:
		return false
	}
	if x.c.Allowed() {
		return false
	}
	if n := x.index + 1; n < len(x.args.Ops) {
		switch nfs4.NfsOpnum4(x.args.Ops[n].Number) {
		case nfs4.OP_SECINFO, nfs4.OP_SECINFO_NO_NAME:
			return false
		}
	}
	return true
}

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

// inDirectory converts the error of an operation in the directory fh: a symbolic link in its
// place has an error of its own (RFC 8881, section 15.1.2.10).
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

// secinfo lists the flavors, which are the same everywhere on this server.
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
	flavors := x.c.Server().Flavors()
	b := xdr.AppendUint32(x.c.Out, uint32(len(flavors)))
	for _, f := range flavors {
		s := nfs4.Secinfo4{Flavor: nfs4.Secflavor4(f)}
		if f >= oncrpc.PseudoKrb5 && f <= oncrpc.PseudoKrbP {
			s.Flavor = nfs4.RPCSEC_GSS
			s.FlavorInfo = nfs4.RpcsecGssInfo{Oid: mechanism, Service: nfs4.RpcGssSvcT(f - oncrpc.PseudoKrb5 + 1)}
		}
		b = s.Append(b)
	}
	x.c.Out = b
	if x.minor > 0 || !x.c.Allowed() {
		x.hasFH = false // RFC 8881, section 2.6.3.1.1.8: it is used up
	}
}
