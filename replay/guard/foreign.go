package guard

import (
	"bytes"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// foreign reports what belongs to a client of somebody else: its name, its id, a session, a
// state id. It is empty if nothing does. Operations on these change nothing in a file system,
// but end or use the state of others.
func (g *Guard) foreign(e *ops.Entry, minor uint32, m xdr.Message) string {
	const client, session, state = "client", "session", "state id"
	g.mu.RLock()
	defer g.mu.RUnlock()
	bad := ""
	owner := func(b []byte) {
		if len(g.opt.Owner) == 0 || !bytes.HasPrefix(b, g.opt.Owner) {
			bad = client
		}
	}
	id := func(n uint64) {
		if _, ok := g.clients[n]; !ok {
			bad = client
		}
	}
	of := func(s *[16]byte) {
		if _, ok := g.sessions[*s]; !ok {
			bad = session
		}
	}
	holder := func(o *nfs4.StateOwner4) {
		if minor == 0 {
			id(o.Clientid) // ignored otherwise (RFC 8881, section 18.16.3)
		}
	}
	switch m := m.(type) {
	case *nfs4.EXCHANGE_ID4args:
		owner(m.EiaClientowner.CoOwnerid)
	case *nfs4.SETCLIENTID4args:
		owner(m.Client.Id)
		if !g.callable(m.Callback.CbLocation.NaRAddr) {
			bad = "callback address"
		}
	case *nfs4.SETCLIENTID_CONFIRM4args:
		id(m.Clientid)
	case *nfs4.RENEW4args:
		id(m.Clientid)
	case *nfs4.DELEGPURGE4args:
		if minor == 0 {
			id(m.Clientid)
		}
	case *nfs4.CREATE_SESSION4args:
		id(m.CsaClientid)
	case *nfs4.DESTROY_CLIENTID4args:
		id(m.DcaClientid)
	case *nfs4.SEQUENCE4args:
		of(&m.SaSessionid)
	case *nfs4.DESTROY_SESSION4args:
		of(&m.DsaSessionid)
	case *nfs4.BIND_CONN_TO_SESSION4args:
		of(&m.BctsaSessid)
	case *nfs4.OPEN4args:
		holder(&m.Owner)
	case *nfs4.RELEASE_LOCKOWNER4args:
		holder(&m.LockOwner)
	case *nfs4.LOCK4args:
		if m.Locker.NewLockOwner {
			holder(&m.Locker.OpenOwner.LockOwner)
		}
	}
	if minor == 0 && !g.ownsState(e.Held(m)) {
		bad = state
	}
	return bad
}

// ownsState reports whether a state id of NFSv4.0 is this run's, or none. From 4.1
// on servers compare its client with that of the session (RFC 8881, section 8.2.4).
func (g *Guard) ownsState(s *nfs4.Stateid4) bool {
	if s == nil || special(s) {
		return true
	}
	_, ok := g.states[s.Other]
	return ok
}

// special reports whether a state id is a special one (RFC 7530, section 9.1.4.3).
func special(s *nfs4.Stateid4) bool {
	for _, b := range s.Other[1:] {
		if b != s.Other[0] {
			return false
		}
	}
	return s.Other[0] == 0 || s.Other[0] == 0xff
}

// callable reports whether an address is ours, or no address.
func (g *Guard) callable(address []byte) bool {
	return len(address) == 0 || string(address) == "0.0.0.0.0.0" || g.callbacks.has(address)
}
