package state

import (
	"crypto/subtle"
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// state is what a stateid stands for: an open, the byte-range locks of an owner in an
// open, or a delegation.
type state struct {
	client     *Client
	other      [12]byte
	seq        uint32
	open       *open       // nil for a delegation
	lock       *lockState  // nil for the others
	delegation *delegation // nil for the others
	closed     bool        // NFSv4.0: only for a retransmitted CLOSE
}

// Stateid is the stateid as the client sees it.
func (s *state) stateid() nfs4.Stateid4 {
	return nfs4.Stateid4{Seqid: s.seq, Other: s.other}
}

// number is the key of a state among those of its client.
func (s *state) number() uint32 { return binary.BigEndian.Uint32(s.other[4:]) }

// permits reports whether a principal may change the state: the one that opened the file, and
// the one that made the client ID, which is the machine itself. Operations of others on data
// are checked as if they had no stateid (CheckIO); those on state are refused (RFC 8881,
// section 15.1.14.5: NFS4ERR_WRONG_CRED).
func (s *state) permits(p Principal) bool {
	if s.delegation != nil {
		return s.delegation.principal == p || s.client.principal == p
	}
	return s.open.owner.principal == p || s.client.principal == p
}

// bump counts a change. 0 is never a seqid (RFC 8881, section 8.2.2).
func (s *state) bump() nfs4.Stateid4 {
	if s.seq++; s.seq == 0 {
		s.seq = 1
	}
	return s.stateid()
}

func (t *Table) newState(c *Client, o *open, l *lockState) *state {
	if c.states == nil {
		c.states = map[uint32]*state{}
	}
	number := random()
	for c.states[number] != nil {
		number = random()
	}
	s := &state{client: c, other: t.ids.state(c.tag(), number), open: o, lock: l}
	c.states[number] = s
	return s
}

func (t *Table) dropState(s *state) { delete(s.client.states, s.number()) }

// Special stateids (RFC 8881, section 8.2.3).
var (
	anonymous = nfs4.Stateid4{}
	bypass    = nfs4.Stateid4{Seqid: 0xffffffff, Other: [12]byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	// Current is the stateid that an earlier operation of the COMPOUND gave.
	Current = nfs4.Stateid4{Seqid: 1}
	// Invalid is what CLOSE returns since NFSv4.1.
	Invalid = nfs4.Stateid4{Seqid: 0xffffffff}
)

// Special reports whether a stateid is a special one, which no server gives.
func Special(s *nfs4.Stateid4) bool {
	return s.Other == anonymous.Other || s.Other == bypass.Other
}

// find returns what a stateid stands for. c is the client of the session, nil
// for NFSv4.0, where it renews the lease. The seqid is not checked.
func (t *Table) find(c *Client, s *nfs4.Stateid4) (*state, Status) {
	owner := t.clients[binary.BigEndian.Uint32(s.Other[:])]
	switch {
	case c != nil:
		if owner != c {
			return nil, nfs4.NFS4ERR_BAD_STATEID
		}
	case Special(s):
		return nil, nfs4.NFS4ERR_BAD_STATEID
	case owner == nil && t.ids.madeState(&s.Other):
		return nil, nfs4.NFS4ERR_EXPIRED
	case owner == nil:
		return nil, nfs4.NFS4ERR_STALE_STATEID
	case owner.minor:
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	st := owner.states[binary.BigEndian.Uint32(s.Other[4:])]
	if st == nil || subtle.ConstantTimeCompare(st.other[:], s.Other[:]) == 0 {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	if c == nil {
		t.renew(owner)
	}
	return st, nfs4.NFS4_OK
}

// current checks the seqid of a stateid (RFC 8881, section 8.2.2). 0 is the
// most recent one since NFSv4.1.
func (s *state) current(seqid uint32) Status {
	switch {
	case seqid == s.seq, seqid == 0 && s.client.minor:
		return nfs4.NFS4_OK
	case int32(seqid-s.seq) > 0:
		return nfs4.NFS4ERR_BAD_STATEID
	}
	return nfs4.NFS4ERR_OLD_STATEID
}

// refused is the status of an operation on the state of another principal. RFC
// 7530 has none for all of them.
func refused(c *Client, op nfs4.NfsOpnum4) Status {
	switch {
	case c != nil:
		return nfs4.NFS4ERR_WRONG_CRED
	case op == nfs4.OP_LOCK, op == nfs4.OP_LOCKU:
		return nfs4.NFS4ERR_ACCESS
	}
	return nfs4.NFS4ERR_BAD_STATEID
}

// findOpen returns an open that is in force, for a file and a principal that may
// change it.
func (t *Table) findOpen(c *Client, s *nfs4.Stateid4, key Key, p Principal) (*open, Status) {
	st, status := t.find(c, s)
	if status != nfs4.NFS4_OK {
		return nil, status
	}
	if !st.permits(p) {
		return nil, refused(c, nfs4.OP_OPEN)
	}
	if st.lock != nil || st.delegation != nil || st.closed || st.open.file.key != key {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	return st.open, st.current(s.Seqid)
}

// CheckIO checks whether a stateid permits reading or writing a file. open says that the
// principal itself has opened the file for that. Its permissions were checked then, and need not
// be checked again; everyone else's are.
func (t *Table) CheckIO(c *Client, s *nfs4.Stateid4, key Key, write bool, p Principal) (open bool, st Status) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if Special(s) {
		return false, t.checkSpecial(s, key, write)
	}
	found, st := t.find(c, s)
	if st != nfs4.NFS4_OK {
		return false, st
	}
	if found.delegation != nil {
		return found.delegation.checkIO(s, key, write, p)
	}
	o := found.open
	if found.closed || o.file.key != key || !o.owner.confirmed {
		return false, nfs4.NFS4ERR_BAD_STATEID
	}
	if st = found.current(s.Seqid); st != nfs4.NFS4_OK {
		return false, st
	}
	need := uint32(nfs4.OPEN4_SHARE_ACCESS_READ)
	if write {
		need = nfs4.OPEN4_SHARE_ACCESS_WRITE
	}
	has := o.access&need != 0
	if write && !has {
		return false, nfs4.NFS4ERR_OPENMODE
	}
	// A client that has opened only for writing may still have to read, to fill
	// a page of which it writes a part (RFC 8881, section 9.1.2 leaves that to
	// the server). Whether the user may do so is checked separately.
	return has && o.owner.principal == p, nfs4.NFS4_OK
}

// checkIO is CheckIO for a delegation.
func (d *delegation) checkIO(s *nfs4.Stateid4, key Key, write bool, p Principal) (open bool, st Status) {
	need := uint32(nfs4.OPEN4_SHARE_ACCESS_READ)
	if write {
		need = nfs4.OPEN4_SHARE_ACCESS_WRITE
	}
	switch {
	case d.file.key != key:
		return false, nfs4.NFS4ERR_BAD_STATEID
	case d.revoked:
		return false, nfs4.NFS4ERR_DELEG_REVOKED
	case write && !d.write:
		return false, nfs4.NFS4ERR_OPENMODE
	}
	// Opens that the client has made by itself since were not checked.
	return d.access&need != 0 && d.principal == p, d.current(s.Seqid)
}

func (t *Table) checkSpecial(s *nfs4.Stateid4, key Key, write bool) Status {
	if *s != anonymous && *s != bypass {
		return nfs4.NFS4ERR_BAD_STATEID
	}
	if t.InGrace() {
		return nfs4.NFS4ERR_GRACE
	}
	f := t.files[key]
	if f == nil {
		return nfs4.NFS4_OK
	}
	switch {
	case write && f.denies[1] > 0, !write && f.denies[0] > 0 && *s != bypass:
		return nfs4.NFS4ERR_LOCKED
	}
	return nfs4.NFS4_OK
}

// TestStateid is TEST_STATEID for one stateid.
func (t *Table) TestStateid(c *Client, s *nfs4.Stateid4) Status {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if Special(s) {
		return nfs4.NFS4ERR_BAD_STATEID
	}
	found, st := t.find(c, s)
	if st != nfs4.NFS4_OK {
		return st
	}
	if found.delegation != nil && found.delegation.revoked {
		return nfs4.NFS4ERR_DELEG_REVOKED
	}
	return found.current(s.Seqid)
}

// FreeStateid is FREE_STATEID: it drops the locks of an owner that holds none, or a
// delegation that was revoked.
func (t *Table) FreeStateid(c *Client, s *nfs4.Stateid4, p Principal) Status {
	t.mu.Lock()
	defer t.unlock()
	found, st := t.find(c, s)
	if st != nfs4.NFS4_OK {
		return st
	}
	if !found.permits(p) {
		return refused(c, nfs4.OP_FREE_STATEID)
	}
	if st = found.current(s.Seqid); st != nfs4.NFS4_OK {
		return st
	}
	if d := found.delegation; d != nil {
		if !d.revoked {
			return nfs4.NFS4ERR_LOCKS_HELD
		}
		t.dropDelegation(d)
		return nfs4.NFS4_OK
	}
	if found.lock == nil || found.open.file.locks.count(found.lock.owner) > 0 {
		return nfs4.NFS4ERR_LOCKS_HELD
	}
	t.dropLockState(found.lock)
	return nfs4.NFS4_OK
}
