package guard_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs2"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/nsm"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/transport"
)

func in(dir []byte, name string) nfs3.Diropargs3 {
	return nfs3.Diropargs3{Dir: nfs3.NfsFh3{Data: dir}, Name: []byte(name)}
}

func sized(n uint64) nfs4.Fattr4 {
	a := nfs4.Attrs{Size: n}
	a.Mask = a.Mask.With(nfs4.FATTR4_SIZE)
	return a.Fattr4()
}

func opens(name string, create bool) *nfs4.OPEN4args {
	a := &nfs4.OPEN4args{ShareAccess: nfs4.OPEN4_SHARE_ACCESS_BOTH, Owner: nfs4.StateOwner4{Owner: []byte("o")}, Claim: nfs4.OpenClaim4{File: []byte(name)}}
	if create {
		a.Openhow.Opentype = nfs4.OPEN4_CREATE
		a.Openhow.How.Createattrs = sized(0)
	}
	return a
}

// TestVerdicts checks what becomes of one call of each kind, with
// and without leave to write.
func TestVerdicts(t *testing.T) {
	const pass = guard.Reason(0)
	f := newFixture(t, true)
	defer f.close()
	var link [32]byte
	save, restore := op(nfs4.OP_SAVEFH), op(nfs4.OP_RESTOREFH)
	plus := &nfs3.READDIRPLUS3args{Dir: nfs3.NfsFh3{Data: f.base}, Dircount: 4096, Maxcount: 8192}
	f.must(f.v3(nfs3.NFSPROC3_READDIRPLUS, plus), &nfs3.READDIRPLUS3res{}) // file and dir are known now

	for _, c := range []struct {
		name        string
		call        *client.Call
		write, read guard.Reason
	}{
		{"NULL", f.v3(0, xdr.Void{}), pass, pass},
		{"GETATTR above", f.v3(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: nfs3.NfsFh3{Data: f.root}}), pass, pass},
		{"COMMIT above", f.v3(nfs3.NFSPROC3_COMMIT, &nfs3.COMMIT3args{File: nfs3.NfsFh3{Data: f.canary}}), pass, pass},
		{"REMOVE inside", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.base, "file")}), pass, guard.ReadOnly},
		{"REMOVE deeper", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.dir, "deep")}), pass, guard.ReadOnly},
		{"REMOVE outside", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.root, "canary")}), guard.Outside, guard.ReadOnly},
		{"REMOVE ..", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.base, "..")}), guard.Elsewhere, guard.ReadOnly},
		{"REMOVE of a path", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.base, "../canary")}), guard.Elsewhere, guard.ReadOnly},
		{"REMOVE of nothing", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.base, "")}), guard.Elsewhere, guard.ReadOnly},
		{"REMOVE in the public directory", f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(nil, "canary")}), guard.Outside, guard.ReadOnly},
		{"RENAME inside", f.v3(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: in(f.base, "file"), To: in(f.dir, "x")}), pass, guard.ReadOnly},
		{"RENAME out", f.v3(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: in(f.base, "file"), To: in(f.root, "x")}), guard.Outside, guard.ReadOnly},
		{"RENAME in", f.v3(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: in(f.root, "canary"), To: in(f.base, "x")}), guard.Outside, guard.ReadOnly},
		{"RENAME to ..", f.v3(nfs3.NFSPROC3_RENAME, &nfs3.RENAME3args{From: in(f.base, "file"), To: in(f.base, "..")}), guard.Elsewhere, guard.ReadOnly},
		{"LINK inside", f.v3(nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: nfs3.NfsFh3{Data: f.file}, Link: in(f.dir, "x")}), pass, guard.ReadOnly},
		{"LINK of the canary", f.v3(nfs3.NFSPROC3_LINK, &nfs3.LINK3args{File: nfs3.NfsFh3{Data: f.canary}, Link: in(f.dir, "x")}), guard.Outside, guard.ReadOnly},
		{"SETATTR of the base", f.v3(nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: nfs3.NfsFh3{Data: f.base}}), pass, guard.ReadOnly},
		{"SETATTR of the canary", f.v3(nfs3.NFSPROC3_SETATTR, &nfs3.SETATTR3args{Object: nfs3.NfsFh3{Data: f.canary}}), guard.Outside, guard.ReadOnly},
		{"SETACL of the canary", f.build(nfsacl.NFS_ACL_PROGRAM, 3, nfsacl.ACLPROC3_SETACL, &nfsacl.SETACL3args{Fh: nfs3.NfsFh3{Data: f.canary}}), guard.Outside, guard.ReadOnly},
		{"SETACL inside", f.build(nfsacl.NFS_ACL_PROGRAM, 3, nfsacl.ACLPROC3_SETACL, &nfsacl.SETACL3args{Fh: nfs3.NfsFh3{Data: f.file}}), pass, guard.ReadOnly},
		{"GETACL", f.build(nfsacl.NFS_ACL_PROGRAM, 3, nfsacl.ACLPROC3_GETACL, &nfsacl.GETACL3args{Fh: nfs3.NfsFh3{Data: f.canary}}), pass, pass},
		{"MNT", f.build(mount.MOUNT_PROGRAM, 3, mount.MOUNTPROC3_MNT, &mount.DirpathMessage{Dirpath: []byte("/")}), pass, pass},
		{"UMNTALL", f.build(mount.MOUNT_PROGRAM, 3, mount.MOUNTPROC3_UMNTALL, xdr.Void{}), guard.NeverReplayed, guard.NeverReplayed},
		{"NLM LOCK", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_LOCK, &nlm.Nlm4Lockargs{Alock: nlm.Nlm4Lock{Fh: f.file, CallerName: []byte(host + "a")}}), pass, pass},
		{"NLM 3 LOCK", f.build(nlm.NLM_PROG, 3, nlm.NLM_LOCK, &nlm.NlmLockargs{Alock: nlm.NlmLock{Fh: f.file, CallerName: []byte(host + "a")}}), pass, pass},
		{"NLM LOCK of the canary", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_LOCK, &nlm.Nlm4Lockargs{Alock: nlm.Nlm4Lock{Fh: f.canary, CallerName: []byte(host)}}), guard.InTheWay, guard.InTheWay},
		{"NLM 1 LOCK of the canary", f.build(nlm.NLM_PROG, 1, nlm.NLM_LOCK, &nlm.NlmLockargs{Alock: nlm.NlmLock{Fh: f.canary, CallerName: []byte(host)}}), guard.InTheWay, guard.InTheWay},
		{"NLM LOCK in somebody's name", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_LOCK, &nlm.Nlm4Lockargs{Alock: nlm.Nlm4Lock{Fh: f.file, CallerName: []byte("somebody")}}), guard.Foreign, guard.Foreign},
		{"NLM UNLOCK in somebody's name", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_UNLOCK, &nlm.Nlm4Unlockargs{Alock: nlm.Nlm4Lock{Fh: f.file}}), guard.Foreign, guard.Foreign},
		{"NLM CANCEL of the canary", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_CANCEL, &nlm.Nlm4Cancargs{Alock: nlm.Nlm4Lock{Fh: f.canary, CallerName: []byte(host)}}), guard.InTheWay, guard.InTheWay},
		{"NLM SHARE of the canary", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_SHARE, &nlm.Nlm4Shareargs{Share: nlm.Nlm4Share{Fh: f.canary, CallerName: []byte(host)}}), guard.InTheWay, guard.InTheWay},
		{"NLM SHARE inside", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_SHARE, &nlm.Nlm4Shareargs{Share: nlm.Nlm4Share{Fh: f.file, CallerName: []byte(host)}}), pass, pass},
		{"NLM TEST above", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_TEST, &nlm.Nlm4Testargs{Alock: nlm.Nlm4Lock{Fh: f.canary, CallerName: []byte(host)}}), pass, pass},
		{"NLM FREE_ALL", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_FREE_ALL, &nlm.Nlm4Notify{Name: []byte(host)}), guard.NeverReplayed, guard.NeverReplayed},
		{"NLM LOCK_MSG", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_LOCK_MSG, &nlm.Nlm4Lockargs{Alock: nlm.Nlm4Lock{Fh: f.file, CallerName: []byte(host)}}), guard.NeverReplayed, guard.NeverReplayed},
		{"NLM GRANTED", f.build(nlm.NLM_PROG, 4, nlm.NLMPROC4_GRANTED, &nlm.Nlm4Testargs{Alock: nlm.Nlm4Lock{Fh: f.file, CallerName: []byte(host)}}), guard.NeverReplayed, guard.NeverReplayed},
		{"SM_NOTIFY", f.build(nsm.SM_PROG, 1, nsm.SM_NOTIFY, &nsm.StatChge{MonName: []byte(host)}), guard.NeverReplayed, guard.NeverReplayed},
		{"NFSv2 GETATTR", f.build(nfs2.NFS_PROGRAM, 2, nfs2.NFSPROC_GETATTR, &nfs2.FhandleMessage{Fhandle: link}), pass, pass},
		{"NFSv2 REMOVE", f.build(nfs2.NFS_PROGRAM, 2, nfs2.NFSPROC_REMOVE, &nfs2.Diropargs{Name: []byte("x")}), guard.Outside, guard.ReadOnly},
		{"callback", f.build(nfs4.NFS4_CALLBACK, 1, nfs4.CB_NULL, xdr.Void{}), guard.NeverReplayed, guard.NeverReplayed},

		{"COMPOUND of nothing", f.v4(0), pass, pass},
		{"reading above", f.v4(0, op(nfs4.OP_PUTROOTFH), lookup("canary"), op(nfs4.OP_GETFH), op(nfs4.OP_READ, &nfs4.READ4args{})), pass, pass},
		{"REMOVE by lookup", f.v4(0, put(f.base), lookup("dir"), remove("deep")), pass, guard.ReadOnly},
		{"REMOVE at the root", f.v4(0, op(nfs4.OP_PUTROOTFH), remove("canary")), guard.Outside, guard.ReadOnly},
		{"REMOVE in the public directory", f.v4(0, op(nfs4.OP_PUTPUBFH), remove("canary")), guard.Outside, guard.ReadOnly},
		{"REMOVE in the base reached from the root", f.v4(0, op(nfs4.OP_PUTROOTFH), lookup("base"), remove("file")), guard.Outside, guard.ReadOnly},
		{"REMOVE after LOOKUPP", f.v4(0, put(f.dir), op(nfs4.OP_LOOKUPP), remove("file")), guard.Outside, guard.ReadOnly},
		{"REMOVE after LOOKUP of ..", f.v4(0, put(f.base), lookup(".."), remove("canary")), guard.Outside, guard.ReadOnly},
		{"REMOVE without a file handle", f.v4(0, remove("canary")), guard.Outside, guard.ReadOnly},
		{"REMOVE after SECINFO", f.v4(0, put(f.base), op(nfs4.OP_SECINFO, &nfs4.SECINFO4args{Name: []byte("x")}), remove("x")), guard.Outside, guard.ReadOnly},
		{"REMOVE after RESTOREFH", f.v4(0, put(f.base), save, put(f.root), restore, remove("file")), pass, guard.ReadOnly},
		{"REMOVE after RESTOREFH of the root", f.v4(0, put(f.root), save, put(f.base), restore, remove("canary")), guard.Outside, guard.ReadOnly},
		{"RENAME inside (v4)", f.v4(0, put(f.base), save, put(f.dir), op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("file"), Newname: []byte("x")})), pass, guard.ReadOnly},
		{"RENAME in (v4)", f.v4(0, put(f.root), save, put(f.dir), op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("canary"), Newname: []byte("x")})), guard.Outside, guard.ReadOnly},
		{"RENAME out (v4)", f.v4(0, put(f.base), save, put(f.root), op(nfs4.OP_RENAME, &nfs4.RENAME4args{Oldname: []byte("file"), Newname: []byte("x")})), guard.Outside, guard.ReadOnly},
		{"LINK of the canary (v4)", f.v4(0, put(f.canary), save, put(f.base), op(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("x")})), guard.Outside, guard.ReadOnly},
		{"CLONE onto the canary", f.v4(2, put(f.file), save, put(f.canary), op(nfs4.OP_CLONE, &nfs4.CLONE4args{})), guard.Outside, guard.ReadOnly},
		{"COPY inside", f.v4(2, put(f.file), save, put(f.file), op(nfs4.OP_COPY, &nfs4.COPY4args{})), pass, guard.ReadOnly},
		{"COPY from another server", f.v4(2, put(f.file), save, put(f.file), op(nfs4.OP_COPY, &nfs4.COPY4args{CaSourceServer: []nfs4.Netloc4{{NlType: nfs4.NL4_NAME, NlName: []byte("x")}}})), guard.NeverReplayed, guard.NeverReplayed},
		{"COPY_NOTIFY", f.v4(2, put(f.file), op(nfs4.OP_COPY_NOTIFY, &nfs4.COPY_NOTIFY4args{CnaDestinationServer: nfs4.Netloc4{NlType: nfs4.NL4_NAME}})), guard.NeverReplayed, guard.NeverReplayed},
		{"CLONE of 4.2 in 4.1", f.v4(1, put(f.file), save, op(nfs4.OP_CLONE, &nfs4.CLONE4args{})), guard.Unknown, guard.Unknown},
		{"NFSv4.3", f.v4(3, put(f.file)), guard.Unknown, guard.Unknown},
		{"OP_ILLEGAL", f.v4(1, op(nfs4.OP_ILLEGAL)), guard.NeverReplayed, guard.NeverReplayed},
		{"WRITE inside", f.v4(1, put(f.file), op(nfs4.OP_WRITE, &nfs4.WRITE4args{})), pass, guard.ReadOnly},
		{"WRITE outside", f.v4(1, put(f.canary), op(nfs4.OP_WRITE, &nfs4.WRITE4args{})), guard.Outside, guard.ReadOnly},
		{"SETXATTR outside", f.v4(2, put(f.canary), op(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("k")})), guard.Outside, guard.ReadOnly},
		{"ALLOCATE outside", f.v4(2, put(f.canary), op(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{})), guard.Outside, guard.ReadOnly},
		{"LAYOUTCOMMIT outside", f.v4(1, put(f.canary), op(nfs4.OP_LAYOUTCOMMIT, &nfs4.LAYOUTCOMMIT4args{LocaLayoutupdate: nfs4.Layoutupdate4{TypedBody: nfs4.TypedBody{Type: nfs4.LAYOUT4_NFSV4_1_FILES}}})), guard.Outside, guard.ReadOnly},
		{"OPEN to read inside", f.v4(1, put(f.base), op(nfs4.OP_OPEN, opens("file", false))), pass, pass},
		{"OPEN outside", f.v4(1, put(f.root), op(nfs4.OP_OPEN, opens("canary", false))), guard.InTheWay, guard.InTheWay},
		{"OPEN of ..", f.v4(1, put(f.base), op(nfs4.OP_OPEN, opens("..", false))), guard.Elsewhere, guard.Elsewhere},
		{"OPEN that creates", f.v4(1, put(f.base), op(nfs4.OP_OPEN, opens("new", true)), op(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: sized(1)})), pass, guard.ReadOnly},
		{"OPEN that empties the canary", f.v4(1, put(f.root), op(nfs4.OP_OPEN, opens("canary", true))), guard.Outside, guard.ReadOnly},
		{"LOCK outside", f.v4(1, put(f.canary), op(nfs4.OP_LOCK, &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 1})), guard.InTheWay, guard.InTheWay},
		{"LOCK inside", f.v4(1, put(f.file), op(nfs4.OP_LOCK, &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 1})), pass, pass},
		{"CREATE inside", f.v4(1, put(f.base), op(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte("d")}), remove("x")), pass, guard.ReadOnly},
		{"OPENATTR", f.v4(1, put(f.canary), op(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{})), pass, pass},
		{"OPENATTR that creates", f.v4(1, put(f.canary), op(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{Createdir: true})), guard.Outside, guard.ReadOnly},
		{"named attribute of a file inside", f.v4(1, put(f.file), op(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{}), remove("a")), pass, guard.ReadOnly},
		{"an attribute that is not defined", f.v4(1, put(f.file), op(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: nfs4.Fattr4{Attrmask: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(120)}}})), guard.Undefined, guard.Undefined},
		{"bytes behind attributes", f.v4(1, put(f.file), op(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: nfs4.Fattr4{Attrmask: sized(1).Attrmask, AttrVals: make([]byte, 12)}})), guard.Undefined, guard.Undefined},
		{"too few attributes", f.v4(1, put(f.file), op(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: nfs4.Fattr4{Attrmask: sized(1).Attrmask, AttrVals: make([]byte, 4)}})), guard.Malformed, guard.Malformed},

		{"somebody's client", f.v4(1, op(nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaClientowner: nfs4.ClientOwner4{CoOwnerid: []byte("Linux NFSv4.1 host")}})), guard.Foreign, guard.Foreign},
		{"our client", f.v4(1, op(nfs4.OP_EXCHANGE_ID, &nfs4.EXCHANGE_ID4args{EiaClientowner: nfs4.ClientOwner4{CoOwnerid: []byte(owner + "1")}})), pass, pass},
		{"somebody's client id", f.v4(1, op(nfs4.OP_DESTROY_CLIENTID, &nfs4.DESTROY_CLIENTID4args{DcaClientid: 7})), guard.Foreign, guard.Foreign},
		{"somebody's session", f.v4(1, op(nfs4.OP_DESTROY_SESSION, &nfs4.DESTROY_SESSION4args{})), guard.Foreign, guard.Foreign},
		{"a call in somebody's session", f.v4(1, op(nfs4.OP_SEQUENCE, &nfs4.SEQUENCE4args{})), guard.Foreign, guard.Foreign},
		{"a lock on somebody's state", f.v4(0, put(f.file), op(nfs4.OP_LOCK, &nfs4.LOCK4args{Locktype: nfs4.READ_LT,
			Locker: nfs4.Locker4{LockOwner: nfs4.ExistLockOwner4{LockStateid: nfs4.Stateid4{Other: [12]byte{1}}}}})), guard.Foreign, guard.Foreign},
		{"somebody's state", f.v4(0, put(f.file), op(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: nfs4.Stateid4{Other: [12]byte{1}}})), guard.Foreign, guard.Foreign},
		{"nobody's state", f.v4(0, put(f.file), op(nfs4.OP_CLOSE, &nfs4.CLOSE4args{})), pass, pass},
		{"callbacks to somebody", f.v4(0, op(nfs4.OP_SETCLIENTID, &nfs4.SETCLIENTID4args{Client: nfs4.NfsClientId4{Id: []byte(owner)},
			Callback: nfs4.CbClient4{CbLocation: nfs4.Netaddr4{NaRAddr: []byte("192.0.2.1.8.1")}}})), guard.Foreign, guard.Foreign},
	} {
		if got := f.reason(c.call); got != c.write {
			t.Errorf("%s, with leave to write: %v, not %d", c.name, f.guard.Check(&c.call.Message), c.write)
		}
		readonly := *f
		readonly.guard = guard.New(guard.Options{Owner: []byte(owner), LockHost: []byte(host)})
		for _, h := range [][]byte{f.base, f.dir, f.file} {
			readonly.guard.Base(h)
		}
		if got := readonly.reason(c.call); got != c.read {
			t.Errorf("%s, without: %v, not %d", c.name, readonly.guard.Check(&c.call.Message), c.read)
		}
	}
}

// TestBytes: what is decoded has to be all there is, in the only form it can have.
func TestBytes(t *testing.T) {
	f := newFixture(t, true)
	defer f.close()
	whole := func(c *client.Call) []byte { return c.AppendWhole(nil) }
	getattr := whole(f.v4(0, put(f.base), op(nfs4.OP_GETATTR, &nfs4.GETATTR4args{AttrRequest: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(1)}})))
	args := f.build(100003, 3, nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.base, "abcde")})
	removal := whole(args)
	open := whole(f.v4(1, put(f.base), op(nfs4.OP_OPENATTR, &nfs4.OPENATTR4args{})))
	write := whole(f.v3(nfs3.NFSPROC3_WRITE, &nfs3.WRITE3args{File: nfs3.NfsFh3{Data: f.base}, Stable: nfs3.FILE_SYNC}))
	set := func(b []byte, at int, v byte) []byte {
		b = append([]byte(nil), b...)
		if at < 0 {
			at += len(b)
		}
		b[at] = v
		return b
	}
	word := func(b []byte, at int, v uint32) []byte {
		b = append([]byte(nil), b...)
		binary.BigEndian.PutUint32(b[at:], v)
		return b
	}
	header := oncrpc.Call{RPCVersion: 2, Program: 100003, Version: 3, Cred: f.cred}
	cred := func(a oncrpc.Auth) []byte { h := header; h.Cred = a; return h.Append(nil) }
	verf := func(a oncrpc.Auth) []byte { h := header; h.Verf = a; return h.Append(nil) }
	sys := oncrpc.Sys{Machine: []byte("abc")}
	for _, c := range []struct {
		name string
		b    []byte
		want guard.Reason
	}{
		{"as it is", getattr, 0},
		{"a removal", removal, 0},
		{"nothing", nil, guard.Malformed},
		{"a header cut", getattr[:20], guard.Malformed},
		{"a reply", word(getattr, 4, 1), guard.Malformed},
		{"RPC version 3", word(getattr, 8, 3), guard.Malformed},
		{"a word behind it", append(append([]byte(nil), getattr...), 0, 0, 0, 0), guard.Ambiguous},
		{"an operation behind it", append(append([]byte(nil), getattr...), remove("x").Body.Append([]byte{0, 0, 0, 28})...), guard.Ambiguous},
		{"a byte behind it", append(append([]byte(nil), getattr...), 0), guard.Ambiguous},
		{"cut by four", getattr[:len(getattr)-4], guard.Malformed},
		{"padding that is not zero", set(removal, -1, 1), guard.Ambiguous},
		{"without its padding", removal[:len(removal)-3], guard.Ambiguous},
		{"half its padding", removal[:len(removal)-2], guard.Ambiguous},
		{"a boolean of 2", set(open, -1, 2), guard.Ambiguous},
		{"an enumeration of 9", word(write, len(write)-8, 9), guard.Undefined},
		{"AUTH_NONE", cred(oncrpc.Auth{}), 0},
		{"AUTH_NONE with a body", cred(oncrpc.Auth{Body: []byte("abcd")}), guard.Credential},
		{"RPCSEC_GSS", cred(oncrpc.Auth{Flavor: oncrpc.RPCSecGSS, Body: make([]byte, 20)}), guard.Credential},
		{"AUTH_SYS cut", cred(oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: sys.Append(nil)[:16]}), guard.Credential},
		{"AUTH_SYS and more", cred(oncrpc.Auth{Flavor: oncrpc.AuthSys, Body: append(sys.Append(nil), 0, 0, 0, 0)}), guard.Ambiguous},
		{"a verifier", verf(oncrpc.Auth{Flavor: oncrpc.AuthShort}), guard.Credential},
		{"no such procedure", word(getattr, 20, 2), guard.Unknown},
		{"no such version", word(getattr, 16, 5), guard.Unknown},
		{"no such program", word(getattr, 12, 100099), guard.Unknown},
	} {
		got := guard.Reason(0)
		err := f.guard.Check(&transport.Message{Stream: c.b})
		var r *guard.Refused
		if errors.As(err, &r) {
			got = r.Reason
		}
		if got != c.want {
			t.Errorf("%s: %v, not %d", c.name, err, c.want)
		}
		if r != nil && (strings.Contains(err.Error(), "%!") || len(err.Error()) < 10) {
			t.Errorf("%s: %q", c.name, err)
		}
	}
}

// TestChunks: data that travel apart have to be where the arguments have data.
func TestChunks(t *testing.T) {
	f := newFixture(t, true)
	defer f.close()
	data := []byte("12345")
	c := &client.Call{}
	c.Build(client.Procedure{Program: 100003, Version: 3, Number: nfs3.NFSPROC3_WRITE}, f.cred,
		&nfs3.WRITE3args{File: nfs3.NfsFh3{Data: f.base}, Count: 5, Data: xdr.Data{Length: 5, Chunk: 1}}, data)
	if err := f.guard.Check(&c.Message); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(m *transport.Message){
		"too short":     func(m *transport.Message) { m.Items[0].Data = data[:4] },
		"too long":      func(m *transport.Message) { m.Items[0].Data = append(data[:5:5], 0) },
		"much too long": func(m *transport.Message) { m.Items[0].Data = make([]byte, 64) },
		"elsewhere":     func(m *transport.Message) { m.Items[0].Position -= 4 },
		"far away":      func(m *transport.Message) { m.Items[0].Position += 1 << 30 },
		"twice":         func(m *transport.Message) { m.Items = append(m.Items, m.Items[0]) },
		"one more empty": func(m *transport.Message) {
			m.Items = append(m.Items, transport.Item{Position: m.Items[0].Position + 8})
		},
		"none":         func(m *transport.Message) { m.Items = nil },
		"bytes behind": func(m *transport.Message) { m.Stream = append(m.Stream, 0, 0, 0, 0) },
	} {
		m := transport.Message{Stream: append([]byte(nil), c.Stream...), Items: append([]transport.Item(nil), c.Items...)}
		change(&m)
		if f.guard.Check(&m) == nil {
			t.Errorf("%s: sent", name)
		}
	}
	// In REMOVE there are no data.
	r := f.v3(nfs3.NFSPROC3_REMOVE, &nfs3.REMOVE3args{Object: in(f.base, "file")})
	m := transport.Message{Stream: r.Stream, Items: []transport.Item{{Position: uint32(len(r.Stream) - 8), Data: data}}}
	if f.guard.Check(&m) == nil {
		t.Error("a chunk in the place of a name was sent")
	}
}
