package nfs4

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// attrReader reads the attributes that a client sets.
type attrReader struct {
	*request
	attrs nfs4.Attrs
	set   store.SetAttr
}

// takeAttrs fills x.set with the attributes of f, which must be among allowed. It returns the set
// of them.
func (x *attrReader) takeAttrs(f *nfs4.Fattr4, allowed attrSet) (given attrSet, st status) {
	x.set = store.SetAttr{}
	given, beyond := setOf(f.Attrmask.Bitmap4)
	allowed = allowed.and(x.s.supported[x.minor])
	switch {
	case beyond, given.and(x.s.supported[x.minor]) != given:
		return given, nfs4.NFS4ERR_ATTRNOTSUPP
	case given.and(allowed) != given:
		return given, nfs4.NFS4ERR_INVAL
	}
	a := &x.attrs
	if err := a.Decode(f); err != nil || a.Partial {
		return given, nfs4.NFS4ERR_BADXDR
	}
	s := &x.set
	if given.has(nfs4.FATTR4_SIZE) {
		s.Mask |= store.SetSize
		s.Size = a.Size
		if a.Size > x.s.info.MaxFileSize {
			return given, nfs4.NFS4ERR_FBIG
		}
	}
	if given.has(nfs4.FATTR4_MODE) {
		if a.Mode&^store.ModeMask != 0 {
			return given, nfs4.NFS4ERR_INVAL
		}
		s.Mask |= store.SetMode
		s.Mode = a.Mode
	}
	if given.has(nfs4.FATTR4_MODE_UMASK) {
		if given.has(nfs4.FATTR4_MODE) || (a.ModeUmask.MuMode|a.ModeUmask.MuUmask)&^store.ModeMask != 0 {
			return given, nfs4.NFS4ERR_INVAL
		}
		s.Mask |= store.SetMode
		s.Mode = a.ModeUmask.MuMode &^ (a.ModeUmask.MuUmask & store.ModePermMask) // RFC 8275, section 5: there is no default ACL
	}
	if given.has(nfs4.FATTR4_OWNER) {
		if s.UID, st = x.id(a.Owner, false); st != ok {
			return given, st
		}
		s.Mask |= store.SetUID
	}
	if given.has(nfs4.FATTR4_OWNER_GROUP) {
		if s.GID, st = x.id(a.OwnerGroup, true); st != ok {
			return given, st
		}
		s.Mask |= store.SetGID
	}
	if given.has(nfs4.FATTR4_TIME_ACCESS_SET) {
		if st = takeTime(&a.TimeAccessSet, &s.Atime, &s.Mask, store.SetAtime, store.SetAtimeNow); st != ok {
			return given, st
		}
	}
	if given.has(nfs4.FATTR4_TIME_MODIFY_SET) {
		if st = takeTime(&a.TimeModifySet, &s.Mtime, &s.Mask, store.SetMtime, store.SetMtimeNow); st != ok {
			return given, st
		}
	}
	return given, ok
}

func takeTime(from *nfs4.Settime4, to *store.Time, mask *store.AttrMask, set, now store.AttrMask) status {
	if from.SetIt != nfs4.SET_TO_CLIENT_TIME4 {
		*mask |= now
		return ok
	}
	if from.Time.Nseconds >= 1e9 {
		return nfs4.NFS4ERR_INVAL
	}
	*mask |= set
	*to = store.Time{Sec: from.Time.Seconds, Nsec: from.Time.Nseconds}
	return ok
}

// id reads a user or a group: a number, a name that has the same number everywhere, or
// one that Options.Names knows. Clients with Kerberos send names.
func (x *attrReader) id(b []byte, group bool) (uint32, status) {
	id, st := parseID(b)
	if names := x.s.opt.Names; st == nfs4.NFS4ERR_BADOWNER && names != nil && len(b) <= maxOwner {
		if name, _, qualified := bytes.Cut(b, []byte("@")); qualified {
			if id, known := names(string(name), group); known {
				return id, ok
			}
		}
	}
	return id, st
}

// maxOwner bounds the names of users and groups in bytes.
const maxOwner = 512

// parseID reads a number, or a name that has the same number everywhere.
func parseID(b []byte) (uint32, status) {
	if len(b) == 0 {
		return 0, nfs4.NFS4ERR_INVAL
	}
	name, _, _ := bytes.Cut(b, []byte("@"))
	switch string(name) {
	case "root":
		return 0, ok
	case "nobody", "nogroup":
		return 65534, ok
	}
	if len(b) > 10 {
		return 0, nfs4.NFS4ERR_BADOWNER
	}
	n, err := strconv.ParseUint(string(b), 10, 32)
	if err != nil {
		return 0, nfs4.NFS4ERR_BADOWNER
	}
	return uint32(n), ok
}

func (x *attrOps) setattr(a *nfs4.SETATTR4args) status {
	given, st := x.setattrs(a)
	if st == ok {
		x.c.Out = given.append(x.c.Out)
	}
	return st
}

func (x *attrOps) setattrs(a *nfs4.SETATTR4args) (given attrSet, st status) {
	if given, st = x.takeAttrs(&a.ObjAttributes, settable); st != ok {
		return given, st
	}
	cred := x.c.Cred
	if x.set.Mask&store.SetSize != 0 {
		id, st := x.stateid(&a.Stateid)
		if st != ok {
			return given, st
		}
		if cred.Bypass, st = x.s.table.Stateids.CheckIO(x.client, id, x.fh, true, x.principal()); st != ok {
			return given, st
		}
		// Bypass is for data. A caller that also sets other attributes needs permission for them.
		cred.Bypass = cred.Bypass && x.set.Mask == store.SetSize
	}
	if given.has(nfs4.FATTR4_TIME_DELEG_ACCESS) || given.has(nfs4.FATTR4_TIME_DELEG_MODIFY) {
		if st = x.takeKept(&cred, &a.Stateid, given); st != ok {
			return given, st
		}
	}
	x.sender.identify(&a.Stateid)
	err := x.files.SetAttr(&cred, x.fh, &x.set, &x.wcc)
	if errors.Is(err, store.ErrIsDir) {
		return given, nfs4.NFS4ERR_ISDIR
	}
	return given, statusOf(err)
}

// takeKept adds to x.set the times that the holder of a delegation has kept.
func (x *attrOps) takeKept(cred *store.Cred, sid *nfs4.Stateid4, given attrSet) status {
	id, st := x.stateid(sid)
	if st != ok {
		return st
	}
	was, mine, st := x.s.table.Delegations.Times(x.client, id, x.fh, x.principal())
	if st != ok {
		return st
	}
	if x.attrs.TimeDelegAccess.Nseconds >= 1e9 || x.attrs.TimeDelegModify.Nseconds >= 1e9 {
		return nfs4.NFS4ERR_INVAL
	}
	cred.Bypass = cred.Bypass || mine && x.set.Mask == 0 // whoever may read a file moves its atime
	if given.has(nfs4.FATTR4_TIME_DELEG_ACCESS) {
		if t, used := keptTime(x.attrs.TimeDelegAccess, was.Atime); used {
			x.set.Mask, x.set.Atime = x.set.Mask|store.SetAtime, t
		}
	}
	if given.has(nfs4.FATTR4_TIME_DELEG_MODIFY) {
		if t, used := keptTime(x.attrs.TimeDelegModify, was.Mtime); used {
			x.set.Mask, x.set.Mtime = x.set.Mask|store.SetMtime, t
		}
	}
	return ok
}
