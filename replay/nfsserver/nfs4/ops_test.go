package nfs4

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

func mkdir(n string) nfs4.Op {
	return o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte(n), Createattrs: mode(0o755)})
}

func symlink(n, text string) nfs4.Op {
	return o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4LNK, Linkdata: xdr.Data{Length: uint32(len(text)), Inline: []byte(text)}}, Objname: []byte(n)})
}

func remove(n string) nfs4.Op { return o(nfs4.OP_REMOVE, &nfs4.REMOVE4args{Target: []byte(n)}) }
func rename(a, b string) nfs4.Op {
	return o(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte(a), Newname: []byte(b)})
}
func link(n string) nfs4.Op { return o(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte(n)}) }
func access(a uint32) nfs4.Op {
	return o(nfs4.OP_ACCESS, &nfs4.ACCESS4args{Access: a})
}
func setattr(f nfs4.Fattr4) nfs4.Op {
	return o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: f})
}

// size sets a size by the anonymous stateid.
func size(n uint64) nfs4.Op {
	return setattr(attrs(func(a *nfs4.Attrs) { a.Mask, a.Size = nfs4.NewBitmap4(nfs4.FATTR4_SIZE), n }))
}

func open(name string, access uint32, how nfs4.Openflag4) nfs4.Op {
	return o(nfs4.OP_OPEN, openArgs("owner", name, access, 0, how))
}

func with(a *nfs4.OPEN4args, f func(a *nfs4.OPEN4args)) nfs4.Op {
	f(a)
	return o(nfs4.OP_OPEN, a)
}

// TestStatuses checks the statuses of operations, one COMPOUND each. The root holds a directory
// "d" with a file "in" in it, a file "f", a symbolic link "l" and a FIFO "p".
func TestStatuses(t *testing.T) {
	root := []nfs4.Op{putroot}
	at := func(names ...string) []nfs4.Op {
		ops := slices.Clone(root)
		for _, n := range names {
			ops = append(ops, lookup(n))
		}
		return ops
	}
	plus := func(a []nfs4.Op, b ...nfs4.Op) []nfs4.Op { return append(a, b...) }
	from := func(a []nfs4.Op, b ...nfs4.Op) []nfs4.Op { return append(append(a, savefh), b...) }
	long := string(make([]byte, 256))
	no := nfs4.Openflag4{}
	for _, c := range []struct {
		name  string
		want  status
		first uint32 // minor version
		ops   []nfs4.Op
	}{
		{"nothing", ok, 0, nil},
		{"illegal", nfs4.NFS4ERR_OP_ILLEGAL, 0, []nfs4.Op{o(nfs4.OP_ILLEGAL, nil)}},
		{"no filehandle", nfs4.NFS4ERR_NOFILEHANDLE, 0, []nfs4.Op{getfh}},
		{"nothing saved", nfs4.NFS4ERR_RESTOREFH, 0, []nfs4.Op{restore}},
		{"RENAME, nothing saved", nfs4.NFS4ERR_NOFILEHANDLE, 0, plus(at(), rename("f", "g"))},
		{"bad handle", nfs4.NFS4ERR_BADHANDLE, 0, []nfs4.Op{putfh([]byte("x"))}},
		{"stale handle", nfs4.NFS4ERR_STALE, 0, []nfs4.Op{putfh([]byte("012345678901234567890123"))}},
		{"PUTPUBFH", ok, 0, []nfs4.Op{o(nfs4.OP_PUTPUBFH, nil), lookup("f")}},

		{"LOOKUP", ok, 0, at("d", "in")},
		{"LOOKUP none", nfs4.NFS4ERR_NOENT, 0, at("none")},
		{"LOOKUP in a file", nfs4.NFS4ERR_NOTDIR, 0, at("f", "x")},
		{"LOOKUP in a link", nfs4.NFS4ERR_SYMLINK, 0, at("l", "x")},
		{"LOOKUP empty", nfs4.NFS4ERR_INVAL, 0, at("")},
		{"LOOKUP .", nfs4.NFS4ERR_BADNAME, 0, at(".")},
		{"LOOKUP ..", nfs4.NFS4ERR_BADNAME, 0, at("..")},
		{"LOOKUP slash", nfs4.NFS4ERR_BADCHAR, 0, at("a/b")},
		{"LOOKUP NUL", nfs4.NFS4ERR_BADCHAR, 0, at("a\x00b")},
		{"LOOKUP long", nfs4.NFS4ERR_NAMETOOLONG, 0, at(long)},
		{"LOOKUPP", ok, 0, plus(at("d"), o(nfs4.OP_LOOKUPP, nil), lookup("f"))},
		{"LOOKUPP of the root", nfs4.NFS4ERR_NOENT, 0, plus(at(), o(nfs4.OP_LOOKUPP, nil))},
		{"LOOKUPP of a file", nfs4.NFS4ERR_NOTDIR, 0, plus(at("f"), o(nfs4.OP_LOOKUPP, nil))},

		{"mkdir", ok, 0, plus(at(), mkdir("new"), getfh)},
		{"mkdir exists", nfs4.NFS4ERR_EXIST, 0, plus(at(), mkdir("d"))},
		{"mkdir in a file", nfs4.NFS4ERR_NOTDIR, 0, plus(at("f"), mkdir("x"))},
		{"CREATE of a file", nfs4.NFS4ERR_BADTYPE, 0, plus(at(), o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4REG}, Objname: []byte("x")}))},
		{"CREATE of what", nfs4.NFS4ERR_BADTYPE, 0, plus(at(), o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: 77}, Objname: []byte("x")}))},
		{"empty link", nfs4.NFS4ERR_INVAL, 0, plus(at(), symlink("x", ""))},
		{"REMOVE", ok, 0, plus(at(), remove("f"))},
		{"REMOVE none", nfs4.NFS4ERR_NOENT, 0, plus(at(), remove("none"))},
		{"REMOVE full", nfs4.NFS4ERR_NOTEMPTY, 0, plus(at(), remove("d"))},
		{"REMOVE .", nfs4.NFS4ERR_BADNAME, 0, plus(at(), remove("."))},
		{"REMOVE empty", ok, 0, plus(at(), mkdir("e"), putroot, remove("e"))},
		{"RENAME", ok, 0, from(at(), rename("f", "g"), lookup("g"))},
		{"RENAME to other type", nfs4.NFS4ERR_EXIST, 0, from(at(), rename("f", "d"))},
		{"RENAME below itself", nfs4.NFS4ERR_INVAL, 0, from(at(), lookup("d"), rename("d", "x"))},
		{"RENAME none", nfs4.NFS4ERR_NOENT, 0, from(at(), rename("none", "x"))},
		{"LINK", ok, 0, from(at("f"), putroot, link("g"), lookup("g"))},
		{"LINK exists", nfs4.NFS4ERR_EXIST, 0, from(at("f"), putroot, link("d"))},
		{"LINK of a directory", nfs4.NFS4ERR_ISDIR, 0, from(at("d"), putroot, link("e"))},
		{"LINK into a file", nfs4.NFS4ERR_NOTDIR, 0, from(at("f"), link("e"))},
		{"READLINK", ok, 0, plus(at("l"), o(nfs4.OP_READLINK, nil))},
		{"READLINK of a file", nfs4.NFS4ERR_WRONG_TYPE, 1, plus(at("f"), o(nfs4.OP_READLINK, nil))},

		{"GETATTR of what can only be set", nfs4.NFS4ERR_INVAL, 0, plus(at(), getattr(nfs4.FATTR4_TIME_MODIFY_SET))},
		{"GETATTR of what is not there", ok, 0, plus(at(), getattr(nfs4.FATTR4_ACL, nfs4.FATTR4_FS_LOCATIONS, 95, 200))},
		{"SETATTR", ok, 0, plus(at("f"), setattr(mode(0o600)))},
		{"SETATTR of what is not there", nfs4.NFS4ERR_ATTRNOTSUPP, 0, plus(at("f"), setattr(attrs(func(a *nfs4.Attrs) { a.Mask = nfs4.NewBitmap4(nfs4.FATTR4_ARCHIVE) })))},
		{"SETATTR of what is far away", nfs4.NFS4ERR_ATTRNOTSUPP, 0, plus(at("f"), setattr(nfs4.Fattr4{Attrmask: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(300)}}))},
		{"SETATTR of what can only be read", nfs4.NFS4ERR_INVAL, 0, plus(at("f"), setattr(attrs(func(a *nfs4.Attrs) { a.Mask = nfs4.NewBitmap4(nfs4.FATTR4_FILEID) })))},
		{"SETATTR without values", nfs4.NFS4ERR_BADXDR, 0, plus(at("f"), setattr(nfs4.Fattr4{Attrmask: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_MODE)}}))},
		{"SETATTR too many bits", nfs4.NFS4ERR_INVAL, 0, plus(at("f"), setattr(mode(0o170644)))},
		{"SETATTR of a name", nfs4.NFS4ERR_BADOWNER, 0, plus(at("f"), setattr(attrs(func(a *nfs4.Attrs) { a.Mask, a.Owner = nfs4.NewBitmap4(nfs4.FATTR4_OWNER), []byte("alice@example.org") })))},
		{"SETATTR of a size", ok, 1, plus(at("f"), size(5))},
		{"SETATTR of a directory's size", nfs4.NFS4ERR_ISDIR, 1, plus(at("d"), size(5))},
		{"SETATTR of a huge size", nfs4.NFS4ERR_FBIG, 1, plus(at("f"), size(1<<63))},
		{"umask", nfs4.NFS4ERR_INVAL, 2, plus(at("f"), setattr(attrs(func(a *nfs4.Attrs) { a.Mask = nfs4.NewBitmap4(nfs4.FATTR4_MODE_UMASK) })))},

		{"READ of a directory", nfs4.NFS4ERR_ISDIR, 0, plus(at("d"), read(nfs4.Stateid4{}, 0, 1))},
		{"READ of a link", nfs4.NFS4ERR_SYMLINK, 1, plus(at("l"), read(nfs4.Stateid4{}, 0, 1))},
		{"READ of a FIFO", nfs4.NFS4ERR_WRONG_TYPE, 1, plus(at("p"), read(nfs4.Stateid4{}, 0, 1))},
		{"READ of nothing", ok, 0, plus(at("f"), read(nfs4.Stateid4{}, 0, 0))},
		{"READ far away", ok, 0, plus(at("f"), read(nfs4.Stateid4{}, 1<<63, 1<<31))},
		{"READ of everything", ok, 0, plus(at("f"), read(nfs4.Stateid4{}, 0, 0xffffffff))},
		{"WRITE", ok, 0, plus(at("f"), write(nfs4.Stateid4{}, 3, "x"))},
		{"WRITE beyond", nfs4.NFS4ERR_INVAL, 0, plus(at("f"), write(nfs4.Stateid4{}, 1<<64-1, "xx"))},
		{"WRITE too far", nfs4.NFS4ERR_FBIG, 0, plus(at("f"), write(nfs4.Stateid4{}, 1<<63-1, "xx"))},
		{"WRITE of a directory", nfs4.NFS4ERR_ISDIR, 0, plus(at("d"), write(nfs4.Stateid4{}, 0, "x"))},
		{"COMMIT", ok, 0, plus(at("f"), o(nfs4.OP_COMMIT, &nfs4.COMMIT4args{}))},
		{"COMMIT beyond", nfs4.NFS4ERR_INVAL, 0, plus(at("f"), o(nfs4.OP_COMMIT, &nfs4.COMMIT4args{Offset: 1<<64 - 1, Count: 5}))},
		{"ACCESS", ok, 0, plus(at("f"), access(0x3f))},
		{"OPENATTR", nfs4.NFS4ERR_NOTSUPP, 0, plus(at("f"), o(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{}))},
		{"DELEGRETURN", nfs4.NFS4ERR_BAD_STATEID, 0, plus(at("f"), o(nfs4.OP_DELEGRETURN, &nfs4.DELEGRETURN4args{}))},
		{"DELEGPURGE", nfs4.NFS4ERR_NOTSUPP, 0, plus(at(), o(nfs4.OP_DELEGPURGE, &nfs4.DELEGPURGE4args{}))},
		{"SECINFO", ok, 0, plus(at(), o(nfs4.OP_SECINFO, &nfs4.SECINFO4args{Name: []byte("f")}))},
		{"SECINFO none", nfs4.NFS4ERR_NOENT, 0, plus(at(), o(nfs4.OP_SECINFO, &nfs4.SECINFO4args{Name: []byte("none")}))},
		{"SECINFO uses the filehandle up", nfs4.NFS4ERR_NOFILEHANDLE, 1, plus(at(), o(nfs4.OP_SECINFO, &nfs4.SECINFO4args{Name: []byte("f")}), getfh)},
		{"SECINFO_NO_NAME", ok, 1, plus(at(), o(nfs4.OP_SECINFO_NO_NAME, &nfs4.SECINFO_NO_NAME4args{}))},
		{"SECINFO_NO_NAME above the root", nfs4.NFS4ERR_NOENT, 1, plus(at(), o(nfs4.OP_SECINFO_NO_NAME, &nfs4.SECINFO_NO_NAME4args{Style: 1}))},
		{"SECINFO_NO_NAME of what", nfs4.NFS4ERR_INVAL, 1, plus(at(), o(nfs4.OP_SECINFO_NO_NAME, &nfs4.SECINFO_NO_NAME4args{Style: 2}))},
		{"READDIR of a file", nfs4.NFS4ERR_NOTDIR, 0, plus(at("f"), o(nfs4.OP_READDIR, &nfs4.READDIR4args{Maxcount: 1000}))},
		{"READDIR too small", nfs4.NFS4ERR_TOOSMALL, 0, plus(at(), o(nfs4.OP_READDIR, &nfs4.READDIR4args{Maxcount: 20}))},
		{"READDIR with no room", nfs4.NFS4ERR_TOOSMALL, 0, plus(at(), o(nfs4.OP_READDIR, &nfs4.READDIR4args{}))},
		{"READDIR reserved cookie", nfs4.NFS4ERR_BAD_COOKIE, 0, plus(at(), o(nfs4.OP_READDIR, &nfs4.READDIR4args{Cookie: 2, Maxcount: 1000}))},

		{"OPEN", ok, 1, plus(at(), open("f", 1, no), getfh)},
		{"OPEN none", nfs4.NFS4ERR_NOENT, 1, plus(at(), open("none", 1, no))},
		{"OPEN of a directory", nfs4.NFS4ERR_ISDIR, 1, plus(at(), open("d", 1, no))},
		{"OPEN of a link", nfs4.NFS4ERR_SYMLINK, 1, plus(at(), open("l", 1, no))},
		{"OPEN of a FIFO", nfs4.NFS4ERR_WRONG_TYPE, 1, plus(at(), open("p", 1, no))},
		{"OPEN that the owner itself denies", nfs4.NFS4ERR_SHARE_DENIED, 1, plus(at(), o(nfs4.OP_OPEN, openArgs("o", "f", 1, 1, no)), putroot, o(nfs4.OP_OPEN, openArgs("o", "f", 1, 0, no)))},
		{"OPEN in a file", nfs4.NFS4ERR_NOTDIR, 1, plus(at("f"), open("x", 1, no))},
		{"OPEN for nothing", nfs4.NFS4ERR_INVAL, 1, plus(at(), open("f", 0, no))},
		{"OPEN with strange bits", nfs4.NFS4ERR_INVAL, 1, plus(at(), open("f", 1|1<<30, no))},
		{"OPEN that denies too much", nfs4.NFS4ERR_INVAL, 1, plus(at(), o(nfs4.OP_OPEN, openArgs("o", "f", 1, 4, no)))},
		{"OPEN guarded", nfs4.NFS4ERR_EXIST, 1, plus(at(), open("f", 3, createHow(nfs4.GUARDED4)))},
		{"OPEN unchecked", ok, 1, plus(at(), open("f", 3, createHow(nfs4.UNCHECKED4)))},
		{"OPEN unchecked of a directory", nfs4.NFS4ERR_ISDIR, 1, plus(at(), open("d", 3, createHow(nfs4.UNCHECKED4)))},
		{"OPEN exclusive of what exists", nfs4.NFS4ERR_EXIST, 1, plus(at(), open("f", 3, nfs4.Openflag4{Opentype: 1, How: nfs4.Createhow4{Mode: nfs4.EXCLUSIVE4}}))},
		{"OPEN by handle", ok, 1, plus(at("f"), with(openArgs("o", "", 1, 0, no), func(a *nfs4.OPEN4args) { a.Claim.Claim = nfs4.CLAIM_FH }))},
		{"OPEN of a directory by handle", nfs4.NFS4ERR_ISDIR, 1, plus(at("d"), with(openArgs("o", "", 1, 0, no), func(a *nfs4.OPEN4args) { a.Claim.Claim = nfs4.CLAIM_FH }))},
		{"OPEN create by handle", nfs4.NFS4ERR_INVAL, 1, plus(at("f"), with(openArgs("o", "", 1, 0, createHow(nfs4.UNCHECKED4)), func(a *nfs4.OPEN4args) { a.Claim.Claim = nfs4.CLAIM_FH }))},
		{"OPEN reclaim", nfs4.NFS4ERR_NO_GRACE, 1, plus(at("f"), with(openArgs("o", "", 1, 0, no), func(a *nfs4.OPEN4args) { a.Claim.Claim = nfs4.CLAIM_PREVIOUS }))},
		{"OPEN with a delegation", nfs4.NFS4ERR_BAD_STATEID, 1, plus(at(), with(openArgs("o", "", 1, 0, no), func(a *nfs4.OPEN4args) {
			a.Claim.Claim, a.Claim.DelegateCurInfo.File = nfs4.CLAIM_DELEGATE_CUR, []byte("f")
		}))},
		{"OPEN with a delegation by handle", nfs4.NFS4ERR_BAD_STATEID, 1, plus(at("f"), with(openArgs("o", "", 1, 0, no), func(a *nfs4.OPEN4args) { a.Claim.Claim = nfs4.CLAIM_DELEG_CUR_FH }))},
		{"OPEN with an old delegation", nfs4.NFS4ERR_NOTSUPP, 1, plus(at(), with(openArgs("o", "", 1, 0, no), func(a *nfs4.OPEN4args) { a.Claim.Claim = nfs4.CLAIM_DELEGATE_PREV }))},
		{"OPEN too large a share for OPENMODE", nfs4.NFS4ERR_OPENMODE, 1, plus(at(), open("f", 1, no), write(nfs4.Stateid4{Seqid: 1}, 0, "x"))},
		{"READ with a write-only open", ok, 1, plus(at(), open("f", 2, no), read(nfs4.Stateid4{Seqid: 1}, 0, 1))},

		{"LOCKT of a directory", nfs4.NFS4ERR_ISDIR, 1, plus(at("d"), o(nfs4.OP_LOCKT, &nfs4.LOCKT4args{Locktype: 1, Length: 1}))},
		{"LOCKT of nothing", nfs4.NFS4ERR_INVAL, 1, plus(at("f"), o(nfs4.OP_LOCKT, &nfs4.LOCKT4args{Locktype: 1}))},
		{"LOCKT of what", nfs4.NFS4ERR_INVAL, 1, plus(at("f"), o(nfs4.OP_LOCKT, &nfs4.LOCKT4args{Locktype: 9, Length: 1}))},
		{"LOCKT", ok, 1, plus(at("f"), o(nfs4.OP_LOCKT, &nfs4.LOCKT4args{Locktype: 2, Length: 1}))},
		{"LOCKU of an open", nfs4.NFS4ERR_BAD_STATEID, 1, plus(at(), open("f", 3, no), o(nfs4.OP_LOCKU, &nfs4.LOCKU4args{Locktype: 1, LockStateid: nfs4.Stateid4{Seqid: 1}, Length: 1}))},

		{"4.2 in 4.1", nfs4.NFS4ERR_OP_ILLEGAL, 101, plus(at("f"), o(nfs4.OP_SEEK, &nfs4.SEEK4args{}))},
		{"SEEK beyond", nfs4.NFS4ERR_NXIO, 2, plus(at("f"), o(nfs4.OP_SEEK, &nfs4.SEEK4args{SaOffset: 100, SaWhat: nfs4.NFS4_CONTENT_HOLE}))},
		{"SEEK what", nfs4.NFS4ERR_UNION_NOTSUPP, 2, plus(at("f"), o(nfs4.OP_SEEK, &nfs4.SEEK4args{SaWhat: 5}))},
		{"SEEK in a directory", nfs4.NFS4ERR_ISDIR, 2, plus(at("d"), o(nfs4.OP_SEEK, &nfs4.SEEK4args{}))},
		{"ALLOCATE nothing", nfs4.NFS4ERR_INVAL, 2, plus(at("f"), o(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{}))},
		{"ALLOCATE too much", nfs4.NFS4ERR_FBIG, 2, plus(at("f"), o(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{AaLength: 1<<64 - 1}))},
		{"DEALLOCATE", ok, 2, plus(at("f"), o(nfs4.OP_DEALLOCATE, &nfs4.DEALLOCATE4args{DaLength: 1}))},
		{"IO_ADVISE", ok, 2, plus(at("f"), o(nfs4.OP_IO_ADVISE, &nfs4.IO_ADVISE4args{}))},
		{"WRITE_SAME", nfs4.NFS4ERR_NOTSUPP, 2, plus(at("f"), o(nfs4.OP_WRITE_SAME, &nfs4.WRITE_SAME4args{}))},
		{"OFFLOAD_STATUS", nfs4.NFS4ERR_BAD_STATEID, 2, plus(at("f"), o(nfs4.OP_OFFLOAD_STATUS, &nfs4.OFFLOAD_STATUS4args{}))},
		{"COPY_NOTIFY", nfs4.NFS4ERR_NOTSUPP, 2, plus(at("f"), o(nfs4.OP_COPY_NOTIFY, &nfs4.COPY_NOTIFY4args{CnaDestinationServer: nfs4.Netloc4{NlType: nfs4.NL4_NAME}}))},
		{"COPY from elsewhere", nfs4.NFS4ERR_NOTSUPP, 2, from(at("f"), o(nfs4.OP_COPY, &nfs4.COPY4args{CaSourceServer: []nfs4.Netloc4{{NlType: nfs4.NL4_NAME}}}))},
		{"COPY beyond", nfs4.NFS4ERR_INVAL, 2, from(at("f"), o(nfs4.OP_COPY, &nfs4.COPY4args{CaSrcOffset: 100, CaCount: 5}))},
		{"COPY of a directory", nfs4.NFS4ERR_ISDIR, 2, from(at("d"), putroot, lookup("f"), o(nfs4.OP_COPY, &nfs4.COPY4args{}))},
		{"CLONE beyond", nfs4.NFS4ERR_INVAL, 2, from(at("f"), o(nfs4.OP_CLONE, &nfs4.CLONE4args{ClCount: 500}))},
		{"GETXATTR none", nfs4.NFS4ERR_NOXATTR, 2, plus(at("f"), o(nfs4.OP_GETXATTR, &nfs4.GETXATTR4args{GxaName: []byte("x")}))},
		{"REMOVEXATTR none", nfs4.NFS4ERR_NOXATTR, 2, plus(at("f"), o(nfs4.OP_REMOVEXATTR, &nfs4.REMOVEXATTR4args{RxaName: []byte("x")}))},
		{"SETXATTR without a name", nfs4.NFS4ERR_INVAL, 2, plus(at("f"), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{}))},
		{"SETXATTR of what", nfs4.NFS4ERR_INVAL, 2, plus(at("f"), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaOption: 9, SxaKey: []byte("x")}))},
		{"SETXATTR replaces nothing", nfs4.NFS4ERR_NOXATTR, 2, plus(at("f"), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaOption: nfs4.SETXATTR4_REPLACE, SxaKey: []byte("x")}))},
		{"SETXATTR too large", nfs4.NFS4ERR_XATTR2BIG, 2, plus(at("f"), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("x"), SxaValue: make([]byte, 1<<17)}))},
		{"LISTXATTRS too far", nfs4.NFS4ERR_BAD_COOKIE, 2, plus(at("f"), o(nfs4.OP_LISTXATTRS, &nfs4.LISTXATTRS4args{LxaCookie: 5, LxaMaxcount: 1000}))},
		{"LISTXATTRS too small", nfs4.NFS4ERR_TOOSMALL, 2, plus(at("f"), o(nfs4.OP_LISTXATTRS, &nfs4.LISTXATTRS4args{LxaMaxcount: 5}))},
	} {
		for minor := uint32(0); minor <= 2; minor++ {
			if c.first > 100 && minor != c.first-100 || c.first <= 100 && minor < c.first {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", c.name, minor), func(t *testing.T) {
				r := newRig(t, Options{})
				s := r.mount("setup", 2, 0)
				h, sid := s.create("setup", "f", 3, 0)
				s.must(ok, s.do(putfh(h), write(sid, 0, "hello"), closeOp(sid)))
				s.must(ok, s.do(putroot, mkdir("d"), open("in", 3, createHow(nfs4.UNCHECKED4)), closeOp(nfs4.Stateid4{Seqid: 1})))
				s.must(ok, s.do(putroot, symlink("l", "d/in"), putroot, o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4FIFO}, Objname: []byte("p")})))
				if minor == 0 {
					r.must(c.want, r.do(0, 0, c.ops...))
				} else {
					s := r.mount("client", minor, 0)
					r.must(c.want, s.do(c.ops...))
				}
			})
		}
	}
}

// Data goes into the chunks that the client has made for it, and only there
// (RFC 8267).
func TestChunks(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 2, 0)
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
	h, sid := s.create("o", "f", 3, 0)
	s.must(ok, s.do(putfh(h), write(sid, 0, string(data))))
	s.must(ok, s.do(putroot, symlink("l", "some/where")))
	get := func(res *nfs4.CompoundRes, op int) []byte {
		return res.Ops[op].Body.(*nfs4.READ4res).Resok4.Data.Inline
	}

	s.chunks = []uint32{1 << 20}
	res := s.must(ok, s.do(putfh(h), read(sid, 0, 1<<20)))
	if s.last.items != 1 || !bytes.Equal(get(res, 2), data) || s.last.length > 300 {
		t.Errorf("%d items, stream of %d bytes", s.last.items, s.last.length)
	}
	// Two READs, the chunk of the second is smaller than what it asks for.
	s.chunks = []uint32{100, 50}
	res = s.must(ok, s.do(putfh(h), read(sid, 16, 100), read(sid, 3, 100), getattr(nfs4.FATTR4_SIZE)))
	if s.last.items != 2 || !bytes.Equal(get(res, 2), data[16:116]) || !bytes.Equal(get(res, 3), data[3:53]) {
		t.Errorf("%d items", s.last.items)
	}
	// Without a chunk, small data is not kept separate.
	s.chunks = nil
	res = s.must(ok, s.do(putfh(h), read(sid, 1, 99)))
	if s.last.items != 0 || !bytes.Equal(get(res, 2), data[1:100]) {
		t.Errorf("%d items", s.last.items)
	}
	s.chunks = []uint32{100}
	res = s.must(ok, s.do(putroot, lookup("l"), o(nfs4.OP_READLINK, nil)))
	if l := body[nfs4.READLINK4res](t, res).Resok4.Link.Inline; s.last.items != 1 || string(l) != "some/where" {
		t.Errorf("%d items, %q", s.last.items, l)
	}
	// No more is read than all READs of a reply together may return.
	s.chunks = nil
	res = s.must(ok, s.do(putfh(h), read(sid, 0, 1<<20), read(sid, 0, 1<<20)))
	if a, b := len(get(res, 2)), len(get(res, 3)); a != 1<<20 || b == 0 || b > 8<<10 {
		t.Errorf("%d and %d bytes", a, b)
	}
	// WRITE and CREATE take their data from items.
	x := &exchange{}
	c := nfs4.CompoundArgs{Minorversion: 2}
	w := &nfs4.WRITE4args{Stateid: sid, Offset: 1, Data: xdr.Data{Length: 5, Chunk: 1}}
	c.Ops = []nfs4.Op{s.sequence(), putfh(h), o(nfs4.OP_WRITE, w)}
	x.call.Stream = append(header(1, 0), c.Append(nil)...)
	x.call.Items = append(x.call.Items, struct {
		Position uint32
		Data     []byte
	}{uint32(len(x.call.Stream)), []byte("HELLO\x00\x00\x00")})
	r.rpc.ServeRPC(x)
	s.must(ok, r.result(x))
	if got := get(s.must(ok, s.do(putfh(h), read(sid, 0, 8))), 2); string(got) != "0HELLO67" {
		t.Errorf("%q", got)
	}
}

func TestReaddir(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 1, 0)
	const n = 700
	for i := range n {
		s.must(ok, s.do(putroot, mkdir(fmt.Sprintf("directory-%d", i))))
	}
	for _, max := range []uint32{200, 1000, 4096, 1 << 20} {
		seen := map[string]bool{}
		a := &nfs4.READDIR4args{Maxcount: max, AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_TYPE, nfs4.FATTR4_RDATTR_ERROR, nfs4.FATTR4_FILEHANDLE, nfs4.FATTR4_FILEID)}}
		for calls := 0; ; calls++ {
			if calls > n {
				t.Fatal("no end")
			}
			res := body[nfs4.READDIR4res](t, s.must(ok, s.do(putroot, o(nfs4.OP_READDIR, a)))).Resok4
			if size := res.EncodedSize(); size > int(max) {
				t.Fatalf("%d bytes, maxcount %d", size, max)
			}
			for _, e := range res.Reply.Entries {
				if seen[string(e.Name)] || e.Cookie < 3 {
					t.Fatalf("%q, cookie %d", e.Name, e.Cookie)
				}
				seen[string(e.Name)] = true
				a.Cookie = e.Cookie
				at, err := e.Attrs.Attrs()
				if err != nil || at.Type != nfs4.NF4DIR || len(at.Filehandle) == 0 {
					t.Fatalf("%v, %v", at, err)
				}
			}
			a.Cookieverf = res.Cookieverf
			if res.Reply.Eof {
				break
			}
			if len(res.Reply.Entries) == 0 {
				t.Fatal("no entries and no end")
			}
		}
		if len(seen) != n {
			t.Errorf("maxcount %d: %d entries", max, len(seen))
		}
	}
}

func TestAttributes(t *testing.T) {
	for minor := uint32(1); minor <= 2; minor++ {
		r := newRig(t, Options{})
		s := r.mount("client", minor, 0)
		get := func(n ...uint32) *nfs4.Attrs {
			t.Helper()
			a, err := body[nfs4.GETATTR4res](t, s.must(ok, s.do(putroot, getattr(n...)))).Resok4.ObjAttributes.Attrs()
			if err != nil || a.Partial {
				t.Fatalf("%v, %v", err, a.Rest)
			}
			return a
		}
		sup := get(nfs4.FATTR4_SUPPORTED_ATTRS).SupportedAttrs
		var all []uint32
		for n := sup.Next(0); n >= 0; n = sup.Next(n + 1) {
			if !writeOnly.has(n) {
				all = append(all, uint32(n))
			}
		}
		a := get(all...)
		for _, n := range all {
			if !a.Has(int(n)) {
				t.Errorf("no %s", nfs4.AttrName(n))
			}
		}
		if a.Type != nfs4.NF4DIR || a.LeaseTime != 90 || a.Maxread != 1<<20 || !a.UniqueHandles || string(a.Owner) != "0" || a.Numlinks < 2 || a.Fileid != a.MountedOnFileid {
			t.Errorf("%+v", a)
		}
		if !a.SuppattrExclcreat.Has(nfs4.FATTR4_TIME_MODIFY_SET) || a.SuppattrExclcreat.Has(nfs4.FATTR4_MODE_UMASK) != (minor == 2) {
			t.Errorf("%v", a.SuppattrExclcreat)
		}
		// VERIFY accepts the same attributes and no others.
		same := nfs4.NewBitmap4(nfs4.FATTR4_TYPE, nfs4.FATTR4_CHANGE, nfs4.FATTR4_OWNER)
		f := func(change uint64) nfs4.Fattr4 {
			return attrs(func(b *nfs4.Attrs) { b.Mask, b.Type, b.Change, b.Owner = same, nfs4.NF4DIR, change, []byte("0") })
		}
		s.must(ok, s.do(putroot, o(nfs4.OP_VERIFY, &nfs4.VERIFY4args{ObjAttributes: f(a.Change)})))
		s.must(nfs4.NFS4ERR_NOT_SAME, s.do(putroot, o(nfs4.OP_VERIFY, &nfs4.VERIFY4args{ObjAttributes: f(a.Change + 1)})))
		s.must(ok, s.do(putroot, o(nfs4.OP_NVERIFY, &nfs4.NVERIFY4args{ObjAttributes: f(a.Change + 1)})))
		s.must(nfs4.NFS4ERR_SAME, s.do(putroot, o(nfs4.OP_NVERIFY, &nfs4.NVERIFY4args{ObjAttributes: f(a.Change)})))
		s.must(nfs4.NFS4ERR_INVAL, s.do(putroot, o(nfs4.OP_VERIFY, &nfs4.VERIFY4args{ObjAttributes: attrs(func(b *nfs4.Attrs) { b.Mask = nfs4.NewBitmap4(nfs4.FATTR4_RDATTR_ERROR) })})))
	}
}

func TestOpenCreate(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 2, 0)
	exclusive := func(name string, verifier byte) nfs4.Op {
		h := nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE}
		h.How.Mode = nfs4.EXCLUSIVE4_1
		h.How.ChCreateboth.CvaVerf[0] = verifier
		h.How.ChCreateboth.CvaAttrs = attrs(func(a *nfs4.Attrs) {
			a.Mask = nfs4.NewBitmap4(nfs4.FATTR4_MODE_UMASK)
			a.ModeUmask = nfs4.ModeUmask4{MuMode: 0o666, MuUmask: 0o027}
		})
		return open(name, 3, h)
	}
	res := s.must(ok, s.do(putroot, exclusive("x", 1), getattr(nfs4.FATTR4_MODE), getfh))
	a, _ := body[nfs4.GETATTR4res](t, res).Resok4.ObjAttributes.Attrs()
	op := body[nfs4.OPEN4res](t, res).Resok4
	if a.Mode != 0o640 || !op.Attrset.Has(nfs4.FATTR4_MODE_UMASK) || !op.Cinfo.Atomic || op.Cinfo.Before == op.Cinfo.After {
		t.Errorf("%o, %+v", a.Mode, op)
	}
	again := s.must(ok, s.do(putroot, exclusive("x", 1), getfh))
	if string(body[nfs4.GETFH4res](t, again).Resok4.Object) != string(body[nfs4.GETFH4res](t, res).Resok4.Object) {
		t.Error("another file")
	}
	s.must(nfs4.NFS4ERR_EXIST, s.do(putroot, exclusive("x", 2)))

	// UNCHECKED4 truncates an existing file, if the shares allow it.
	h, sid := s.create("owner", "f", 3, 0)
	s.must(ok, s.do(putfh(h), write(sid, 0, "hello")))
	cut := func() nfs4.Openflag4 {
		how := createHow(nfs4.UNCHECKED4)
		how.How.Createattrs = attrs(func(a *nfs4.Attrs) { a.Mask = nfs4.NewBitmap4(nfs4.FATTR4_SIZE, nfs4.FATTR4_MODE); a.Mode = 0o777 })
		return how
	}
	fileSize := func() uint64 {
		t.Helper()
		b, _ := body[nfs4.GETATTR4res](t, s.must(ok, s.do(putfh(h), getattr(nfs4.FATTR4_SIZE, nfs4.FATTR4_MODE)))).Resok4.ObjAttributes.Attrs()
		if b.Mode != 0o644 {
			t.Errorf("mode %o", b.Mode)
		}
		return b.Size
	}
	s.must(ok, s.do(putfh(h), closeOp(sid)))
	denies := body[nfs4.OPEN4res](t, s.must(ok, s.do(putroot, o(nfs4.OP_OPEN, openArgs("denies", "f", 1, 2, nfs4.Openflag4{}))))).Resok4.Stateid
	other := r.mount("other", 2, 0)
	other.must(nfs4.NFS4ERR_SHARE_DENIED, other.do(putroot, open("f", 2, cut())))
	if n := fileSize(); n != 5 {
		t.Errorf("%d bytes are left", n)
	}
	s.must(ok, s.do(putfh(h), closeOp(denies)))
	res = s.must(ok, other.do(putroot, open("f", 2, cut())))
	if n := body[nfs4.OPEN4res](t, res).Resok4.Attrset; !n.Has(nfs4.FATTR4_SIZE) || n.Has(nfs4.FATTR4_MODE) {
		t.Errorf("%v", n)
	}
	if n := fileSize(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
	larger := cut()
	larger.How.Createattrs = attrs(func(a *nfs4.Attrs) { a.Mask, a.Size = nfs4.NewBitmap4(nfs4.FATTR4_SIZE), 9 })
	other.must(ok, other.do(putroot, open("f", 2, larger))) // for new files only
	if n := fileSize(); n != 0 {
		t.Errorf("%d bytes", n)
	}
}

// A user without permission cannot read, but open files stay open.
func TestPermissions(t *testing.T) {
	r := newRig(t, Options{})
	root := r.mount("root", 2, 0)
	user := r.mount("user", 2, 1000)
	root.must(ok, root.do(putroot, setattr(mode(0o777))))
	h, _ := root.create("o", "f", 3, 0)
	root.must(ok, root.do(putfh(h), setattr(mode(0o604))))
	res := user.must(ok, user.do(putroot, open("f", 1, nfs4.Openflag4{})))
	sid := body[nfs4.OPEN4res](t, res).Resok4.Stateid
	user.must(nfs4.NFS4ERR_ACCESS, user.do(putroot, open("f", 2, nfs4.Openflag4{})))
	root.must(ok, root.do(putfh(h), setattr(mode(0o600))))
	user.must(nfs4.NFS4ERR_ACCESS, user.do(putroot, open("f", 1, nfs4.Openflag4{})))
	user.must(nfs4.NFS4ERR_ACCESS, user.do(putfh(h), read(nfs4.Stateid4{}, 0, 1)))
	user.must(ok, user.do(putfh(h), read(sid, 0, 1)))
	user.must(nfs4.NFS4ERR_OPENMODE, user.do(putfh(h), write(sid, 0, "x")))
	user.must(nfs4.NFS4ERR_PERM, user.do(putfh(h), setattr(mode(0o777))))
	root.must(ok, root.do(putfh(h), setattr(mode(0o001))))
	user.must(ok, user.do(putroot, open("f", 1, nfs4.Openflag4{}))) // to run it
	a := body[nfs4.ACCESS4res](t, user.must(ok, user.do(putfh(h), access(0x1ff)))).Resok4
	if a.Access != nfs4.ACCESS4_EXECUTE || a.Supported&nfs4.ACCESS4_DELETE != 0 || a.Supported&nfs4.ACCESS4_XAREAD == 0 {
		t.Errorf("%x of %x", a.Access, a.Supported)
	}
	// The creator of a file may write it, whatever its mode.
	how := createHow(nfs4.GUARDED4)
	how.How.Createattrs = mode(0o444)
	user.must(ok, user.do(putroot, open("mine", 3, how), write(nfs4.Stateid4{Seqid: 1}, 0, "x")))
}

// An open file survives the removal of its last name.
func TestUnlinked(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 1, 0)
	h, sid := s.create("o", "f", 3, 0)
	s.must(ok, s.do(putfh(h), write(sid, 0, "hello")))
	s.must(ok, s.do(putroot, remove("f")))
	if d := body[nfs4.READ4res](t, s.must(ok, s.do(putfh(h), read(sid, 0, 9)))).Resok4.Data.Inline; string(d) != "hello" {
		t.Errorf("%q", d)
	}
	s.must(ok, s.do(putfh(h), closeOp(sid)))
	s.must(nfs4.NFS4ERR_STALE, s.do(putfh(h)))
}

func TestHolesAndCopies(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 2, 0)
	h, sid := s.create("o", "sparse", 3, 0)
	const block = 1 << 20
	s.must(ok, s.do(putfh(h), write(sid, 0, "start"), write(sid, 4*block, "end")))
	seek := func(from uint64, what nfs4.DataContent4) nfs4.SeekRes4 {
		t.Helper()
		return body[nfs4.SEEK4res](t, s.must(ok, s.do(putfh(h), o(nfs4.OP_SEEK, &nfs4.SEEK4args{SaStateid: sid, SaOffset: from, SaWhat: what})))).Resok4
	}
	hole := seek(0, nfs4.NFS4_CONTENT_HOLE)
	data := seek(hole.SrOffset, nfs4.NFS4_CONTENT_DATA)
	if hole.SrOffset < 5 || hole.SrOffset > 2*block || data.SrOffset > 4*block || data.SrOffset <= hole.SrOffset || data.SrEof {
		t.Errorf("%+v %+v", hole, data)
	}
	if end := seek(4*block, nfs4.NFS4_CONTENT_HOLE); end.SrOffset != 4*block+3 || !end.SrEof {
		t.Errorf("%+v", end)
	}
	// READ_PLUS, with a chunk and without, returns the same as READ.
	for _, chunks := range [][]uint32{nil, {1 << 20, 1 << 20}} {
		s.chunks = chunks
		var got []byte
		holes := 0
		for calls := 0; calls < 100; calls++ {
			a := &nfs4.READ_PLUS4args{RpaStateid: sid, RpaOffset: uint64(len(got)), RpaCount: 1 << 20}
			rp := body[nfs4.READ_PLUS4res](t, s.must(ok, s.do(putfh(h), o(nfs4.OP_READ_PLUS, a)))).RpResok4
			for _, c := range rp.RprContents {
				switch c.RpcContent {
				case nfs4.NFS4_CONTENT_DATA:
					if c.RpcData.DOffset != uint64(len(got)) {
						t.Fatalf("data at %d, want %d", c.RpcData.DOffset, len(got))
					}
					got = append(got, c.RpcData.DData.Inline...)
				case nfs4.NFS4_CONTENT_HOLE:
					if c.RpcHole.DiOffset != uint64(len(got)) || c.RpcHole.DiLength == 0 {
						t.Fatalf("hole %+v, want %d", c.RpcHole, len(got))
					}
					holes++
					got = append(got, make([]byte, c.RpcHole.DiLength)...)
				}
			}
			if rp.RprEof {
				break
			}
		}
		want := make([]byte, 4*block+3)
		copy(want, "start")
		copy(want[4*block:], "end")
		if holes == 0 || !bytes.Equal(got, want) {
			t.Errorf("%d holes, %d bytes", holes, len(got))
		}
	}
	s.chunks = nil

	h2, sid2 := s.create("o", "copy", 3, 0)
	s.must(ok, s.do(putfh(h2), write(sid2, 0, "0123456789")))
	cp := &nfs4.COPY4args{CaSrcStateid: sid, CaDstStateid: sid2, CaDstOffset: 3, CaCount: 5}
	res := body[nfs4.COPY4res](t, s.must(ok, s.do(putfh(h), savefh, putfh(h2), o(nfs4.OP_COPY, cp)))).CrResok4
	if res.CrResponse.WrCount != 5 || !res.CrRequirements.CrSynchronous || len(res.CrResponse.WrCallbackId) != 0 {
		t.Errorf("%+v", res)
	}
	all := func() string {
		t.Helper()
		return string(body[nfs4.READ4res](t, s.must(ok, s.do(putfh(h2), read(sid2, 0, 100)))).Resok4.Data.Inline)
	}
	if got := all(); got != "012start89" {
		t.Errorf("%q", got)
	}
	cl := &nfs4.CLONE4args{ClSrcStateid: sid, ClDstStateid: sid2}
	s.must(ok, s.do(putfh(h), savefh, putfh(h2), o(nfs4.OP_CLONE, cl)))
	if got := all(); len(got) != 100 || got[:6] != "start\x00" {
		t.Errorf("%q", got)
	}
	s.must(ok, s.do(putfh(h2), o(nfs4.OP_DEALLOCATE, &nfs4.DEALLOCATE4args{DaStateid: sid2, DaLength: 4})))
	s.must(ok, s.do(putfh(h2), o(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{AaStateid: sid2, AaOffset: 5 * block, AaLength: 7})))
	if got := all(); got[:6] != "\x00\x00\x00\x00t\x00" {
		t.Errorf("%q", got)
	}
	a, _ := body[nfs4.GETATTR4res](t, s.must(ok, s.do(putfh(h2), getattr(nfs4.FATTR4_SIZE)))).Resok4.ObjAttributes.Attrs()
	if a.Size != 5*block+7 {
		t.Errorf("size %d", a.Size)
	}
}

func TestXattrs(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 2, 0)
	h, _ := s.create("o", "f", 3, 0)
	set := func(want status, name, value string, how nfs4.SetxattrOption4) {
		t.Helper()
		s.must(want, s.do(putfh(h), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaOption: how, SxaKey: []byte(name), SxaValue: []byte(value)})))
	}
	for i := range 20 {
		set(ok, fmt.Sprint("name", i), fmt.Sprint("value", i), nfs4.SETXATTR4_CREATE)
	}
	set(nfs4.NFS4ERR_EXIST, "name3", "x", nfs4.SETXATTR4_CREATE)
	set(ok, "name3", "x", nfs4.SETXATTR4_REPLACE)
	get := o(nfs4.OP_GETXATTR, &nfs4.GETXATTR4args{GxaName: []byte("name3")})
	if v := body[nfs4.GETXATTR4res](t, s.must(ok, s.do(putfh(h), get))).GxrValue; string(v) != "x" {
		t.Errorf("%q", v)
	}
	var names []string
	a := &nfs4.LISTXATTRS4args{LxaMaxcount: 60}
	for range 30 {
		l := body[nfs4.LISTXATTRS4res](t, s.must(ok, s.do(putfh(h), o(nfs4.OP_LISTXATTRS, a)))).LxrValue
		for _, n := range l.LxrNames {
			names = append(names, string(n))
		}
		if a.LxaCookie = l.LxrCookie; l.LxrEof {
			break
		}
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) != 20 {
		t.Errorf("%q", names)
	}
	s.must(ok, s.do(putfh(h), o(nfs4.OP_REMOVEXATTR, &nfs4.REMOVEXATTR4args{RxaName: []byte("name3")})))
	s.must(nfs4.NFS4ERR_NOXATTR, s.do(putfh(h), get))
}

// An operation that cannot be decoded is refused after the operations before it have been
// executed.
func TestMalformed(t *testing.T) {
	r := newRig(t, Options{})
	s := r.mount("client", 1, 0)
	good := s.encode(putroot, mkdir("d"), lookup("d"))
	cut := good[:len(good)-8] // within the name of LOOKUP
	res := s.must(nfs4.NFS4ERR_BADXDR, r.result(r.raw(0, cut)))
	if len(res.Ops) != 4 {
		t.Errorf("%d results", len(res.Ops))
	}
	s.must(ok, s.do(putroot, lookup("d")))
	// An unknown operation number.
	bad := s.encode(putroot, getfh)
	copy(bad[len(bad)-4:], "\x00\x00\x00\x4d")
	res = s.must(nfs4.NFS4ERR_OP_ILLEGAL, r.result(r.raw(0, bad)))
	if n := len(res.Ops); n != 3 || res.Ops[n-1].Number != uint32(nfs4.OP_ILLEGAL) {
		t.Errorf("%d results", n)
	}
	// No operation number at all.
	short := s.encode(putroot, getfh)
	x := r.raw(0, short[:len(short)-4])
	if err := decodeReply(x.reply, new(nfs4.CompoundRes)); err == nil || err.Error() != "GARBAGE_ARGS" {
		t.Errorf("%v", err)
	}
	x = r.raw(0, []byte{0, 0, 0})
	if err := decodeReply(x.reply, new(nfs4.CompoundRes)); err == nil || err.Error() != "GARBAGE_ARGS" {
		t.Errorf("%v", err)
	}
}
