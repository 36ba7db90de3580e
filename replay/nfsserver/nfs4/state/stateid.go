package state

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// state is what a stateid stands for: an open, or the byte-range locks of an
// owner in an open. Its "other" is the client ID and a number of the client's.
type state struct {
	client *Client
	id     uint32
	seq    uint32
	open   *open
	lock   *lockState // nil for an open
	closed bool       // NFSv4.0: only a CLOSE sent again wants it
}

// Stateid is the stateid as the client sees it.
func (s *state) stateid() nfs4.Stateid4 {
	r := nfs4.Stateid4{Seqid: s.seq}
	binary.BigEndian.PutUint64(r.Other[:], s.client.id)
	binary.BigEndian.PutUint32(r.Other[8:], s.id)
	return r
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
	for {
		c.nextState++
		if c.nextState != 0 && c.states[c.nextState] == nil {
			break
		}
	}
	s := &state{client: c, id: c.nextState, open: o, lock: l}
	c.states[s.id] = s
	return s
}

func (t *Table) dropState(s *state) { delete(s.client.states, s.id) }

// Special stateids (RFC 8881, section 8.2.3).
var (
	anonymous = nfs4.Stateid4{}
	bypass    = nfs4.Stateid4{Seqid: 0xffffffff, Other: [12]byte{
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}}
	// Current is the stateid that an earlier operation of the COMPOUND gave.
	Current = nfs4.Stateid4{Seqid: 1}
	// Invalid is what CLOSE gives since NFSv4.1.
	Invalid = nfs4.Stateid4{Seqid: 0xffffffff}
)

// Special reports whether a stateid is none that the server gave.
func Special(s *nfs4.Stateid4) bool {
	return s.Other == anonymous.Other || s.Other == bypass.Other
}

// find returns what a stateid stands for. c is the client of the session, nil
// for NFSv4.0, where it renews the lease. The seqid is not looked at.
func (t *Table) find(c *Client, s *nfs4.Stateid4) (*state, Status) {
	id := binary.BigEndian.Uint64(s.Other[:])
	owner := t.clients[id]
	switch {
	case c != nil:
		if owner != c {
			return nil, nfs4.NFS4ERR_BAD_STATEID
		}
	case Special(s):
		return nil, nfs4.NFS4ERR_BAD_STATEID
	case uint32(id>>32) != t.boot:
		return nil, nfs4.NFS4ERR_STALE_STATEID
	case owner == nil:
		return nil, nfs4.NFS4ERR_EXPIRED
	case owner.minor:
		return nil, nfs4.NFS4ERR_BAD_STATEID
	default:
		t.renew(owner)
	}
	st := owner.states[binary.BigEndian.Uint32(s.Other[8:])]
	if st == nil {
		return nil, nfs4.NFS4ERR_BAD_STATEID
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

// findOpen returns an open that is in force, for a file.
func (t *Table) findOpen(c *Client, s *nfs4.Stateid4, key Key) (*open, Status) {
	st, status := t.find(c, s)
	if status != nfs4.NFS4_OK {
		return nil, status
	}
	if st.lock != nil || st.closed || st.open.file.key != key {
		return nil, nfs4.NFS4ERR_BAD_STATEID
	}
	return st.open, st.current(s.Seqid)
}

// CheckIO says whether a stateid allows to read or to write a file. open tells
// that the client has the file open, so that permissions need no check.
func (t *Table) CheckIO(c *Client, s *nfs4.Stateid4, key Key, write bool) (open bool, st Status) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if Special(s) {
		return false, t.checkSpecial(s, key, write)
	}
	found, st := t.find(c, s)
	if st != nfs4.NFS4_OK {
		return false, st
	}
	o := found.open
	if found.closed || o.file.key != key || !o.owner.confirmed {
		return false, nfs4.NFS4ERR_BAD_STATEID
	}
	if st = found.current(s.Seqid); st != nfs4.NFS4_OK {
		return false, st
	}
	// A client that may only write still has to read, to fill a page of which
	// it writes a part.
	if write && o.access&nfs4.OPEN4_SHARE_ACCESS_WRITE == 0 {
		return false, nfs4.NFS4ERR_OPENMODE
	}
	return true, nfs4.NFS4_OK
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
	return found.current(s.Seqid)
}

// FreeStateid is FREE_STATEID: it drops the locks of an owner that holds none.
func (t *Table) FreeStateid(c *Client, s *nfs4.Stateid4) Status {
	t.mu.Lock()
	defer t.unlock()
	found, st := t.find(c, s)
	if st != nfs4.NFS4_OK {
		return st
	}
	if st = found.current(s.Seqid); st != nfs4.NFS4_OK {
		return st
	}
	if found.lock == nil || found.open.file.locks.count(found.lock.owner) > 0 {
		return nfs4.NFS4ERR_LOCKS_HELD
	}
	t.dropLockState(found.lock)
	return nfs4.NFS4_OK
}
