package state

import (
	"crypto/subtle"
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// registry finds what the client IDs, names or stateids of clients stand for.
type registry struct {
	leases  *leases
	ids     ids
	byTag   map[uint32]*Client      // by the random half of the client ID
	byName  [2]map[string]*identity // NFSv4.0: by nfs_client_id4.id; since 4.1: by co_ownerid
	records shares                  // of Limits.Clients
}

// identity has the records of one client owner: at most one confirmed, one unconfirmed.
type identity struct {
	confirmed, unconfirmed *Client
}

func (r *registry) names(minor bool) map[string]*identity {
	if minor {
		return r.byName[1]
	}
	return r.byName[0]
}

// named returns the records of a client owner, each nil if there is none.
func (r *registry) named(minor bool, name string) identity {
	if i := r.names(minor)[name]; i != nil {
		return *i
	}
	return identity{}
}

// lookup finds a record by its ID.
func (r *registry) lookup(id uint64) *Client {
	if c := r.byTag[uint32(id>>32)]; c != nil && c.id == id {
		return c
	}
	return nil
}

// client finds a confirmed record by its ID: NFS4ERR_STALE_CLIENTID for one of
// another instance, NFS4ERR_EXPIRED for one that is no longer known.
func (r *registry) client(id uint64) (*Client, Status) {
	switch c := r.lookup(id); {
	case c != nil && c.confirmed:
		return c, nfs4.NFS4_OK
	case c == nil && !r.ids.madeClient(id):
		return nil, nfs4.NFS4ERR_STALE_CLIENTID
	}
	return nil, nfs4.NFS4ERR_EXPIRED
}

// client0 is client for the client ID in an operation of NFSv4.0.
func (r *registry) client0(id uint64) (*Client, Status) {
	c, st := r.client(id)
	if st == nfs4.NFS4_OK && c.minor {
		return nil, nfs4.NFS4ERR_STALE_CLIENTID
	}
	return c, st
}

// add gives a record an ID, and makes it the unconfirmed one of its owner.
func (r *registry) add(c *Client) {
	tag := random()
	for r.byTag[tag] != nil {
		tag = random()
	}
	c.id = r.ids.client(tag)
	r.byTag[tag] = c
	r.records.take(c.source, 1)
	names := r.names(c.minor)
	if names[c.owner] == nil {
		names[c.owner] = &identity{}
	}
	names[c.owner].unconfirmed = c
}

// confirm makes c the confirmed record of its owner. An earlier one is the caller's to destroy
// first.
func (r *registry) confirm(c *Client) {
	c.confirmed = true
	*r.names(c.minor)[c.owner] = identity{confirmed: c}
}

// replace gives u, which is to change only the callback of a confirmed record, that record's ID.
func (r *registry) replace(u *Client, id uint64) {
	delete(r.byTag, u.tag())
	u.id = id
}

// withdraw forgets a record that was to change only the callback of a confirmed one.
func (r *registry) withdraw(u *Client) {
	u.gone = true
	r.records.give(u.source, 1)
	r.names(u.minor)[u.owner].unconfirmed = nil
}

// remove forgets a record.
func (r *registry) remove(c *Client) {
	if r.byTag[c.tag()] == c {
		delete(r.byTag, c.tag())
	}
	r.records.give(c.source, 1)
	i := r.names(c.minor)[c.owner]
	if i == nil {
		return
	}
	if i.confirmed == c {
		i.confirmed = nil
		if u := i.unconfirmed; u != nil && u.id == c.id {
			r.withdraw(u)
			u.hangUp()
		}
	}
	if i.unconfirmed == c {
		i.unconfirmed = nil
	}
	if *i == (identity{}) {
		delete(r.names(c.minor), c.owner)
	}
}

// newState gives a state of a client a stateid.
func (r *registry) newState(c *Client, o *open, l *lockState) *state {
	if c.states == nil {
		c.states = map[uint32]*state{}
	}
	number := random()
	for c.states[number] != nil {
		number = random()
	}
	s := &state{client: c, other: r.ids.state(c.tag(), number), open: o, lock: l}
	c.states[number] = s
	return s
}

// find returns what a stateid stands for. c is the client of the session, nil
// for NFSv4.0, where it renews the lease. The seqid is not checked.
func (r *registry) find(c *Client, s *nfs4.Stateid4) (*state, Status) {
	owner := r.byTag[binary.BigEndian.Uint32(s.Other[:])]
	switch {
	case c != nil:
		if owner != c {
			return nil, nfs4.NFS4ERR_BAD_STATEID
		}
	case Special(s):
		return nil, nfs4.NFS4ERR_BAD_STATEID
	case owner == nil && r.ids.madeState(&s.Other):
		return nil, nfs4.NFS4ERR_EXPIRED
	case owner == nil:
		return nil, nfs4.NFS4ERR_STALE_STATEID
	case owner.minor:
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	st := owner.states[binary.BigEndian.Uint32(s.Other[4:])]
	if st == nil || subtle.ConstantTimeCompare(st.other[:], s.Other[:]) == 0 {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	if c == nil {
		r.leases.renew(owner)
	}
	return st, nfs4.NFS4_OK
}

// findOpen returns an open that is in force, for a file and a principal that may
// change it.
func (r *registry) findOpen(c *Client, s *nfs4.Stateid4, key Key, p Principal) (*open, Status) {
	st, status := r.find(c, s)
	if status != nfs4.NFS4_OK {
		return nil, status
	}
	if !st.permits(p) {
		return nil, refused(c, nfs4.OP_OPEN)
	}
	if st.lock != nil || st.delegation != nil || st.closed || st.open.file.key != key {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	return st.open, st.current(s.Seqid)
}

// findLock is findOpen for the locks of an owner.
func (r *registry) findLock(c *Client, s *nfs4.Stateid4, key Key, p Principal) (*lockState, Status) {
	found, st := r.find(c, s)
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

// findDelegation returns what a delegation's stateid stands for.
func (r *registry) findDelegation(c *Client, s *nfs4.Stateid4, key Key) (*delegation, Status) {
	if Special(s) {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	found, st := r.find(c, s)
	if st != nfs4.NFS4_OK {
		return nil, st
	}
	d := found.delegation
	switch {
	case d == nil:
		return nil, nfs4.NFS4ERR_BAD_STATEID
	case d.revoked:
		return nil, nfs4.NFS4ERR_DELEG_REVOKED
	case d.file.key != key:
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	return d, found.current(s.Seqid)
}
