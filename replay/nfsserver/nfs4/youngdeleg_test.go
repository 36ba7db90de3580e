package nfs4

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// A delegation in place of an open (RFC 9754, section 3): only of what the owner had not opened before, and only if there is a delegation.
func TestXorDelegation(t *testing.T) {
	const xor = nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION
	r := newRig(t, Options{})
	fh := r.file("f")
	a, b := r.holder("a"), r.holder("b")
	got := a.open("f", forRead|xor)
	id := got.Delegation.Read.Stateid
	if got.Rflags&nfs4.OPEN4_RESULT_NO_OPEN_STATEID == 0 || got.Stateid != (nfs4.Stateid4{}) || got.Delegation.DelegationType != nfs4.OPEN_DELEGATE_READ {
		t.Fatalf("%+v", got)
	}
	if n := r.s.State(); n.Opens != 0 || n.Delegations != 1 {
		t.Errorf("%+v", n)
	}
	a.must(ok, a.do(putfh(fh), read(id, 0, 9)))
	b.must(nfs4.NFS4ERR_DELAY, b.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forWrite, 0, nfs4.Openflag4{}))))
	a.must(ok, a.do(putfh(fh), delegreturn(id)))
	// The file is contended now, and the owner of g has it open already.
	for _, name := range []string{"f", "g"} {
		if name == "g" {
			r.file(name)
			a.open(name, forRead|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG)
		}
		if got := a.open(name, forRead|xor); got.Rflags&nfs4.OPEN4_RESULT_NO_OPEN_STATEID != 0 || got.Stateid == (nfs4.Stateid4{}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The holder of a delegation keeps the times of the file (RFC 9754, section 5).
func TestDelegatedTimes(t *testing.T) {
	r := newRig(t, Options{})
	fh := r.file("f")
	a, b := r.holder("a"), r.holder("b")
	id := a.given("f", forBoth|nfs4.OPEN4_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS, nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG)
	times := func() (atime, mtime time.Time) {
		t.Helper()
		h, err := r.store.Info().Handles.Open(fh)
		var at store.Attr
		if err == nil {
			err = r.store.GetAttr(h, &at)
		}
		if err != nil {
			t.Fatal(err)
		}
		return at.Atime.Time(), at.Mtime.Time()
	}
	set := func(id nfs4.Stateid4, at time.Time, mask ...uint32) nfs4.Op {
		x := nfs4.Nfstime4{Seconds: at.Unix(), Nseconds: uint32(at.Nanosecond())}
		return o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{Stateid: id, ObjAttributes: attrs(func(a *nfs4.Attrs) {
			a.Mask, a.TimeDelegAccess, a.TimeDelegModify = nfs4.NewBitmap4(mask...), x, x
		})})
	}
	_, was := times()
	both := []uint32{nfs4.FATTR4_TIME_DELEG_ACCESS, nfs4.FATTR4_TIME_DELEG_MODIFY}
	a.must(ok, a.do(putfh(fh), set(id, was.Add(-time.Hour), both...)))
	if _, now := times(); !now.Equal(was) {
		t.Errorf("a time from before the delegation was taken: %s, was %s", now, was)
	}
	within := was.Add(time.Since(was) / 2)
	a.must(ok, a.do(putfh(fh), set(id, within, both...)))
	if atime, mtime := times(); !atime.Equal(within) || !mtime.Equal(within) {
		t.Errorf("%s and %s, want %s", atime, mtime, within)
	}
	a.must(ok, a.do(putfh(fh), set(id, was.Add(time.Hour), both...)))
	if atime, mtime := times(); atime.After(time.Now()) || mtime.After(time.Now()) {
		t.Errorf("a time in the future was taken: %s, %s", atime, mtime)
	}
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putfh(fh), set(nfs4.Stateid4{}, was, both...)))
	b.must(nfs4.NFS4ERR_BAD_STATEID, b.do(putfh(fh), set(id, was, both...)))
	a.must(nfs4.NFS4ERR_INVAL, a.do(putfh(fh), getattr(nfs4.FATTR4_TIME_DELEG_MODIFY)))
	// Without the want, there are no such times.
	r.file("g")
	plain := a.given("g", forBoth, nfs4.OPEN_DELEGATE_WRITE)
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putroot, lookup("g"), set(plain, was, both...)))
}

// Directories are delegated until somebody else changes them.
func TestDirectoryDelegations(t *testing.T) {
	for name, change := range map[string]struct {
		ops     []nfs4.Op
		recalls bool
	}{
		"CREATE":              {[]nfs4.Op{putroot, o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4DIR}, Objname: []byte("d")})}, true},
		"OPEN of a new file":  {[]nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("o", "new", forRead, 0, createHow(nfs4.GUARDED4)))}, true},
		"OPEN of a file":      {[]nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forRead, 0, createHow(nfs4.UNCHECKED4)))}, false},
		"REMOVE":              {[]nfs4.Op{putroot, remove("f")}, true},
		"RENAME":              {[]nfs4.Op{putroot, savefh, rename("f", "g")}, true},
		"LINK":                {[]nfs4.Op{putroot, lookup("f"), savefh, putroot, o(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("l")})}, true},
		"SETATTR":             {[]nfs4.Op{putroot, o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0o700)})}, true},
		"SETATTR of a file":   {[]nfs4.Op{putroot, lookup("f"), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0o700)})}, false},
		"LOOKUP":              {[]nfs4.Op{putroot, lookup("f")}, false},
		"GET_DIR_DELEGATION":  {[]nfs4.Op{putroot, o(nfs4.OP_GET_DIR_DELEGATION, &nfs4.GET_DIR_DELEGATION4args{})}, false},
		"a second one of a's": {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.file("f")
			root := r.store.Info().Handles.Append(nil, r.store.Root())
			a, b := r.holder("a"), r.holder("b")
			get := o(nfs4.OP_GET_DIR_DELEGATION, &nfs4.GET_DIR_DELEGATION4args{})
			given := body[nfs4.GET_DIR_DELEGATION4res](t, a.must(ok, a.do(putroot, get))).GddrResNonFatal4
			if given.GddrnfStatus != nfs4.GDD4_OK {
				t.Fatalf("%+v", given)
			}
			id := given.GddrnfResok4.GddrStateid
			switch {
			case change.ops == nil:
				if again := body[nfs4.GET_DIR_DELEGATION4res](t, a.must(ok, a.do(putroot, get))).GddrResNonFatal4; again.GddrnfStatus != nfs4.GDD4_UNAVAIL {
					t.Errorf("%+v", again)
				}
			case !change.recalls:
				b.must(ok, b.do(change.ops...))
			default:
				b.must(nfs4.NFS4ERR_DELAY, b.do(change.ops...))
			}
			r.settle()
			if got := r.back.recalls(); (len(got) == 1) != change.recalls || change.recalls && got[0] != id {
				t.Fatalf("recalled %v of %v", got, id)
			}
			a.must(ok, a.do(putfh(root), delegreturn(id)))
			if change.recalls {
				b.must(ok, b.do(change.ops...))
			} else if change.ops != nil {
				a.must(ok, a.do(putroot, get))
			}
		})
	}
	r := newRig(t, Options{})
	r.file("f")
	a := r.holder("a")
	a.must(nfs4.NFS4ERR_NOTDIR, a.do(putroot, lookup("f"), o(nfs4.OP_GET_DIR_DELEGATION, &nfs4.GET_DIR_DELEGATION4args{})))
	// What its holder does recalls nothing.
	a.must(ok, a.do(putroot, o(nfs4.OP_GET_DIR_DELEGATION, &nfs4.GET_DIR_DELEGATION4args{}), remove("f")))
}
