package nfs4

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func TestStatusOf(t *testing.T) {
	for e, want := range map[store.Error]status{
		0:                    nfs4.NFS4_OK,
		store.ErrPerm:        nfs4.NFS4ERR_PERM,
		store.ErrNoEnt:       nfs4.NFS4ERR_NOENT,
		store.ErrIO:          nfs4.NFS4ERR_IO,
		store.ErrNXIO:        nfs4.NFS4ERR_NXIO,
		store.ErrAccess:      nfs4.NFS4ERR_ACCESS,
		store.ErrExist:       nfs4.NFS4ERR_EXIST,
		store.ErrXDev:        nfs4.NFS4ERR_XDEV,
		store.ErrNoDev:       nfs4.NFS4ERR_INVAL,
		store.ErrNotDir:      nfs4.NFS4ERR_NOTDIR,
		store.ErrIsDir:       nfs4.NFS4ERR_ISDIR,
		store.ErrInval:       nfs4.NFS4ERR_INVAL,
		store.ErrFBig:        nfs4.NFS4ERR_FBIG,
		store.ErrNoSpace:     nfs4.NFS4ERR_NOSPC,
		store.ErrROFS:        nfs4.NFS4ERR_ROFS,
		store.ErrMLink:       nfs4.NFS4ERR_MLINK,
		store.ErrNameTooLong: nfs4.NFS4ERR_NAMETOOLONG,
		store.ErrNotEmpty:    nfs4.NFS4ERR_NOTEMPTY,
		store.ErrDQuot:       nfs4.NFS4ERR_DQUOT,
		store.ErrStale:       nfs4.NFS4ERR_STALE,
		store.ErrBadHandle:   nfs4.NFS4ERR_BADHANDLE,
		store.ErrNotSync:     nfs4.NFS4ERR_DELAY, // the guard is not used
		store.ErrBadCookie:   nfs4.NFS4ERR_BAD_COOKIE,
		store.ErrNotSupp:     nfs4.NFS4ERR_NOTSUPP,
		store.ErrServerFault: nfs4.NFS4ERR_SERVERFAULT,
		store.ErrBadType:     nfs4.NFS4ERR_BADTYPE,
		store.ErrDelay:       nfs4.NFS4ERR_DELAY,
		store.ErrBadName:     nfs4.NFS4ERR_BADNAME,
		store.ErrWrongType:   nfs4.NFS4ERR_INVAL,
		store.ErrNoXattr:     nfs4.NFS4ERR_NOXATTR,
		store.ErrXattrTooBig: nfs4.NFS4ERR_XATTR2BIG,
		store.ErrFileOpen:    nfs4.NFS4ERR_FILE_OPEN,
		store.ErrTooSmall:    nfs4.NFS4ERR_TOOSMALL,
	} {
		if got := statusOf(e); got != want {
			t.Errorf("%v: %s, want %s", e, got, want)
		}
	}
	if got := statusOf(nil); got != ok {
		t.Error(got)
	}
}
