package state

import (
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// owner is what open owners and lock owners have in common: a name, and in
// NFSv4.0 a seqid that puts the requests of the owner in order, with the last
// reply (RFC 7530, section 9.1.7).
type owner struct {
	client *Client
	name   string
	gone   bool  // guarded by Table.mu
	used   int64 // when it was last used, Unix time in nanoseconds

	// mu is held from the check of a seqid until the reply is kept.
	mu    sync.Mutex
	begun bool   // a seqid has been seen
	seqid uint32 // the last one
	op    uint32 // what it was used for
	reply []byte
	file  Key // the current filehandle after it
	moved bool
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

// Turn is an operation's turn in the order of an owner's requests. From NFSv4.1 on it is
// zero, since slots keep the order.
type Turn struct {
	t  *Table
	o  *owner
	oo *openOwner
	lo *lockOwner
	op uint32
	id uint32 // seqid
}

// Client is the client whose turn it is.
func (t Turn) Client() *Client { return t.oo.client }

// Replay is the kept reply for a repeated operation.
type Replay struct {
	Result []byte // valid until the turn ends
	File   Key    // the current filehandle to go on with
	Moved  bool   // File is set
}

// take waits for the owner and checks the seqid. It is called without the
// table's lock. With NFS4_OK and no Replay the operation is to be executed; its
// turn must end in each of these cases, but not with an error.
func (t *Table) take(o *owner, seqid, op uint32) (*Replay, Status) {
	o.mu.Lock()
	switch {
	case !o.begun, seqid == o.seqid+1:
		return nil, nfs4.NFS4_OK
	case seqid == o.seqid && o.reply != nil && o.op == op:
		return &Replay{Result: o.reply, File: o.file, Moved: o.moved}, nfs4.NFS4_OK
	}
	o.mu.Unlock()
	return nil, nfs4.NFS4ERR_BAD_SEQID
}

// Release ends a turn whose operation was not executed: it was a retransmission, or it failed
// with a status that does not use up the seqid.
func (t Turn) Release() {
	if t.o != nil {
		t.o.mu.Unlock()
	}
}

// End ends a turn and keeps the encoded result of the operation, from its
// status on. moved says that the operation made file the current filehandle.
func (t Turn) End(st Status, result []byte, file Key, moved bool) {
	o := t.o
	if o == nil {
		return
	}
	if counts(st) {
		o.begun, o.seqid, o.op = true, t.id, t.op
		o.reply = append(o.reply[:0], result...)
		o.file, o.moved = file, moved
	}
	o.mu.Unlock()
}

// counts reports whether an operation with this status uses up its seqid (RFC 7530, section
// 9.1.7).
func counts(st Status) bool {
	switch st {
	case nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID, nfs4.NFS4ERR_BAD_STATEID,
		nfs4.NFS4ERR_BAD_SEQID, nfs4.NFS4ERR_BADXDR, nfs4.NFS4ERR_RESOURCE,
		nfs4.NFS4ERR_NOFILEHANDLE, nfs4.NFS4ERR_MOVED:
		return false
	}
	return true
}

// idle reports whether no request of the owner is in progress.
func (o *owner) idle() bool {
	if o.mu.TryLock() {
		o.mu.Unlock()
		return true
	}
	return false
}

// Sizes of state in bytes, including map entries. Measured by TestStateMemory.
const (
	ownerCost     = 384  // an owner, without its name
	replyCost     = 1200 // the last reply to an owner of NFSv4.0: LOCK4denied with a long name
	openCost      = 640  // an open, with its stateid and its file
	lockStateCost = 384  // a lock stateid
	// A delegation, with its stateid, its file, and a CB_RECALL that waits.
	delegationCost = 896
	rangeCost      = 2 * 40 // a byte range; the array grows by doubling
	outsideCost    = 512    // what an Outsider has of a file, and the file
)

// cost is an owner's share of Limits.StateBytes.
func (o *owner) cost() int {
	n := ownerCost + len(o.name)
	if !o.client.minor {
		n += replyCost
	}
	return n
}

// chargeOwner counts a new owner of a client that has so many, if there is room for it. Owners
// that hold nothing make room. They are searched for at most once a second, so that a client at
// its limit does not keep the table busy.
func (t *Table) chargeOwner(o *owner, have int) bool {
	c := o.client
	if have < t.limits.Owners && t.charge(c, o.cost()) {
		return true
	}
	if now := t.now(); now.Sub(c.searched).Abs() >= time.Second {
		c.searched = now
		return t.dropIdle(c, true) > 0 && t.charge(c, o.cost())
	}
	return false
}

// openOwner finds or makes an open owner; nil if there are too many.
func (t *Table) openOwner(c *Client, name []byte, p Principal) *openOwner {
	o := c.openOwners[ownerKey{p, string(name)}]
	if o == nil {
		o = &openOwner{owner: owner{client: c, name: string(name)}, principal: p, confirmed: c.minor}
		if !t.chargeOwner(&o.owner, len(c.openOwners)) {
			return nil
		}
		if c.openOwners == nil {
			c.openOwners = map[ownerKey]*openOwner{}
		}
		c.openOwners[ownerKey{p, o.name}] = o
	}
	o.used = t.now().UnixNano()
	return o
}

func (t *Table) lockOwner(c *Client, name []byte) *lockOwner {
	o := c.lockOwners[string(name)]
	if o == nil {
		o = &lockOwner{owner: owner{client: c, name: string(name)}}
		if !t.chargeOwner(&o.owner, len(c.lockOwners)) {
			return nil
		}
		if c.lockOwners == nil {
			c.lockOwners = map[string]*lockOwner{}
		}
		c.lockOwners[o.name] = o
	}
	o.used = t.now().UnixNano()
	return o
}

// dropIdle drops owners that hold nothing: those that have not been used for a
// lease, or all. It returns how many.
func (t *Table) dropIdle(c *Client, all bool) int {
	n, limit := 0, t.now().Add(-t.lease).UnixNano()
	for _, o := range c.openOwners {
		if len(o.opens) == 0 && (all || o.used < limit) && o.idle() {
			t.dropOpenOwner(o)
			n++
		}
	}
	for _, o := range c.lockOwners {
		if len(o.locks) == 0 && (all || o.used < limit) && o.idle() {
			t.dropLockOwner(o)
			n++
		}
	}
	return n
}

func (t *Table) dropOpenOwner(o *openOwner) {
	for _, op := range o.opens {
		t.dropOpen(op)
	}
	t.forgetClosed(o)
	if o.gone {
		return
	}
	o.gone = true
	t.refund(o.client, o.cost())
	delete(o.client.openOwners, ownerKey{o.principal, o.name})
}

func (t *Table) dropLockOwner(o *lockOwner) {
	for _, l := range o.locks {
		t.dropLockState(l)
	}
	if o.gone {
		return
	}
	o.gone = true
	t.refund(o.client, o.cost())
	delete(o.client.lockOwners, o.name)
}

// forgetClosed drops the stateid kept for a retransmitted CLOSE.
func (t *Table) forgetClosed(o *openOwner) {
	if o.last != nil {
		t.dropState(o.last.state)
		t.refund(o.client, openCost)
		o.last = nil
	}
}
