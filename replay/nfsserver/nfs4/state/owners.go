package state

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// owner is what open owners and lock owners have in common.
type owner struct {
	sequencer
	client *Client
	name   string
	gone   bool
	used   int64 // when it was last used, Unix time in nanoseconds
}

// ownerKey identifies an open owner of a client. Two users have two owners, even under one name:
// neither can reach the other's opens, or disturb the order of its requests.
type ownerKey struct {
	principal Principal
	name      string
}

type openOwner struct {
	owner
	principal Principal
	confirmed bool
	opens     map[Key]*open
	// last is the most recently closed open, for a retransmitted CLOSE.
	last *open
}

type lockOwner struct {
	owner
	locks map[*open]*lockState
}

// cost is an owner's share of Limits.StateBytes.
func (o *owner) cost() int {
	n := ownerCost + len(o.name)
	if !o.client.minor {
		n += replyCost
	}
	return n
}

// owners keep what clients have open or locked.
type owners struct {
	clients *registry
	leases  *leases
	files   *files
	budget  *budget
	waiters *waiters
}

// chargeOwner counts a new owner of a client that has some already, if there is room for it. Owners
// that hold nothing make room. They are searched for at most once a second, so that a client at
// its limit does not keep the table busy.
func (os *owners) chargeOwner(o *owner, have int) bool {
	c := o.client
	if have < os.budget.limits.Owners && os.budget.charge(c, o.cost()) {
		return true
	}
	if now := os.leases.now(); now.Sub(c.searched).Abs() >= time.Second {
		c.searched = now
		return os.dropIdle(c, true) > 0 && os.budget.charge(c, o.cost())
	}
	return false
}

// openOwner finds or makes an open owner; nil if there are too many.
func (os *owners) openOwner(c *Client, name []byte, p Principal) *openOwner {
	o := c.openOwners[ownerKey{p, string(name)}]
	if o == nil {
		o = &openOwner{owner: owner{client: c, name: string(name)}, principal: p, confirmed: c.minor}
		if !os.chargeOwner(&o.owner, len(c.openOwners)) {
			return nil
		}
		if c.openOwners == nil {
			c.openOwners = map[ownerKey]*openOwner{}
		}
		c.openOwners[ownerKey{p, o.name}] = o
	}
	o.used = os.leases.now().UnixNano()
	return o
}

func (os *owners) lockOwner(c *Client, name []byte) *lockOwner {
	o := c.lockOwners[string(name)]
	if o == nil {
		o = &lockOwner{owner: owner{client: c, name: string(name)}}
		if !os.chargeOwner(&o.owner, len(c.lockOwners)) {
			return nil
		}
		if c.lockOwners == nil {
			c.lockOwners = map[string]*lockOwner{}
		}
		c.lockOwners[o.name] = o
	}
	o.used = os.leases.now().UnixNano()
	return o
}

// dropIdle drops owners that hold nothing: those that have not been used for a
// lease, or all. It returns how many.
func (os *owners) dropIdle(c *Client, all bool) int {
	n, limit := 0, os.leases.now().Add(-os.leases.length).UnixNano()
	for _, o := range c.openOwners {
		if len(o.opens) == 0 && (all || o.used < limit) && o.idle() {
			os.dropOpenOwner(o)
			n++
		}
	}
	for _, o := range c.lockOwners {
		if len(o.locks) == 0 && (all || o.used < limit) && o.idle() {
			os.dropLockOwner(o)
			n++
		}
	}
	return n
}

func (os *owners) dropOpenOwner(o *openOwner) {
	for _, op := range o.opens {
		os.dropOpen(op)
	}
	os.forgetClosed(o)
	if o.gone {
		return
	}
	o.gone = true
	os.budget.refund(o.client, o.cost())
	delete(o.client.openOwners, ownerKey{o.principal, o.name})
}

func (os *owners) dropLockOwner(o *lockOwner) {
	for _, l := range o.locks {
		os.dropLocks(l)
	}
	if o.gone {
		return
	}
	o.gone = true
	os.budget.refund(o.client, o.cost())
	delete(o.client.lockOwners, o.name)
}

// forgetClosed drops the stateid kept for a retransmitted CLOSE.
func (os *owners) forgetClosed(o *openOwner) {
	if o.last != nil {
		o.last.drop()
		os.budget.refund(o.client, openCost)
		o.last = nil
	}
}

// newOpen makes an open that shares nothing yet. There is room for it, and its file is held.
func (os *owners) newOpen(o *openOwner, f *file) *open {
	n := &open{owner: o, file: f}
	n.state = os.clients.newState(o.client, n, nil)
	f.opens[n] = struct{}{}
	if o.opens == nil {
		o.opens = map[Key]*open{}
	}
	o.opens[f.key] = n
	return n
}

// dropOpen closes a file with the locks in it.
func (os *owners) dropOpen(o *open) {
	for _, l := range o.locks {
		os.dropLocks(l)
	}
	o.drop()
	os.budget.refund(o.client, openCost)
	os.detach(o)
}

// detach takes an open from its file and its owner.
func (os *owners) detach(o *open) {
	f := o.file
	f.count(o.access, o.deny, -1)
	delete(f.opens, o)
	delete(o.owner.opens, f.key)
	o.owner.used = os.leases.now().UnixNano() // a CLOSE may be sent again for a lease from now on
	os.files.release(f)
}

// lockState finds or makes the lock state of an owner in an open.
func (os *owners) lockState(c *Client, o *open, n *nfs4.OpenToLockOwner4) (*lockState, Status) {
	lo := os.lockOwner(o.client, n.LockOwner.Owner)
	if lo == nil {
		return nil, resource(c == nil)
	}
	if c == nil {
		// The open owner's seqid has ordered this request. The lock owner's seqid starts here.
		if !lo.start(n.LockSeqid) {
			return nil, nfs4.NFS4ERR_DELAY // another request of it is under way
		}
	}
	if l := o.locks[lo]; l != nil {
		return l, nfs4.NFS4_OK
	}
	if !os.budget.chargeState(o.client, lockStateCost) {
		return nil, resource(c == nil)
	}
	l := &lockState{owner: lo, open: o}
	l.state = os.clients.newState(o.client, o, l)
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

// countRanges counts n more byte ranges of a client.
func (os *owners) countRanges(c *Client, n int) {
	c.ranges += n
	os.budget.countRanges(c.source, n)
}

// drop drops all that a client has open or locked.
func (os *owners) drop(c *Client) {
	for _, o := range c.openOwners {
		os.dropOpenOwner(o)
	}
	for _, o := range c.lockOwners {
		os.dropLockOwner(o)
	}
}

// tidy drops owners that have held nothing for a lease; they are kept for repeated requests.
func (os *owners) tidy(c *Client, _ time.Time) { os.dropIdle(c, false) }

// dropLocks gives up what an owner has locked through an open.
func (os *owners) dropLocks(l *lockState) {
	os.countRanges(l.client, -l.open.file.locks.drop(l.owner))
	os.waiters.freed(l.open.file.key)
	l.drop()
	os.budget.refund(l.client, lockStateCost)
	delete(l.open.locks, l.owner)
	delete(l.owner.locks, l.open)
	l.owner.used = os.leases.now().UnixNano()
	if l.client.minor && len(l.owner.locks) == 0 {
		os.dropLockOwner(l.owner)
	}
}
