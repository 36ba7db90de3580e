package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// lockable checks that the current object can have locks: only regular files can.
func (x *compound) lockable() status {
	at, st := x.attributes()
	switch {
	case st != ok:
		return st
	case at.Type == store.Directory:
		return nfs4.NFS4ERR_ISDIR
	case at.Type == store.Symlink && x.minor > 0:
		return nfs4.NFS4ERR_SYMLINK
	case at.Type != store.Regular && x.minor > 0:
		return nfs4.NFS4ERR_WRONG_TYPE
	case at.Type != store.Regular:
		return nfs4.NFS4ERR_INVAL
	}
	return ok
}

// begin takes an operation's turn. It returns true if the operation has already been answered.
func (x *compound) begin(turn state.Turn, r *state.Replay, st status) (status, bool) {
	if st != ok {
		return st, true
	}
	x.turn = turn
	if r != nil {
		return x.replay(r), true
	}
	return ok, false
}

func (x *compound) lock(a *nfs4.LOCK4args) status {
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
	if st = x.lockable(); st != ok {
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

func (x *compound) deny(d *nfs4.LOCK4denied) {
	x.c.Out = d.Append(x.c.Out)
	x.tail = true
}

func (x *compound) lockt(a *nfs4.LOCKT4args) status {
	if st := x.lockable(); st != ok {
		return st
	}
	var denied nfs4.LOCK4denied
	st := x.s.table.Locks.Test(x.client, a, x.fh, &denied)
	if st == nfs4.NFS4ERR_DENIED {
		x.deny(&denied)
	}
	return st
}

func (x *compound) locku(a *nfs4.LOCKU4args) status {
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

func (x *compound) releaseLockowner(a *nfs4.RELEASE_LOCKOWNER4args) status {
	return x.s.table.Locks.ReleaseOwner(&a.LockOwner)
}

// result appends a stateid that an operation has given.
func (x *compound) result(sid nfs4.Stateid4, st status) status {
	if st == ok {
		x.setStateid(sid)
		x.c.Out = sid.Append(x.c.Out)
	}
	return st
}

func (x *compound) closeOp(a *nfs4.CLOSE4args) status {
	id, st := x.stateid(&a.OpenStateid)
	if st != ok {
		return st
	}
	if st, done := x.begin(x.s.table.Stateids.Begin(x.client, id, a.Seqid, nfs4.OP_CLOSE, x.principal())); done {
		return st
	}
	return x.result(x.s.table.Opens.Close(x.client, id, x.fh, x.principal()))
}

func (x *compound) openConfirm(a *nfs4.OPEN_CONFIRM4args) status {
	if st, done := x.begin(x.s.table.Stateids.Begin(nil, &a.OpenStateid, a.Seqid, nfs4.OP_OPEN_CONFIRM, x.principal())); done {
		return st
	}
	return x.result(x.s.table.Opens.Confirm(&a.OpenStateid, x.fh, x.principal()))
}

func (x *compound) openDowngrade(a *nfs4.OPEN_DOWNGRADE4args) status {
	id, st := x.stateid(&a.OpenStateid)
	if st != ok {
		return st
	}
	if st, done := x.begin(x.s.table.Stateids.Begin(x.client, id, a.Seqid, nfs4.OP_OPEN_DOWNGRADE, x.principal())); done {
		return st
	}
	access, deny := uint32(a.ShareAccess), a.ShareDeny
	if x.minor > 0 {
		access &^= wants
	}
	if access&^nfs4.OPEN4_SHARE_ACCESS_BOTH != 0 || deny&^nfs4.OPEN4_SHARE_DENY_BOTH != 0 {
		return nfs4.NFS4ERR_INVAL
	}
	return x.result(x.s.table.Opens.Downgrade(x.client, id, x.fh, access, deny, x.principal()))
}
