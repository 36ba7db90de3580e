package state

import (
	"crypto/rand"
	"encoding/binary"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Session is a session of NFSv4.1 with its slots (RFC 8881, section 2.10).
type Session struct {
	id     SessionID
	client *Client
	slots  []slot
	// What the fore channel carries, in bytes and operations.
	request, reply, cached, ops uint32
	dead                        atomic.Bool
	reserved                    int // of Limits.CacheBytes
}

// The least that a channel has to carry to be of use.
const (
	minMessage = 128 // bytes
	minOps     = 2
)

// CreateSession is CREATE_SESSION. backchannel says whether the connection can
// carry calls of the server. The result is the caller's to encode; it is not
// changed later.
func (t *Table) CreateSession(a *nfs4.CREATE_SESSION4args, p Principal, backchannel bool) *nfs4.CREATE_SESSION4res {
	t.mu.Lock()
	defer t.unlock()
	c := t.clients[a.CsaClientid]
	if c == nil || !c.minor {
		return &nfs4.CREATE_SESSION4res{CsrStatus: nfs4.NFS4ERR_STALE_CLIENTID}
	}
	// What the arguments alone forbid uses up no number.
	if st := checkChannels(a); st != nfs4.NFS4_OK {
		return &nfs4.CREATE_SESSION4res{CsrStatus: st}
	}
	switch {
	case a.CsaSequence == c.createSeq && c.created != nil:
		return c.created // sent again
	case a.CsaSequence != c.createSeq+1:
		return &nfs4.CREATE_SESSION4res{CsrStatus: nfs4.NFS4ERR_SEQ_MISORDERED}
	}
	res := &nfs4.CREATE_SESSION4res{}
	if c.principal != p && !c.confirmed {
		res.CsrStatus = nfs4.NFS4ERR_CLID_INUSE // not executed, so the number is not used up
		return res
	}
	if res.CsrStatus = t.createSession(c, a, backchannel, &res.CsrResok4); res.CsrStatus == nfs4.NFS4ERR_DELAY {
		return res
	}
	c.createSeq, c.created = a.CsaSequence, res
	return res
}

func checkChannels(a *nfs4.CREATE_SESSION4args) Status {
	const flags = nfs4.CREATE_SESSION4_FLAG_PERSIST | nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN | nfs4.CREATE_SESSION4_FLAG_CONN_RDMA
	small := func(c *nfs4.ChannelAttrs4) bool {
		return c.CaMaxrequestsize < minMessage || c.CaMaxresponsesize < minMessage || c.CaMaxoperations < minOps || c.CaMaxrequests < 1
	}
	switch {
	case a.CsaFlags&^flags != 0:
		return nfs4.NFS4ERR_INVAL
	case small(&a.CsaForeChanAttrs),
		a.CsaFlags&nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN != 0 && small(&a.CsaBackChanAttrs):
		return nfs4.NFS4ERR_TOOSMALL
	}
	return nfs4.NFS4_OK
}

func (t *Table) createSession(c *Client, a *nfs4.CREATE_SESSION4args, backchannel bool, ok *nfs4.CREATE_SESSION4resok) Status {
	want := &a.CsaForeChanAttrs
	if c.sessions >= t.limits.Sessions {
		return nfs4.NFS4ERR_NOSPC
	}
	s := &Session{
		client:  c,
		request: min(want.CaMaxrequestsize, uint32(t.limits.Request)),
		reply:   min(want.CaMaxresponsesize, uint32(t.limits.Reply)),
		cached:  min(want.CaMaxresponsesizeCached, want.CaMaxresponsesize, uint32(t.limits.Cached)),
		ops:     min(want.CaMaxoperations, uint32(t.limits.Ops)),
	}
	slots := min(want.CaMaxrequests, uint32(t.limits.Slots))
	perSlot := int(s.cached) + slotOverhead

	t.sessionsMu.Lock()
	// No session gets more than an eighth of what is left, but for the last
	// slot.
	free := t.limits.CacheBytes - t.cacheBytes
	slots = min(slots, uint32(max(free/8/perSlot, 1)))
	if free < perSlot {
		t.sessionsMu.Unlock()
		return nfs4.NFS4ERR_DELAY
	}
	s.slots = make([]slot, slots)
	s.reserved = int(slots) * perSlot
	t.cacheBytes += s.reserved
	t.nextSession++
	binary.BigEndian.PutUint32(s.id[:], t.boot)
	binary.BigEndian.PutUint64(s.id[4:], t.nextSession)
	_, _ = rand.Read(s.id[12:]) // never fails
	t.sessions[s.id] = s
	t.sessionsMu.Unlock()
	c.sessions++

	if !c.confirmed {
		if i := t.byOwner1[c.owner]; i.confirmed != nil {
			t.destroy(i.confirmed) // the client has restarted
		}
		t.setConfirmed(c)
	}
	t.renew(c)

	ok.CsrSessionid = s.id
	ok.CsrSequence = a.CsaSequence
	if backchannel {
		ok.CsrFlags = a.CsaFlags & nfs4.CREATE_SESSION4_FLAG_CONN_BACK_CHAN
	}
	ok.CsrForeChanAttrs = nfs4.ChannelAttrs4{
		CaMaxrequestsize: s.request, CaMaxresponsesize: s.reply, CaMaxresponsesizeCached: s.cached,
		CaMaxoperations: s.ops, CaMaxrequests: slots,
	}
	back := a.CsaBackChanAttrs
	ok.CsrBackChanAttrs = nfs4.ChannelAttrs4{
		CaMaxrequestsize: back.CaMaxrequestsize, CaMaxresponsesize: back.CaMaxresponsesize,
		CaMaxresponsesizeCached: back.CaMaxresponsesizeCached,
		CaMaxoperations:         back.CaMaxoperations, CaMaxrequests: back.CaMaxrequests,
	}
	return nfs4.NFS4_OK
}

// session finds a session.
func (t *Table) session(id SessionID) *Session {
	t.sessionsMu.RLock()
	s := t.sessions[id]
	t.sessionsMu.RUnlock()
	return s
}

// HasSession says whether a session exists: NFS4ERR_BADSESSION. It renews the
// lease.
func (t *Table) HasSession(id SessionID) Status {
	s := t.session(id)
	if s == nil {
		return nfs4.NFS4ERR_BADSESSION
	}
	t.renew(s.client)
	return nfs4.NFS4_OK
}

// DestroySession is DESTROY_SESSION. COMPOUNDs under way in the session end as
// if it were still there.
func (t *Table) DestroySession(id SessionID) Status {
	t.mu.Lock()
	defer t.unlock()
	t.sessionsMu.Lock()
	defer t.sessionsMu.Unlock()
	s := t.sessions[id]
	if s == nil {
		return nfs4.NFS4ERR_BADSESSION
	}
	t.dropSession(s)
	t.renew(s.client)
	return nfs4.NFS4_OK
}

func (t *Table) dropSession(s *Session) {
	s.dead.Store(true)
	delete(t.sessions, s.id)
	t.cacheBytes -= s.reserved
	s.client.sessions--
}

// dropSessions drops all sessions of a client.
func (t *Table) dropSessions(c *Client) {
	t.sessionsMu.Lock()
	for _, s := range t.sessions {
		if s.client == c {
			t.dropSession(s)
		}
	}
	t.sessionsMu.Unlock()
}
