package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// file is a file that somebody has open.
type file struct {
	key   Key
	opens map[*open]struct{}
	// How many opens have each bit of share access and share deny.
	accesses, denies [2]int
	locks            ranges
	delegations      map[*delegation]struct{}
	outside          int // Outsiders that hold something
}

// open is what one owner has open of one file, by one OPEN or several.
type open struct {
	*state
	owner        *openOwner
	file         *file
	access, deny uint32
	// shares has a bit for each access and deny that an OPEN had, as
	// OPEN_DOWNGRADE asks for them: bit access+4*deny.
	shares uint16
	locks  map[*lockOwner]*lockState
}

func share(access, deny uint32) uint { return uint(access&3 | deny&3<<2) }

// count adds n to the file's counts for an open's bits.
func (f *file) count(access, deny uint32, n int) {
	for i := range f.accesses {
		f.accesses[i] += n * int(access>>i&1)
		f.denies[i] += n * int(deny>>i&1)
	}
}

// conflicts reports whether an open forbids access or deny. An open of the same owner is no
// exception (RFC 8881, section 9.7).
func (f *file) conflicts(access, deny uint32) bool {
	for i := range f.accesses {
		if access>>i&1 != 0 && f.denies[i] > 0 || deny>>i&1 != 0 && f.accesses[i] > 0 {
			return true
		}
	}
	return false
}

// BeginOpen starts an OPEN. c is the client of the session; for NFSv4.0 it is nil and the owner's
// client ID is used.
func (t *Table) BeginOpen(c *Client, who *nfs4.StateOwner4, seqid uint32, p Principal) (turn Turn, replay *Replay, st Status) {
	t.mu.Lock()
	zero := c == nil
	if zero {
		if c, st = t.client(who.Clientid); st == nfs4.NFS4_OK && c.minor {
			st = nfs4.NFS4ERR_STALE_CLIENTID
		}
		if st != nfs4.NFS4_OK {
			t.unlock()
			return Turn{}, nil, st
		}
		t.renew(c)
	}
	if c.gone {
		t.unlock()
		return Turn{}, nil, nfs4.NFS4ERR_EXPIRED
	}
	o := t.openOwner(c, who.Owner, p)
	if o != nil && zero && !o.confirmed {
		// The owner was never confirmed: it counts as never seen (RFC 7530, section 16.18.5).
		t.dropOpenOwner(o)
		o = t.openOwner(c, who.Owner, p)
	}
	t.unlock()
	if o == nil {
		return Turn{}, nil, resource(zero)
	}
	turn = Turn{t: t, oo: o, op: uint32(nfs4.OP_OPEN), id: seqid}
	if zero {
		if replay, st = t.take(&o.owner, seqid, turn.op); st != nfs4.NFS4_OK {
			return Turn{}, nil, st
		}
		turn.o = &o.owner
	}
	return turn, replay, nfs4.NFS4_OK
}

// resource is the status for exceeding a limit.
func resource(minorZero bool) Status {
	if minorZero {
		return nfs4.NFS4ERR_RESOURCE
	}
	return nfs4.NFS4ERR_DELAY
}

// MayOpen checks whether the client whose turn it is may get new state: NFS4ERR_GRACE,
// NFS4ERR_NO_GRACE.
func (t *Table) MayOpen(turn Turn, reclaim bool) Status {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.mayLock(turn.oo.client, reclaim)
}

func (t *Table) mayLock(c *Client, reclaim bool) Status {
	switch {
	case reclaim && (!t.InGrace() || c.reclaimed):
		return nfs4.NFS4ERR_NO_GRACE
	case reclaim && !t.mayReclaim(c):
		return nfs4.NFS4ERR_RECLAIM_BAD
	case !reclaim && (t.InGrace() || c.minor && !c.reclaimed):
		return nfs4.NFS4ERR_GRACE
	}
	if reclaim && t.stable != nil {
		t.late()
	}
	return nfs4.NFS4_OK
}

// Trust takes the owner whose turn it is as confirmed, since it reclaims: a client does so after an
// answer of this server to SETCLIENTID, and the OPEN cannot be an old one. Linux's server does
// likewise, and its client does not know the filehandle that OPEN_CONFIRM would need.
func (t *Table) Trust(turn Turn) {
	t.mu.Lock()
	turn.oo.confirmed = true
	t.mu.Unlock()
}

// Open opens a file for the owner whose turn it is, or adds to its open. confirm says that the
// owner has to confirm it (NFSv4.0).
func (t *Table) Open(turn Turn, key Key, access, deny uint32) (id nfs4.Stateid4, confirm bool, st Status) {
	t.mu.Lock()
	defer t.unlock()
	o := turn.oo
	c := o.client
	if c.gone {
		return id, false, nfs4.NFS4ERR_EXPIRED
	}
	if o.gone && c.minor {
		// Another slot has closed the last file of the owner meanwhile.
		o = t.openOwner(c, []byte(o.name), o.principal)
	}
	if o == nil || o.gone {
		return id, false, resource(!c.minor)
	}
	t.forgetClosed(o)
	mine := o.opens[key]
	f := t.files[key]
	if f != nil && f.conflicts(access, deny) {
		t.dropExpired(f)
		f = t.files[key]
		if f != nil && f.conflicts(access, deny) {
			return id, false, nfs4.NFS4ERR_SHARE_DENIED
		}
	}
	if f != nil && len(f.delegations) > 0 {
		// A client with a delegation may have opens that only it knows about. Denying those
		// conflicts, too.
		write := access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0 || deny != 0
		if t.recallFrom(c, f, write) {
			return id, false, nfs4.NFS4ERR_DELAY
		}
		f = t.files[key]
	}
	if mine == nil {
		if len(c.states) >= t.limits.Opens {
			return id, false, resource(!c.minor)
		}
		if !t.charge(c, openCost) {
			return id, false, resource(!c.minor)
		}
		f = t.files[key] // to make room, others may have been closed
		if t.hold != nil {
			if err := t.hold(key); err != nil {
				t.refund(c, openCost)
				return id, false, nfs4.NFS4ERR_STALE
			}
		}
		if f == nil {
			f = &file{key: key, opens: map[*open]struct{}{}}
			t.files[key] = f
		}
		mine = &open{owner: o, file: f}
		mine.state = t.newState(c, mine, nil)
		f.opens[mine] = struct{}{}
		if o.opens == nil {
			o.opens = map[Key]*open{}
		}
		o.opens[key] = mine
	}
	f.count(mine.access, mine.deny, -1)
	mine.access |= access
	mine.deny |= deny
	mine.shares |= 1 << share(access, deny)
	f.count(mine.access, mine.deny, 1)
	return mine.bump(), !o.confirmed, nfs4.NFS4_OK
}

// dropExpired drops the clients that have a file open but whose lease has run
// out.
func (t *Table) dropExpired(f *file) {
	now := t.now()
	for o := range f.opens {
		if c := o.client; !c.gone && t.expired(c, now) {
			t.destroy(c)
		}
	}
}

// dropOpen closes a file with the locks in it.
func (t *Table) dropOpen(o *open) {
	for _, l := range o.locks {
		t.dropLockState(l)
	}
	t.dropState(o.state)
	t.refund(o.client, openCost)
	t.detach(o)
}

// detach takes an open from its file and its owner.
func (t *Table) detach(o *open) {
	f := o.file
	f.count(o.access, o.deny, -1)
	delete(f.opens, o)
	delete(o.owner.opens, f.key)
	o.owner.used = t.now().UnixNano() // a CLOSE may be sent again for a lease from now on
	t.release(f)
}

// release ends the hold of an open or a delegation on a file.
func (t *Table) release(f *file) {
	t.forgetFile(f)
	if t.unhold != nil {
		t.let = append(t.let, f.key)
	}
}

// forgetFile forgets a file that nobody holds.
func (t *Table) forgetFile(f *file) {
	if len(f.opens) == 0 && len(f.delegations) == 0 && f.outside == 0 {
		delete(t.files, f.key)
	}
}

// BeginStateid starts an operation on an open or a lock in NFSv4.0: it finds
// whose turn it takes. Since NFSv4.1 there is nothing to wait for.
func (t *Table) BeginStateid(c *Client, s *nfs4.Stateid4, seqid uint32, op nfs4.NfsOpnum4, p Principal) (turn Turn, replay *Replay, st Status) {
	if c != nil {
		return Turn{}, nil, nfs4.NFS4_OK
	}
	t.mu.RLock()
	found, st := t.find(nil, s)
	if st == nfs4.NFS4_OK && found.delegation != nil {
		st = nfs4.NFS4ERR_BAD_STATEID
	}
	if st == nfs4.NFS4_OK && !found.permits(p) {
		st = refused(nil, op) // before anything about the owner is revealed or changed
	}
	t.mu.RUnlock()
	if st != nfs4.NFS4_OK {
		return Turn{}, nil, st
	}
	turn = Turn{t: t, op: uint32(op), id: seqid}
	if found.lock != nil {
		turn.lo = found.lock.owner
		turn.o = &turn.lo.owner
	} else {
		turn.oo = found.open.owner
		turn.o = &turn.oo.owner
	}
	if replay, st = t.take(turn.o, seqid, turn.op); st != nfs4.NFS4_OK {
		return Turn{}, nil, st
	}
	return turn, replay, nfs4.NFS4_OK
}

// ConfirmOpen is OPEN_CONFIRM.
func (t *Table) ConfirmOpen(s *nfs4.Stateid4, key Key, p Principal) (id nfs4.Stateid4, st Status) {
	t.mu.Lock()
	defer t.unlock()
	o, st := t.findOpen(nil, s, key, p)
	if st != nfs4.NFS4_OK {
		return id, st
	}
	if o.owner.confirmed {
		return id, nfs4.NFS4ERR_BAD_STATEID
	}
	o.owner.confirmed = true
	return o.bump(), nfs4.NFS4_OK
}

// Downgrade is OPEN_DOWNGRADE.
func (t *Table) Downgrade(c *Client, s *nfs4.Stateid4, key Key, access, deny uint32, p Principal) (id nfs4.Stateid4, st Status) {
	t.mu.Lock()
	defer t.unlock()
	o, st := t.findOpen(c, s, key, p)
	if st != nfs4.NFS4_OK {
		return id, st
	}
	if !o.owner.confirmed {
		return id, nfs4.NFS4ERR_BAD_STATEID
	}
	// The remaining modes must be those of some of the OPENs (RFC 8881, section 18.18.3).
	var a, d uint32
	var left uint16
	for i := uint(0); i < 16; i++ {
		ia, id := uint32(i&3), uint32(i>>2)
		if o.shares>>i&1 != 0 && ia&^access == 0 && id&^deny == 0 {
			a, d, left = a|ia, d|id, left|1<<i
		}
	}
	if access == 0 || a != access || d != deny {
		return id, nfs4.NFS4ERR_INVAL
	}
	o.file.count(o.access, o.deny, -1)
	o.access, o.deny, o.shares = a, d, left
	o.file.count(o.access, o.deny, 1)
	return o.bump(), nfs4.NFS4_OK
}

// CloseOpen is CLOSE. Locks that are left in the open go with it (RFC 8881,
// section 18.2.3 allows it).
func (t *Table) CloseOpen(c *Client, s *nfs4.Stateid4, key Key, p Principal) (id nfs4.Stateid4, st Status) {
	t.mu.Lock()
	defer t.unlock()
	o, st := t.findOpen(c, s, key, p)
	if st != nfs4.NFS4_OK {
		return id, st
	}
	if c != nil {
		t.dropOpen(o)
		if len(o.owner.opens) == 0 {
			t.dropOpenOwner(o.owner)
		}
		return Invalid, nfs4.NFS4_OK
	}
	if !o.owner.confirmed {
		return id, nfs4.NFS4ERR_BAD_STATEID
	}
	for _, l := range o.locks {
		t.dropLockState(l)
	}
	t.detach(o)
	t.forgetClosed(o.owner)
	o.closed = true
	o.owner.last = o
	return o.bump(), nfs4.NFS4_OK
}
