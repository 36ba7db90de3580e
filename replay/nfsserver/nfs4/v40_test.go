package nfs4

import (
	"bytes"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// zero is a client of NFSv4.0.
type zero struct {
	*rig
	clientid uint64
	seq      uint32 // of the open owner
	owner    string
}

func setclientid(name string, verifier byte) nfs4.Op {
	a := &nfs4.SETCLIENTID4args{}
	a.Client.Id = []byte(name)
	a.Client.Verifier[0] = verifier
	return o(nfs4.OP_SETCLIENTID, a)
}

func confirmOp(r nfs4.SETCLIENTID4resok) nfs4.Op {
	return o(nfs4.OP_SETCLIENTID_CONFIRM, &nfs4.SETCLIENTID_CONFIRM4args{Clientid: r.Clientid, SetclientidConfirm: r.SetclientidConfirm})
}

func (r *rig) mount0(name string) *zero {
	r.Helper()
	id := body[nfs4.SETCLIENTID4res](r, r.must(ok, r.do(0, 0, setclientid(name, 1)))).Resok4
	r.must(ok, r.do(0, 0, confirmOp(id)))
	return &zero{rig: r, clientid: id.Clientid, owner: "owner", seq: 100}
}

func (z *zero) do(ops ...nfs4.Op) *nfs4.CompoundRes { z.Helper(); return z.rig.do(0, 0, ops...) }

func (z *zero) next() uint32 { z.seq++; return z.seq }

func (z *zero) openOp(name string, access, deny uint32, how nfs4.Openflag4, seq uint32) nfs4.Op {
	a := openArgs(z.owner, name, access, deny, how)
	a.Owner.Clientid, a.Seqid = z.clientid, seq
	return o(nfs4.OP_OPEN, a)
}

// open opens and, if asked for, confirms.
func (z *zero) open(name string, access, deny uint32) (h []byte, sid nfs4.Stateid4) {
	z.Helper()
	res := z.must(ok, z.do(putroot, z.openOp(name, access, deny, createHow(nfs4.UNCHECKED4), z.next()), getfh))
	op := body[nfs4.OPEN4res](z, res).Resok4
	h = bytes.Clone(body[nfs4.GETFH4res](z, res).Resok4.Object)
	if op.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
		return h, op.Stateid
	}
	res = z.must(ok, z.do(putfh(h), o(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: op.Stateid, Seqid: z.next()})))
	return h, body[nfs4.OPEN_CONFIRM4res](z, res).Resok4.OpenStateid
}

// RFC 7530, sections 16.33.5 and 16.34.5.
func TestSetClientID(t *testing.T) {
	r := newRig(t, Options{})
	set := func(want status, uid uint32, verifier byte) nfs4.SETCLIENTID4resok {
		t.Helper()
		return body[nfs4.SETCLIENTID4res](t, r.must(want, r.do(uid, 0, setclientid("x", verifier)))).Resok4
	}
	confirm := func(want status, uid uint32, id nfs4.SETCLIENTID4resok) {
		t.Helper()
		r.must(want, r.do(uid, 0, confirmOp(id)))
	}
	renew := func(want status, id uint64) {
		t.Helper()
		r.must(want, r.do(0, 0, o(nfs4.OP_RENEW, &nfs4.RENEW4args{Clientid: id})))
	}
	a := set(ok, 0, 1)
	renew(nfs4.NFS4ERR_EXPIRED, a.Clientid) // not confirmed
	b := set(ok, 0, 1)                      // in place of a
	confirm(nfs4.NFS4ERR_STALE_CLIENTID, 0, a)
	wrong := b
	wrong.SetclientidConfirm[0]++
	confirm(nfs4.NFS4ERR_STALE_CLIENTID, 0, wrong)
	confirm(nfs4.NFS4ERR_CLID_INUSE, 7, b)
	confirm(ok, 0, b)
	confirm(ok, 0, b) // sent again
	renew(ok, b.Clientid)
	renew(nfs4.NFS4ERR_STALE_CLIENTID, 77)

	z := &zero{rig: r, clientid: b.Clientid, owner: "o", seq: 1}
	h, sid := z.open("f", 3, 0)
	set(nfs4.NFS4ERR_CLID_INUSE, 7, 1) // somebody else with state
	c := set(ok, 0, 1)                 // the callback changes
	if c.Clientid != b.Clientid || c.SetclientidConfirm == b.SetclientidConfirm {
		t.Errorf("%+v after %+v", c, b)
	}
	confirm(ok, 0, c)
	z.must(ok, z.do(putfh(h), read(sid, 0, 1))) // and the state stays
	confirm(nfs4.NFS4ERR_STALE_CLIENTID, 0, b)
	d := set(ok, 0, 2) // the client has restarted
	z.must(ok, z.do(putfh(h), read(sid, 0, 1)))
	confirm(ok, 0, d)
	z.must(nfs4.NFS4ERR_EXPIRED, z.do(putfh(h), read(sid, 0, 1)))
	if n := r.s.State(); n.Opens != 0 || n.Clients != 1 {
		t.Errorf("%+v", n)
	}
	set(ok, 0, 2) // another callback, never confirmed
	r.clock.pass(time.Hour)
	r.s.Reap()
	if n := r.s.State(); n.Names != 0 {
		t.Errorf("%+v", n)
	}
}

// A retransmitted last request of an owner is answered again, not executed again; requests out of
// order are refused (RFC 7530, section 9.1.7).
func TestOwnerSeqid(t *testing.T) {
	r := newRig(t, Options{})
	z := r.mount0("c")
	open := z.openOp("f", 3, 0, createHow(nfs4.GUARDED4), z.next())
	first := z.do(putroot, open, getfh)
	z.must(ok, first)
	op := body[nfs4.OPEN4res](t, first).Resok4
	h := body[nfs4.GETFH4res](t, first).Resok4.Object
	if op.Rflags&nfs4.OPEN4_RESULT_CONFIRM == 0 {
		t.Fatal("nothing to confirm")
	}
	z.must(nfs4.NFS4ERR_BAD_STATEID, z.do(putfh(h), read(op.Stateid, 0, 1))) // not confirmed
	conf := o(nfs4.OP_OPEN_CONFIRM, &nfs4.OPEN_CONFIRM4args{OpenStateid: op.Stateid, Seqid: z.next()})
	sid := body[nfs4.OPEN_CONFIRM4res](t, z.must(ok, z.do(putfh(h), conf))).Resok4.OpenStateid
	if again := body[nfs4.OPEN_CONFIRM4res](t, z.must(ok, z.do(putfh(h), conf))).Resok4.OpenStateid; again != sid {
		t.Errorf("%v, again %v", sid, again)
	}
	// An OPEN sent again makes its file the current one.
	open = z.openOp("g", 3, 0, createHow(nfs4.GUARDED4), z.next())
	one := z.must(ok, z.do(putroot, open, getfh))
	two := z.must(ok, z.do(putroot, open, getfh))
	if string(body[nfs4.GETFH4res](t, one).Resok4.Object) != string(body[nfs4.GETFH4res](t, two).Resok4.Object) ||
		body[nfs4.OPEN4res](t, one).Resok4.Stateid != body[nfs4.OPEN4res](t, two).Resok4.Stateid {
		t.Error("another answer")
	}
	// An error is answered again, too.
	fails := z.openOp("none", 3, 0, nfs4.Openflag4{}, z.next())
	z.must(nfs4.NFS4ERR_NOENT, z.do(putroot, fails))
	z.must(ok, z.do(putroot, o(nfs4.OP_CREATE, &nfs4.CREATE4args{Objtype: nfs4.Createtype4{Type: nfs4.NF4FIFO}, Objname: []byte("none")})))
	z.must(nfs4.NFS4ERR_NOENT, z.do(putroot, fails))

	down := &nfs4.OPEN_DOWNGRADE4args{OpenStateid: sid, Seqid: z.seq + 2, ShareAccess: 3}
	z.must(nfs4.NFS4ERR_BAD_SEQID, z.do(putfh(h), o(nfs4.OP_OPEN_DOWNGRADE, down)))
	down.Seqid = z.seq - 1
	z.must(nfs4.NFS4ERR_BAD_SEQID, z.do(putfh(h), o(nfs4.OP_OPEN_DOWNGRADE, down)))
	down.Seqid = z.seq // that was an OPEN
	z.must(nfs4.NFS4ERR_BAD_SEQID, z.do(putfh(h), o(nfs4.OP_OPEN_DOWNGRADE, down)))
	down.Seqid, down.ShareAccess = z.next(), 1
	z.must(nfs4.NFS4ERR_INVAL, z.do(putfh(h), o(nfs4.OP_OPEN_DOWNGRADE, down))) // counts
	down.Seqid, down.ShareAccess = z.next(), 3
	sid = body[nfs4.OPEN_DOWNGRADE4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_OPEN_DOWNGRADE, down)))).Resok4.OpenStateid

	closing := o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: z.next()})
	c1 := body[nfs4.CLOSE4res](t, z.must(ok, z.do(putfh(h), closing))).OpenStateid
	c2 := body[nfs4.CLOSE4res](t, z.must(ok, z.do(putfh(h), closing))).OpenStateid
	if c1 != c2 || c1.Seqid != sid.Seqid+1 {
		t.Errorf("%v, %v", c1, c2)
	}
	z.must(nfs4.NFS4ERR_BAD_STATEID, z.do(putfh(h), read(sid, 0, 1)))
}

// An owner that has confirmed nothing starts anew with each OPEN.
func TestUnconfirmedOwner(t *testing.T) {
	r := newRig(t, Options{})
	z := r.mount0("c")
	a := body[nfs4.OPEN4res](t, z.must(ok, z.do(putroot, z.openOp("f", 3, 3, createHow(nfs4.UNCHECKED4), 5)))).Resok4
	b := body[nfs4.OPEN4res](t, z.must(ok, z.do(putroot, z.openOp("f", 3, 3, createHow(nfs4.UNCHECKED4), 5), getfh))).Resok4
	if a.Stateid.Other == b.Stateid.Other {
		t.Error("the same stateid")
	}
	z.must(ok, z.do(putroot, z.openOp("f", 3, 3, createHow(nfs4.UNCHECKED4), 99)))
	if n := r.s.State(); n.Opens != 1 || n.Owners != 1 {
		t.Errorf("%+v", n)
	}
}

func TestStateids0(t *testing.T) {
	r := newRig(t, Options{})
	z := r.mount0("c")
	h, sid := z.open("f", 3, 0)
	bad := func(want status, change func(s *nfs4.Stateid4)) {
		t.Helper()
		s := sid
		change(&s)
		z.must(want, z.do(putfh(h), read(s, 0, 1)))
	}
	bad(nfs4.NFS4ERR_OLD_STATEID, func(s *nfs4.Stateid4) { s.Seqid-- })
	bad(nfs4.NFS4ERR_BAD_STATEID, func(s *nfs4.Stateid4) { s.Seqid++ })
	bad(nfs4.NFS4ERR_OLD_STATEID, func(s *nfs4.Stateid4) { s.Seqid = 0 })
	bad(nfs4.NFS4ERR_STALE_STATEID, func(s *nfs4.Stateid4) { s.Other[0]++ })
	bad(nfs4.NFS4ERR_BAD_STATEID, func(s *nfs4.Stateid4) { s.Other[7] += 77 })
	bad(nfs4.NFS4ERR_BAD_STATEID, func(s *nfs4.Stateid4) { s.Other[11] += 77 })
	bad(nfs4.NFS4ERR_BAD_STATEID, func(s *nfs4.Stateid4) { *s = nfs4.Stateid4{Seqid: 1} })
	z.must(ok, z.do(putfh(h), read(nfs4.Stateid4{}, 0, 1)))
	z.must(nfs4.NFS4ERR_BAD_STATEID, z.do(putroot, read(sid, 0, 1)))
	// I/O renews the lease; without any it runs out.
	for range 4 {
		r.clock.pass(60 * time.Second)
		z.must(ok, z.do(putfh(h), read(sid, 0, 1)))
		r.s.Reap()
	}
	r.clock.pass(91 * time.Second)
	r.s.Reap()
	z.must(nfs4.NFS4ERR_EXPIRED, z.do(putfh(h), read(sid, 0, 1)))
	z.must(nfs4.NFS4ERR_EXPIRED, z.do(o(nfs4.OP_RENEW, &nfs4.RENEW4args{Clientid: z.clientid})))
	z.must(nfs4.NFS4ERR_EXPIRED, z.do(putroot, z.openOp("f", 3, 0, nfs4.Openflag4{}, 1)))
	// Minor versions.
	z.must(nfs4.NFS4ERR_OP_ILLEGAL, z.do(exchangeID("x", 1, 0)))
	if res := r.must(nfs4.NFS4ERR_MINOR_VERS_MISMATCH, r.do(0, 3, putroot)); len(res.Ops) != 0 {
		t.Errorf("%d results", len(res.Ops))
	}
}

func lock0(kind nfs4.NfsLockType4, offset, length uint64) *nfs4.LOCK4args {
	return &nfs4.LOCK4args{Locktype: kind, Offset: offset, Length: length}
}

func TestLocks0(t *testing.T) {
	r := newRig(t, Options{})
	z := r.mount0("c")
	h, sid := z.open("f", 3, 0)
	a := lock0(nfs4.WRITE_LT, 10, 10)
	a.Locker.NewLockOwner = true
	n := &a.Locker.OpenOwner
	n.OpenSeqid, n.OpenStateid, n.LockSeqid = z.next(), sid, 7
	n.LockOwner.Clientid, n.LockOwner.Owner = z.clientid, []byte("lo")
	l1 := body[nfs4.LOCK4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCK, a)))).Resok4.LockStateid
	if again := body[nfs4.LOCK4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCK, a)))).Resok4.LockStateid; again != l1 {
		t.Errorf("%v, again %v", l1, again)
	}
	b := lock0(nfs4.READ_LT, 15, 10)
	b.Locker.LockOwner = nfs4.ExistLockOwner4{LockStateid: l1, LockSeqid: 8}
	l2 := body[nfs4.LOCK4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCK, b)))).Resok4.LockStateid
	if again := body[nfs4.LOCK4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCK, b)))).Resok4.LockStateid; again != l2 || l2.Seqid != l1.Seqid+1 {
		t.Errorf("%v after %v, again %v", l2, l1, again)
	}
	// Somebody else.
	test := &nfs4.LOCKT4args{Locktype: nfs4.WRITE_LT, Offset: 0, Length: 0xffffffffffffffff}
	test.Owner.Clientid, test.Owner.Owner = z.clientid, []byte("other")
	d := body[nfs4.LOCKT4res](t, z.must(nfs4.NFS4ERR_DENIED, z.do(putfh(h), o(nfs4.OP_LOCKT, test)))).Denied
	if string(d.Owner.Owner) != "lo" || d.Owner.Clientid != z.clientid {
		t.Errorf("%+v", d)
	}
	test.Offset, test.Length, test.Locktype = 18, 5, nfs4.READ_LT
	z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCKT, test)))
	test.Owner.Owner = []byte("lo")
	test.Locktype = nfs4.WRITE_LT
	z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCKT, test)))
	release := o(nfs4.OP_RELEASE_LOCKOWNER, &nfs4.RELEASE_LOCKOWNER4args{LockOwner: nfs4.StateOwner4{Clientid: z.clientid, Owner: []byte("lo")}})
	z.must(nfs4.NFS4ERR_LOCKS_HELD, z.do(release))
	// A denied LOCK of another owner counts for the open owner.
	c := lock0(nfs4.WRITEW_LT, 0, 100)
	c.Locker = a.Locker
	c.Locker.OpenOwner.OpenSeqid = z.next()
	c.Locker.OpenOwner.LockOwner.Owner = []byte("other")
	for range 2 {
		d := body[nfs4.LOCK4res](t, z.must(nfs4.NFS4ERR_DENIED, z.do(putfh(h), o(nfs4.OP_LOCK, c)))).Denied
		if d.Offset != 10 && d.Offset != 15 {
			t.Errorf("%+v", d)
		}
	}
	u := &nfs4.LOCKU4args{Locktype: nfs4.WRITE_LT, Seqid: 9, LockStateid: l2, Length: 0xffffffffffffffff}
	l3 := body[nfs4.LOCKU4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCKU, u)))).LockStateid
	if again := body[nfs4.LOCKU4res](t, z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCKU, u)))).LockStateid; again != l3 {
		t.Errorf("%v, again %v", l3, again)
	}
	z.must(ok, z.do(release))
	z.must(nfs4.NFS4ERR_BAD_STATEID, z.do(putfh(h), o(nfs4.OP_LOCKU, u)))
	c.Locker.OpenOwner.OpenSeqid = z.next()
	z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCK, c)))
	// CLOSE drops the locks, too.
	z.must(ok, z.do(putfh(h), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: z.next()})))
	if n := r.s.State(); n.Ranges != 0 || n.LockStates != 0 {
		t.Errorf("%+v", n)
	}
}

// In a grace period clients can reclaim what they had, and get nothing else.
func TestGrace(t *testing.T) {
	r := newRig(t, Options{})
	z := r.mount0("c")
	h, _ := z.open("f", 3, 0)
	claim := func(seq uint32) nfs4.Op {
		op := z.openOp("", 3, 0, nfs4.Openflag4{}, seq)
		op.Body.(*nfs4.OPEN4args).Claim.Claim = nfs4.CLAIM_PREVIOUS
		return op
	}
	z.must(nfs4.NFS4ERR_NO_GRACE, z.do(putfh(h), claim(z.next())))
	r.shut()
	r.boot(Options{Grace: time.Minute})
	z.must(nfs4.NFS4ERR_STALE_CLIENTID, z.do(putfh(h), claim(z.next())))
	z = r.mount0("c")
	z.must(nfs4.NFS4ERR_GRACE, z.do(putroot, z.openOp("f", 3, 0, nfs4.Openflag4{}, z.next())))
	z.must(nfs4.NFS4ERR_GRACE, z.do(putfh(h), read(nfs4.Stateid4{}, 0, 1)))
	op := body[nfs4.OPEN4res](t, z.must(ok, z.do(putfh(h), claim(z.next())))).Resok4
	if op.Rflags&nfs4.OPEN4_RESULT_CONFIRM != 0 {
		t.Error("a reclaim has to be confirmed")
	}
	sid := op.Stateid
	a := lock0(nfs4.WRITE_LT, 0, 1)
	a.Locker.NewLockOwner = true
	a.Locker.OpenOwner.OpenSeqid, a.Locker.OpenOwner.OpenStateid = z.next(), sid
	a.Locker.OpenOwner.LockOwner.Clientid = z.clientid
	z.must(nfs4.NFS4ERR_GRACE, z.do(putfh(h), o(nfs4.OP_LOCK, a)))
	a.Reclaim, a.Locker.OpenOwner.OpenSeqid = true, z.next()
	z.must(ok, z.do(putfh(h), o(nfs4.OP_LOCK, a)))
	r.clock.pass(2 * time.Minute)
	z.must(ok, z.do(putroot, z.openOp("f", 3, 0, nfs4.Openflag4{}, z.next())))
}

// Operations without a seqid are not executed again, either.
func TestOnce0(t *testing.T) {
	r := newRig(t, Options{})
	for _, c := range []struct {
		op    nfs4.Op
		twice status
	}{
		{mkdir("d"), nfs4.NFS4ERR_EXIST},
		{rename("d", "e"), nfs4.NFS4ERR_NOENT},
		{remove("e"), nfs4.NFS4ERR_NOENT},
	} {
		a := nfs4.CompoundArgs{}
		a.Ops = []nfs4.Op{putroot, savefh, c.op}
		x := r.raw(0, a.Append(nil))
		r.must(ok, r.result(x))
		r.xid-- // sent again
		again := r.raw(0, a.Append(nil))
		if !bytes.Equal(x.reply, again.reply) {
			t.Errorf("% x after % x", again.reply, x.reply)
		}
		r.must(c.twice, r.result(r.raw(0, a.Append(nil)))) // another call
	}
}

// TestCloseAgain: a CLOSE that comes after a long silence may be retransmitted, too, as pynfs' RPLY10
// does: its owner has only just been used.
func TestCloseAgain(t *testing.T) {
	r := newRig(t, Options{Courtesy: 24 * time.Hour})
	z := r.mount0("c")
	h, sid := z.open("f", 1, 0)
	r.clock.pass(200 * time.Second)
	again := []nfs4.Op{putfh(h), o(nfs4.OP_CLOSE, &nfs4.CLOSE4args{OpenStateid: sid, Seqid: z.next()})}
	z.must(ok, z.do(again...))
	r.s.Reap()
	z.must(ok, z.do(again...))
}
