package nfs4

import (
	"encoding/binary"
	"math/bits"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// attrSet is a set of attributes: the words of a bitmap4.
type attrSet [3]uint32

func makeSet(numbers ...int) (s attrSet) {
	for _, n := range numbers {
		s.add(n)
	}
	return s
}

func (s *attrSet) add(n int)            { s[n/32] |= 1 << (n % 32) }
func (s *attrSet) has(n int) bool       { return s[n/32]>>(n%32)&1 != 0 }
func (s attrSet) and(o attrSet) attrSet { return attrSet{s[0] & o[0], s[1] & o[1], s[2] & o[2]} }

// setOf reads a bitmap. beyond says that it has bits that no attrSet has.
func setOf(b nfs4.Bitmap4) (s attrSet, beyond bool) {
	for i := range s {
		s[i] = b.Word(i)
	}
	return s, b.Next(len(s)*32) >= 0
}

// append appends the set as a bitmap4 of as few words as possible.
func (s *attrSet) append(b []byte) []byte {
	n := 3
	for n > 0 && s[n-1] == 0 {
		n--
	}
	b = xdr.AppendUint32(b, uint32(n))
	for _, w := range s[:n] {
		b = xdr.AppendUint32(b, w)
	}
	return b
}

// Attributes that can only be set.
var writeOnly = makeSet(nfs4.FATTR4_TIME_ACCESS_SET, nfs4.FATTR4_TIME_MODIFY_SET, nfs4.FATTR4_MODE_UMASK)

// Attributes that SETATTR takes. mode_umask is for new objects (RFC 8275).
var (
	settable  = makeSet(nfs4.FATTR4_SIZE, nfs4.FATTR4_MODE, nfs4.FATTR4_OWNER, nfs4.FATTR4_OWNER_GROUP, nfs4.FATTR4_TIME_ACCESS_SET, nfs4.FATTR4_TIME_MODIFY_SET)
	creatable = func() attrSet { s := settable; s.add(nfs4.FATTR4_MODE_UMASK); return s }()
	needStat  = makeSet(nfs4.FATTR4_FILES_AVAIL, nfs4.FATTR4_FILES_FREE, nfs4.FATTR4_FILES_TOTAL, nfs4.FATTR4_SPACE_AVAIL, nfs4.FATTR4_SPACE_FREE, nfs4.FATTR4_SPACE_TOTAL)
)

// attributes fills supported_attrs of each minor version.
func (s *Server) attributes() {
	base := makeSet(nfs4.FATTR4_SUPPORTED_ATTRS, nfs4.FATTR4_TYPE, nfs4.FATTR4_FH_EXPIRE_TYPE, nfs4.FATTR4_CHANGE,
		nfs4.FATTR4_SIZE, nfs4.FATTR4_LINK_SUPPORT, nfs4.FATTR4_SYMLINK_SUPPORT, nfs4.FATTR4_NAMED_ATTR, nfs4.FATTR4_FSID,
		nfs4.FATTR4_UNIQUE_HANDLES, nfs4.FATTR4_LEASE_TIME, nfs4.FATTR4_RDATTR_ERROR, nfs4.FATTR4_ACLSUPPORT,
		nfs4.FATTR4_CANSETTIME, nfs4.FATTR4_CASE_INSENSITIVE, nfs4.FATTR4_CASE_PRESERVING, nfs4.FATTR4_CHOWN_RESTRICTED,
		nfs4.FATTR4_FILEHANDLE, nfs4.FATTR4_FILEID, nfs4.FATTR4_FILES_AVAIL, nfs4.FATTR4_FILES_FREE, nfs4.FATTR4_FILES_TOTAL,
		nfs4.FATTR4_HOMOGENEOUS, nfs4.FATTR4_MAXFILESIZE, nfs4.FATTR4_MAXLINK, nfs4.FATTR4_MAXNAME, nfs4.FATTR4_MAXREAD,
		nfs4.FATTR4_MAXWRITE, nfs4.FATTR4_MODE, nfs4.FATTR4_NO_TRUNC, nfs4.FATTR4_NUMLINKS, nfs4.FATTR4_OWNER,
		nfs4.FATTR4_OWNER_GROUP, nfs4.FATTR4_RAWDEV, nfs4.FATTR4_SPACE_AVAIL, nfs4.FATTR4_SPACE_FREE, nfs4.FATTR4_SPACE_TOTAL,
		nfs4.FATTR4_SPACE_USED, nfs4.FATTR4_TIME_ACCESS, nfs4.FATTR4_TIME_ACCESS_SET, nfs4.FATTR4_TIME_CREATE,
		nfs4.FATTR4_TIME_DELTA, nfs4.FATTR4_TIME_METADATA, nfs4.FATTR4_TIME_MODIFY, nfs4.FATTR4_TIME_MODIFY_SET,
		nfs4.FATTR4_MOUNTED_ON_FILEID)
	s.supported[0] = base
	base.add(nfs4.FATTR4_SUPPATTR_EXCLCREAT)
	s.supported[1] = base
	base.add(nfs4.FATTR4_CHANGE_ATTR_TYPE)
	base.add(nfs4.FATTR4_MODE_UMASK)
	base.add(nfs4.FATTR4_XATTR_SUPPORT)
	base.add(nfs4.FATTR4_OPEN_ARGUMENTS)
	if s.info.Clone {
		base.add(nfs4.FATTR4_CLONE_BLKSIZE)
	}
	s.supported[2] = base
}

// open_arguments (RFC 9754, section 4.2): what OPEN of this server understands.
var openArguments = func() []byte {
	a := nfs4.OpenArguments4{
		OaShareAccess: nfs4.OpenArgsAccessBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.OPEN4_SHARE_ACCESS_READ, nfs4.OPEN4_SHARE_ACCESS_WRITE, nfs4.OPEN4_SHARE_ACCESS_BOTH)},
		OaShareDeny:   nfs4.OpenArgsDenyBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.OPEN4_SHARE_DENY_NONE, nfs4.OPEN4_SHARE_DENY_READ, nfs4.OPEN4_SHARE_DENY_WRITE, nfs4.OPEN4_SHARE_DENY_BOTH)},
		OaOpenClaim:   nfs4.OpenArgsClaimBitmap4{Bitmap4: nfs4.NewBitmap4(uint32(nfs4.CLAIM_NULL), uint32(nfs4.CLAIM_PREVIOUS), uint32(nfs4.CLAIM_FH))},
		OaCreateMode:  nfs4.OpenArgsCreateBitmap4{Bitmap4: nfs4.NewBitmap4(uint32(nfs4.UNCHECKED4), uint32(nfs4.GUARDED4), uint32(nfs4.EXCLUSIVE4), uint32(nfs4.EXCLUSIVE4_1))},
	}
	return a.Append(nil)
}()

func (x *compound) getattr(a *nfs4.GETATTR4args) status {
	want, _ := setOf(a.AttrRequest.Bitmap4)
	if want.and(writeOnly) != (attrSet{}) && want.and(writeOnly).and(x.s.supported[x.minor]) != (attrSet{}) {
		return nfs4.NFS4ERR_INVAL
	}
	at, st := x.attributes()
	if st != ok {
		return st
	}
	return x.appendFattr(want, at)
}

// attributes are those of the current filehandle.
func (x *compound) attributes() (*store.Attr, status) {
	if x.attrAt+1 == x.index {
		x.attrAt = x.index
		return &x.attr, ok
	}
	if err := x.s.store.GetAttr(x.fh, &x.attr); err != nil {
		return nil, statusOf(err)
	}
	x.attrAt = x.index
	return &x.attr, ok
}

// appendFattr appends the attributes of want that are supported as a fattr4.
func (x *compound) appendFattr(want attrSet, at *store.Attr) status {
	want = want.and(x.s.supported[x.minor])
	if want.and(needStat) != (attrSet{}) && !x.statOK {
		if err := x.s.store.Statfs(&x.stat); err != nil {
			return statusOf(err)
		}
		x.statOK = true
	}
	b := want.append(x.c.Out)
	mark := len(b)
	b = xdr.AppendUint32(b, 0)
	for i, w := range want {
		for ; w != 0; w &= w - 1 {
			b = x.appendAttr(b, i*32+bits.TrailingZeros32(w), at)
		}
	}
	binary.BigEndian.PutUint32(b[mark:], uint32(len(b)-mark-4))
	x.c.Out = b
	return ok
}

func appendTime(b []byte, t store.Time) []byte {
	return xdr.AppendUint32(xdr.AppendUint64(b, uint64(t.Sec)), t.Nsec)
}

// appendID appends a user or a group as a number in text (RFC 7530, section
// 5.9).
func appendID(b []byte, id uint32) []byte {
	mark := len(b)
	b = xdr.AppendUint32(b, 0)
	b = strconv.AppendUint(b, uint64(id), 10)
	binary.BigEndian.PutUint32(b[mark:], uint32(len(b)-mark-4))
	for len(b)&3 != mark&3 {
		b = append(b, 0)
	}
	return b
}

// appendAttr appends the value of attribute n.
func (x *compound) appendAttr(b []byte, n int, at *store.Attr) []byte {
	s, info := x.s, x.s.info
	switch n {
	case nfs4.FATTR4_SUPPORTED_ATTRS:
		return s.supported[x.minor].append(b)
	case nfs4.FATTR4_TYPE:
		return xdr.AppendUint32(b, uint32(at.Type))
	case nfs4.FATTR4_FH_EXPIRE_TYPE:
		return xdr.AppendUint32(b, nfs4.FH4_PERSISTENT)
	case nfs4.FATTR4_CHANGE:
		return xdr.AppendUint64(b, at.Change)
	case nfs4.FATTR4_SIZE:
		return xdr.AppendUint64(b, at.Size)
	case nfs4.FATTR4_LINK_SUPPORT:
		return xdr.AppendBool(b, info.HardLinks)
	case nfs4.FATTR4_SYMLINK_SUPPORT:
		return xdr.AppendBool(b, info.Symlinks)
	case nfs4.FATTR4_NAMED_ATTR:
		return xdr.AppendBool(b, false)
	case nfs4.FATTR4_FSID:
		return xdr.AppendUint64(xdr.AppendUint64(b, info.FSID[0]), info.FSID[1])
	case nfs4.FATTR4_UNIQUE_HANDLES, nfs4.FATTR4_CANSETTIME, nfs4.FATTR4_HOMOGENEOUS, nfs4.FATTR4_NO_TRUNC:
		return xdr.AppendBool(b, true)
	case nfs4.FATTR4_LEASE_TIME:
		return xdr.AppendUint32(b, uint32(max(s.table.Lease().Seconds(), 1)))
	case nfs4.FATTR4_RDATTR_ERROR:
		return xdr.AppendUint32(b, uint32(ok))
	case nfs4.FATTR4_ACLSUPPORT:
		return xdr.AppendUint32(b, 0)
	case nfs4.FATTR4_CASE_INSENSITIVE:
		return xdr.AppendBool(b, info.CaseInsensitive)
	case nfs4.FATTR4_CASE_PRESERVING:
		return xdr.AppendBool(b, info.CasePreserving)
	case nfs4.FATTR4_CHOWN_RESTRICTED:
		return xdr.AppendBool(b, info.ChownRestricted)
	case nfs4.FATTR4_FILEHANDLE:
		return s.appendHandle(b, at.Handle)
	case nfs4.FATTR4_FILEID, nfs4.FATTR4_MOUNTED_ON_FILEID:
		return xdr.AppendUint64(b, at.Handle.ID)
	case nfs4.FATTR4_FILES_AVAIL:
		return xdr.AppendUint64(b, x.stat.AvailFiles)
	case nfs4.FATTR4_FILES_FREE:
		return xdr.AppendUint64(b, x.stat.FreeFiles)
	case nfs4.FATTR4_FILES_TOTAL:
		return xdr.AppendUint64(b, x.stat.TotalFiles)
	case nfs4.FATTR4_MAXFILESIZE:
		return xdr.AppendUint64(b, info.MaxFileSize)
	case nfs4.FATTR4_MAXLINK:
		return xdr.AppendUint32(b, info.MaxLink)
	case nfs4.FATTR4_MAXNAME:
		return xdr.AppendUint32(b, info.MaxName)
	case nfs4.FATTR4_MAXREAD, nfs4.FATTR4_MAXWRITE:
		return xdr.AppendUint64(b, uint64(s.opt.MaxIO))
	case nfs4.FATTR4_MODE:
		return xdr.AppendUint32(b, at.Mode&store.ModeMask)
	case nfs4.FATTR4_NUMLINKS:
		return xdr.AppendUint32(b, at.Nlink)
	case nfs4.FATTR4_OWNER:
		return appendID(b, at.UID)
	case nfs4.FATTR4_OWNER_GROUP:
		return appendID(b, at.GID)
	case nfs4.FATTR4_RAWDEV:
		return xdr.AppendUint32(xdr.AppendUint32(b, at.Rdev.Major), at.Rdev.Minor)
	case nfs4.FATTR4_SPACE_AVAIL:
		return xdr.AppendUint64(b, x.stat.AvailBytes)
	case nfs4.FATTR4_SPACE_FREE:
		return xdr.AppendUint64(b, x.stat.FreeBytes)
	case nfs4.FATTR4_SPACE_TOTAL:
		return xdr.AppendUint64(b, x.stat.TotalBytes)
	case nfs4.FATTR4_SPACE_USED:
		return xdr.AppendUint64(b, at.Used)
	case nfs4.FATTR4_TIME_ACCESS:
		return appendTime(b, at.Atime)
	case nfs4.FATTR4_TIME_CREATE:
		return appendTime(b, at.Birth)
	case nfs4.FATTR4_TIME_DELTA:
		return appendTime(b, info.TimeDelta)
	case nfs4.FATTR4_TIME_METADATA:
		return appendTime(b, at.Ctime)
	case nfs4.FATTR4_TIME_MODIFY:
		return appendTime(b, at.Mtime)
	case nfs4.FATTR4_SUPPATTR_EXCLCREAT:
		e := creatable.and(s.supported[x.minor])
		return e.append(b)
	case nfs4.FATTR4_CLONE_BLKSIZE:
		return xdr.AppendUint32(b, uint32(min(max(info.CloneAlign, 1), 1<<31)))
	case nfs4.FATTR4_CHANGE_ATTR_TYPE:
		return xdr.AppendUint32(b, uint32(nfs4.NFS4_CHANGE_TYPE_IS_MONOTONIC_INCR))
	case nfs4.FATTR4_XATTR_SUPPORT:
		return xdr.AppendBool(b, info.Xattrs)
	case nfs4.FATTR4_OPEN_ARGUMENTS:
		return append(b, openArguments...)
	}
	return b // not reached: supported has no others to read
}

func (s *Server) appendHandle(b []byte, h store.Handle) []byte {
	return s.info.Handles.Append(xdr.AppendUint32(b, store.HandleSize), h)
}

// sameAttrs compares attributes with those of the current filehandle.
func (x *compound) sameAttrs(f *nfs4.Fattr4) (same bool, st status) {
	want, beyond := setOf(f.Attrmask.Bitmap4)
	if beyond || want.and(x.s.supported[x.minor]) != want {
		return false, nfs4.NFS4ERR_ATTRNOTSUPP
	}
	if want.and(writeOnly) != (attrSet{}) || want.has(nfs4.FATTR4_RDATTR_ERROR) {
		return false, nfs4.NFS4ERR_INVAL
	}
	at, st := x.attributes()
	if st != ok {
		return false, st
	}
	n := len(x.c.Out)
	if st = x.appendFattr(want, at); st != ok {
		return false, st
	}
	have := x.c.Out[n:]
	x.c.Out = x.c.Out[:n]
	var r xdr.Reader
	r.Reset(have, len(have))
	var mine nfs4.Fattr4
	mine.Decode(&r)
	return string(mine.AttrVals) == string(f.AttrVals), ok
}

func (x *compound) verify(a *nfs4.VERIFY4args) status {
	same, st := x.sameAttrs(&a.ObjAttributes)
	if st == ok && !same {
		return nfs4.NFS4ERR_NOT_SAME
	}
	return st
}

func (x *compound) nverify(a *nfs4.NVERIFY4args) status {
	same, st := x.sameAttrs(&a.ObjAttributes)
	if st == ok && same {
		return nfs4.NFS4ERR_SAME
	}
	return st
}
