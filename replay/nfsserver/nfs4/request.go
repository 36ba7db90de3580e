package nfs4

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// request is what an operation knows of the COMPOUND that it is in.
type request struct {
	s      *Server
	c      *nfsserver.Call
	minor  uint32
	count  uint32        // of operations
	index  int           // of the operation
	client *state.Client // of the session, nil in NFSv4.0
}

// principal is the user who sent the call, before squashing: root and nobody differ, though
// the server may map root to nobody.
func (r *request) principal() state.Principal {
	return state.Principal(uint64(r.c.Flavor)<<32 | uint64(r.c.User))
}

// who is the sender of the call and its address.
func (r *request) who() state.Who {
	return state.Who{Principal: r.principal(), Source: r.c.Peer().Source()}
}

// name checks a component (RFC 8881, section 14.5 and 15.1.2).
func (r *request) name(b []byte) status {
	switch {
	case len(b) == 0:
		return nfs4.NFS4ERR_INVAL
	case uint64(len(b)) > uint64(r.s.info.MaxName):
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
func (r *request) inDirectory(err error, fh store.Handle) status {
	st := statusOf(err)
	if st == nfs4.NFS4ERR_NOTDIR {
		var a store.Attr
		if r.s.store.GetAttr(fh, &a) == nil && a.Type == store.Symlink {
			return nfs4.NFS4ERR_SYMLINK
		}
	}
	return st
}

// regular checks that an object is a regular file; other objects have their own statuses (RFC
// 8881, section 15.1.2.9), of which NFSv4.0 has fewer.
func (r *request) regular(t store.Type) status {
	switch {
	case t == store.Regular:
		return ok
	case t == store.Directory:
		return nfs4.NFS4ERR_ISDIR
	case r.minor == 0:
		return nfs4.NFS4ERR_INVAL
	case t == store.Symlink:
		return nfs4.NFS4ERR_SYMLINK
	}
	return nfs4.NFS4ERR_WRONG_TYPE
}

// dataError is the status for an error of an operation on the data of an object.
func (r *request) dataError(err error, h store.Handle) status {
	switch store.Of(err) {
	case store.ErrInval, store.ErrWrongType:
		var a store.Attr
		if r.s.store.GetAttr(h, &a) == nil && a.Type != store.Regular {
			return r.regular(a.Type)
		}
	}
	return statusOf(err)
}
