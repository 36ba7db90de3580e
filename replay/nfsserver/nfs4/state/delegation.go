package state

import (
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// delegation lets a client open, read, lock and, with write, change a file without asking (RFC
// 8881, section 10.4). A file has either read delegations of any number of clients or one write
// delegation.
type delegation struct {
	*state
	file      *file
	principal Principal
	write     bool
	access    uint32 // of the OPEN that it came with
	// change and size are the file's when a write delegation was given; from them the
	// server sees that the client has changed the file since (section 10.4.3).
	change, size uint64
	recalled     time.Time // zero: not yet
	revoked      bool      // no longer attached to a file, waits for FREE_STATEID
}

// Caller reaches a client by callbacks. Its methods neither wait nor call the Table.
type Caller interface {
	// Up reports that the client has answered the last callback, Down that it has not.
	// Before the first one, neither holds.
	Up() bool
	Down() bool
	// Recall asks for a delegation back, repeatedly if necessary.
	Recall(id nfs4.Stateid4, key Key)
	// Unbind ends the use of a session.
	Unbind(id SessionID)
	Close()
}

// recall is a CB_RECALL that is sent when mu is free.
type recall struct {
	to  Caller
	id  nfs4.Stateid4
	key Key
}

// Want is what a client says about delegations when it opens a file.
type Want uint8

// Values of Want.
const (
	WantDefault Want = iota // nothing: the server chooses
	WantRead
	WantWrite
	WantAny
	WantNone
)

// Grant is the answer to a Want.
type Grant struct {
	Stateid nfs4.Stateid4
	Type    nfs4.OpenDelegationType4 // NONE, READ or WRITE
	Recall  bool                     // the client must return it at once
	// Contended: none was given because others use the file; otherwise the server lacks
	// resources.
	Contended bool
}

// changeCells is the number of changeCells of Table.changing.
const changeCells = 512

func (t *Table) cell(k Key) uint32 {
	h := (k.ID ^ uint64(k.Generation)<<40 ^ uint64(t.boot)) * 0x9e3779b97f4a7c15
	return uint32(h >> 55)
}

// BeginChange checks whether a client, nil for one without a record here, may use a file that it
// has not opened: NFS4ERR_DELAY while others have conflicting delegations, which are recalled. If
// it returns NFS4_OK for a change, EndChange must follow; no delegation is given meanwhile.
func (t *Table) BeginChange(by *Client, key Key, write bool) Status {
	if write {
		t.changing[t.cell(key)].Add(1)
	}
	if t.delegated.Load() == 0 || t.mayUse(by, key, write) {
		return nfs4.NFS4_OK
	}
	if write {
		t.EndChange(key)
	}
	return nfs4.NFS4ERR_DELAY
}

// EndChange ends a change begun with BeginChange.
func (t *Table) EndChange(key Key) { t.changing[t.cell(key)].Add(-1) }

func (t *Table) mayUse(by *Client, key Key, write bool) bool {
	t.mu.RLock()
	f := t.files[key]
	conflict := f != nil && f.delegatedTo(by, write)
	t.mu.RUnlock()
	if !conflict {
		return true
	}
	t.mu.Lock()
	defer t.unlock()
	f = t.files[key]
	return f == nil || !t.recallFrom(by, f, write)
}

// delegatedTo reports whether a client other than by has a delegation that conflicts with reading
// or writing the file.
func (f *file) delegatedTo(by *Client, write bool) bool {
	for d := range f.delegations {
		if d.client != by && (write || d.write) {
			return true
		}
	}
	return false
}

// recallFrom recalls the delegations of all clients except by that conflict with reading or
// writing a file. It reports whether any is left: those of clients whose lease has run out, and
// those not returned within a lease, are revoked.
func (t *Table) recallFrom(by *Client, f *file, write bool) (left bool) {
	now := t.now()
	for d := range f.delegations {
		switch {
		case d.client == by, !write && !d.write:
		case t.expired(d.client, now):
			t.destroy(d.client)
		case t.overdue(d, now):
			t.revoke(d)
		default:
			t.recallOne(d, now)
			left = true
		}
	}
	return left
}

func (t *Table) overdue(d *delegation, now time.Time) bool {
	return !d.recalled.IsZero() && now.Sub(d.recalled) >= t.lease
}

func (t *Table) recallOne(d *delegation, now time.Time) {
	if !d.recalled.IsZero() {
		return
	}
	d.recalled = now
	t.contended.add(t.cell2(d.file.key), now)
	if c := d.client.caller; c != nil {
		t.recalls = append(t.recalls, recall{c, d.stateid(), d.file.key})
	}
}

// revoke revokes a delegation that the client does not return. Since NFSv4.1 its stateid is kept,
// so that the client learns of it, until FREE_STATEID (RFC 8881, section 10.4.6).
func (t *Table) revoke(d *delegation) {
	if !d.client.minor {
		t.dropDelegation(d)
		return
	}
	t.undelegate(d)
	d.revoked = true
	d.client.revoked.Add(1)
}

// undelegate removes a delegation from its file.
func (t *Table) undelegate(d *delegation) {
	f := d.file
	delete(f.delegations, d)
	t.delegated.Add(-1)
	d.client.delegations.Add(-1)
	t.release(f)
	t.freed(f.key)
}

// dropDelegation forgets a delegation.
func (t *Table) dropDelegation(d *delegation) {
	if d.revoked {
		d.client.revoked.Add(-1)
	} else {
		t.undelegate(d)
	}
	t.dropState(d.state)
	t.refund(d.client, delegationCost)
	t.delegationShares.give(d.client.source, 1)
}

// Delegate gives the client whose turn it is a delegation of a file that it has just opened, if
// the policy allows it. The policy follows Linux: callbacks reach the client, no other client
// has the file open for writing (for a write delegation: at all), and it was not recalled within
// the last half minute. change and size are the file's.
func (t *Table) Delegate(turn Turn, key Key, access uint32, want Want, change, size uint64) Grant {
	t.mu.Lock()
	defer t.unlock()
	none := Grant{Type: nfs4.OPEN_DELEGATE_NONE}
	o := turn.oo
	c, f := o.client, t.files[key]
	write := access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0
	switch {
	case want == WantNone, c.gone, o.gone, !o.confirmed, f == nil, t.InGrace(), c.caller == nil, !c.caller.Up():
		return none
	case want == WantRead && write:
		return none // it would be of no use for this open
	case f.outside > 0, f.openForOthers(c, write), len(f.delegations) > 0 && (write || f.delegatedTo(nil, false)),
		t.contended.has(t.cell2(key), t.now()):
		none.Contended = true
		return none
	}
	for d := range f.delegations {
		if d.client == c {
			return none // one is enough
		}
	}
	d := t.newDelegation(c, f, o.principal, write)
	if d == nil {
		return none
	}
	// From here on BeginChange sees it. Changes begun earlier continue.
	if t.changing[t.cell(key)].Load() != 0 {
		t.dropDelegation(d)
		none.Contended = true
		return none
	}
	d.access, d.change, d.size = access, change, size
	return d.grant()
}

func (d *delegation) grant() Grant {
	g := Grant{Stateid: d.bump(), Type: nfs4.OPEN_DELEGATE_READ}
	if d.write {
		g.Type = nfs4.OPEN_DELEGATE_WRITE
	}
	return g
}

// openForOthers reports whether a client other than c has the file open for writing, or, if all
// is set, at all.
func (f *file) openForOthers(c *Client, all bool) bool {
	if !all && f.accesses[1] == 0 {
		return false
	}
	for o := range f.opens {
		if o.client != c && (all || o.access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0) {
			return true
		}
	}
	return false
}

// newDelegation makes a delegation; nil if there is no room for it.
func (t *Table) newDelegation(c *Client, f *file, p Principal, write bool) *delegation {
	if len(c.states) >= t.limits.Opens || t.delegationShares.room(c.source) < 1 || !t.charge(c, delegationCost) {
		return nil
	}
	if t.hold != nil && t.hold(f.key) != nil {
		t.refund(c, delegationCost)
		return nil
	}
	t.delegationShares.take(c.source, 1)
	d := &delegation{file: f, principal: p, write: write}
	d.state = t.newState(c, nil, nil)
	d.state.delegation = d
	if f.delegations == nil {
		f.delegations = map[*delegation]struct{}{}
	}
	f.delegations[d] = struct{}{}
	t.delegated.Add(1)
	c.delegations.Add(1)
	return d
}

// Reclaim gives a client back the delegation that it had before a restart, in the grace period
// (CLAIM_PREVIOUS). It is recalled at once if callbacks do not reach the client.
func (t *Table) Reclaim(turn Turn, key Key, access uint32, kind nfs4.OpenDelegationType4, change, size uint64) Grant {
	none := Grant{Type: nfs4.OPEN_DELEGATE_NONE}
	write := kind == nfs4.OPEN_DELEGATE_WRITE
	if kind != nfs4.OPEN_DELEGATE_READ && !write {
		return none
	}
	t.mu.Lock()
	defer t.unlock()
	c, f := turn.oo.client, t.files[key]
	if c.gone || f == nil || c.caller == nil || f.outside > 0 || f.openForOthers(c, write) || f.delegatedTo(c, write) {
		return none
	}
	for d := range f.delegations {
		if d.client == c {
			return none
		}
	}
	d := t.newDelegation(c, f, turn.oo.principal, write)
	if d == nil {
		return none
	}
	d.access, d.change, d.size = access, change, size
	g := d.grant()
	if g.Recall = !c.caller.Up(); g.Recall {
		d.recalled = t.now()
	}
	return g
}

// findDelegation returns what a delegation's stateid stands for.
func (t *Table) findDelegation(c *Client, s *nfs4.Stateid4, key Key) (*delegation, Status) {
	if Special(s) {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	found, st := t.find(c, s)
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

// ReturnDelegation is DELEGRETURN.
func (t *Table) ReturnDelegation(c *Client, s *nfs4.Stateid4, key Key, p Principal) Status {
	t.mu.Lock()
	defer t.unlock()
	d, st := t.findDelegation(c, s, key)
	switch {
	case st != nfs4.NFS4_OK:
		return st
	case !d.permits(p):
		return refused(c, nfs4.OP_DELEGRETURN)
	}
	t.dropDelegation(d)
	return nfs4.NFS4_OK
}

// FromDelegation checks whether the client whose turn it is may open a file by its delegation
// (CLAIM_DELEGATE_CUR, CLAIM_DELEG_CUR_FH).
func (t *Table) FromDelegation(turn Turn, s *nfs4.Stateid4, key Key, access uint32) Status {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := turn.oo.client
	if !c.minor {
		c = nil
	}
	d, st := t.findDelegation(c, s, key)
	switch {
	case st != nfs4.NFS4_OK:
		return st
	case d.client != turn.oo.client:
		return nfs4.NFS4ERR_BAD_STATEID
	case !d.write && access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0:
		return nfs4.NFS4ERR_OPENMODE
	}
	return nfs4.NFS4_OK
}

// Written is a file that a client with a write delegation may have changed.
type Written struct {
	Caller       Caller
	Key          Key
	Change, Size uint64 // when the delegation was given
}

// WrittenBy finds the client, other than by, that has a write delegation of a file.
func (t *Table) WrittenBy(by *Client, key Key) (w Written, found bool) {
	if t.delegated.Load() == 0 {
		return w, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	f := t.files[key]
	if f == nil {
		return w, false
	}
	for d := range f.delegations {
		if d.write && d.client != by && d.client.caller != nil {
			return Written{d.client.caller, key, d.change, d.size}, true
		}
	}
	return w, false
}

// Owner is the client that a stateid of NFSv4.0 belongs to; nil if there is none.
func (t *Table) Owner(s *nfs4.Stateid4) *Client {
	if Special(s) {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if found, st := t.find(nil, s); st == nfs4.NFS4_OK {
		return found.client
	}
	return nil
}

// CallerOf is the Caller of the client of a session, or of the one with a client ID; nil if there
// is none.
func (t *Table) CallerOf(id uint64) Caller {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c := t.lookup(id); c != nil {
		return c.caller
	}
	return nil
}

// SessionCaller is CallerOf for a session.
func (t *Table) SessionCaller(id SessionID) Caller {
	if s := t.session(id); s != nil {
		return t.CallerOf(s.client.id)
	}
	return nil
}

// RecallAgain repeats a client's recalls, because callbacks reach it again.
func (t *Table) RecallAgain(to Caller) {
	t.mu.Lock()
	defer t.unlock()
	for _, c := range t.clients {
		if c.caller != to || c.delegations.Load() == 0 {
			continue
		}
		for _, s := range c.states {
			if d := s.delegation; d != nil && !d.revoked && !d.recalled.IsZero() {
				t.recalls = append(t.recalls, recall{to, d.stateid(), d.file.key})
			}
		}
	}
}

// flags are the SEQ4_STATUS flags of a client.
func (c *Client) flags() (f uint32) {
	if c.revoked.Load() > 0 {
		f |= nfs4.SEQ4_STATUS_RECALLABLE_STATE_REVOKED
	}
	if c.delegations.Load() > 0 && c.caller != nil && c.caller.Down() {
		f |= nfs4.SEQ4_STATUS_CB_PATH_DOWN
	}
	return f
}

// contention remembers, for half a minute to a minute, files whose delegations were
// recalled: it has a fixed size, and may mistake others for one of them (a Bloom filter, as in
// Linux).
type contention struct {
	bits   [2][64]uint64
	newest int
	since  time.Time
}

const contentionTime = 30 * time.Second

// cell2 is the two bits of a file.
func (t *Table) cell2(k Key) [2]uint32 {
	h := (k.ID ^ uint64(k.Generation)<<32 ^ uint64(t.boot)<<17) * 0xd6e8feb86659fd93
	h ^= h >> 29
	return [2]uint32{uint32(h>>8) % 4096, uint32(h>>40) % 4096}
}

func (c *contention) turn(now time.Time) {
	switch old := now.Sub(c.since); {
	case old >= 2*contentionTime:
		c.bits = [2][64]uint64{}
		c.since = now
	case old >= contentionTime:
		c.newest ^= 1
		c.bits[c.newest] = [64]uint64{}
		c.since = now
	}
}

func (c *contention) add(cell [2]uint32, now time.Time) {
	c.turn(now)
	for _, n := range cell {
		c.bits[c.newest][n/64] |= 1 << (n % 64)
	}
}

func (c *contention) has(cell [2]uint32, now time.Time) bool {
	c.turn(now)
	for i := range c.bits {
		if c.bits[i][cell[0]/64]>>(cell[0]%64)&1 != 0 && c.bits[i][cell[1]/64]>>(cell[1]%64)&1 != 0 {
			return true
		}
	}
	return false
}

// Delegated reports whether there are delegations at all.
func (t *Table) Delegated() bool { return t.delegated.Load() != 0 }
