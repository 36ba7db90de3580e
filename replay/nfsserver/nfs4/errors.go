package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

type status = nfs4.Nfsstat4

const ok = nfs4.NFS4_OK

// statusOf is the status for an error of the store.
func statusOf(err error) status {
	switch e := store.Of(err); e {
	case store.ErrNoDev, store.ErrWrongType:
		return nfs4.NFS4ERR_INVAL
	case store.ErrNotSync:
		return nfs4.NFS4ERR_DELAY // the guard is not used
	default:
		return status(e)
	}
}
