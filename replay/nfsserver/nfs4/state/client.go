package state

import (
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Principal is who sent a call: the flavor of the credential in the upper half,
// the user in the lower one.
type Principal uint64

// Client is the record of a client. It is confirmed once the client has shown
// that it got the client ID.
type Client struct {
	id        uint64
	minor     bool // since NFSv4.1
	owner     string
	verifier  [8]byte
	principal Principal
	confirmed bool
	gone      bool

	confirm [8]byte // NFSv4.0: setclientid_confirm

	// CREATE_SESSION is answered exactly once (RFC 8881, section 18.36.4).
	createSeq uint32
	created   *nfs4.CREATE_SESSION4res // answer to createSeq, nil before the first
	sessions  int

	reclaimed  bool // RECLAIM_COMPLETE was sent
	openOwners map[string]*openOwner
	lockOwners map[string]*lockOwner
	states     map[uint32]*state
	nextState  uint32
	ranges     int // locked

	renewed atomic.Int64 // Unix time in nanoseconds
	busy    atomic.Int32 // COMPOUNDs under way in sessions
}

// identity are the records of one client owner: at most one of each.
type identity struct {
	confirmed, unconfirmed *Client
}

// ID is the client ID on the wire.
func (c *Client) ID() uint64 { return c.id }

func (t *Table) identities(minor bool) map[string]*identity {
	if minor {
		return t.byOwner1
	}
	return t.byOwner0
}

// newClient makes an unconfirmed record; nil if there are too many records.
func (t *Table) newClient(minor bool, owner []byte, verifier [8]byte, p Principal) *Client {
	if len(t.clients) >= t.limits.Clients {
		t.reap(false)
		if len(t.clients) >= t.limits.Clients && !t.evictUnconfirmed() {
			return nil
		}
	}
	for {
		t.nextID++
		if t.clients[uint64(t.boot)<<32|uint64(t.nextID)] == nil {
			break
		}
	}
	c := &Client{id: uint64(t.boot)<<32 | uint64(t.nextID), minor: minor, owner: string(owner), verifier: verifier, principal: p}
	t.renew(c)
	t.clients[c.id] = c
	ids := t.identities(minor)
	i := ids[c.owner]
	if i == nil {
		i = &identity{}
		ids[c.owner] = i
	}
	i.unconfirmed = c
	return c
}

// evictUnconfirmed makes room by dropping the unconfirmed record that is
// oldest. Whoever floods the server with names only drives out the like.
func (t *Table) evictUnconfirmed() bool {
	var oldest *Client
	for _, c := range t.clients {
		if !c.confirmed && (oldest == nil || c.renewed.Load() < oldest.renewed.Load()) {
			oldest = c
		}
	}
	if oldest == nil {
		return false
	}
	t.destroy(oldest)
	return true
}

// setConfirmed makes c the confirmed record of its owner. An earlier one is the
// caller's to destroy first.
func (t *Table) setConfirmed(c *Client) {
	i := t.identities(c.minor)[c.owner]
	c.confirmed = true
	i.confirmed, i.unconfirmed = c, nil
	t.renew(c)
}

// destroy drops a record with all that it holds.
func (t *Table) destroy(c *Client) {
	if c.gone {
		return
	}
	c.gone = true
	for _, o := range c.openOwners {
		t.dropOpenOwner(o)
	}
	for _, o := range c.lockOwners {
		t.dropLockOwner(o)
	}
	c.states, c.openOwners, c.lockOwners = nil, nil, nil
	if c.sessions > 0 {
		t.dropSessions(c)
	}
	if t.clients[c.id] == c {
		delete(t.clients, c.id)
	}
	ids := t.identities(c.minor)
	if i := ids[c.owner]; i != nil {
		if i.confirmed == c {
			i.confirmed = nil
			if u := i.unconfirmed; u != nil && u.id == c.id {
				i.unconfirmed = nil // it was to change the callback of c
			}
		}
		if i.unconfirmed == c {
			i.unconfirmed = nil
		}
		if i.confirmed == nil && i.unconfirmed == nil {
			delete(ids, c.owner)
		}
	}
}

func (t *Table) renew(c *Client) { c.renewed.Store(t.now().UnixNano()) }

// expired reports whether a lease has run out. It does not while a COMPOUND of
// the client is under way (RFC 8881, section 8.3).
func (t *Table) expired(c *Client, now time.Time) bool {
	return c.busy.Load() == 0 && now.UnixNano()-c.renewed.Load() > int64(t.lease)
}

// reap drops the clients whose lease has run out and, if owners is set, owners
// that have held nothing for so long. Those are kept for requests sent again.
func (t *Table) reap(owners bool) {
	now := t.now()
	for _, c := range t.clients {
		if t.expired(c, now) {
			t.destroy(c)
		} else if owners && !c.minor {
			t.dropIdle(c, false)
		}
	}
}

// Reap drops what belongs to clients that have been silent for longer than a
// lease. It is to be called now and then.
func (t *Table) Reap() {
	t.mu.Lock()
	t.reap(true)
	t.unlock()
}

// client finds a confirmed record by its ID: NFS4ERR_STALE_CLIENTID for one of
// another instance, NFS4ERR_EXPIRED for one that is not known any more.
func (t *Table) client(id uint64) (*Client, Status) {
	if uint32(id>>32) != t.boot {
		return nil, nfs4.NFS4ERR_STALE_CLIENTID
	}
	c := t.clients[id]
	if c == nil || !c.confirmed {
		return nil, nfs4.NFS4ERR_EXPIRED
	}
	return c, nfs4.NFS4_OK
}

// Renew is RENEW of NFSv4.0.
func (t *Table) Renew(id uint64) Status {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c, st := t.client(id)
	if st == nfs4.NFS4_OK && c.minor {
		st = nfs4.NFS4ERR_STALE_CLIENTID
	}
	if st == nfs4.NFS4_OK {
		t.renew(c)
	}
	return st
}
