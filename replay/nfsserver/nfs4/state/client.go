package state

import (
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Principal is the sender of a call: the flavor of the credential in the upper half, the
// user in the lower one.
type Principal uint64

// Who is the sender of a call and its address.
type Who struct {
	Principal Principal
	Source    Source
}

// Client is the record of a client. It is confirmed once the client has shown that it has
// received the client ID.
type Client struct {
	id        uint64
	minor     bool // since NFSv4.1
	owner     string
	verifier  [8]byte
	principal Principal
	source    Source
	confirmed bool
	gone      bool

	confirm [8]byte // NFSv4.0: setclientid_confirm

	// CREATE_SESSION is answered exactly once (RFC 8881, section 18.36.4).
	createSeq uint32
	created   *nfs4.CREATE_SESSION4res // answer to createSeq, nil before the first
	sessions  map[*Session]struct{}

	reclaimed  bool // RECLAIM_COMPLETE was sent
	openOwners map[ownerKey]*openOwner
	lockOwners map[string]*lockOwner
	states     map[uint32]*state
	ranges     int       // locked
	searched   time.Time // for owners that hold nothing

	caller      Caller       // nil: no callbacks
	delegations atomic.Int32 // that it has
	revoked     atomic.Int32 // delegations that it has lost and not freed
	remembered  atomic.Bool  // in stable storage

	renewed atomic.Int64 // Unix time in nanoseconds
	busy    atomic.Int32 // COMPOUNDs under way in sessions
}

// ID is the client ID on the wire.
func (c *Client) ID() uint64 { return c.id }

// tag is the random half of the client ID, by which the registry knows the client.
func (c *Client) tag() uint32 { return uint32(c.id >> 32) }

func (c *Client) identity() Identity { return Identity{c.minor, c.owner, c.verifier} }

// unreachable reports whether the client has delegations, but callbacks do not reach it.
func (c *Client) unreachable() bool {
	return c.delegations.Load() > 0 && c.caller != nil && c.caller.Down()
}

func (c *Client) hangUp() {
	if c.caller != nil {
		c.caller.Close()
	}
}

// flags are the SEQ4_STATUS flags of a client.
func (c *Client) flags() (f uint32) {
	if c.revoked.Load() > 0 {
		f |= nfs4.SEQ4_STATUS_RECALLABLE_STATE_REVOKED
	}
	if c.unreachable() {
		f |= nfs4.SEQ4_STATUS_CB_PATH_DOWN
	}
	return f
}

// Clients are the client IDs, by which clients keep their leases.
type Clients struct {
	section *section
	*registry
	leases *leases
	reaper *reaper
	grace  *Grace
}

// current returns the records of a client owner, of which the confirmed one goes if its lease
// has run out.
func (cs *Clients) current(minor bool, owner []byte) identity {
	i := cs.named(minor, string(owner))
	if i.confirmed != nil && cs.leases.expired(i.confirmed, cs.leases.now()) {
		cs.reaper.destroy(i.confirmed)
		return identity{unconfirmed: cs.named(minor, string(owner)).unconfirmed}
	}
	return i
}

// add makes an unconfirmed record; nil if its source has no room for it.
func (cs *Clients) add(c *Client) *Client {
	if !cs.reaper.makeRoom(c.source) {
		return nil
	}
	cs.leases.renew(c)
	cs.registry.add(c)
	return c
}

// Renew is RENEW of NFSv4.0.
func (cs *Clients) Renew(id uint64) Status {
	cs.section.RLock()
	defer cs.section.RUnlock()
	c, st := cs.client0(id)
	if st == nfs4.NFS4_OK {
		cs.leases.renew(c)
		if c.unreachable() {
			st = nfs4.NFS4ERR_CB_PATH_DOWN // RFC 7530, section 16.28.4
		}
	}
	return st
}

// Caller is the Caller of a client; nil if there is none.
func (cs *Clients) Caller(id uint64) Caller {
	cs.section.RLock()
	defer cs.section.RUnlock()
	if c := cs.lookup(id); c != nil {
		return c.caller
	}
	return nil
}
