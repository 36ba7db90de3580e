package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// lockState is what the stateid of a LOCK stands for: the ranges of an owner,
// locked through an open.
type lockState struct {
	*state
	owner *lockOwner
	open  *open
}

// Locks are the byte ranges that clients of NFSv4 lock.
type Locks struct {
	section *section
	clients *registry
	owners  *owners
	files   *files
	budget  *budget
	reaper  *reaper
	waiters *waiters
	grace   *Grace
}

func writes(t nfs4.NfsLockType4) (write, ok bool) {
	switch t {
	case nfs4.READ_LT, nfs4.READW_LT:
		return false, true
	case nfs4.WRITE_LT, nfs4.WRITEW_LT:
		return true, true
	}
	return false, false
}

// Lock is LOCK. A lock that would have to wait is denied: the client asks again
// (RFC 8881, section 9.6).
func (ls *Locks) Lock(c *Client, a *nfs4.LOCK4args, key Key, p Principal, denied *nfs4.LOCK4denied) (id nfs4.Stateid4, st Status) {
	write, ok := writes(a.Locktype)
	r, fine := MakeRange(a.Offset, a.Length)
	if !ok || !fine {
		return id, nfs4.NFS4ERR_INVAL
	}
	ls.section.Lock()
	defer ls.section.Unlock()
	var l *lockState
	var o *open
	if a.Locker.NewLockOwner {
		if o, st = ls.clients.findOpen(c, &a.Locker.OpenOwner.OpenStateid, key, p); st != nfs4.NFS4_OK {
			return id, st
		}
		if !o.owner.confirmed || c == nil && a.Locker.OpenOwner.LockOwner.Clientid != o.client.id {
			return id, nfs4.NFS4ERR_BAD_STATEID
		}
	} else {
		if l, st = ls.clients.findLock(c, &a.Locker.LockOwner.LockStateid, key, p); st != nfs4.NFS4_OK {
			return id, st
		}
		o = l.open
	}
	need := uint32(nfs4.OPEN4_SHARE_ACCESS_READ)
	if write {
		need = nfs4.OPEN4_SHARE_ACCESS_WRITE
	}
	if o.access&need == 0 {
		return id, nfs4.NFS4ERR_OPENMODE
	}
	if st = ls.grace.check(o.client, a.Reclaim); st != nfs4.NFS4_OK {
		return id, st
	}
	var lo *lockOwner
	if l != nil {
		lo = l.owner
	} else {
		lo = o.client.lockOwners[string(a.Locker.OpenOwner.LockOwner.Owner)]
	}
	f := o.file
	if h := ls.reaper.conflict(f, lo, o.client, r, write); h != nil {
		*denied = deny(h)
		return id, nfs4.NFS4ERR_DENIED
	}
	// A range may split another one, which makes two more.
	if !ls.budget.fits(o.client.source, o.client.ranges, &f.locks, 2, 0) {
		return id, resource(c == nil)
	}
	if l == nil {
		if l, st = ls.owners.lockState(c, o, &a.Locker.OpenOwner); st != nfs4.NFS4_OK {
			return id, st
		}
		lo = l.owner
	}
	before := len(f.locks.held)
	f.locks.add(lo, r, write)
	ls.owners.countRanges(o.client, len(f.locks.held)-before)
	return l.bump(), nfs4.NFS4_OK
}

func deny(h *held) nfs4.LOCK4denied {
	d := nfs4.LOCK4denied{Offset: h.First, Length: h.Length(), Locktype: nfs4.READ_LT}
	if h.write {
		d.Locktype = nfs4.WRITE_LT
	}
	// For others there is no name that the client could understand, as with Linux.
	if o, ok := h.owner.(*lockOwner); ok {
		d.Owner.Clientid = o.client.id
		d.Owner.Owner = []byte(o.name)
	}
	return d
}

// Test is LOCKT.
func (ls *Locks) Test(c *Client, a *nfs4.LOCKT4args, key Key, denied *nfs4.LOCK4denied) Status {
	write, ok := writes(a.Locktype)
	r, fine := MakeRange(a.Offset, a.Length)
	if !ok || !fine {
		return nfs4.NFS4ERR_INVAL
	}
	ls.section.Lock()
	defer ls.section.Unlock()
	if ls.grace.Active() {
		return nfs4.NFS4ERR_GRACE
	}
	if c == nil {
		var st Status
		if c, st = ls.clients.client0(a.Owner.Clientid); st != nfs4.NFS4_OK {
			return st
		}
		ls.clients.leases.renew(c)
	}
	f := ls.files.by[key]
	if f == nil {
		return nfs4.NFS4_OK
	}
	lo := c.lockOwners[string(a.Owner.Owner)]
	h := ls.reaper.conflict(f, lo, c, r, write)
	if h == nil {
		return nfs4.NFS4_OK
	}
	*denied = deny(h)
	return nfs4.NFS4ERR_DENIED
}

// Unlock is LOCKU. Unlocking a range that is not locked is no error.
func (ls *Locks) Unlock(c *Client, a *nfs4.LOCKU4args, key Key, p Principal) (id nfs4.Stateid4, st Status) {
	_, ok := writes(a.Locktype)
	r, fine := MakeRange(a.Offset, a.Length)
	if !ok || !fine {
		return id, nfs4.NFS4ERR_INVAL
	}
	ls.section.Lock()
	defer ls.section.Unlock()
	l, st := ls.clients.findLock(c, &a.LockStateid, key, p)
	if st != nfs4.NFS4_OK {
		return id, st
	}
	f := l.open.file
	if !ls.budget.fits(l.client.source, l.client.ranges, &f.locks, 1, 0) && f.locks.splits(l.owner, r) {
		return id, resource(c == nil)
	}
	before := len(f.locks.held)
	f.locks.remove(l.owner, r)
	ls.owners.countRanges(l.client, len(f.locks.held)-before)
	ls.waiters.freed(f.key)
	return l.bump(), nfs4.NFS4_OK
}

// ReleaseOwner is RELEASE_LOCKOWNER of NFSv4.0.
func (ls *Locks) ReleaseOwner(who *nfs4.StateOwner4) Status {
	ls.section.Lock()
	defer ls.section.Unlock()
	c, st := ls.clients.client0(who.Clientid)
	if st != nfs4.NFS4_OK {
		return st
	}
	ls.clients.leases.renew(c)
	o := c.lockOwners[string(who.Owner)]
	if o == nil {
		return nfs4.NFS4_OK
	}
	for _, l := range o.locks {
		if l.open.file.locks.count(o) > 0 {
			return nfs4.NFS4ERR_LOCKS_HELD
		}
	}
	ls.owners.dropLockOwner(o)
	return nfs4.NFS4_OK
}
