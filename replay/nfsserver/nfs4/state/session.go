package state

import (
	"crypto/rand"
	"sync"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// Session is a session of NFSv4.1 with its slots (RFC 8881, section 2.10).
type Session struct {
	id     SessionID
	client *Client
	// principal is the creator of the session.
	principal Principal
	slots     []slot
	// What the fore channel carries, in bytes and operations.
	request, reply, cached, ops uint32
	dead                        atomic.Bool
	reserved                    int // of Limits.CacheBytes
}

// Sessions are the sessions of all clients.
type Sessions struct {
	section *section
	clients *registry
	leases  *leases
	reaper  *reaper
	grace   *Grace
	limits  *Limits
	cache   shares // of Limits.CacheBytes, reserved by sessions

	// mu guards byID. It is not section, which SEQUENCE does not take.
	mu   sync.RWMutex
	byID map[SessionID]*Session
}

// The least that a useful channel must carry.
const (
	minMessage = 128 // bytes
	minOps     = 2
)

// Create is CREATE_SESSION. backchannel says whether the connection can
// carry calls of the server. The caller encodes the result; it is not changed later.
func (ss *Sessions) Create(a *nfs4.CREATE_SESSION4args, w Who, backchannel bool) *nfs4.CREATE_SESSION4res {
	ss.section.Lock()
	defer ss.section.Unlock()
	p := w.Principal
	c := ss.clients.lookup(a.CsaClientid)
	if c != nil && !c.confirmed && ss.leases.expired(c, ss.leases.now()) {
		// RFC 8881, section 18.35.3: a record that was not confirmed within a lease no longer
		// exists, whether the reaper has run or not.
		ss.reaper.destroy(c)
		c = nil
	}
	if c == nil || !c.minor {
		return &nfs4.CREATE_SESSION4res{CsrStatus: nfs4.NFS4ERR_STALE_CLIENTID}
	}
	// Errors in the arguments alone do not use up a number.
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
	if res.CsrStatus = ss.create(c, a, w, backchannel, &res.CsrResok4); res.CsrStatus == nfs4.NFS4ERR_DELAY {
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
	case small(&a.CsaForeChanAttrs), small(&a.CsaBackChanAttrs):
		// The back channel may be bound later, if not now.
		return nfs4.NFS4ERR_TOOSMALL
	}
	return nfs4.NFS4_OK
}

func (ss *Sessions) create(c *Client, a *nfs4.CREATE_SESSION4args, w Who, backchannel bool, ok *nfs4.CREATE_SESSION4resok) Status {
	want := &a.CsaForeChanAttrs
	if len(c.sessions) >= ss.limits.Sessions {
		return nfs4.NFS4ERR_NOSPC
	}
	s := &Session{
		client: c, principal: w.Principal,
		request: min(want.CaMaxrequestsize, uint32(ss.limits.Request)),
		reply:   min(want.CaMaxresponsesize, uint32(ss.limits.Reply)),
		cached:  min(want.CaMaxresponsesizeCached, want.CaMaxresponsesize, uint32(ss.limits.Cached)),
		ops:     min(want.CaMaxoperations, uint32(ss.limits.Ops)),
	}
	slots := min(want.CaMaxrequests, uint32(ss.limits.Slots))
	perSlot := int(s.cached) + slotOverhead

	for ss.cache.room(c.source) < perSlot {
		if !ss.reaper.evict(c.source, &ss.cache, c, true) {
			return nfs4.NFS4ERR_DELAY
		}
	}
	// No session gets more than an eighth of what its source may still have,
	// but for the last slot.
	slots = min(slots, uint32(max(ss.cache.room(c.source)/8/perSlot, 1)))
	s.slots = make([]slot, slots)
	s.reserved = int(slots) * perSlot
	_, _ = rand.Read(s.id[:]) // never fails
	ss.cache.take(c.source, s.reserved)
	ss.mu.Lock()
	ss.byID[s.id] = s
	ss.mu.Unlock()
	if c.sessions == nil {
		c.sessions = map[*Session]struct{}{}
	}
	c.sessions[s] = struct{}{}

	if !c.confirmed {
		if old := ss.clients.named(true, c.owner).confirmed; old != nil {
			ss.reaper.destroy(old) // the client has restarted
		}
		ss.clients.confirm(c)
		ss.grace.back(c)
	}
	ss.leases.renew(c)

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

// find finds a session.
func (ss *Sessions) find(id SessionID) *Session {
	ss.mu.RLock()
	s := ss.byID[id]
	ss.mu.RUnlock()
	return s
}

// manages reports whether a principal may change the session: its creator may, and that of the
// client ID. All others may use it.
func (s *Session) manages(p Principal) bool { return s.principal == p || s.client.principal == p }

// Bind checks whether a principal may bind a connection to a session. It renews the lease.
func (ss *Sessions) Bind(id SessionID, p Principal) Status {
	s := ss.find(id)
	switch {
	case s == nil:
		return nfs4.NFS4ERR_BADSESSION
	case !s.manages(p):
		return nfs4.NFS4ERR_WRONG_CRED
	}
	ss.leases.renew(s.client)
	return nfs4.NFS4_OK
}

// Destroy is DESTROY_SESSION. COMPOUNDs in progress end as if the session still existed.
func (ss *Sessions) Destroy(id SessionID, p Principal) Status {
	ss.section.Lock()
	defer ss.section.Unlock()
	s := ss.find(id)
	switch {
	case s == nil:
		return nfs4.NFS4ERR_BADSESSION
	case !s.manages(p):
		return nfs4.NFS4ERR_WRONG_CRED
	}
	ss.remove(s)
	ss.leases.renew(s.client)
	return nfs4.NFS4_OK
}

func (ss *Sessions) remove(s *Session) {
	s.dead.Store(true)
	ss.mu.Lock()
	delete(ss.byID, s.id)
	ss.mu.Unlock()
	ss.cache.give(s.client.source, s.reserved)
	if s.client.caller != nil {
		s.client.caller.Unbind(s.id)
	}
	delete(s.client.sessions, s)
}

// drop removes all sessions of a client.
func (ss *Sessions) drop(c *Client) {
	for s := range c.sessions {
		ss.remove(s)
	}
}

// Caller is the Caller of the client of a session; nil if there is none.
func (ss *Sessions) Caller(id SessionID) Caller {
	s := ss.find(id)
	if s == nil {
		return nil
	}
	ss.section.RLock()
	defer ss.section.RUnlock()
	if s.client.gone {
		return nil
	}
	return s.client.caller
}
