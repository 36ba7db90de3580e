package state

import (
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

// Table is the state of a server. The methods of its parts may be called from any goroutine.
type Table struct {
	Clients     *Clients
	Sessions    *Sessions
	Stateids    *Stateids
	Opens       *Opens
	Locks       *Locks
	Delegations *Delegations
	Outsiders   *Outsiders
	Grace       *Grace

	limits   Limits
	boot     uint32
	section  *section // of everything but sessions and slots; I/O only reads under it
	leases   *leases
	clients  *registry
	reaper   *reaper
	files    *files
	recovery *recovery
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
		limits: o.Limits, boot: random(), section: &section{},
		leases: &leases{length: o.Lease, now: o.Now},
	}
	limits, mu := &t.limits, t.section
	t.Grace = &Grace{leases: t.leases}
	t.Grace.begin(&o)
	t.clients = &registry{
		leases: t.leases, ids: newIDs(), records: shares{limit: limits.Clients},
		byTag: map[uint32]*Client{}, byName: [2]map[string]*identity{{}, {}},
	}
	t.reaper = &reaper{leases: t.leases, clients: t.clients, courtesy: o.Courtesy}
	t.recovery = &recovery{section: mu, clients: t.clients, grace: t.Grace, stable: o.Stable}
	t.files = &files{section: mu, by: map[Key]*file{}, hold: o.Hold, unhold: o.Unhold}
	memory := &budget{shares: shares{limit: limits.StateBytes}, limits: limits, glean: t.reaper.glean}
	waiting := &waiters{section: mu}
	own := &owners{clients: t.clients, leases: t.leases, files: t.files, budget: memory, waiters: waiting}

	t.Clients = &Clients{section: mu, registry: t.clients, leases: t.leases, reaper: t.reaper, grace: t.Grace}
	t.Sessions = &Sessions{
		section: mu, clients: t.clients, leases: t.leases, reaper: t.reaper, grace: t.Grace, limits: limits,
		cache: shares{limit: limits.CacheBytes}, byID: map[SessionID]*Session{},
	}
	t.Delegations = &Delegations{
		section: mu, clients: t.clients, files: t.files, budget: memory, reaper: t.reaper, waiters: waiting, grace: t.Grace, leases: t.leases,
		shares: shares{limit: limits.Delegations}, contended: contention{seed: t.boot}, changes: changes{seed: t.boot},
	}
	t.Stateids = &Stateids{section: mu, clients: t.clients, files: t.files, grace: t.Grace, owners: own, delegations: t.Delegations}
	t.Opens = &Opens{
		section: mu, clients: t.clients, owners: own, files: t.files, budget: memory, reaper: t.reaper,
		delegations: t.Delegations, grace: t.Grace, recovery: t.recovery,
	}
	t.Locks = &Locks{section: mu, clients: t.clients, owners: own, files: t.files, budget: memory, reaper: t.reaper, waiters: waiting, grace: t.Grace}
	t.Outsiders = &Outsiders{section: mu, files: t.files, budget: memory, reaper: t.reaper, delegations: t.Delegations, waiters: waiting}

	t.reaper.drop = []func(*Client){own.drop, t.Delegations.drop, t.Sessions.drop, t.recovery.drop}
	t.reaper.tidy = []func(*Client, time.Time){own.tidy, t.Delegations.tidy}
	return t
}

// Lease is how long state is kept for a silent client.
func (t *Table) Lease() time.Duration { return t.leases.length }

// Limits are the limits in force.
func (t *Table) Limits() Limits { return t.limits }

// Boot is a random number that distinguishes this instance of the server from others.
func (t *Table) Boot() uint32 { return t.boot }

// Status is shorthand: the package returns statuses of the protocol.
type Status = nfs4.Nfsstat4

// Counts is how much a table holds.
type Counts struct {
	Clients, Sessions, Opens, LockStates, Delegations, Ranges, Files, Owners int
	Names                                                                    int // of clients
}

// Counts returns how much the table holds now.
func (t *Table) Counts() Counts {
	t.section.RLock()
	c := Counts{Clients: len(t.clients.byTag), Files: len(t.files.by)}
	for _, names := range t.clients.byName {
		c.Names += len(names)
	}
	for _, f := range t.files.by {
		c.Opens += len(f.opens)
		c.Ranges += len(f.locks.held)
	}
	for _, cl := range t.clients.byTag {
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
	t.section.RUnlock()
	t.Sessions.mu.RLock()
	c.Sessions = len(t.Sessions.byID)
	t.Sessions.mu.RUnlock()
	return c
}

// Reap drops what belongs to clients that have been silent for longer than a
// lease, or after Options.Courtesy. It must be called from time to time.
func (t *Table) Reap() {
	t.section.Lock()
	t.reaper.reap(true, t.reaper.courtesy)
	t.section.Unlock()
	t.recovery.settle()
}

// Close drops everything. Records in stable storage stay.
func (t *Table) Close() {
	t.section.Lock()
	defer t.section.Unlock()
	t.recovery.closing = true
	for _, c := range t.clients.byTag {
		t.reaper.destroy(c)
	}
}
