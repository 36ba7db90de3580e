package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

// Identity is a client across restarts of the server, as long as the client itself does
// not restart.
type Identity struct {
	Minor    bool // since NFSv4.1
	Owner    string
	Verifier [8]byte
}

// Stable remembers the clients that have state. Its methods are called without a lock,
// and one after the other for a client.
type Stable interface {
	// Add is called before a client gets its first open.
	Add(id *Identity) error
	// Remove is called when the server has given up a client.
	Remove(id *Identity)
}

func (c *Client) identity() Identity {
	return Identity{c.minor, c.owner, c.verifier}
}

// recover prepares the grace period for clients of an earlier instance.
func (t *Table) recover(clients []Identity, hosts bool) {
	if t.stable == nil {
		return
	}
	t.hosts = hosts
	t.recovering = map[Identity]bool{}
	for _, id := range clients {
		t.recovering[id] = false
	}
	if len(clients) == 0 && !hosts {
		t.graceEnd = t.now() // nobody has anything to reclaim
	} else if t.graceEnd.IsZero() {
		t.graceEnd = t.now().Add(t.lease)
	}
	t.grace.Store(t.graceEnd.UnixNano())
}

// mayReclaim reports whether a client had state before the restart. Without stable storage, every
// client is believed.
func (t *Table) mayReclaim(c *Client) bool {
	if t.stable == nil {
		return true
	}
	_, known := t.recovering[c.identity()]
	return known
}

// late gives clients that have come back time to reclaim: the grace period lasts for another half of
// a lease from now on, and twice as long as it would have at most. Linux does likewise. Nobody who
// reclaims is refused because the server was slow, or many came at once.
func (t *Table) late() {
	now := t.now()
	want := min(now.Add(t.lease/2).UnixNano(), t.graceEnd.Add(t.lease).UnixNano())
	for {
		end := t.grace.Load()
		if end <= now.UnixNano() || end >= want || t.grace.CompareAndSwap(end, want) {
			return
		}
	}
}

// reclaimedAll notes that a client has reclaimed what it wants. The grace period ends
// with the last one. mu is held.
func (t *Table) reclaimedAll(c *Client) {
	if _, known := t.recovering[c.identity()]; !known {
		return
	}
	t.recovering[c.identity()] = true
	for _, done := range t.recovering {
		if !done {
			return
		}
	}
	if t.hosts {
		return
	}
	t.grace.Store(t.now().UnixNano())
}

// Remember records the client whose turn it is in stable storage, before it gets its first open.
// After the grace period, those that have reclaimed nothing are forgotten first (RFC 7530,
// section 9.6.3.4.2: they could reclaim what others have had meanwhile).
func (t *Table) Remember(turn Turn) Status {
	if t.stable == nil {
		return nfs4.NFS4_OK
	}
	t.forgetOthers()
	c := turn.oo.client
	if c.remembered.Load() {
		return nfs4.NFS4_OK
	}
	id := c.identity()
	t.stableMu.Lock()
	defer t.stableMu.Unlock()
	if t.stable.Add(&id) != nil {
		return nfs4.NFS4ERR_SERVERFAULT
	}
	c.remembered.Store(true)
	// It may have been given up meanwhile.
	t.mu.RLock()
	gone := c.gone
	t.mu.RUnlock()
	if gone {
		t.stable.Remove(&id)
		return nfs4.NFS4ERR_EXPIRED
	}
	return nfs4.NFS4_OK
}

// forgetOthers forgets the clients of an earlier instance that have not come back.
func (t *Table) forgetOthers() {
	if t.InGrace() || t.settled.Load() {
		return
	}
	t.stableMu.Lock()
	defer t.stableMu.Unlock()
	if t.settled.Load() {
		return
	}
	t.mu.Lock()
	rest := t.recovering
	t.recovering = nil
	for _, c := range t.clients {
		if c.remembered.Load() {
			delete(rest, c.identity())
		}
	}
	t.mu.Unlock()
	for id := range rest {
		t.stable.Remove(&id)
	}
	t.settled.Store(true)
}

// forget removes the records of clients that were given up.
func (t *Table) forget(ids []Identity) {
	t.stableMu.Lock()
	defer t.stableMu.Unlock()
	for i := range ids {
		t.mu.RLock()
		now := t.identities(ids[i].Minor)[ids[i].Owner]
		back := now != nil && now.confirmed != nil && now.confirmed.remembered.Load() && now.confirmed.identity() == ids[i]
		t.mu.RUnlock()
		if !back {
			t.stable.Remove(&ids[i])
		}
	}
}
