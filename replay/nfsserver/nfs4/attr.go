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

// setOf reads a bitmap. beyond reports bits that an attrSet cannot hold.
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

// Write-only attributes.
var writeOnly = makeSet(nfs4.FATTR4_TIME_ACCESS_SET, nfs4.FATTR4_TIME_MODIFY_SET, nfs4.FATTR4_MODE_UMASK, nfs4.FATTR4_TIME_DELEG_ACCESS, nfs4.FATTR4_TIME_DELEG_MODIFY)

// Attributes that SETATTR takes. mode_umask is for new objects (RFC 8275), times by a delegation are not (RFC 9754).
var (
	plain     = []int{nfs4.FATTR4_SIZE, nfs4.FATTR4_MODE, nfs4.FATTR4_OWNER, nfs4.FATTR4_OWNER_GROUP, nfs4.FATTR4_TIME_ACCESS_SET, nfs4.FATTR4_TIME_MODIFY_SET}
	settable  = makeSet(append(plain, nfs4.FATTR4_TIME_DELEG_ACCESS, nfs4.FATTR4_TIME_DELEG_MODIFY)...)
	creatable = makeSet(append(plain, nfs4.FATTR4_MODE_UMASK)...)
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
	base.add(nfs4.FATTR4_TIME_DELEG_ACCESS)
	base.add(nfs4.FATTR4_TIME_DELEG_MODIFY)
	if s.info.Clone {
		base.add(nfs4.FATTR4_CLONE_BLKSIZE)
	}
	s.supported[2] = base
}

// open_arguments (RFC 9754, section 4.2): what this server's OPEN supports.
var openArguments = func() []byte {
	a := nfs4.OpenArguments4{
		OaShareAccess: nfs4.OpenArgsAccessBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.OPEN4_SHARE_ACCESS_READ, nfs4.OPEN4_SHARE_ACCESS_WRITE, nfs4.OPEN4_SHARE_ACCESS_BOTH)},
		OaShareDeny:   nfs4.OpenArgsDenyBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.OPEN4_SHARE_DENY_NONE, nfs4.OPEN4_SHARE_DENY_READ, nfs4.OPEN4_SHARE_DENY_WRITE, nfs4.OPEN4_SHARE_DENY_BOTH)},
		OaOpenClaim: nfs4.OpenArgsClaimBitmap4{Bitmap4: nfs4.NewBitmap4(uint32(nfs4.CLAIM_NULL), uint32(nfs4.CLAIM_PREVIOUS), uint32(nfs4.CLAIM_DELEGATE_CUR),
			uint32(nfs4.CLAIM_FH), uint32(nfs4.CLAIM_DELEG_CUR_FH))},
		OaShareAccessWant: nfs4.OpenArgsWantBitmap4{Bitmap4: nfs4.NewBitmap4(
			nfs4.OPEN4_SHARE_ACCESS_WANT_READ_DELEG>>8, nfs4.OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG>>8, nfs4.OPEN4_SHARE_ACCESS_WANT_ANY_DELEG>>8, nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG>>8,
			uint32(bits.TrailingZeros32(nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS)), uint32(bits.TrailingZeros32(nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION)))},
		OaCreateMode: nfs4.OpenArgsCreateBitmap4{Bitmap4: nfs4.NewBitmap4(uint32(nfs4.UNCHECKED4), uint32(nfs4.GUARDED4), uint32(nfs4.EXCLUSIVE4), uint32(nfs4.EXCLUSIVE4_1))},
	}
	return a.Append(nil)
}()

// attrOps executes the operations on attributes.
type attrOps struct {
	*request
	*objects
	*attrWriter
	*attrReader
	sender *sender
	holder *holder
	files  *guard
	wcc    store.Wcc
}

func (x *attrOps) getattr(a *nfs4.GETATTR4args) status {
	want, _ := setOf(a.AttrRequest.Bitmap4)
	if want.and(writeOnly) != (attrSet{}) && want.and(writeOnly).and(x.s.supported[x.minor]) != (attrSet{}) {
		return nfs4.NFS4ERR_INVAL
	}
	if want.and(written) != (attrSet{}) {
		if st := x.holder.current(); st != ok {
			return st
		}
	}
	at, st := x.attributes()
	if st != ok {
		return st
	}
	return x.appendFattr(want, at)
}

// attrWriter appends the attributes of objects.
type attrWriter struct {
	*request
	stat   store.Statfs
	statOK bool
}

// appendFattr appends the attributes of want that are supported as a fattr4.
func (x *attrWriter) appendFattr(want attrSet, at *store.Attr) status {
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
			if value := attrValues[i*32+bits.TrailingZeros32(w)]; value != nil {
				b = value(x, b, at)
			}
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

// attrValues has a function for each readable attribute, which appends its value. TestAttrValues
// compares it with supported_attrs.
var attrValues = [len(attrSet{}) * 32]func(x *attrWriter, b []byte, at *store.Attr) []byte{
	nfs4.FATTR4_SUPPORTED_ATTRS: func(x *attrWriter, b []byte, _ *store.Attr) []byte { return x.s.supported[x.minor].append(b) },
	nfs4.FATTR4_TYPE:            func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint32(b, uint32(at.Type)) },
	nfs4.FATTR4_FH_EXPIRE_TYPE:  func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint32(b, nfs4.FH4_PERSISTENT) },
	nfs4.FATTR4_CHANGE:          func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint64(b, at.Change) },
	nfs4.FATTR4_SIZE:            func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint64(b, at.Size) },
	nfs4.FATTR4_LINK_SUPPORT:    func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, x.s.info.HardLinks) },
	nfs4.FATTR4_SYMLINK_SUPPORT: func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, x.s.info.Symlinks) },
	nfs4.FATTR4_NAMED_ATTR:      func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, false) },
	nfs4.FATTR4_FSID: func(x *attrWriter, b []byte, _ *store.Attr) []byte {
		return xdr.AppendUint64(xdr.AppendUint64(b, x.s.info.FSID[0]), x.s.info.FSID[1])
	},
	nfs4.FATTR4_UNIQUE_HANDLES: func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, true) },
	nfs4.FATTR4_CANSETTIME:     func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, true) },
	nfs4.FATTR4_HOMOGENEOUS:    func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, true) },
	nfs4.FATTR4_NO_TRUNC:       func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, true) },
	nfs4.FATTR4_LEASE_TIME: func(x *attrWriter, b []byte, _ *store.Attr) []byte {
		return xdr.AppendUint32(b, uint32(max(x.s.table.Lease().Seconds(), 1)))
	},
	nfs4.FATTR4_RDATTR_ERROR: func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint32(b, uint32(ok)) },
	nfs4.FATTR4_ACLSUPPORT:   func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint32(b, 0) },
	nfs4.FATTR4_CASE_INSENSITIVE: func(x *attrWriter, b []byte, _ *store.Attr) []byte {
		return xdr.AppendBool(b, x.s.info.CaseInsensitive)
	},
	nfs4.FATTR4_CASE_PRESERVING: func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, x.s.info.CasePreserving) },
	nfs4.FATTR4_CHOWN_RESTRICTED: func(x *attrWriter, b []byte, _ *store.Attr) []byte {
		return xdr.AppendBool(b, x.s.info.ChownRestricted)
	},
	nfs4.FATTR4_FILEHANDLE:        func(x *attrWriter, b []byte, at *store.Attr) []byte { return x.s.appendHandle(b, at.Handle) },
	nfs4.FATTR4_FILEID:            func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint64(b, at.Handle.ID) },
	nfs4.FATTR4_MOUNTED_ON_FILEID: func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint64(b, at.Handle.ID) },
	nfs4.FATTR4_FILES_AVAIL:       func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.stat.AvailFiles) },
	nfs4.FATTR4_FILES_FREE:        func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.stat.FreeFiles) },
	nfs4.FATTR4_FILES_TOTAL:       func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.stat.TotalFiles) },
	nfs4.FATTR4_MAXFILESIZE:       func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.s.info.MaxFileSize) },
	nfs4.FATTR4_MAXLINK:           func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint32(b, x.s.info.MaxLink) },
	nfs4.FATTR4_MAXNAME:           func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint32(b, x.s.info.MaxName) },
	nfs4.FATTR4_MAXREAD:           func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, uint64(x.s.opt.MaxIO)) },
	nfs4.FATTR4_MAXWRITE:          func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, uint64(x.s.opt.MaxIO)) },
	nfs4.FATTR4_MODE: func(_ *attrWriter, b []byte, at *store.Attr) []byte {
		return xdr.AppendUint32(b, at.Mode&store.ModeMask)
	},
	nfs4.FATTR4_NUMLINKS:    func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint32(b, at.Nlink) },
	nfs4.FATTR4_OWNER:       func(_ *attrWriter, b []byte, at *store.Attr) []byte { return appendID(b, at.UID) },
	nfs4.FATTR4_OWNER_GROUP: func(_ *attrWriter, b []byte, at *store.Attr) []byte { return appendID(b, at.GID) },
	nfs4.FATTR4_RAWDEV: func(_ *attrWriter, b []byte, at *store.Attr) []byte {
		return xdr.AppendUint32(xdr.AppendUint32(b, at.Rdev.Major), at.Rdev.Minor)
	},
	nfs4.FATTR4_SPACE_AVAIL:   func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.stat.AvailBytes) },
	nfs4.FATTR4_SPACE_FREE:    func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.stat.FreeBytes) },
	nfs4.FATTR4_SPACE_TOTAL:   func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendUint64(b, x.stat.TotalBytes) },
	nfs4.FATTR4_SPACE_USED:    func(_ *attrWriter, b []byte, at *store.Attr) []byte { return xdr.AppendUint64(b, at.Used) },
	nfs4.FATTR4_TIME_ACCESS:   func(_ *attrWriter, b []byte, at *store.Attr) []byte { return appendTime(b, at.Atime) },
	nfs4.FATTR4_TIME_CREATE:   func(_ *attrWriter, b []byte, at *store.Attr) []byte { return appendTime(b, at.Birth) },
	nfs4.FATTR4_TIME_DELTA:    func(x *attrWriter, b []byte, _ *store.Attr) []byte { return appendTime(b, x.s.info.TimeDelta) },
	nfs4.FATTR4_TIME_METADATA: func(_ *attrWriter, b []byte, at *store.Attr) []byte { return appendTime(b, at.Ctime) },
	nfs4.FATTR4_TIME_MODIFY:   func(_ *attrWriter, b []byte, at *store.Attr) []byte { return appendTime(b, at.Mtime) },
	nfs4.FATTR4_SUPPATTR_EXCLCREAT: func(x *attrWriter, b []byte, _ *store.Attr) []byte {
		e := creatable.and(x.s.supported[x.minor])
		return e.append(b)
	},
	nfs4.FATTR4_CLONE_BLKSIZE: func(x *attrWriter, b []byte, _ *store.Attr) []byte {
		return xdr.AppendUint32(b, uint32(min(max(x.s.info.CloneAlign, 1), 1<<31)))
	},
	nfs4.FATTR4_CHANGE_ATTR_TYPE: func(_ *attrWriter, b []byte, _ *store.Attr) []byte {
		return xdr.AppendUint32(b, uint32(nfs4.NFS4_CHANGE_TYPE_IS_MONOTONIC_INCR))
	},
	nfs4.FATTR4_XATTR_SUPPORT:  func(x *attrWriter, b []byte, _ *store.Attr) []byte { return xdr.AppendBool(b, x.s.info.Xattrs) },
	nfs4.FATTR4_OPEN_ARGUMENTS: func(_ *attrWriter, b []byte, _ *store.Attr) []byte { return append(b, openArguments...) },
}

func (s *Server) appendHandle(b []byte, h store.Handle) []byte {
	return s.info.Handles.Append(xdr.AppendUint32(b, store.HandleSize), h)
}

// sameAttrs compares attributes with those of the current filehandle.
func (x *attrOps) sameAttrs(f *nfs4.Fattr4) (same bool, st status) {
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

func (x *attrOps) verify(a *nfs4.VERIFY4args) status {
	same, st := x.sameAttrs(&a.ObjAttributes)
	if st == ok && !same {
		return nfs4.NFS4ERR_NOT_SAME
	}
	return st
}

func (x *attrOps) nverify(a *nfs4.NVERIFY4args) status {
	same, st := x.sameAttrs(&a.ObjAttributes)
	if st == ok && same {
		return nfs4.NFS4ERR_SAME
	}
	return st
}

func (x *attrOps) access(a *nfs4.ACCESS4args) status {
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
