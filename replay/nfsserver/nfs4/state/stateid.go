package state

import (
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

func (s *state) drop() { delete(s.client.states, s.number()) }

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

// Stateids has the operations that take a stateid of any kind.
type Stateids struct {
	section     *section
	clients     *registry
	files       *files
	grace       *Grace
	owners      *owners
	delegations *Delegations
}

// CheckIO checks whether a stateid permits reading or writing a file. open says that the
// principal itself has opened the file for that. Its permissions were checked then, and need not
// be checked again; everyone else's are.
func (ss *Stateids) CheckIO(c *Client, s *nfs4.Stateid4, key Key, write bool, p Principal) (open bool, st Status) {
	ss.section.RLock()
	defer ss.section.RUnlock()
	if Special(s) {
		return false, ss.checkSpecial(s, key, write)
	}
	found, st := ss.clients.find(c, s)
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

func (ss *Stateids) checkSpecial(s *nfs4.Stateid4, key Key, write bool) Status {
	if *s != anonymous && *s != bypass {
		return nfs4.NFS4ERR_BAD_STATEID
	}
	if ss.grace.Active() {
		return nfs4.NFS4ERR_GRACE
	}
	f := ss.files.by[key]
	if f == nil {
		return nfs4.NFS4_OK
	}
	switch {
	case write && f.denies[1] > 0, !write && f.denies[0] > 0 && *s != bypass:
		return nfs4.NFS4ERR_LOCKED
	}
	return nfs4.NFS4_OK
}

// Test is TEST_STATEID for one stateid.
func (ss *Stateids) Test(c *Client, s *nfs4.Stateid4) Status {
	ss.section.RLock()
	defer ss.section.RUnlock()
	if Special(s) {
		return nfs4.NFS4ERR_BAD_STATEID
	}
	found, st := ss.clients.find(c, s)
	if st != nfs4.NFS4_OK {
		return st
	}
	if found.delegation != nil && found.delegation.revoked {
		return nfs4.NFS4ERR_DELEG_REVOKED
	}
	return found.current(s.Seqid)
}

// Free is FREE_STATEID: it drops the locks of an owner that holds none, or a
// delegation that was revoked.
func (ss *Stateids) Free(c *Client, s *nfs4.Stateid4, p Principal) Status {
	ss.section.Lock()
	defer ss.section.Unlock()
	found, st := ss.clients.find(c, s)
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
		ss.delegations.remove(d)
		return nfs4.NFS4_OK
	}
	if found.lock == nil || found.open.file.locks.count(found.lock.owner) > 0 {
		return nfs4.NFS4ERR_LOCKS_HELD
	}
	ss.owners.dropLocks(found.lock)
	return nfs4.NFS4_OK
}

// Client is the client that a stateid of NFSv4.0 belongs to; nil if there is none.
func (ss *Stateids) Client(s *nfs4.Stateid4) *Client {
	if Special(s) {
		return nil
	}
	ss.section.RLock()
	defer ss.section.RUnlock()
	if found, st := ss.clients.find(nil, s); st == nfs4.NFS4_OK {
		return found.client
	}
	return nil
}

// Begin starts an operation on an open or a lock in NFSv4.0: it finds
// whose turn it takes. Since NFSv4.1 there is nothing to wait for.
func (ss *Stateids) Begin(c *Client, s *nfs4.Stateid4, seqid uint32, op nfs4.NfsOpnum4, p Principal) (turn Turn, replay *Replay, st Status) {
	if c != nil {
		return Turn{}, nil, nfs4.NFS4_OK
	}
	ss.section.RLock()
	found, st := ss.clients.find(nil, s)
	if st == nfs4.NFS4_OK && found.delegation != nil {
		st = nfs4.NFS4ERR_BAD_STATEID
	}
	if st == nfs4.NFS4_OK && !found.permits(p) {
		st = refused(nil, op) // before anything about the owner is revealed or changed
	}
	ss.section.RUnlock()
	if st != nfs4.NFS4_OK {
		return Turn{}, nil, st
	}
	owner := &found.open.owner.sequencer
	if found.lock != nil {
		owner = &found.lock.owner.sequencer
	}
	turn = Turn{op: uint32(op), seqid: seqid}
	if replay, st = owner.take(&turn); st != nfs4.NFS4_OK {
		return Turn{}, nil, st
	}
	return turn, replay, nfs4.NFS4_OK
}
