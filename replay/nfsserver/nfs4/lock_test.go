package nfs4

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

func lockOp(open nfs4.Stateid4, owner string, kind nfs4.NfsLockType4, offset, length uint64) nfs4.Op {
	a := lock0(kind, offset, length)
	a.Locker.NewLockOwner = true
	a.Locker.OpenOwner.OpenStateid = open
	a.Locker.OpenOwner.LockOwner.Owner = []byte(owner)
	return o(nfs4.OP_LOCK, a)
}

func TestLocks(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.mount("a", 1, 0), r.mount("b", 2, 0)
	h, mine := a.create("o", "f", 3, 0)
	_, theirs := b.create("o", "f", 3, 0)
	_, readOnly := b.create("p", "f", 1, 0)
	lock := func(s *session, want status, open nfs4.Stateid4, kind nfs4.NfsLockType4, offset, length uint64) nfs4.Stateid4 {
		t.Helper()
		return body[nfs4.LOCK4res](t, s.must(want, s.do(putfh(h), lockOp(open, "lo", kind, offset, length)))).Resok4.LockStateid
	}
	l := lock(a, ok, mine, nfs4.WRITE_LT, 0, 10)
	if again := lock(a, ok, mine, nfs4.READ_LT, 10, 10); again.Other != l.Other || again.Seqid != l.Seqid+1 {
		t.Errorf("%v after %v", again, l)
	}
	lock(b, nfs4.NFS4ERR_DENIED, theirs, nfs4.READ_LT, 5, 1)
	lock(b, ok, theirs, nfs4.READ_LT, 10, 0xffffffffffffffff)
	lock(a, nfs4.NFS4ERR_DENIED, mine, nfs4.WRITE_LT, 15, 1)
	lock(b, nfs4.NFS4ERR_OPENMODE, readOnly, nfs4.WRITE_LT, 100, 1)
	lock(b, nfs4.NFS4ERR_INVAL, theirs, nfs4.READ_LT, 3, 0xfffffffffffffffe)
	lock(b, nfs4.NFS4ERR_BAD_STATEID, mine, nfs4.READ_LT, 100, 1) // not b's
	reclaim := lockOp(theirs, "lo", nfs4.READ_LT, 0, 1)
	reclaim.Body.(*nfs4.LOCK4args).Reclaim = true
	b.must(nfs4.NFS4ERR_NO_GRACE, b.do(putfh(h), reclaim))
	a.must(ok, a.do(putfh(h), read(l2(l), 0, 1), write(l2(l), 0, "x"))) // by the stateid of a lock

	free := o(nfs4.OP_FREE_STATEID, &nfs4.FREE_STATEID4args{FsaStateid: l2(l)})
	a.must(nfs4.NFS4ERR_LOCKS_HELD, a.do(free))
	a.must(ok, a.do(putfh(h), o(nfs4.OP_LOCKU, &nfs4.LOCKU4args{Locktype: 1, LockStateid: l2(l), Length: 0xffffffffffffffff})))
	a.must(ok, a.do(free))
	a.must(nfs4.NFS4ERR_BAD_STATEID, a.do(free))

	// The locks of a client that is gone conflict with nobody.
	lock(a, ok, mine, nfs4.WRITE_LT, 0, 5)
	r.clock.pass(time.Minute)
	b.must(ok, b.do())
	r.clock.pass(time.Minute)
	test := o(nfs4.OP_LOCKT, &nfs4.LOCKT4args{Locktype: nfs4.WRITE_LT, Length: 3})
	b.must(ok, b.do(putfh(h), test))
	lock(b, ok, theirs, nfs4.WRITE_LT, 0, 3)
	a.must(nfs4.NFS4ERR_BADSESSION, a.do())
	b.must(ok, b.do(putfh(h), closeOp(theirs)))
	if n := r.s.State(); n.Ranges != 0 || n.Opens != 1 {
		t.Errorf("%+v", n)
	}
}

// l2 is a stateid with the seqid that stands for the latest.
func l2(s nfs4.Stateid4) nfs4.Stateid4 {
	s.Seqid = 0
	return s
}
