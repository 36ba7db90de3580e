package nfsacl_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	wire "github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/internal/testtools/nfstest"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfsacl"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// plain hides that a store keeps ACLs.
type plain struct{ store.Store }

type fixture struct {
	*testing.T
	ctx  context.Context
	d    nfstest.Doer
	fs   nfstest.Client3 // root
	root []byte
}

func start(t *testing.T, keep bool) *fixture {
	st := store.Store(memory.New(memory.Options{}))
	root := st.Info().Handles.Append(nil, st.Root())
	if !keep {
		st = plain{st}
	}
	s := nfsserver.New(nfsserver.Options{})
	t.Cleanup(s.Close)
	s.Register(v3.New(st, v3.Options{}))
	s.Register(nfsacl.New(st))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	d := nfstest.NewDirect(s)
	return &fixture{t, ctx, d, nfstest.New3(d, 0, 0), root}
}

func (t *fixture) as(uid, gid uint32, gids ...uint32) *nfstest.Client {
	return &nfstest.Client{Doer: t.d, Program: wire.NFS_ACL_PROGRAM, Version: wire.NFS_ACL_V3, Cred: nfstest.Sys(uid, gid, gids...)}
}

func (t *fixture) ok(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const all = wire.NA_ACL | wire.NA_ACLCNT | wire.NA_DFACL | wire.NA_DFACLCNT

func (t *fixture) get(h []byte, mask uint32) (*wire.Secattr, uint32) {
	t.Helper()
	var res wire.GETACL3res
	t.ok(t.as(0, 0).Call(t.ctx, wire.ACLPROC3_GETACL, &wire.GETACL3args{Fh: nfs3.NfsFh3{Data: h}, Mask: mask}, &res, nil, nil))
	if res.Status != 0 || !res.Resok.Attr.AttributesFollow {
		t.Fatalf("%v", res.Status)
	}
	return &res.Resok.Acl, res.Resok.Attr.Attributes.Mode
}

// want compares the list of an object, and its mode.
func (t *fixture) want(h []byte, mode uint32, access, def []wire.Aclent) {
	t.Helper()
	a, m := t.get(h, all)
	if m != mode || !slices.Equal(a.Aclent, access) || !slices.Equal(a.Dfaclent, def) || int(a.Aclcnt) != len(access) || int(a.Dfaclcnt) != len(def) || a.Mask != all {
		t.Errorf("mode %o, %+v; want mode %o, %v, %v", m, a, mode, access, def)
	}
}

func (t *fixture) set(c *nfstest.Client, h []byte, mask uint32, access, def []wire.Aclent) nfs3.Nfsstat3 {
	t.Helper()
	var res wire.SETACL3res
	t.ok(c.Call(t.ctx, wire.ACLPROC3_SETACL, &wire.SETACL3args{Fh: nfs3.NfsFh3{Data: h},
		Acl: wire.Secattr{Mask: mask, Aclcnt: uint32(len(access)), Aclent: access, Dfaclcnt: uint32(len(def)), Dfaclent: def}}, &res, nil, nil))
	return res.Status
}

// list makes entries of triples: type, ID, permissions.
func list(flag uint32, x ...uint32) (out []wire.Aclent) {
	for i := 0; i < len(x); i += 3 {
		out = append(out, wire.Aclent{Type: x[i] | flag, Id: x[i+1], Perm: x[i+2]})
	}
	return out
}

const (
	uo, u, g, gr, m, o = wire.NA_USER_OBJ, wire.NA_USER, wire.NA_GROUP_OBJ, wire.NA_GROUP, wire.NA_CLASS_OBJ, wire.NA_OTHER_OBJ
)

func (t *fixture) chmod(h []byte, mode uint32) {
	t.Helper()
	args := &nfs3.SETATTR3args{Object: nfs3.NfsFh3{Data: h}}
	args.NewAttributes.Mode = nfs3.SetMode3{SetIt: true, Mode: mode}
	t.ok(t.fs.Do(t.ctx, nfs3.NFSPROC3_SETATTR, args, &nfs3.SETATTR3res{}))
}

func (t *fixture) chown(h []byte, uid, gid uint32) {
	t.Helper()
	args := &nfs3.SETATTR3args{Object: nfs3.NfsFh3{Data: h}}
	args.NewAttributes.Uid, args.NewAttributes.Gid = nfs3.SetUid3{SetIt: true, Uid: uid}, nfs3.SetGid3{SetIt: true, Gid: gid}
	t.ok(t.fs.Do(t.ctx, nfs3.NFSPROC3_SETATTR, args, &nfs3.SETATTR3res{}))
}

func (t *fixture) access(h []byte, uid, gid uint32, gids ...uint32) uint32 {
	t.Helper()
	var res nfs3.ACCESS3res
	t.ok(nfstest.New3(t.d, uid, gid, gids...).Do(t.ctx, nfs3.NFSPROC3_ACCESS, &nfs3.ACCESS3args{Object: nfs3.NfsFh3{Data: h}, Access: 0x3f}, &res))
	return res.Resok.Access
}

func TestMinimal(t0 *testing.T) {
	for _, keep := range []bool{true, false} {
		t := start(t0, keep)
		f, _, err := t.fs.Create(t.ctx, t.root, "f", 0o4641)
		t.ok(err)
		t.chown(f, 10, 20)
		t.chmod(f, 0o4641)
		t.want(f, 0o4641, list(0, uo, 10, 6, g, 20, 4, m, 0, 4, o, 0, 1), nil)
		a, _ := t.get(f, wire.NA_ACLCNT)
		if a.Aclcnt != 4 || len(a.Aclent) != 0 || a.Mask != wire.NA_ACLCNT {
			t.Errorf("%+v", a)
		}
		// What a mode can say is set as a mode; the mask may be anywhere, or missing.
		for _, l := range [][]wire.Aclent{list(0, o, 0, 0, m, 0, 5, g, 99, 5, uo, 99, 7), list(0, uo, 0, 7, g, 0, 5, o, 0, 0)} {
			t.chmod(f, 0o4641)
			if st := t.set(t.as(10, 20), f, wire.NA_ACL, l, nil); st != 0 {
				t.Error(st)
			}
			t.want(f, 0o4750, list(0, uo, 10, 7, g, 20, 5, m, 0, 5, o, 0, 0), nil)
		}
		// Nothing is there to be removed.
		if st := t.set(t.as(10, 20), f, wire.NA_ACL|wire.NA_DFACL, nil, nil); st != 0 {
			t.Error(st)
		}
		t.want(f, 0o4750, list(0, uo, 10, 7, g, 20, 5, m, 0, 5, o, 0, 0), nil)
	}
}

func TestStored(t0 *testing.T) {
	t := start(t0, true)
	f, _, err := t.fs.Create(t.ctx, t.root, "f", 0o600)
	t.ok(err)
	t.chown(f, 10, 20)
	l := list(0, o, 0, 1, u, 12, 6, u, 11, 7, gr, 31, 5, g, 20, 4, m, 0, 6, uo, 10, 7)
	if st := t.set(t.as(10, 20), f, wire.NA_ACL, l, nil); st != 0 {
		t.Fatal(st)
	}
	// Sorted; the group bits of the mode are the mask.
	t.want(f, 0o761, list(0, uo, 10, 7, u, 11, 7, u, 12, 6, g, 20, 4, gr, 31, 5, m, 0, 6, o, 0, 1), nil)
	const r, w, x = nfs3.ACCESS3_READ, nfs3.ACCESS3_MODIFY | nfs3.ACCESS3_EXTEND, nfs3.ACCESS3_EXECUTE
	for _, c := range []struct {
		uid, gid uint32
		gids     []uint32
		want     uint32
	}{
		{10, 1, nil, r | w | x}, {11, 1, nil, r | w}, {12, 20, nil, r | w}, {13, 20, nil, r}, {13, 31, nil, r}, {13, 1, []uint32{20, 31}, r}, {13, 1, nil, x}, {0, 0, nil, r | w | x},
	} {
		if got := t.access(f, c.uid, c.gid, c.gids...); got != c.want {
			t.Errorf("user %d, group %d %v: %#x, want %#x", c.uid, c.gid, c.gids, got, c.want)
		}
	}
	// chmod changes the mask, and not the group.
	t.chmod(f, 0o640)
	t.want(f, 0o640, list(0, uo, 10, 6, u, 11, 7, u, 12, 6, g, 20, 4, gr, 31, 5, m, 0, 4, o, 0, 0), nil)
	if got := t.access(f, 12, 1); got != r {
		t.Errorf("%#x", got)
	}
	// Without the list the mode stays.
	if st := t.set(t.as(10, 20), f, wire.NA_ACL, nil, nil); st != 0 {
		t.Fatal(st)
	}
	t.want(f, 0o640, list(0, uo, 10, 6, g, 20, 4, m, 0, 4, o, 0, 0), nil)
}

func TestDefault(t0 *testing.T) {
	t := start(t0, true)
	d, err := t.fs.Mkdir(t.ctx, t.root, "d", 0o755)
	t.ok(err)
	def := list(wire.NA_DEFAULT, uo, 0, 7, u, 11, 7, g, 0, 5, m, 0, 7, o, 0, 0)
	if st := t.set(t.as(0, 0), d, wire.NA_DFACL, nil, def); st != 0 {
		t.Fatal(st)
	}
	own := list(0, uo, 0, 7, g, 0, 5, m, 0, 5, o, 0, 5)
	t.want(d, 0o755, own, def)
	f, _, err := t.fs.Create(t.ctx, d, "f", 0o664)
	t.ok(err)
	t.want(f, 0o660, list(0, uo, 0, 6, u, 11, 7, g, 0, 5, m, 0, 6, o, 0, 0), nil)
	sub, err := t.fs.Mkdir(t.ctx, d, "sub", 0o775)
	t.ok(err)
	t.want(sub, 0o770, list(0, uo, 0, 7, u, 11, 7, g, 0, 5, m, 0, 7, o, 0, 0), def)
	// A default that a mode can say gives modes.
	plain := list(wire.NA_DEFAULT, uo, 0, 7, g, 0, 5, m, 0, 5, o, 0, 1)
	if st := t.set(t.as(0, 0), d, all, own, plain); st != 0 {
		t.Fatal(st)
	}
	t.want(d, 0o755, own, plain)
	f, _, err = t.fs.Create(t.ctx, d, "g", 0o666)
	t.ok(err)
	t.want(f, 0o640, list(0, uo, 0, 6, g, 0, 4, m, 0, 4, o, 0, 0), nil)
	if st := t.set(t.as(0, 0), d, wire.NA_DFACL, nil, nil); st != 0 {
		t.Fatal(st)
	}
	t.want(d, 0o755, own, nil)
	if st := t.set(t.as(0, 0), f, wire.NA_DFACL, nil, def); st != nfs3.NFS3ERR_ACCES {
		t.Error(st)
	}
}

func TestErrors(t0 *testing.T) {
	t := start(t0, true)
	f, _, err := t.fs.Create(t.ctx, t.root, "f", 0o600)
	t.ok(err)
	good := list(0, uo, 0, 6, u, 5, 4, g, 0, 4, m, 0, 4, o, 0, 0)
	for name, c := range map[string]struct {
		l    []wire.Aclent
		want nfs3.Nfsstat3
	}{
		"no mask":     {list(0, uo, 0, 6, u, 5, 4, g, 0, 4, o, 0, 0), nfs3.NFS3ERR_INVAL},
		"no owner":    {list(0, g, 0, 4, m, 0, 4, o, 0, 0), nfs3.NFS3ERR_INVAL},
		"twice":       {append(list(0, u, 5, 1), good...), nfs3.NFS3ERR_INVAL},
		"two others":  {append(list(0, o, 5, 1), good...), nfs3.NFS3ERR_INVAL},
		"permissions": {list(0, uo, 0, 8, g, 0, 4, m, 0, 4, o, 0, 0), nfs3.NFS3ERR_INVAL},
		"type":        {append(list(0, 3, 5, 1), good...), nfs3.NFS3ERR_INVAL},
	} {
		if st := t.set(t.as(0, 0), f, wire.NA_ACL, c.l, nil); st != c.want {
			t.Errorf("%s: %v", name, st)
		}
	}
	if st := t.set(t.as(5, 5), f, wire.NA_ACL, good, nil); st != nfs3.NFS3ERR_PERM {
		t.Error(st)
	}
	if st := t.set(t.as(0, 0), f, 0x10, good, nil); st != nfs3.NFS3ERR_INVAL {
		t.Error(st)
	}
	if st := t.set(t.as(0, 0), f[:8], wire.NA_ACL, good, nil); st != nfs3.NFS3ERR_BADHANDLE {
		t.Error(st)
	}
	t.want(f, 0o600, list(0, uo, 0, 6, g, 0, 0, m, 0, 0, o, 0, 0), nil)
	var res wire.GETACL3res
	t.ok(t.as(0, 0).Call(t.ctx, wire.ACLPROC3_GETACL, &wire.GETACL3args{Fh: nfs3.NfsFh3{Data: f}, Mask: 0x20}, &res, nil, nil))
	if res.Status != nfs3.NFS3ERR_INVAL || !res.Resfail.Attr.AttributesFollow {
		t.Errorf("%+v", res)
	}
	t.ok(t.as(0, 0).Call(t.ctx, wire.ACLPROC3_NULL, xdr.NewVoid(), xdr.NewVoid(), nil, nil))
	var failed *nfstest.Failed
	if err := t.as(0, 0).Call(t.ctx, wire.ACLPROC3_GETXATTRDIR, xdr.NewVoid(), xdr.NewVoid(), nil, nil); !errors.As(err, &failed) || failed.Reply.Accept != oncrpc.ProcUnavail {
		t.Error(err)
	}
	two := t.as(0, 0)
	two.Version = wire.NFS_ACL_V2
	if err := two.Call(t.ctx, 0, xdr.NewVoid(), xdr.NewVoid(), nil, nil); !errors.As(err, &failed) || failed.Reply.Accept != oncrpc.ProgMismatch || failed.Reply.Low != 3 {
		t.Error(err)
	}
	// A store without lists.
	t = start(t0, false)
	f, _, err = t.fs.Create(t.ctx, t.root, "f", 0o600)
	t.ok(err)
	if st := t.set(t.as(0, 0), f, wire.NA_ACL, good, nil); st != nfs3.NFS3ERR_NOTSUPP {
		t.Error(st)
	}
	if st := t.set(t.as(0, 0), t.root, wire.NA_DFACL, nil, good); st != nfs3.NFS3ERR_NOTSUPP {
		t.Error(st)
	}
}

// TestSpace sees that lists count, and that their space comes back.
func TestSpace(t *testing.T) {
	st := memory.New(memory.Options{Size: 1 << 20})
	var before, after store.Statfs
	if err := st.Statfs(&before); err != nil {
		t.Fatal(err)
	}
	var a store.Attr
	var w store.Wcc
	root := &store.Cred{}
	acl := func() *store.ACL {
		l := store.ModeACL(nil, 0o640)
		l = append(l, store.ACLEntry{Tag: store.ACLMask, Perm: 7})
		for i := range uint32(1000) {
			l = append(l, store.ACLEntry{Tag: store.ACLUser, ID: 1000 - i, Perm: 7})
		}
		return &l
	}
	if err := st.Mkdir(root, st.Root(), []byte("d"), nil, &a, &w); err != nil {
		t.Fatal(err)
	}
	d := a.Handle
	if err := st.SetACL(root, d, nil, acl(), &w); err != nil {
		t.Fatal(err)
	}
	made := 0
	for ; ; made++ {
		if _, err := st.Create(root, d, []byte{'f', byte('a' + made/26), byte('a' + made%26)}, &store.Create{}, &a, &w); errors.Is(err, store.ErrNoSpace) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if made == 0 || made > 130 {
		t.Errorf("%d files with lists of 1004 entries in 1 MiB", made)
	}
	for i := range made {
		if err := st.Remove(root, d, []byte{'f', byte('a' + i/26), byte('a' + i%26)}, &w); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Rmdir(root, st.Root(), []byte("d"), &w); err != nil {
		t.Fatal(err)
	}
	if err := st.Statfs(&after); err != nil || after != before {
		t.Errorf("%v: %+v, was %+v", err, after, before)
	}
}

// FuzzProcedures gives arbitrary arguments to every procedure. Each reply is
// well-formed, and what was set can be got.
func FuzzProcedures(f *testing.F) {
	const generation = 1
	key := store.Key{1}
	handles := store.NewSeal(key)
	root := nfs3.NfsFh3{Data: handles.Append(nil, store.Handle{ID: 2, Generation: generation})}
	l := list(0, uo, 0, 6, u, 5, 4, g, 0, 4, m, 0, 4, o, 0, 0)
	f.Add(uint8(1), (&wire.GETACL3args{Fh: root, Mask: all}).Append(nil))
	f.Add(uint8(2), (&wire.SETACL3args{Fh: root, Acl: wire.Secattr{Mask: all, Aclcnt: 5, Aclent: l, Dfaclcnt: 5, Dfaclent: l}}).Append(nil))
	f.Add(uint8(2), (&wire.SETACL3args{Fh: root, Acl: wire.Secattr{Mask: all, Aclcnt: 1 << 31}}).Append(nil))
	f.Fuzz(func(t *testing.T, procedure uint8, args []byte) {
		st := memory.New(memory.Options{Size: 1 << 20, Generation: generation, HandleKey: key, Clock: func() store.Time { return store.Time{Sec: 1} }})
		s := nfsserver.New(nfsserver.Options{})
		s.Register(nfsacl.New(st))
		for _, p := range []uint32{uint32(procedure), wire.ACLPROC3_GETACL} {
			h := oncrpc.Call{XID: 1, RPCVersion: 2, Program: wire.NFS_ACL_PROGRAM, Version: wire.NFS_ACL_V3, Procedure: p, Cred: nfstest.Sys(0, 0)}
			b := args
			if p != uint32(procedure) {
				b = (&wire.GETACL3args{Fh: root, Mask: all}).Append(nil)
			}
			call := &transport.Call{Message: transport.Message{Stream: append(h.Append(nil), b...)}}
			if err := nfstest.NewDirect(s).Do(t.Context(), call); err != nil {
				t.Fatal(err)
			}
			result := xdr.NewVoid()
			if x := wire.Programs[1].Procedure(p); x != nil {
				result = x.NewResult()
			}
			err := nfstest.ParseReply(&call.Reply, 1, result)
			var failed *nfstest.Failed
			if errors.As(err, &failed) && failed.Reply.Accept != oncrpc.SystemErr && p == uint32(procedure) {
				continue
			}
			if err != nil {
				t.Fatalf("%v: %x", err, call.Reply.Stream)
			}
		}
	})
}
