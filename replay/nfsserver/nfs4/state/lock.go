package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// lockState is what the stateid of a LOCK stands for: the ranges of an owner,
// locked through an open.
type lockState struct {
	*state
	owner *lockOwner
	open  *open
}

// BeginLock starts a LOCK: in NFSv4.0 it takes its turn among the requests of
// the open owner, or of the lock owner if that is already known.
func (t *Table) BeginLock(c *Client, a *nfs4.LOCK4args, p Principal) (Turn, *Replay, Status) {
	if a.Locker.NewLockOwner {
		n := &a.Locker.OpenOwner
		return t.BeginStateid(c, &n.OpenStateid, n.OpenSeqid, nfs4.OP_LOCK, p)
	}
	n := &a.Locker.LockOwner
	return t.BeginStateid(c, &n.LockStateid, n.LockSeqid, nfs4.OP_LOCK, p)
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
func (t *Table) Lock(c *Client, a *nfs4.LOCK4args, key Key, p Principal, denied *nfs4.LOCK4denied) (id nfs4.Stateid4, st Status) {
	write, ok := writes(a.Locktype)
	r, fine := MakeRange(a.Offset, a.Length)
	if !ok || !fine {
		return id, nfs4.NFS4ERR_INVAL
	}
	t.mu.Lock()
	defer t.unlock()
	var l *lockState
	var o *open
	if a.Locker.NewLockOwner {
		if o, st = t.findOpen(c, &a.Locker.OpenOwner.OpenStateid, key, p); st != nfs4.NFS4_OK {
			return id, st
		}
		if !o.owner.confirmed || c == nil && a.Locker.OpenOwner.LockOwner.Clientid != o.client.id {
			return id, nfs4.NFS4ERR_BAD_STATEID
		}
	} else {
		if l, st = t.findLock(c, &a.Locker.LockOwner.LockStateid, key, p); st != nfs4.NFS4_OK {
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
	if st = t.mayLock(o.client, a.Reclaim); st != nfs4.NFS4_OK {
		return id, st
	}
	var lo *lockOwner
	if l != nil {
		lo = l.owner
	} else {
		lo = o.client.lockOwners[string(a.Locker.OpenOwner.LockOwner.Owner)]
	}
	f := o.file
	h := f.locks.conflict(lo, r, write)
	if h != nil && t.expiredHolder(h, o.client) {
		t.dropExpired(f)
		h = f.locks.conflict(lo, r, write)
	}
	if h != nil {
		*denied = deny(h)
		return id, nfs4.NFS4ERR_DENIED
	}
	// A range may split another one, which makes two more.
	if o.client.ranges+1 >= t.limits.Ranges || len(f.locks.held)+1 >= t.limits.FileRanges || t.memory.room(o.client.source) < 2*rangeCost {
		return id, resource(c == nil)
	}
	if l == nil {
		if l, st = t.lockState(c, o, &a.Locker.OpenOwner); st != nfs4.NFS4_OK {
			return id, st
		}
		lo = l.owner
	}
	before := len(f.locks.held)
	f.locks.add(lo, r, write)
	t.countRanges(o.client, len(f.locks.held)-before)
	return l.bump(), nfs4.NFS4_OK
}

// countRanges counts n more byte ranges of a client.
func (t *Table) countRanges(c *Client, n int) {
	c.ranges += n
	if n < 0 {
		t.refund(c, -n*rangeCost)
	} else {
		t.charge(c, n*rangeCost)
	}
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

// expiredHolder reports whether a range belongs to a client other than c whose lease has run out.
func (t *Table) expiredHolder(h *held, c *Client) bool {
	of := h.owner.record()
	return of != nil && of != c && t.expired(of, t.now())
}

// lockState finds or makes the lock state of an owner in an open.
func (t *Table) lockState(c *Client, o *open, n *nfs4.OpenToLockOwner4) (*lockState, Status) {
	lo := t.lockOwner(o.client, n.LockOwner.Owner)
	if lo == nil {
		return nil, resource(c == nil)
	}
	if c == nil {
		// The open owner's seqid has ordered this request. The lock owner's seqid starts here.
		if !lo.mu.TryLock() {
			return nil, nfs4.NFS4ERR_DELAY // another request of it is under way
		}
		lo.begun, lo.seqid, lo.reply = true, n.LockSeqid, nil
		lo.mu.Unlock()
	}
	if l := o.locks[lo]; l != nil {
		return l, nfs4.NFS4_OK
	}
	if len(o.client.states) >= t.limits.Opens {
		return nil, resource(c == nil)
	}
	if !t.charge(o.client, lockStateCost) {
		return nil, resource(c == nil)
	}
	l := &lockState{owner: lo, open: o}
	l.state = t.newState(o.client, o, l)
	if o.locks == nil {
		o.locks = map[*lockOwner]*lockState{}
	}
	o.locks[lo] = l
	if lo.locks == nil {
		lo.locks = map[*open]*lockState{}
	}
	lo.locks[o] = l
	return l, nfs4.NFS4_OK
}

func (t *Table) findLock(c *Client, s *nfs4.Stateid4, key Key, p Principal) (*lockState, Status) {
	found, st := t.find(c, s)
	if st != nfs4.NFS4_OK {
		return nil, st
	}
	if !found.permits(p) {
		return nil, refused(c, nfs4.OP_LOCK)
	}
	if found.lock == nil || found.open.file.key != key {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	return found.lock, found.current(s.Seqid)
}

// TestLock is LOCKT.
func (t *Table) TestLock(c *Client, a *nfs4.LOCKT4args, key Key, denied *nfs4.LOCK4denied) Status {
	write, ok := writes(a.Locktype)
	r, fine := MakeRange(a.Offset, a.Length)
	if !ok || !fine {
		return nfs4.NFS4ERR_INVAL
	}
	t.mu.Lock()
	defer t.unlock()
	if t.InGrace() {
		return nfs4.NFS4ERR_GRACE
	}
	if c == nil {
		var st Status
		if c, st = t.client(a.Owner.Clientid); st != nfs4.NFS4_OK {
			return st
		}
		if c.minor {
			return nfs4.NFS4ERR_STALE_CLIENTID
		}
		t.renew(c)
	}
	f := t.files[key]
	if f == nil {
		return nfs4.NFS4_OK
	}
	lo := c.lockOwners[string(a.Owner.Owner)]
	h := f.locks.conflict(lo, r, write)
	if h != nil && t.expiredHolder(h, c) {
		t.dropExpired(f)
		h = f.locks.conflict(lo, r, write)
	}
	if h == nil {
		return nfs4.NFS4_OK
	}
	*denied = deny(h)
	return nfs4.NFS4ERR_DENIED
}

// Unlock is LOCKU. Unlocking a range that is not locked is no error.
func (t *Table) Unlock(c *Client, a *nfs4.LOCKU4args, key Key, p Principal) (id nfs4.Stateid4, st Status) {
	_, ok := writes(a.Locktype)
	r, fine := MakeRange(a.Offset, a.Length)
	if !ok || !fine {
		return id, nfs4.NFS4ERR_INVAL
	}
	t.mu.Lock()
	defer t.unlock()
	l, st := t.findLock(c, &a.LockStateid, key, p)
	if st != nfs4.NFS4_OK {
		return id, st
	}
	f := l.open.file
	full := l.client.ranges >= t.limits.Ranges || len(f.locks.held) >= t.limits.FileRanges || t.memory.room(l.client.source) < rangeCost
	if full && f.locks.splits(l.owner, r) {
		return id, resource(c == nil)
	}
	before := len(f.locks.held)
	f.locks.remove(l.owner, r)
	t.countRanges(l.client, len(f.locks.held)-before)
	t.freed(f.key)
	return l.bump(), nfs4.NFS4_OK
}

// ReleaseLockOwner is RELEASE_LOCKOWNER of NFSv4.0.
func (t *Table) ReleaseLockOwner(who *nfs4.StateOwner4) Status {
	t.mu.Lock()
	defer t.unlock()
	c, st := t.client(who.Clientid)
	if st != nfs4.NFS4_OK {
		return st
	}
	if c.minor {
		return nfs4.NFS4ERR_STALE_CLIENTID
	}
	t.renew(c)
	o := c.lockOwners[string(who.Owner)]
	if o == nil {
		return nfs4.NFS4_OK
	}
	for _, l := range o.locks {
		if l.open.file.locks.count(o) > 0 {
			return nfs4.NFS4ERR_LOCKS_HELD
		}
	}
	t.dropLockOwner(o)
	return nfs4.NFS4_OK
}

// dropLockState gives up what an owner has locked through an open.
func (t *Table) dropLockState(l *lockState) {
	t.countRanges(l.client, -l.open.file.locks.drop(l.owner))
	t.freed(l.open.file.key)
	t.dropState(l.state)
	t.refund(l.client, lockStateCost)
	delete(l.open.locks, l.owner)
	delete(l.owner.locks, l.open)
	l.owner.used = t.now().UnixNano()
	if l.client.minor && len(l.owner.locks) == 0 {
		t.dropLockOwner(l.owner)
	}
}
