package v3

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

func TestStatus(t *testing.T) {
	for e, want := range map[store.Error]nfs3.Nfsstat3{
		0:                    nfs3.NFS3_OK,
		store.ErrPerm:        nfs3.NFS3ERR_PERM,
		store.ErrNoEnt:       nfs3.NFS3ERR_NOENT,
		store.ErrIO:          nfs3.NFS3ERR_IO,
		store.ErrNXIO:        nfs3.NFS3ERR_NXIO,
		store.ErrAccess:      nfs3.NFS3ERR_ACCES,
		store.ErrExist:       nfs3.NFS3ERR_EXIST,
		store.ErrXDev:        nfs3.NFS3ERR_XDEV,
		store.ErrNoDev:       nfs3.NFS3ERR_NODEV,
		store.ErrNotDir:      nfs3.NFS3ERR_NOTDIR,
		store.ErrIsDir:       nfs3.NFS3ERR_ISDIR,
		store.ErrInval:       nfs3.NFS3ERR_INVAL,
		store.ErrFBig:        nfs3.NFS3ERR_FBIG,
		store.ErrNoSpace:     nfs3.NFS3ERR_NOSPC,
		store.ErrROFS:        nfs3.NFS3ERR_ROFS,
		store.ErrMLink:       nfs3.NFS3ERR_MLINK,
		store.ErrNameTooLong: nfs3.NFS3ERR_NAMETOOLONG,
		store.ErrNotEmpty:    nfs3.NFS3ERR_NOTEMPTY,
		store.ErrDQuot:       nfs3.NFS3ERR_DQUOT,
		store.ErrStale:       nfs3.NFS3ERR_STALE,
		store.ErrBadHandle:   nfs3.NFS3ERR_BADHANDLE,
		store.ErrNotSync:     nfs3.NFS3ERR_NOT_SYNC,
		store.ErrBadCookie:   nfs3.NFS3ERR_BAD_COOKIE,
		store.ErrNotSupp:     nfs3.NFS3ERR_NOTSUPP,
		store.ErrServerFault: nfs3.NFS3ERR_SERVERFAULT,
		store.ErrBadType:     nfs3.NFS3ERR_BADTYPE,
		store.ErrDelay:       nfs3.NFS3ERR_JUKEBOX,
		store.ErrBadName:     nfs3.NFS3ERR_INVAL,
		store.ErrWrongType:   nfs3.NFS3ERR_INVAL,
		store.ErrNoXattr:     nfs3.NFS3ERR_NOENT,
		store.ErrXattrTooBig: nfs3.NFS3ERR_INVAL,
		store.ErrFileOpen:    nfs3.NFS3ERR_ACCES, // as Linux has it
		store.ErrTooSmall:    nfs3.NFS3ERR_TOOSMALL,
	} {
		if got := Status(e); got != want {
			t.Errorf("%v: %s, want %s", e, got, want)
		}
	}
	if got := Status(nil); got != nfs3.NFS3_OK {
		t.Error(got)
	}
}
