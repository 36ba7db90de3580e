package nfs4

import (
	"encoding/binary"
	"math"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// copyOp is COPY within the server. It is always synchronous. The client asks again for the rest.
func (x *dataOps) copyOp(a *nfs4.COPY4args) status {
	if len(a.CaSourceServer) > 0 {
		return nfs4.NFS4ERR_NOTSUPP // from another server
	}
	if !x.s.info.Copy {
		return nfs4.NFS4ERR_NOTSUPP
	}
	src, st := x.bothOpen(&a.CaSrcStateid, &a.CaDstStateid)
	if st != ok {
		return st
	}
	defer x.forbid()
	count := a.CaCount
	switch {
	case count > math.MaxUint64-a.CaSrcOffset, count > math.MaxUint64-a.CaDstOffset:
		return nfs4.NFS4ERR_INVAL
	case a.CaSrcOffset > src, a.CaSrcOffset+count > src:
		return nfs4.NFS4ERR_INVAL // RFC 7862, section 15.2.3
	}
	if count == 0 {
		count = src - a.CaSrcOffset
	}
	n := uint64(0)
	if count > 0 {
		// The limit covers all COPYs of one COMPOUND together.
		if count = min(count, x.s.opt.MaxCopy-min(x.copied, x.s.opt.MaxCopy)); count == 0 {
			return nfs4.NFS4ERR_DELAY
		}
		var err error
		if n, err = x.files.Copy(&x.c.Cred, x.saved.fh, a.CaSrcOffset, x.fh, a.CaDstOffset, count, &x.wcc); err != nil {
			return x.dataError(err, x.fh)
		}
		x.copied += n
	}
	b := xdr.AppendUint32(x.c.Out, 0) // there will be no callback at the end
	b = xdr.AppendUint64(b, n)
	b = xdr.AppendUint32(b, uint32(nfs4.UNSTABLE4))
	b = binary.BigEndian.AppendUint64(b, x.s.store.Verifier())
	x.c.Out = xdr.AppendBool(xdr.AppendBool(b, true), true) // consecutive, synchronous
	return ok
}

func (x *dataOps) clone(a *nfs4.CLONE4args) status {
	if !x.s.info.Clone {
		return nfs4.NFS4ERR_NOTSUPP
	}
	src, st := x.bothOpen(&a.ClSrcStateid, &a.ClDstStateid)
	if st != ok {
		return st
	}
	defer x.forbid()
	switch {
	case a.ClCount > math.MaxUint64-a.ClSrcOffset, a.ClCount > math.MaxUint64-a.ClDstOffset:
		return nfs4.NFS4ERR_INVAL
	case a.ClSrcOffset > src, a.ClSrcOffset+a.ClCount > src:
		return nfs4.NFS4ERR_INVAL // RFC 7862, section 15.13.3
	}
	return x.dataError(x.files.Clone(&x.c.Cred, x.saved.fh, a.ClSrcOffset, x.fh, a.ClDstOffset, a.ClCount, &x.wcc), x.fh)
}

// bothOpen checks that the saved object may be read and the current one
// written. It returns the size of the saved one.
func (x *dataOps) bothOpen(src, dst *nfs4.Stateid4) (size uint64, st status) {
	if x.minor > 0 && *src == state.Current && x.saved.hasSid {
		src = &x.saved.sid // the one that was saved with the source
	}
	for _, h := range [...]store.Handle{x.fh, x.saved.fh} {
		if err := x.s.store.GetAttr(h, &x.attr); err != nil {
			return 0, statusOf(err)
		}
		if x.attr.Type == store.Directory {
			return 0, nfs4.NFS4ERR_ISDIR
		}
		if x.attr.Type != store.Regular {
			return 0, nfs4.NFS4ERR_WRONG_TYPE
		}
	}
	size = x.attr.Size
	if st = x.allow(src, x.saved.fh, false); st != ok {
		return 0, st
	}
	open := x.c.Cred.Bypass
	if st = x.allow(dst, x.fh, true); st != ok {
		x.forbid()
		return 0, st
	}
	x.c.Cred.Bypass = x.c.Cred.Bypass && open
	return size, ok
}
