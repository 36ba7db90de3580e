package state

import (
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
)

// delegation lets a client open, read, lock and, with write, change a file without asking (RFC
// 8881, section 10.4). A file has either read delegations of any number of clients or one write
// delegation, a directory has read delegations.
type delegation struct {
	*state
	file      *file
	principal Principal
	write     bool
	times     bool   // the client keeps the file's times (RFC 9754, section 5)
	access    uint32 // of the OPEN that it came with
	// was has the file's attributes when the delegation was given; from them the
	// server sees that the client has changed the file since (section 10.4.3).
	was      Kept
	recalled time.Time // zero: not yet
	revoked  bool      // no longer attached to a file, waits for FREE_STATEID
}

// Kept are the attributes that the holder of a write delegation may know better than the server.
type Kept struct {
	Change, Size uint64
	Atime, Mtime store.Time
}

func keptOf(a *store.Attr) Kept { return Kept{a.Change, a.Size, a.Atime, a.Mtime} }

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

// Want is what a client says about delegations when it opens a file. It may add WantTimes.
type Want uint8

// Values of Want.
const (
	WantDefault Want = iota // nothing: the server chooses
	WantRead
	WantWrite
	WantAny
	WantNone

	WantTimes Want = 1 << 7 // to keep the file's times
)

// Grant is the answer to a Want.
type Grant struct {
	Stateid nfs4.Stateid4
	Type    nfs4.OpenDelegationType4 // NONE, or READ or WRITE with or without ATTRS
	Recall  bool                     // the client must return it at once
	// Contended: none was given because others use the file; otherwise the server lacks
	// resources.
	Contended bool
}

// Delegations are the files that are delegated to clients.
type Delegations struct {
	section *section
	clients *registry
	files   *files
	budget  *budget
	reaper  *reaper
	waiters *waiters
	grace   *Grace
	leases  *leases

	shares    shares // of Limits.Delegations
	contended contention
	changes   changes
	count     atomic.Int32 // of those that are not revoked
}

// BeginChange checks whether a client, nil for one without a record here, may use a file that it
// has not opened: NFS4ERR_DELAY while others have conflicting delegations, which are recalled. If
// it returns NFS4_OK for a change, EndChange must follow; no delegation is given meanwhile.
func (ds *Delegations) BeginChange(by *Client, key Key, write bool) Status {
	if write {
		ds.changes.of(key).Add(1)
	}
	if ds.count.Load() == 0 || ds.mayUse(by, key, write) {
		return nfs4.NFS4_OK
	}
	if write {
		ds.EndChange(key)
	}
	return nfs4.NFS4ERR_DELAY
}

// EndChange ends a change begun with BeginChange.
func (ds *Delegations) EndChange(key Key) { ds.changes.of(key).Add(-1) }

func (ds *Delegations) mayUse(by *Client, key Key, write bool) bool {
	ds.section.RLock()
	f := ds.files.by[key]
	conflict := f != nil && f.delegatedTo(by, write)
	ds.section.RUnlock()
	if !conflict {
		return true
	}
	ds.section.Lock()
	defer ds.section.Unlock()
	f = ds.files.by[key]
	return f == nil || !ds.recallFrom(by, f, write)
}

// recallFrom recalls the delegations of all clients except by that conflict with reading or
// writing a file. It reports whether any is left: those of clients whose lease has run out, and
// those not returned within a lease, are revoked.
func (ds *Delegations) recallFrom(by *Client, f *file, write bool) (left bool) {
	now := ds.leases.now()
	for d := range f.delegations {
		switch {
		case d.client == by, !write && !d.write:
		case ds.leases.expired(d.client, now):
			ds.reaper.destroy(d.client)
		case ds.overdue(d, now):
			ds.revoke(d)
		default:
			ds.recall(d, now)
			left = true
		}
	}
	return left
}

func (ds *Delegations) overdue(d *delegation, now time.Time) bool {
	return !d.recalled.IsZero() && now.Sub(d.recalled) >= ds.leases.length
}

func (ds *Delegations) recall(d *delegation, now time.Time) {
	if !d.recalled.IsZero() {
		return
	}
	d.recalled = now
	ds.contended.add(d.file.key, now)
	if c := d.client.caller; c != nil {
		ds.send(c, d)
	}
}

// send has a CB_RECALL sent.
func (ds *Delegations) send(to Caller, d *delegation) {
	id, key := d.stateid(), d.file.key
	ds.section.after(func() { to.Recall(id, key) })
}

// revoke revokes a delegation that the client does not return. Since NFSv4.1 its stateid is kept,
// so that the client learns of it, until FREE_STATEID (RFC 8881, section 10.4.6).
func (ds *Delegations) revoke(d *delegation) {
	if !d.client.minor {
		ds.remove(d)
		return
	}
	ds.detach(d)
	d.revoked = true
	d.client.revoked.Add(1)
}

// detach removes a delegation from its file.
func (ds *Delegations) detach(d *delegation) {
	f := d.file
	delete(f.delegations, d)
	ds.count.Add(-1)
	d.client.delegations.Add(-1)
	ds.files.release(f)
	ds.waiters.freed(f.key)
}

// remove forgets a delegation.
func (ds *Delegations) remove(d *delegation) {
	if d.revoked {
		d.client.revoked.Add(-1)
	} else {
		ds.detach(d)
	}
	d.drop()
	ds.budget.refund(d.client, delegationCost)
	ds.shares.give(d.client.source, 1)
}

// drop drops the delegations of a client.
func (ds *Delegations) drop(c *Client) {
	for _, s := range c.states {
		if s.delegation != nil {
			ds.remove(s.delegation)
		}
	}
}

// tidy revokes the delegations that a client has not returned within a lease of their recall.
func (ds *Delegations) tidy(c *Client, now time.Time) {
	if c.delegations.Load() == 0 {
		return
	}
	for _, s := range c.states {
		if d := s.delegation; d != nil && !d.revoked && ds.overdue(d, now) {
			ds.revoke(d)
		}
	}
}

// Grant gives the client whose turn it is a delegation of a file that it has just opened, if
// the policy allows it. The policy follows Linux: callbacks reach the client, no other client
// has the file open for writing (for a write delegation: at all), and it was not recalled within
// the last half minute.
func (ds *Delegations) Grant(turn Turn, at *store.Attr, access uint32, want Want) Grant {
	times, want, key := want&WantTimes != 0, want&^WantTimes, at.Handle
	ds.section.Lock()
	defer ds.section.Unlock()
	none := Grant{Type: nfs4.OPEN_DELEGATE_NONE}
	o := turn.owner
	c, f := o.client, ds.files.by[key]
	write := access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0
	switch {
	case want == WantNone, c.gone, o.gone, !o.confirmed, f == nil, ds.grace.Active(), c.caller == nil, !c.caller.Up():
		return none
	case want == WantRead && write:
		return none // it would be of no use for this open
	case f.outside > 0, f.openForOthers(c, write), len(f.delegations) > 0 && (write || f.delegatedTo(nil, false)),
		ds.contended.has(key, ds.leases.now()):
		none.Contended = true
		return none
	}
	d := ds.addUnchanged(c, f, o.principal, write)
	if d == nil {
		none.Contended = ds.changes.of(key).Load() != 0
		return none
	}
	d.times, d.access, d.was = times, access, keptOf(at)
	return d.grant()
}

// addUnchanged is add for a file that nobody is changing. From here on BeginChange sees the delegation; changes begun earlier continue.
func (ds *Delegations) addUnchanged(c *Client, f *file, p Principal, write bool) *delegation {
	d := ds.add(c, f, p, write)
	if d != nil && ds.changes.of(f.key).Load() != 0 {
		ds.remove(d)
		return nil
	}
	return d
}

// Directory gives a client a delegation of a directory, if the policy of Grant allows it (RFC 8881, section 18.39).
func (ds *Delegations) Directory(c *Client, key Key, p Principal) (id nfs4.Stateid4, given bool) {
	ds.section.Lock()
	defer ds.section.Unlock()
	if c.gone || ds.grace.Active() || c.caller == nil || !c.caller.Up() || ds.contended.has(key, ds.leases.now()) {
		return id, false
	}
	f := ds.files.get(key)
	defer ds.files.forget(f)
	d := ds.addUnchanged(c, f, p, false)
	if d == nil {
		return id, false
	}
	return d.bump(), true
}

func (d *delegation) grant() Grant {
	g := Grant{Stateid: d.bump()}
	switch {
	case d.write && d.times:
		g.Type = nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG
	case d.write:
		g.Type = nfs4.OPEN_DELEGATE_WRITE
	case d.times:
		g.Type = nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG
	default:
		g.Type = nfs4.OPEN_DELEGATE_READ
	}
	return g
}

// add makes a delegation; nil if there is no room for it, or the client has one, which is enough.
func (ds *Delegations) add(c *Client, f *file, p Principal, write bool) *delegation {
	for d := range f.delegations {
		if d.client == c {
			return nil
		}
	}
	if ds.shares.room(c.source) < 1 || !ds.budget.chargeState(c, delegationCost) {
		return nil
	}
	if ds.files.acquire(f.key) != nil {
		ds.budget.refund(c, delegationCost)
		return nil
	}
	ds.shares.take(c.source, 1)
	d := &delegation{file: f, principal: p, write: write}
	d.state = ds.clients.newState(c, nil, nil)
	d.state.delegation = d
	if f.delegations == nil {
		f.delegations = map[*delegation]struct{}{}
	}
	f.delegations[d] = struct{}{}
	ds.count.Add(1)
	c.delegations.Add(1)
	return d
}

// Reclaim gives a client back the delegation that it had before a restart, in the grace period
// (CLAIM_PREVIOUS). It is recalled at once if callbacks do not reach the client.
func (ds *Delegations) Reclaim(turn Turn, at *store.Attr, access uint32, kind nfs4.OpenDelegationType4) Grant {
	none := Grant{Type: nfs4.OPEN_DELEGATE_NONE}
	write, times := false, false
	switch kind {
	case nfs4.OPEN_DELEGATE_READ:
	case nfs4.OPEN_DELEGATE_WRITE:
		write = true
	case nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG:
		times = true
	case nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG:
		write, times = true, true
	default:
		return none
	}
	ds.section.Lock()
	defer ds.section.Unlock()
	c, f := turn.Client(), ds.files.by[at.Handle]
	if c.gone || f == nil || c.caller == nil || f.outside > 0 || f.openForOthers(c, write) || f.delegatedTo(c, write) {
		return none
	}
	d := ds.add(c, f, turn.owner.principal, write)
	if d == nil {
		return none
	}
	d.times, d.access, d.was = times, access, keptOf(at)
	g := d.grant()
	if g.Recall = !c.caller.Up(); g.Recall {
		d.recalled = ds.leases.now()
	}
	return g
}

// Return is DELEGRETURN.
func (ds *Delegations) Return(c *Client, s *nfs4.Stateid4, key Key, p Principal) Status {
	ds.section.Lock()
	defer ds.section.Unlock()
	d, st := ds.clients.findDelegation(c, s, key)
	switch {
	case st != nfs4.NFS4_OK:
		return st
	case !d.permits(p):
		return refused(c, nfs4.OP_DELEGRETURN)
	}
	ds.remove(d)
	return nfs4.NFS4_OK
}

// MayOpen checks whether the client whose turn it is may open a file by its delegation
// (CLAIM_DELEGATE_CUR, CLAIM_DELEG_CUR_FH).
func (ds *Delegations) MayOpen(turn Turn, s *nfs4.Stateid4, key Key, access uint32) Status {
	ds.section.RLock()
	defer ds.section.RUnlock()
	c := turn.Client()
	if !c.minor {
		c = nil
	}
	d, st := ds.clients.findDelegation(c, s, key)
	switch {
	case st != nfs4.NFS4_OK:
		return st
	case d.client != turn.Client():
		return nfs4.NFS4ERR_BAD_STATEID
	case !d.write && access&nfs4.OPEN4_SHARE_ACCESS_WRITE != 0:
		return nfs4.NFS4ERR_OPENMODE
	}
	return nfs4.NFS4_OK
}

// Times checks whether a client may tell times of a file by a delegation, which says of when they cannot be earlier (RFC 9754, section
// 5). mine says that the principal holds the delegation itself.
func (ds *Delegations) Times(c *Client, s *nfs4.Stateid4, key Key, p Principal) (was Kept, mine bool, st Status) {
	ds.section.RLock()
	defer ds.section.RUnlock()
	d, st := ds.clients.findDelegation(c, s, key)
	switch {
	case st != nfs4.NFS4_OK:
		return was, false, st
	case !d.times:
		return was, false, nfs4.NFS4ERR_BAD_STATEID
	}
	return d.was, d.principal == p, nfs4.NFS4_OK
}

// Written is a file that a client with a write delegation may have changed.
type Written struct {
	Caller Caller
	Key    Key
	Times  bool // the client keeps its times
	Was    Kept // when the delegation was given
}

// WrittenBy finds the client, other than by, that has a write delegation of a file.
func (ds *Delegations) WrittenBy(by *Client, key Key) (w Written, found bool) {
	if ds.count.Load() == 0 {
		return w, false
	}
	ds.section.RLock()
	defer ds.section.RUnlock()
	f := ds.files.by[key]
	if f == nil {
		return w, false
	}
	for d := range f.delegations {
		if d.write && d.client != by && d.client.caller != nil {
			return Written{d.client.caller, key, d.times, d.was}, true
		}
	}
	return w, false
}

// RecallAgain repeats a client's recalls, because callbacks reach it again.
func (ds *Delegations) RecallAgain(to Caller) {
	ds.section.Lock()
	defer ds.section.Unlock()
	for _, c := range ds.clients.byTag {
		if c.caller != to || c.delegations.Load() == 0 {
			continue
		}
		for _, s := range c.states {
			if d := s.delegation; d != nil && !d.revoked && !d.recalled.IsZero() {
				ds.send(to, d)
			}
		}
	}
}

// Any reports whether there are delegations at all.
func (ds *Delegations) Any() bool { return ds.count.Load() != 0 }
