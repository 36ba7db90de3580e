package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// lockOps executes the operations on byte ranges.
type lockOps struct {
	*request
	*objects
	*turns
	*reply
}

func (x *lockOps) lock(a *nfs4.LOCK4args) status {
	// In NFSv4.0 a LOCK takes its turn among the requests of the open owner, or of the lock owner if
	// that is already known.
	from, seqid := &a.Locker.LockOwner.LockStateid, a.Locker.LockOwner.LockSeqid
	if a.Locker.NewLockOwner {
		from, seqid = &a.Locker.OpenOwner.OpenStateid, a.Locker.OpenOwner.OpenSeqid
	}
	id, st := x.stateid(from)
	if st != ok {
		return st
	}
	*from = *id
	if st, done := x.begin(x.s.table.Stateids.Begin(x.client, id, seqid, nfs4.OP_LOCK, x.principal())); done {
		return st
	}
	if _, st = x.size(); st != ok {
		return st
	}
	var denied nfs4.LOCK4denied
	sid, st := x.s.table.Locks.Lock(x.client, a, x.fh, x.principal(), &denied)
	switch st {
	case ok:
		x.setStateid(sid)
		x.c.Out = sid.Append(x.c.Out)
	case nfs4.NFS4ERR_DENIED:
		x.deny(&denied)
	}
	return st
}

func (x *lockOps) deny(d *nfs4.LOCK4denied) {
	x.c.Out = d.Append(x.c.Out)
	x.tail = true
}

func (x *lockOps) lockt(a *nfs4.LOCKT4args) status {
	if _, st := x.size(); st != ok {
		return st
	}
	var denied nfs4.LOCK4denied
	st := x.s.table.Locks.Test(x.client, a, x.fh, &denied)
	if st == nfs4.NFS4ERR_DENIED {
		x.deny(&denied)
	}
	return st
}

func (x *lockOps) locku(a *nfs4.LOCKU4args) status {
	id, st := x.stateid(&a.LockStateid)
	if st != ok {
		return st
	}
	a.LockStateid = *id
	if st, done := x.begin(x.s.table.Stateids.Begin(x.client, id, a.Seqid, nfs4.OP_LOCKU, x.principal())); done {
		return st
	}
	return x.result(x.s.table.Locks.Unlock(x.client, a, x.fh, x.principal()))
}

func (x *lockOps) releaseLockowner(a *nfs4.RELEASE_LOCKOWNER4args) status {
	return x.s.table.Locks.ReleaseOwner(&a.LockOwner)
}
