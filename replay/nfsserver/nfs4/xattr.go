package nfs4

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Extended attributes (RFC 8276). Linux knows them as user.*; the prefix is not
// sent.

// xattrOps executes the operations on extended attributes.
type xattrOps struct {
	*request
	*objects
	*reply
	files *guard
	wcc   store.Wcc
	buf   []byte
}

func (x *xattrOps) getxattr(a *nfs4.GETXATTR4args) status {
	if !x.s.info.Xattrs {
		return nfs4.NFS4ERR_NOTSUPP
	}
	v, err := x.s.store.GetXattr(&x.c.Cred, x.fh, a.GxaName, x.buf[:0])
	if err != nil {
		return statusOf(err)
	}
	x.buf = v
	x.c.Out = xdr.AppendOpaque(x.c.Out, v)
	return ok
}

func (x *xattrOps) setxattr(a *nfs4.SETXATTR4args) status {
	if !x.s.info.Xattrs {
		return nfs4.NFS4ERR_NOTSUPP
	}
	var how store.XattrMode
	switch a.SxaOption {
	case nfs4.SETXATTR4_EITHER:
		how = store.XattrEither
	case nfs4.SETXATTR4_CREATE:
		how = store.XattrCreate
	case nfs4.SETXATTR4_REPLACE:
		how = store.XattrReplace
	default:
		return nfs4.NFS4ERR_INVAL
	}
	if err := x.files.SetXattr(&x.c.Cred, x.fh, a.SxaKey, a.SxaValue, how, &x.wcc); err != nil {
		return statusOf(err)
	}
	x.c.Out = appendChange(x.c.Out, &x.wcc)
	return ok
}

func (x *xattrOps) removexattr(a *nfs4.REMOVEXATTR4args) status {
	if !x.s.info.Xattrs {
		return nfs4.NFS4ERR_NOTSUPP
	}
	if err := x.files.RemoveXattr(&x.c.Cred, x.fh, a.RxaName, &x.wcc); err != nil {
		return statusOf(err)
	}
	x.c.Out = appendChange(x.c.Out, &x.wcc)
	return ok
}

// listxattrs is LISTXATTRS. The cookie counts the names already listed.
func (x *xattrOps) listxattrs(a *nfs4.LISTXATTRS4args) status {
	if !x.s.info.Xattrs {
		return nfs4.NFS4ERR_NOTSUPP
	}
	const frame = 8 + 4 + 4 // cookie, number of names, eof
	room := min(uint64(a.LxaMaxcount), uint64(x.room()))
	if room < frame {
		return nfs4.NFS4ERR_TOOSMALL
	}
	c := x.c
	start := len(c.Out)
	limit := start + int(room) - 4
	c.Out = append(c.Out, make([]byte, 12)...)
	at, told, full := uint64(0), uint32(0), false
	err := x.s.store.ListXattrs(&c.Cred, x.fh, func(name []byte) bool {
		if at++; at <= a.LxaCookie {
			return true
		}
		if len(c.Out)+4+(len(name)+3)&^3 > limit {
			full = true
			return false
		}
		c.Out = xdr.AppendOpaque(c.Out, name)
		told++
		return true
	})
	switch {
	case err != nil:
		return statusOf(err)
	case a.LxaCookie > at:
		return nfs4.NFS4ERR_BAD_COOKIE
	case full && told == 0:
		return nfs4.NFS4ERR_TOOSMALL
	}
	binary.BigEndian.PutUint64(c.Out[start:], a.LxaCookie+uint64(told))
	binary.BigEndian.PutUint32(c.Out[start+8:], told)
	c.Out = xdr.AppendBool(c.Out, !full)
	return ok
}
