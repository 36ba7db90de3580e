package v3

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

const garbage = oncrpc.GarbageArgs

// File handles are the store's, and so the same as in NFSv4: who has mounted a
// directory over both, or replays such a capture, may use one for the other, as
// with most servers.

// parse reads a file handle.
func (s *server) parse(b []byte) (store.Handle, error) { return s.info.Handles.Open(b) }

func (s *server) appendHandle(b []byte, h store.Handle) []byte {
	return s.info.Handles.Append(xdr.AppendUint32(b, store.HandleSize), h)
}

// Status is the NFSv3 status of an error of a store.
func Status(err error) nfs3.Nfsstat3 {
	switch e := store.Of(err); e {
	case store.ErrBadName, store.ErrWrongType, store.ErrXattrTooBig:
		return nfs3.NFS3ERR_INVAL
	case store.ErrNoXattr:
		return nfs3.NFS3ERR_NOENT
	case store.ErrFileOpen:
		return nfs3.NFS3ERR_ACCES // as Linux has it
	default:
		return nfs3.Nfsstat3(e)
	}
}

// PostOpAttr fills post_op_attr with the attributes of an object of a store, as
// they are known with NFSv3.
func PostOpAttr(info *store.Info, a *store.Attr) nfs3.PostOpAttr {
	return nfs3.PostOpAttr{AttributesFollow: true, Attributes: attributes(fsid(info), a)}
}

func fsid(info *store.Info) uint64 { return info.FSID[0]<<32 ^ info.FSID[1] }

func attributes(fsid uint64, a *store.Attr) nfs3.Fattr3 {
	return nfs3.Fattr3{
		Type: nfs3.Ftype3(a.Type), Mode: a.Mode, Nlink: a.Nlink, Uid: a.UID, Gid: a.GID, Size: a.Size, Used: a.Used,
		Rdev: nfs3.Specdata3{Specdata1: a.Rdev.Major, Specdata2: a.Rdev.Minor},
		Fsid: fsid, Fileid: a.Handle.ID,
		Atime: toTime(a.Atime), Mtime: toTime(a.Mtime), Ctime: toTime(a.Ctime),
	}
}

func toTime(t store.Time) nfs3.Nfstime3 {
	return nfs3.Nfstime3{Seconds: uint32(t.Sec), Nseconds: t.Nsec}
}

// fromTime reads a time; nanoseconds are below 1e9 afterwards.
func fromTime(t nfs3.Nfstime3) store.Time {
	return store.Time{Sec: int64(t.Seconds), Nsec: min(t.Nseconds, 999_999_999)}
}

func (s *server) appendAttr(b []byte, a *store.Attr) []byte {
	f := attributes(s.fsid, a)
	return f.Append(b)
}

// postAttr appends post_op_attr.
func (s *server) postAttr(b []byte, a *store.Attr) []byte {
	return s.appendAttr(xdr.AppendBool(b, true), a)
}

// postOp appends post_op_attr of an object, as far as it exists.
func (s *server) postOp(b []byte, h store.Handle, a *store.Attr) []byte {
	if s.store.GetAttr(h, a) != nil {
		return xdr.AppendBool(b, false)
	}
	return s.postAttr(b, a)
}

// wcc appends wcc_data.
func (s *server) wcc(b []byte, w *store.Wcc) []byte {
	// RFC 1813, section 2.6: attributes before an operation are only given if
	// nothing else came between.
	b = xdr.AppendBool(b, w.Atomic)
	if w.Atomic {
		before := nfs3.WccAttr{Size: w.Before.Size, Mtime: toTime(w.Before.Mtime), Ctime: toTime(w.Before.Ctime)}
		b = before.Append(b)
	}
	return s.postAttr(b, &w.After)
}

// wccAfter appends wcc_data of an operation that has failed.
func (s *server) wccAfter(b []byte, h store.Handle, a *store.Attr) []byte {
	return s.postOp(xdr.AppendBool(b, false), h, a)
}

// fillSet converts sattr3 into st.
func fillSet(st *store.SetAttr, a *nfs3.Sattr3) *store.SetAttr {
	*st = store.SetAttr{}
	if a.Mode.SetIt {
		st.Mask, st.Mode = st.Mask|store.SetMode, a.Mode.Mode&store.ModeMask
	}
	if a.Uid.SetIt {
		st.Mask, st.UID = st.Mask|store.SetUID, a.Uid.Uid
	}
	if a.Gid.SetIt {
		st.Mask, st.GID = st.Mask|store.SetGID, a.Gid.Gid
	}
	if a.Size.SetIt {
		st.Mask, st.Size = st.Mask|store.SetSize, a.Size.Size
	}
	switch a.Atime.SetIt {
	case nfs3.SET_TO_SERVER_TIME:
		st.Mask |= store.SetAtimeNow
	case nfs3.SET_TO_CLIENT_TIME:
		st.Mask, st.Atime = st.Mask|store.SetAtime, fromTime(a.Atime.Atime)
	}
	switch a.Mtime.SetIt {
	case nfs3.SET_TO_SERVER_TIME:
		st.Mask |= store.SetMtimeNow
	case nfs3.SET_TO_CLIENT_TIME:
		st.Mask, st.Mtime = st.Mask|store.SetMtime, fromTime(a.Mtime.Mtime)
	}
	return st
}

// dot reports whether a name is "." or "..".
func dot(name []byte) bool { return string(name) == "." || string(name) == ".." }
