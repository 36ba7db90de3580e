package state

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Principal is the sender of a call: the flavor of the credential in the upper half, the
// user in the lower one.
type Principal uint64

// Client is the record of a client. It is confirmed once the client has shown that it has
// received the client ID.
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
	sessions  map[*Session]struct{}

	reclaimed  bool // RECLAIM_COMPLETE was sent
	openOwners map[ownerKey]*openOwner
	lockOwners map[string]*lockOwner
	states     map[uint32]*state
	ranges     int // locked
	source     Source
	charged    int       // of Limits.StateBytes
	searched   time.Time // for owners that hold nothing

	caller      Caller       // nil: no callbacks
	delegations atomic.Int32 // that it has
	revoked     atomic.Int32 // delegations that it has lost and not freed
	remembered  atomic.Bool  // in stable storage

	renewed atomic.Int64 // Unix time in nanoseconds
	busy    atomic.Int32 // COMPOUNDs under way in sessions
}

// identity has the records of one client owner: at most one confirmed, one unconfirmed.
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

// tag is the random half of the client ID, by which the table knows the client.
func (c *Client) tag() uint32 { return uint32(c.id >> 32) }

// lookup finds a record by its ID.
func (t *Table) lookup(id uint64) *Client {
	if c := t.clients[uint32(id>>32)]; c != nil && c.id == id {
		return c
	}
	return nil
}

// Who is the sender of a call and its address.
type Who struct {
	Principal Principal
	Source    Source
}

// newClient makes an unconfirmed record; nil if its source has no room for it.
func (t *Table) newClient(minor bool, owner []byte, verifier [8]byte, w Who, caller Caller) *Client {
	if !t.makeRoom(w.Source) {
		return nil
	}
	tag := random()
	for t.clients[tag] != nil {
		tag = random()
	}
	c := &Client{id: t.ids.client(tag), minor: minor, owner: string(owner), verifier: verifier, principal: w.Principal, source: w.Source, caller: caller}
	t.records.take(w.Source, 1)
	t.renew(c)
	t.clients[tag] = c
	ids := t.identities(minor)
	i := ids[c.owner]
	if i == nil {
		i = &identity{}
		ids[c.owner] = i
	}
	i.unconfirmed = c
	return c
}

// makeRoom makes room for one more record of a source. Expired records go first, then those that
// their clients can make again without a loss: unconfirmed records, and records without opens and
// locks, the longest silent first. They are the source's own, or, if it has none, those of the
// source with the most. Nobody loses opens or locks.
func (t *Table) makeRoom(from Source) bool {
	now := t.now()
	switch {
	case t.records.room(from) > 0:
		return true
	case from == t.fullOf && now.Sub(t.fullAt).Abs() < fullFor:
		return false
	}
	t.reap(false, 0)
	if t.records.room(from) > 0 {
		return true
	}
	of := from
	if t.records.by[of] == 0 {
		of = t.records.greediest()
	}
	// Several at a time, so that a flood of newcomers does not search all
	// records for each of them.
	if t.evict(of, nil, false, t.records.by[of]/64+1) > 0 {
		return true
	}
	t.fullOf, t.fullAt = from, now
	return false
}

// fullFor is how long a source without room is not searched again.
const fullFor = 100 * time.Millisecond

// evict drops at most n records of a source that hold neither opens nor locks, except spare; if
// sessions is set, only those with sessions. It returns how many.
func (t *Table) evict(from Source, spare *Client, sessions bool, n int) int {
	var idle []*Client
	for _, c := range t.clients {
		if c != spare && c.source == from && len(c.states) == 0 && c.busy.Load() == 0 && (!sessions || len(c.sessions) > 0) {
			idle = append(idle, c)
		}
	}
	slices.SortFunc(idle, func(a, b *Client) int {
		if a.confirmed != b.confirmed {
			if b.confirmed {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.renewed.Load(), b.renewed.Load())
	})
	idle = idle[:min(n, len(idle))]
	for _, c := range idle {
		t.destroy(c)
	}
	return len(idle)
}

// charge counts n bytes of a client's state, if its source has room for them.
func (t *Table) charge(c *Client, n int) bool {
	if !t.memory.take(c.source, n) && (!t.glean() || c.gone || !t.memory.take(c.source, n)) {
		return false
	}
	c.charged += n
	return true
}

// glean drops clients whose lease has run out, to make room; at most once a second.
func (t *Table) glean() bool {
	now := t.now()
	if t.courtesy == 0 || now.Sub(t.gleaned).Abs() < time.Second {
		return false
	}
	t.gleaned = now
	t.reap(false, 0)
	return true
}

func (t *Table) refund(c *Client, n int) {
	t.memory.give(c.source, n)
	c.charged -= n
}

// setConfirmed makes c the confirmed record of its owner. An earlier one is the
// caller's to destroy first.
func (t *Table) setConfirmed(c *Client) {
	i := t.identities(c.minor)[c.owner]
	c.confirmed = true
	i.confirmed, i.unconfirmed = c, nil
	if done, known := t.recovering[c.identity()]; known && !done {
		t.late()
	}
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
	for _, s := range c.states {
		if s.delegation != nil {
			t.dropDelegation(s.delegation)
		}
	}
	c.states, c.openOwners, c.lockOwners = nil, nil, nil
	t.dropSessions(c)
	if c.remembered.Load() && !t.closing {
		t.erased = append(t.erased, c.identity())
	}
	if c.caller != nil {
		c.caller.Close()
	}
	if t.clients[c.tag()] == c {
		delete(t.clients, c.tag())
	}
	t.records.give(c.source, 1)
	ids := t.identities(c.minor)
	if i := ids[c.owner]; i != nil {
		if i.confirmed == c {
			i.confirmed = nil
			if u := i.unconfirmed; u != nil && u.id == c.id {
				// It was meant to change the callback of c.
				u.gone = true
				t.records.give(u.source, 1)
				i.unconfirmed = nil
				if u.caller != nil {
					u.caller.Close()
				}
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

// expired reports whether a lease has run out. It does not run out while a COMPOUND of the client
// is executed (RFC 8881, section 8.3).
func (t *Table) expired(c *Client, now time.Time) bool {
	return c.busy.Load() == 0 && now.UnixNano()-c.renewed.Load() > int64(t.lease)
}

// reap drops clients whose lease has run out; those that hold state only after courtesy. If
// owners is set, it also drops owners that have held nothing for that long, which are kept for
// repeated requests.
func (t *Table) reap(owners bool, courtesy time.Duration) {
	now := t.now()
	for _, c := range t.clients {
		if t.expired(c, now) {
			if len(c.states) == 0 || t.expired(c, now.Add(-courtesy)) {
				t.destroy(c)
			}
		} else if owners {
			t.dropIdle(c, false)
			t.revokeOverdue(c, now)
		}
	}
}

// revokeOverdue revokes the delegations that a client has not returned within a lease of their
// recall.
func (t *Table) revokeOverdue(c *Client, now time.Time) {
	if c.delegations.Load() == 0 {
		return
	}
	for _, s := range c.states {
		if d := s.delegation; d != nil && !d.revoked && t.overdue(d, now) {
			t.revoke(d)
		}
	}
}

// Reap drops what belongs to clients that have been silent for longer than a
// lease, or after Options.Courtesy. It must be called from time to time.
func (t *Table) Reap() {
	t.mu.Lock()
	t.reap(true, t.courtesy)
	t.unlock()
	if t.stable != nil {
		t.forgetOthers()
	}
}

// client finds a confirmed record by its ID: NFS4ERR_STALE_CLIENTID for one of
// another instance, NFS4ERR_EXPIRED for one that is no longer known.
func (t *Table) client(id uint64) (*Client, Status) {
	switch c := t.lookup(id); {
	case c != nil && c.confirmed:
		return c, nfs4.NFS4_OK
	case c == nil && !t.ids.madeClient(id):
		return nil, nfs4.NFS4ERR_STALE_CLIENTID
	}
	return nil, nfs4.NFS4ERR_EXPIRED
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
		if c.delegations.Load() > 0 && c.caller != nil && c.caller.Down() {
			st = nfs4.NFS4ERR_CB_PATH_DOWN // RFC 7530, section 16.28.4
		}
	}
	return st
}
