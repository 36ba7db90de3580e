package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

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

// reshare replaces the shares of an open.
func (o *open) reshare(access, deny uint32, shares uint16) {
	o.file.count(o.access, o.deny, -1)
	o.access, o.deny, o.shares = access, deny, shares
	o.file.count(o.access, o.deny, 1)
}

func share(access, deny uint32) uint { return uint(access&3 | deny&3<<2) }

// Opens are the files that clients have open, with the shares that they reserve.
type Opens struct {
	section     *section
	clients     *registry
	owners      *owners
	files       *files
	budget      *budget
	reaper      *reaper
	delegations *Delegations
	grace       *Grace
	recovery    *recovery
}

// Begin starts an OPEN. c is the client of the session; for NFSv4.0 it is nil and the owner's
// client ID is used.
func (ops *Opens) Begin(c *Client, who *nfs4.StateOwner4, seqid uint32, p Principal) (turn Turn, replay *Replay, st Status) {
	zero := c == nil
	o, st := ops.owner(c, who, p)
	if st != nfs4.NFS4_OK {
		return Turn{}, nil, st
	}
	turn = Turn{owner: o, op: uint32(nfs4.OP_OPEN), seqid: seqid}
	if zero {
		if replay, st = o.take(&turn); st != nfs4.NFS4_OK {
			return Turn{}, nil, st
		}
	}
	return turn, replay, nfs4.NFS4_OK
}

// owner finds or makes the owner of an OPEN.
func (ops *Opens) owner(c *Client, who *nfs4.StateOwner4, p Principal) (o *openOwner, st Status) {
	ops.section.Lock()
	defer ops.section.Unlock()
	zero := c == nil
	if zero {
		if c, st = ops.clients.client0(who.Clientid); st != nfs4.NFS4_OK {
			return nil, st
		}
		ops.clients.leases.renew(c)
	}
	if c.gone {
		return nil, nfs4.NFS4ERR_EXPIRED
	}
	o = ops.owners.openOwner(c, who.Owner, p)
	if o != nil && zero && !o.confirmed {
		// The owner was never confirmed: it counts as never seen (RFC 7530, section 16.18.5).
		ops.owners.dropOpenOwner(o)
		o = ops.owners.openOwner(c, who.Owner, p)
	}
	if o == nil {
		return nil, resource(zero)
	}
	return o, nfs4.NFS4_OK
}

// resource is the status for exceeding a limit.
func resource(minorZero bool) Status {
	if minorZero {
		return nfs4.NFS4ERR_RESOURCE
	}
	return nfs4.NFS4ERR_DELAY
}

// Admit checks whether the client whose turn it is may get new state, or reclaim state, and records
// it in stable storage: NFS4ERR_GRACE, NFS4ERR_NO_GRACE.
//
// An owner that reclaims is taken as confirmed: its client does so after an answer of this server to
// SETCLIENTID, and the OPEN cannot be an old one. Linux's server does likewise, and its client does
// not know the filehandle that OPEN_CONFIRM would need.
func (ops *Opens) Admit(turn Turn, reclaim bool) Status {
	c := turn.Client()
	ops.section.RLock()
	st := ops.grace.check(c, reclaim)
	ops.section.RUnlock()
	if st == nfs4.NFS4_OK {
		st = ops.recovery.remember(c)
	}
	if st == nfs4.NFS4_OK && reclaim {
		ops.section.Lock()
		turn.owner.confirmed = true
		ops.section.Unlock()
	}
	return st
}

// Open opens a file for the owner whose turn it is, or adds to its open. confirm says that the
// owner has to confirm it (NFSv4.0).
func (ops *Opens) Open(turn Turn, key Key, access, deny uint32) (id nfs4.Stateid4, confirm bool, st Status) {
	ops.section.Lock()
	defer ops.section.Unlock()
	o := turn.owner
	c := o.client
	if c.gone {
		return id, false, nfs4.NFS4ERR_EXPIRED
	}
	if o.gone && c.minor {
		// Another slot has closed the last file of the owner meanwhile.
		o = ops.owners.openOwner(c, []byte(o.name), o.principal)
	}
	if o == nil || o.gone {
		return id, false, resource(!c.minor)
	}
	ops.owners.forgetClosed(o)
	mine := o.opens[key]
	if st = ops.conflict(c, key, access, deny); st != nfs4.NFS4_OK {
		return id, false, st
	}
	if mine == nil {
		if !ops.budget.chargeState(c, openCost) {
			return id, false, resource(!c.minor)
		}
		if ops.files.acquire(key) != nil {
			ops.budget.refund(c, openCost)
			return id, false, nfs4.NFS4ERR_STALE
		}
		mine = ops.owners.newOpen(o, ops.files.get(key))
	}
	mine.reshare(mine.access|access, mine.deny|deny, mine.shares|1<<share(access, deny))
	return mine.bump(), !o.confirmed, nfs4.NFS4_OK
}

// conflict checks whether others allow a client to open a file.
func (ops *Opens) conflict(c *Client, key Key, access, deny uint32) Status {
	if f := ops.files.by[key]; f != nil && f.conflicts(access, deny) {
		ops.reaper.dropExpired(f)
		if f = ops.files.by[key]; f != nil && f.conflicts(access, deny) {
			return nfs4.NFS4ERR_SHARE_DENIED
		}
	}
	// A client with a delegation may have opens that only it knows about. Denying those
	// conflicts, too.
	write := access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0 || deny != 0
	if f := ops.files.by[key]; f != nil && ops.delegations.recallFrom(c, f, write) {
		return nfs4.NFS4ERR_DELAY
	}
	return nfs4.NFS4_OK
}

// Confirm is OPEN_CONFIRM.
func (ops *Opens) Confirm(s *nfs4.Stateid4, key Key, p Principal) (id nfs4.Stateid4, st Status) {
	ops.section.Lock()
	defer ops.section.Unlock()
	o, st := ops.clients.findOpen(nil, s, key, p)
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
func (ops *Opens) Downgrade(c *Client, s *nfs4.Stateid4, key Key, access, deny uint32, p Principal) (id nfs4.Stateid4, st Status) {
	ops.section.Lock()
	defer ops.section.Unlock()
	o, st := ops.clients.findOpen(c, s, key, p)
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
	o.reshare(a, d, left)
	return o.bump(), nfs4.NFS4_OK
}

// Close is CLOSE. Locks that are left in the open go with it (RFC 8881,
// section 18.2.3 allows it).
func (ops *Opens) Close(c *Client, s *nfs4.Stateid4, key Key, p Principal) (id nfs4.Stateid4, st Status) {
	ops.section.Lock()
	defer ops.section.Unlock()
	o, st := ops.clients.findOpen(c, s, key, p)
	if st != nfs4.NFS4_OK {
		return id, st
	}
	if c != nil {
		ops.owners.dropOpen(o)
		if len(o.owner.opens) == 0 {
			ops.owners.dropOpenOwner(o.owner)
		}
		return Invalid, nfs4.NFS4_OK
	}
	if !o.owner.confirmed {
		return id, nfs4.NFS4ERR_BAD_STATEID
	}
	for _, l := range o.locks {
		ops.owners.dropLocks(l)
	}
	ops.owners.detach(o)
	ops.owners.forgetClosed(o.owner)
	o.closed = true
	o.owner.last = o
	return o.bump(), nfs4.NFS4_OK
}
