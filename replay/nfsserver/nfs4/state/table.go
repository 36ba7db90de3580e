package state

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// Limits bound what clients can make the server remember. Zero fields stand
// for the defaults.
type Limits struct {
	// Clients is how many client records there may be, confirmed or not: 8192.
	// A source has at most half of what the others leave; the same holds for
	// CacheBytes and StateBytes.
	Clients  int
	Sessions int // of one client: 16
	Slots    int // of one session: 128
	Owners   int // open owners and, separately, lock owners of one client: 65536
	Opens    int // opens and lock stateids of one client: 262144
	Ranges   int // byte ranges locked by one client: 16384
	// FileRanges is how many byte ranges of one file are locked by all
	// clients: 32768.
	FileRanges int
	// StateBytes is how much memory all owners, opens and locks may take, by an upper
	// estimate: 256 MiB.
	StateBytes int
	// Delegations is how many delegations all clients may have: 65536.
	Delegations int
	// Ops is how many operations a COMPOUND may have: 64.
	Ops int
	// Request and Reply are the largest messages of a session in bytes, RPC
	// headers included; Cached is the largest reply that a slot keeps. 1 MiB
	// of data and 8 KiB of everything else; 8 KiB.
	Request, Reply, Cached int
	// CacheBytes is how much the slots of all sessions keep together: 256 MiB.
	// New sessions get fewer slots when it becomes scarce.
	CacheBytes int
}

func (l *Limits) defaults() {
	for _, d := range []struct {
		v *int
		n int
	}{
		{&l.Clients, 8192}, {&l.Sessions, 16}, {&l.Slots, 128}, {&l.Owners, 1 << 16},
		{&l.Opens, 1 << 18}, {&l.Ranges, 1 << 14}, {&l.FileRanges, 1 << 15}, {&l.StateBytes, 256 << 20}, {&l.Delegations, 1 << 16}, {&l.Ops, 64},
		{&l.Request, 1<<20 + 8<<10}, {&l.Reply, 1<<20 + 8<<10}, {&l.Cached, 8 << 10}, {&l.CacheBytes, 256 << 20},
	} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
}

// Options are the choices of a Table.
type Options struct {
	// Lease is how long state is kept for a client that is silent: 90 s.
	Lease time.Duration
	// Courtesy is how long after its lease has run out a client keeps its opens, locks and
	// delegations, unless they conflict with another client or their room is needed. 0 is until
	// Reap.
	Courtesy time.Duration
	// Grace is how long after the start only reclaims are answered; 0 is no
	// grace period, reclaims are then refused.
	Grace  time.Duration
	Limits Limits
	// Stable, if set, remembers the clients that have state. Recovered are those that an
	// earlier instance has remembered: they may reclaim, in a grace period of a lease or
	// of Grace. It ends when all clients that can report completion have done so. Without Stable,
	// all clients may reclaim.
	Stable    Stable
	Recovered []Identity
	// RecoveredHosts: there are also NFSv3 hosts that may reclaim locks, so that the grace period
	// lasts to its end. Nobody knows when they have reclaimed all.
	RecoveredHosts bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Hold is called when a file is opened, and Unhold once for each Hold, when that open is
	// gone. Both may be nil.
	Hold   func(Key) error
	Unhold func(Key)
}

// Table is the state of a server. Its methods may be called from any goroutine.
type Table struct {
	lease    time.Duration
	courtesy time.Duration
	gleaned  time.Time    // when expired clients were last dropped to make room
	graceEnd time.Time    // without clients that are late
	grace    atomic.Int64 // when the grace period ends, Unix time in nanoseconds; 0: there is none
	limits   Limits
	stable   Stable
	stableMu sync.Mutex  // of Stable; taken before mu
	settled  atomic.Bool // clients of an earlier instance were forgotten, except those that have come back
	now      func() time.Time
	boot     uint32
	ids      ids
	hold     func(Key) error
	unhold   func(Key)

	// mu guards everything but sessions and slots. It is not held while files are accessed. I/O
	// only reads under it.
	mu       sync.RWMutex
	clients  map[uint32]*Client   // by the random half of the client ID
	records  shares               // of Limits.Clients
	memory   shares               // of Limits.StateBytes
	fullOf   Source               // had no room for a record
	fullAt   time.Time            // when
	byOwner0 map[string]*identity // NFSv4.0, by nfs_client_id4.id
	byOwner1 map[string]*identity // since 4.1, by co_ownerid
	files    map[Key]*file
	let      []Key      // to be unheld when mu is free
	recalls  []recall   // to be sent when mu is free
	erased   []Identity // to be forgotten when mu is free
	free     []Key      // of which somebody waits for ranges; told when mu is free
	waited   map[Key]int
	onFree   func(Key)
	closing  bool
	// recovering has the clients that may reclaim, and whether they have.
	recovering map[Identity]bool
	hosts      bool // NFSv3 hosts may reclaim, too

	delegationShares shares // of Limits.Delegations
	contended        contention
	delegated        atomic.Int64              // delegations that are not revoked
	changing         [changeCells]atomic.Int32 // changes in progress, by a hash of the file

	cache shares // of Limits.CacheBytes, reserved by sessions

	sessionsMu sync.RWMutex
	sessions   map[SessionID]*Session
}

// Key names a file: two names of the same file have the same key.
type Key = store.Handle

// SessionID is sessionid4.
type SessionID [16]byte

// New returns an empty table.
func New(o Options) *Table {
	if o.Lease <= 0 {
		o.Lease = 90 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Limits.defaults()
	t := &Table{
		lease: o.Lease, courtesy: o.Courtesy, limits: o.Limits, now: o.Now, boot: random(), ids: newIDs(),
		clients:  map[uint32]*Client{},
		byOwner0: map[string]*identity{},
		byOwner1: map[string]*identity{},
		hold:     o.Hold, unhold: o.Unhold,
		files:    map[Key]*file{},
		sessions: map[SessionID]*Session{},
		records:  shares{limit: o.Limits.Clients},
		memory:   shares{limit: o.Limits.StateBytes},
		cache:    shares{limit: o.Limits.CacheBytes},

		delegationShares: shares{limit: o.Limits.Delegations},
	}
	if o.Grace > 0 {
		t.graceEnd = o.Now().Add(o.Grace)
		t.grace.Store(t.graceEnd.UnixNano())
	}
	t.stable = o.Stable
	t.recover(o.Recovered, o.RecoveredHosts)
	return t
}

// Lease is how long state is kept for a silent client.
func (t *Table) Lease() time.Duration { return t.lease }

// Limits are the limits in force.
func (t *Table) Limits() Limits { return t.limits }

// Boot is a random number that distinguishes this instance of the server from others.
func (t *Table) Boot() uint32 { return t.boot }

// InGrace reports whether only reclaims are answered.
func (t *Table) InGrace() bool {
	end := t.grace.Load()
	return end != 0 && t.now().UnixNano() < end
}

// Status is shorthand: the package returns statuses of the protocol.
type Status = nfs4.Nfsstat4

// Counts is how much a table holds.
type Counts struct {
	Clients, Sessions, Opens, LockStates, Delegations, Ranges, Files, Owners int
	Names                                                                    int // of clients
}

// Counts returns how much the table holds now.
func (t *Table) Counts() Counts {
	t.mu.RLock()
	c := Counts{Clients: len(t.clients), Files: len(t.files), Names: len(t.byOwner0) + len(t.byOwner1)}
	for _, f := range t.files {
		c.Opens += len(f.opens)
		c.Ranges += len(f.locks.held)
	}
	for _, cl := range t.clients {
		c.Owners += len(cl.openOwners) + len(cl.lockOwners)
		for _, s := range cl.states {
			if s.lock != nil {
				c.LockStates++
			}
			if s.delegation != nil {
				c.Delegations++
			}
		}
	}
	t.mu.RUnlock()
	t.sessionsMu.RLock()
	c.Sessions = len(t.sessions)
	t.sessionsMu.RUnlock()
	return c
}

// unlock ends a change: it unlocks mu, then sends the recalls, and releases what was
// closed.
func (t *Table) unlock() {
	let, recalls, erased, free := t.let, t.recalls, t.erased, t.free
	t.let, t.recalls, t.erased, t.free = nil, nil, nil, nil
	t.mu.Unlock()
	if len(erased) > 0 {
		t.forget(erased)
	}
	for _, r := range recalls {
		r.to.Recall(r.id, r.key)
	}
	for _, k := range let {
		t.unhold(k)
	}
	for _, k := range free {
		t.onFree(k)
	}
}

// Close drops everything. Records in stable storage stay.
func (t *Table) Close() {
	t.mu.Lock()
	defer t.unlock()
	t.closing = true
	for _, c := range t.clients {
		t.destroy(c)
	}
}
