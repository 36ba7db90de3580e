package nfs4

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// holder is a client that callbacks reach.
func (r *rig) holder(name string) *session {
	r.Helper()
	if r.back == nil {
		r.back = &answering{}
	}
	s := r.mount(name, 2, 0)
	r.settle()
	return s
}

// open opens a file that exists and returns the OPEN's result.
func (s *session) open(name string, access uint32) *nfs4.OPEN4resok {
	s.Helper()
	res := s.must(ok, s.do(putroot, o(nfs4.OP_OPEN, openArgs("owner", name, access, 0, nfs4.Openflag4{}))))
	return &body[nfs4.OPEN4res](s, res).Resok4
}

// given opens a file and returns the stateid of the delegation.
func (s *session) given(name string, access uint32, want nfs4.OpenDelegationType4) nfs4.Stateid4 {
	s.Helper()
	d := &s.open(name, access).Delegation
	if d.DelegationType != want {
		s.Fatalf("%s: %s, want %s", name, d.DelegationType, want)
	}
	if want == nfs4.OPEN_DELEGATE_WRITE || want == nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG {
		return d.Write.Stateid
	}
	return d.Read.Stateid
}

// file creates a file directly in the store, without any client.
func (r *rig) file(name string) []byte {
	r.Helper()
	var a store.Attr
	var w store.Wcc
	c := &store.Create{Set: store.SetAttr{Mask: store.SetMode, Mode: 0o666}}
	if _, err := r.store.Create(&store.Cred{}, r.store.Root(), []byte(name), c, &a, &w); err != nil {
		r.Fatal(err)
	}
	if err := r.store.Write(&store.Cred{}, a.Handle, 0, []byte("content"), true, &w); err != nil {
		r.Fatal(err)
	}
	return r.store.Info().Handles.Append(nil, a.Handle)
}

func delegreturn(id nfs4.Stateid4) nfs4.Op {
	return o(nfs4.OP_DELEGRETURN, &nfs4.DELEGRETURN4args{DelegStateid: id})
}

const (
	forRead  = nfs4.OPEN4_SHARE_ACCESS_READ
	forWrite = nfs4.OPEN4_SHARE_ACCESS_WRITE
	forBoth  = nfs4.OPEN4_SHARE_ACCESS_BOTH
)

// Everything that a delegation forbids to others recalls it, waits until it has been
// returned, and then succeeds. What it does not forbid succeeds at once, and so does
// everything that its holder does.
func TestRecalls(t *testing.T) {
	type conflict struct {
		name        string
		read, write bool // recalls a read, a write delegation
		do          func(r *rig, s *session, fh []byte) status
	}
	size := attrs(func(a *nfs4.Attrs) { a.Mask, a.Size = nfs4.NewBitmap4(nfs4.FATTR4_SIZE), 3 })
	compound := func(ops func(fh []byte) []nfs4.Op) func(*rig, *session, []byte) status {
		return func(_ *rig, s *session, fh []byte) status { return s.do(ops(fh)...).Status }
	}
	guarded := func(f func(g store.Store, h store.Handle, w *store.Wcc) error) func(*rig, *session, []byte) status {
		return func(r *rig, _ *session, fh []byte) status {
			h, err := r.store.Info().Handles.Open(fh)
			if err != nil {
				r.Fatal(err)
			}
			return statusOf(f(r.s.Guarded(), h, &store.Wcc{}))
		}
	}
	root := &store.Cred{}
	outside := func(f func(table *state.Table, by *state.Outsider, h store.Handle) state.Outcome) func(*rig, *session, []byte) status {
		return func(r *rig, _ *session, fh []byte) status {
			h, err := r.store.Info().Handles.Open(fh)
			if err != nil {
				r.Fatal(err)
			}
			by := state.NewOutsider(state.NewHost(netip.Addr{}), nil)
			defer r.s.Table().Outsiders.Drop(by)
			switch out := f(r.s.Table(), by, h); out {
			case state.Done:
				return ok
			case state.Recalling:
				return nfs4.NFS4ERR_DELAY
			default:
				r.Fatalf("outcome %d", out)
				return nfs4.NFS4ERR_IO
			}
		}
	}
	locked := func(write bool) func(*rig, *session, []byte) status {
		return outside(func(table *state.Table, by *state.Outsider, h store.Handle) state.Outcome {
			_, out := table.Outsiders.Lock(by, h, state.Range{First: 1, Last: 2}, write)
			return out
		})
	}
	conflicts := []conflict{
		{"shared lock of NFSv3", false, true, locked(false)},
		{"exclusive lock of NFSv3", true, true, locked(true)},
		{"SHARE for reading of NFSv3", false, true, outside(func(table *state.Table, by *state.Outsider, h store.Handle) state.Outcome {
			return table.Outsiders.Share(by, h, forRead, 0)
		})},
		{"SHARE for writing of NFSv3", true, true, outside(func(table *state.Table, by *state.Outsider, h store.Handle) state.Outcome {
			return table.Outsiders.Share(by, h, forBoth, 0)
		})},
		{"OPEN for reading", false, true, compound(func([]byte) []nfs4.Op {
			return []nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forRead, 0, nfs4.Openflag4{}))}
		})},
		{"OPEN for writing", true, true, compound(func([]byte) []nfs4.Op {
			return []nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forWrite, 0, nfs4.Openflag4{}))}
		})},
		{"READ without an open", false, true, compound(func(fh []byte) []nfs4.Op { return []nfs4.Op{putfh(fh), read(nfs4.Stateid4{}, 0, 9)} })},
		{"WRITE without an open", true, true, compound(func(fh []byte) []nfs4.Op { return []nfs4.Op{putfh(fh), write(nfs4.Stateid4{}, 0, "x")} })},
		{"SETATTR of the mode", true, true, compound(func(fh []byte) []nfs4.Op {
			return []nfs4.Op{putfh(fh), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: mode(0o600)})}
		})},
		{"SETATTR of the size", true, true, compound(func(fh []byte) []nfs4.Op {
			return []nfs4.Op{putfh(fh), o(nfs4.OP_SETATTR, &nfs4.SETATTR4args{ObjAttributes: size})}
		})},
		{"REMOVE", true, true, compound(func([]byte) []nfs4.Op { return []nfs4.Op{putroot, remove("f")} })},
		{"RENAME", true, true, compound(func([]byte) []nfs4.Op { return []nfs4.Op{putroot, savefh, rename("f", "g")} })},
		{"RENAME over it", true, true, compound(func([]byte) []nfs4.Op { return []nfs4.Op{putroot, savefh, rename("other", "f")} })},
		{"LINK", true, true, compound(func(fh []byte) []nfs4.Op {
			return []nfs4.Op{putfh(fh), savefh, putroot, o(nfs4.OP_LINK, &nfs4.LINK4args{Newname: []byte("l")})}
		})},
		{"ACCESS", false, false, compound(func(fh []byte) []nfs4.Op {
			return []nfs4.Op{putfh(fh), o(nfs4.OP_ACCESS, &nfs4.ACCESS4args{Access: 63})}
		})},
		{"ALLOCATE", true, true, compound(func(fh []byte) []nfs4.Op {
			return []nfs4.Op{putfh(fh), o(nfs4.OP_ALLOCATE, &nfs4.ALLOCATE4args{AaLength: 100})}
		})},
		{"SETXATTR", true, true, compound(func(fh []byte) []nfs4.Op {
			return []nfs4.Op{putfh(fh), o(nfs4.OP_SETXATTR, &nfs4.SETXATTR4args{SxaKey: []byte("k"), SxaValue: []byte("v")})}
		})},
		{"READ of NFSv3", false, true, guarded(func(g store.Store, h store.Handle, _ *store.Wcc) error {
			return g.Read(root, h, 0, 9, &store.ReadResult{})
		})},
		{"WRITE of NFSv3", true, true, guarded(func(g store.Store, h store.Handle, w *store.Wcc) error {
			return g.Write(root, h, 0, []byte("x"), true, w)
		})},
		{"CREATE of NFSv3 that cuts", true, true, guarded(func(g store.Store, _ store.Handle, w *store.Wcc) error {
			_, err := g.Create(root, g.Root(), []byte("f"), &store.Create{Set: store.SetAttr{Mask: store.SetSize}}, &store.Attr{}, w)
			return err
		})},
		{"SETACL", true, true, guarded(func(g store.Store, h store.Handle, w *store.Wcc) error {
			return g.(store.ACLStore).SetACL(root, h, &store.ACL{}, nil, w)
		})},
	}
	for _, c := range conflicts {
		for _, d := range []struct {
			access uint32
			kind   nfs4.OpenDelegationType4
			want   bool
		}{{forRead, nfs4.OPEN_DELEGATE_READ, c.read}, {forBoth, nfs4.OPEN_DELEGATE_WRITE, c.write}} {
			t.Run(c.name+"/"+d.kind.Symbol(), func(t *testing.T) {
				r := newRig(t, Options{})
				fh := r.file("f")
				r.file("other")
				a, b := r.holder("a"), r.holder("b")
				id := a.given("f", d.access, d.kind)
				if !d.want {
					r.must(ok, &nfs4.CompoundRes{Status: c.do(r, b, fh)})
					if r.settle(); len(r.back.recalls()) != 0 {
						t.Error("it was recalled")
					}
					return
				}
				// The open ends: only the delegation conflicts.
				for range 3 {
					if st := c.do(r, b, fh); st != nfs4.NFS4ERR_DELAY {
						t.Fatalf("got %s", st)
					}
				}
				r.settle()
				if got := r.back.recalls(); len(got) != 1 || got[0] != id {
					t.Fatalf("recalled %v, want %v once", got, id)
				}
				a.must(ok, a.do(putfh(fh), delegreturn(id)))
				if st := c.do(r, b, fh); st != ok {
					t.Errorf("got %s after the return", st)
				}
				if n := r.s.State(); n.Delegations != 0 {
					t.Errorf("%+v", n)
				}
			})
			t.Run(c.name+"/"+d.kind.Symbol()+"/itself", func(t *testing.T) {
				r := newRig(t, Options{})
				fh := r.file("f")
				r.file("other")
				a := r.holder("a")
				a.given("f", d.access, d.kind)
				if len(c.name) > 5 && c.name[len(c.name)-5:] == "NFSv3" || c.name == "SETACL" || c.name == "CREATE of NFSv3 that cuts" {
					return
				}
				r.must(ok, &nfs4.CompoundRes{Status: c.do(r, a, fh)})
				if r.settle(); len(r.back.recalls()) != 0 {
					t.Error("it was recalled")
				}
			})
		}
	}
}

// A delegation that is not returned within a lease is revoked. Statuses and flags tell the client
// so until it frees the stateid.
func TestRevocation(t *testing.T) {
	r := newRig(t, Options{})
	fh := r.file("f")
	a, b := r.holder("a"), r.holder("b")
	id := a.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
	write := []nfs4.Op{putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forWrite, 0, nfs4.Openflag4{}))}
	flags := func() uint32 {
		return body[nfs4.SEQUENCE4res](a, a.must(ok, a.do())).SrResok4.SrStatusFlags
	}
	b.must(nfs4.NFS4ERR_DELAY, b.do(write...))
	for range 3 { // it is alive, but does not return it
		r.clock.pass(29 * time.Second)
		if f := flags(); f != 0 {
			t.Errorf("flags %#x", f)
		}
		b.must(nfs4.NFS4ERR_DELAY, b.do(write...))
		a.must(ok, a.do(putfh(fh), read(id, 0, 7)))
	}
	r.clock.pass(3 * time.Second)
	b.must(ok, b.do(write...))
	if f := flags(); f != nfs4.SEQ4_STATUS_RECALLABLE_STATE_REVOKED {
		t.Errorf("flags %#x", f)
	}
	a.must(nfs4.NFS4ERR_DELEG_REVOKED, a.do(putfh(fh), read(id, 0, 7)))
	a.must(nfs4.NFS4ERR_DELEG_REVOKED, a.do(putfh(fh), delegreturn(id)))
	res := a.must(ok, a.do(o(nfs4.OP_TEST_STATEID, &nfs4.TEST_STATEID4args{TsStateids: []nfs4.Stateid4{id}})))
	if got := body[nfs4.TEST_STATEID4res](a, res).TsrResok4.TsrStatusCodes[0]; got != nfs4.NFS4ERR_DELEG_REVOKED {
		t.Errorf("TEST_STATEID: %s", got)
	}
	a.must(ok, a.do(o(nfs4.OP_FREE_STATEID, &nfs4.FREE_STATEID4args{FsaStateid: id})))
	if f := flags(); f != 0 {
		t.Errorf("flags %#x", f)
	}
	if n := r.s.State(); n.Delegations != 0 {
		t.Errorf("%+v", n)
	}
	// A file that was contended is not delegated again at once.
	a.given("f", forRead, nfs4.OPEN_DELEGATE_NONE)
	// A silent client does not keep one, either.
	r.file("g")
	a.given("g", forRead, nfs4.OPEN_DELEGATE_READ)
	r.clock.pass(60 * time.Second)
	b.must(ok, b.do())
	r.clock.pass(60 * time.Second)
	b.must(ok, b.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "g", forWrite, 0, nfs4.Openflag4{}))))
	a.must(nfs4.NFS4ERR_BADSESSION, a.do())
}

// When a delegation is given, and when it is not.
func TestGranting(t *testing.T) {
	r := newRig(t, Options{})
	r.file("f")
	lonely := r.mount("no callbacks", 1, 0)
	lonely.given("f", forRead, nfs4.OPEN_DELEGATE_NONE)
	a, b, c := r.holder("a"), r.holder("b"), r.holder("c")
	a.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
	a.given("f", forRead, nfs4.OPEN_DELEGATE_NONE) // it has one
	b.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
	if n := r.s.State().Delegations; n != 2 {
		t.Errorf("%d delegations", n)
	}
	r.file("g")
	a.open("g", forWrite|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG)
	b.given("g", forRead, nfs4.OPEN_DELEGATE_NONE) // a writes
	r.file("h")
	a.open("h", forRead|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG)
	b.given("h", forRead, nfs4.OPEN_DELEGATE_READ)
	r.file("i")
	a.open("i", forRead|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG)
	b.given("i", forBoth, nfs4.OPEN_DELEGATE_NONE) // a reads
	r.file("j")
	for want, why := range map[uint32]nfs4.WhyNoDelegation4{
		nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG: nfs4.WND4_NOT_WANTED,
		nfs4.OPEN4_SHARE_ACCESS_WANT_CANCEL:   nfs4.WND4_CANCELLED,
	} {
		if d := &c.open("j", forRead|want).Delegation; d.DelegationType != nfs4.OPEN_DELEGATE_NONE_EXT || d.OdWhynone.OndWhy != why {
			t.Errorf("%#x: %+v", want, d)
		}
	}
	if d := &b.open("i", forBoth|nfs4.OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG).Delegation; d.OdWhynone.OndWhy != nfs4.WND4_CONTENTION {
		t.Errorf("%+v", d)
	}
	if d := &lonely.open("j", forRead|nfs4.OPEN4_SHARE_ACCESS_WANT_ANY_DELEG).Delegation; d.OdWhynone.OndWhy != nfs4.WND4_RESOURCE {
		t.Errorf("%+v", d)
	}
	// None is given while a change is in progress.
	h, err := r.store.Info().Handles.Open(r.file("k"))
	if err != nil || r.s.table.Delegations.BeginChange(nil, h, true) != ok {
		t.Fatal(err)
	}
	a.given("k", forRead, nfs4.OPEN_DELEGATE_NONE)
	r.s.table.Delegations.EndChange(h)
	a.given("k", forRead, nfs4.OPEN_DELEGATE_READ)
	// The limits.
	r2 := newRig(t, Options{Limits: state.Limits{Delegations: 8}})
	d := r2.holder("d")
	given := 0
	for i := range 20 {
		name := string(rune('a' + i))
		r2.file(name)
		if d.open(name, forRead).Delegation.DelegationType == nfs4.OPEN_DELEGATE_READ {
			given++
		}
	}
	if given != 4 {
		t.Errorf("%d delegations to one source", given)
	}
	r3 := newRig(t, Options{NoDelegations: true})
	r3.file("f")
	r3.holder("a").given("f", forRead, nfs4.OPEN_DELEGATE_NONE)
}

// The holder of a delegation opens files by it.
func TestClaims(t *testing.T) {
	r := newRig(t, Options{})
	fh := r.file("f")
	a, b := r.holder("a"), r.holder("b")
	id := a.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
	claim := func(owner string, access uint32, id nfs4.Stateid4, byName bool) []nfs4.Op {
		op := openArgs(owner, "", access, 0, nfs4.Openflag4{})
		op.Claim.Claim, op.Claim.OcDelegateStateid = nfs4.CLAIM_DELEG_CUR_FH, id
		if !byName {
			return []nfs4.Op{putfh(fh), o(nfs4.OP_OPEN, op)}
		}
		op.Claim.Claim = nfs4.CLAIM_DELEGATE_CUR
		op.Claim.DelegateCurInfo = nfs4.OpenClaimDelegateCur4{DelegateStateid: id, File: []byte("f")}
		return []nfs4.Op{putroot, o(nfs4.OP_OPEN, op)}
	}
	// Also while it is recalled: that is what these claims are for.
	b.must(nfs4.NFS4ERR_DELAY, b.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forWrite, 0, nfs4.Openflag4{}))))
	a.must(ok, a.do(claim("x", forRead, id, true)...))
	a.must(ok, a.do(claim("y", forRead, id, false)...))
	a.must(nfs4.NFS4ERR_OPENMODE, a.do(claim("z", forWrite, id, true)...))
	b.must(nfs4.NFS4ERR_BAD_STATEID, b.do(claim("x", forRead, id, true)...))
	other := r.file("other")
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putfh(other), delegreturn(id)))
	b.must(nfs4.NFS4ERR_BAD_STATEID, b.do(putfh(fh), delegreturn(id)))
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putfh(other), read(id, 0, 1)))
	a.must(nfs4.NFS4ERR_OPENMODE, a.do(putfh(fh), write(id, 0, "x")))
	a.must(ok, a.do(putfh(fh), delegreturn(id)))
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(claim("x", forRead, id, true)...))
	// The stateid of an open is not accepted for a delegation, nor the reverse.
	sid := a.open("f", forRead).Stateid
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putfh(fh), delegreturn(sid)))
	id = a.given("other", forBoth, nfs4.OPEN_DELEGATE_WRITE)
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putfh(other), closeOp(id)))
	a.must(ok, a.do(putfh(other), write(id, 0, "x")))
	l := &nfs4.LOCK4args{Locktype: nfs4.WRITE_LT, Length: 1}
	l.Locker.NewLockOwner, l.Locker.OpenOwner.OpenStateid = true, id
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(putfh(other), o(nfs4.OP_LOCK, l)))
	a.must(nfs4.NFS4ERR_LOCKS_HELD, a.do(o(nfs4.OP_FREE_STATEID, &nfs4.FREE_STATEID4args{FsaStateid: id})))
}

// The holder of a write delegation is asked for the size. Only GETATTRs of that file wait for it.
func TestCallbackGetattr(t *testing.T) {
	r := newRig(t, Options{})
	fh := r.file("f")
	a, b := r.holder("a"), r.holder("b")
	a.given("f", forBoth, nfs4.OPEN_DELEGATE_WRITE)
	var changed uint64
	var fail status
	r.back.mu.Lock()
	r.back.answer = func(op nfs4.Op) nfs4.Op {
		if op.Number != uint32(nfs4.OP_CB_GETATTR) {
			return nfs4.Op{Number: op.Number, Body: &nfs4.Status4res{}}
		}
		res := &nfs4.CB_GETATTR4res{Status: fail}
		res.Resok4.ObjAttributes = attrs(func(a *nfs4.Attrs) {
			a.Mask, a.Change, a.Size = nfs4.NewBitmap4(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE), changed, 5000
		})
		return nfs4.Op{Number: op.Number, Body: res}
	}
	r.back.mu.Unlock()
	get := func(s *session) *nfs4.CompoundRes {
		x := &exchange{from: r.from, back: r.back, finished: make(chan struct{})}
		r.xid++
		x.call.Stream = append(header(r.xid, 0), s.encode(putfh(fh), getattr(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE), getfh)...)
		r.rpc.ServeRPC(x)
		<-x.finished
		return r.result(x)
	}
	attr := func(res *nfs4.CompoundRes) nfs4.Attrs {
		t.Helper()
		a, err := body[nfs4.GETATTR4res](t, r.must(ok, res)).Resok4.ObjAttributes.Attrs()
		if err != nil {
			t.Fatal(err)
		}
		return *a
	}
	mine := attr(get(a))
	if mine.Size != 7 {
		t.Errorf("size %d", mine.Size)
	}
	changed = mine.Change
	if got := attr(get(b)); got.Size != 7 || got.Change != mine.Change {
		t.Errorf("not changed: %+v", got)
	}
	changed++
	first := attr(get(b))
	second := attr(get(b))
	if first.Size != 5000 || first.Change <= mine.Change || second.Change <= first.Change {
		t.Errorf("changed: %d, then %d, then %d, %d bytes", mine.Change, first.Change, second.Change, first.Size)
	}
	if n := len(r.back.recalls()); n != 0 {
		t.Errorf("%d recalls", n)
	}
	// Without an answer, it is recalled.
	fail = nfs4.NFS4ERR_BADHANDLE
	r.must(nfs4.NFS4ERR_DELAY, get(b))
	r.settle()
	if n := len(r.back.recalls()); n != 1 {
		t.Errorf("%d recalls", n)
	}
}

// A client that callbacks do not reach is told so and gets no delegations. When they reach it
// again, it gets the recalls that it has missed.
func TestPathDown(t *testing.T) {
	r := newRig(t, Options{})
	r.file("f")
	r.file("g")
	a := r.holder("a")
	aBack := r.back
	r.back = &answering{}
	b := r.holder("b")
	id := a.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
	aBack.mu.Lock()
	aBack.err = errors.New("no answer")
	aBack.mu.Unlock()
	b.must(nfs4.NFS4ERR_DELAY, b.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forWrite, 0, nfs4.Openflag4{}))))
	r.settle()
	if f := body[nfs4.SEQUENCE4res](a, a.must(ok, a.do())).SrResok4.SrStatusFlags; f != nfs4.SEQ4_STATUS_CB_PATH_DOWN {
		t.Errorf("flags %#x", f)
	}
	a.given("g", forRead, nfs4.OPEN_DELEGATE_NONE)
	r.back = &answering{}
	bind := &nfs4.BIND_CONN_TO_SESSION4args{BctsaSessid: a.id, BctsaDir: nfs4.CDFC4_BACK_OR_BOTH}
	r.must(ok, r.do(0, 2, o(nfs4.OP_BIND_CONN_TO_SESSION, bind)))
	r.settle()
	if got := r.back.recalls(); len(got) != 1 || got[0] != id {
		t.Errorf("recalled %v, want %v", got, id)
	}
	if f := body[nfs4.SEQUENCE4res](a, a.must(ok, a.do())).SrResok4.SrStatusFlags; f != 0 {
		t.Errorf("flags %#x", f)
	}
	a.given("g", forRead, nfs4.OPEN_DELEGATE_READ)
}

// A silent client keeps its opens, locks and delegations, and can use them again, unless they
// conflict with another client meanwhile or others need their room.
func TestCourtesy(t *testing.T) {
	r := newRig(t, Options{Courtesy: 24 * time.Hour, Limits: state.Limits{StateBytes: 40 << 10}})
	fh := r.file("f")
	r.file("g")
	a, b := r.holder("a"), r.holder("b")
	r.mount("without state", 1, 0)
	sid := a.open("f", forBoth|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG).Stateid
	id := a.given("g", forRead, nfs4.OPEN_DELEGATE_READ)
	r.clock.pass(time.Hour)
	r.s.Reap()
	if n := r.s.State().Clients; n != 1 {
		t.Errorf("%d clients", n)
	}
	a.must(ok, a.do(putfh(fh), write(sid, 0, "x")))
	b.must(nfs4.NFS4ERR_BADSESSION, b.do())
	r.clock.pass(time.Hour)
	b = r.holder("b")
	b.open("f", forBoth) // no conflict
	a.must(ok, a.do(putfh(fh), write(sid, 0, "x")))
	r.clock.pass(time.Hour)
	b = r.holder("b")
	b.open("g", forWrite) // revokes the delegation without waiting
	a.must(nfs4.NFS4ERR_BADSESSION, a.do())
	_ = id
	// Room.
	a = r.holder("a")
	a.open("f", forRead)
	r.clock.pass(time.Hour)
	b = r.holder("c")
	opened := 0
	for i := range 60 {
		name := "many" + string(rune('a'+i))
		r.file(name)
		if b.do(putroot, o(nfs4.OP_OPEN, openArgs("owner", name, forRead|nfs4.OPEN4_SHARE_ACCESS_WANT_NO_DELEG, 0, nfs4.Openflag4{}))).Status == ok {
			opened++
		}
	}
	if opened < 25 || opened == 60 {
		t.Errorf("%d files were opened", opened)
	}
	a.must(nfs4.NFS4ERR_BADSESSION, a.do())
	// And not forever.
	r.clock.pass(25 * time.Hour)
	r.s.Reap()
	if n := r.s.State().Clients; n != 0 {
		t.Errorf("%d clients", n)
	}
}

// A file that was contended is not delegated again for half a minute, and then is.
func TestContention(t *testing.T) {
	r := newRig(t, Options{})
	fh := r.file("f")
	a, b := r.holder("a"), r.holder("b")
	id := a.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
	b.must(nfs4.NFS4ERR_DELAY, b.do(putroot, o(nfs4.OP_OPEN, openArgs("o", "f", forWrite, 0, nfs4.Openflag4{}))))
	a.must(ok, a.do(putfh(fh), delegreturn(id)))
	a.given("f", forRead, nfs4.OPEN_DELEGATE_NONE)
	r.clock.pass(29 * time.Second)
	a.given("f", forRead, nfs4.OPEN_DELEGATE_NONE)
	r.clock.pass(61 * time.Second)
	a.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
}

// TestNoDelegationBesideLocks: what a client of NFSv3 has locked is not delegated to others.
func TestNoDelegationBesideLocks(t *testing.T) {
	r := newRig(t, Options{})
	h, err := r.store.Info().Handles.Open(r.file("f"))
	if err != nil {
		t.Fatal(err)
	}
	by := state.NewOutsider(state.NewHost(netip.Addr{}), nil)
	r.s.Table().Outsiders.Lock(by, h, state.Range{}, false)
	s := r.holder("a")
	if d := s.open("f", forRead).Delegation.DelegationType; d == nfs4.OPEN_DELEGATE_READ || d == nfs4.OPEN_DELEGATE_WRITE {
		t.Errorf("%s", d)
	}
	r.s.Table().Outsiders.Drop(by)
	s.given("f", forRead, nfs4.OPEN_DELEGATE_READ)
}
