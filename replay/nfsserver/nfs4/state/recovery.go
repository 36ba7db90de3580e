package state

import (
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

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

// recovery tells stable storage which clients have state.
type recovery struct {
	section *section
	clients *registry
	grace   *Grace
	stable  Stable      // nil: there is none
	mu      sync.Mutex  // of Stable; taken before section
	settled atomic.Bool // clients of an earlier instance were forgotten, except those that have come back
	closing bool        // records stay
}

// remember records a client, before it gets its first open. After the grace period, those that have
// reclaimed nothing are forgotten first (RFC 7530, section 9.6.3.4.2: they could reclaim what others
// have had meanwhile).
func (r *recovery) remember(c *Client) Status {
	if r.stable == nil {
		return nfs4.NFS4_OK
	}
	r.settle()
	if c.remembered.Load() {
		return nfs4.NFS4_OK
	}
	id := c.identity()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stable.Add(&id) != nil {
		return nfs4.NFS4ERR_SERVERFAULT
	}
	c.remembered.Store(true)
	// It may have been given up meanwhile.
	r.section.RLock()
	gone := c.gone
	r.section.RUnlock()
	if gone {
		r.stable.Remove(&id)
		return nfs4.NFS4ERR_EXPIRED
	}
	return nfs4.NFS4_OK
}

// settle forgets the clients of an earlier instance that have not come back.
func (r *recovery) settle() {
	if r.stable == nil || r.grace.Active() || r.settled.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.settled.Load() {
		return
	}
	r.section.Lock()
	rest := r.grace.recovering
	r.grace.recovering = nil
	for _, c := range r.clients.byTag {
		if c.remembered.Load() {
			delete(rest, c.identity())
		}
	}
	r.section.Unlock()
	for id := range rest {
		r.stable.Remove(&id)
	}
	r.settled.Store(true)
}

// drop has the record of a client that was given up removed.
func (r *recovery) drop(c *Client) {
	if c.remembered.Load() && !r.closing {
		r.section.after(func() { r.forget(c.identity()) })
	}
}

// forget removes a record, unless the client is back.
func (r *recovery) forget(id Identity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.section.RLock()
	now := r.clients.named(id.Minor, id.Owner).confirmed
	back := now != nil && now.remembered.Load() && now.identity() == id
	r.section.RUnlock()
	if !back {
		r.stable.Remove(&id)
	}
}
