package state

import (
	"crypto/rand"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// SetClientID is SETCLIENTID (RFC 7530, section 16.33.5). The letters in the
// comments are from that section: x the client's name, v its verifier, p the
// principal, c the client ID, s the number to confirm with. caller is used once the client has
// confirmed.
func (cs *Clients) SetClientID(name []byte, verifier [8]byte, w Who, caller Caller) (id uint64, confirm [8]byte, st Status) {
	p := w.Principal
	cs.section.Lock()
	defer cs.section.Unlock()
	known := cs.current(false, name)
	conf := known.confirmed
	if conf != nil && conf.principal != p && len(conf.states) > 0 {
		return 0, confirm, nfs4.NFS4ERR_CLID_INUSE
	}
	if known.unconfirmed != nil {
		cs.reaper.destroy(known.unconfirmed)
	}
	c := cs.add(&Client{owner: string(name), verifier: verifier, principal: p, source: w.Source, caller: caller})
	if c == nil {
		return 0, confirm, nfs4.NFS4ERR_RESOURCE
	}
	if conf != nil && conf.principal == p && conf.verifier == verifier {
		// The same client again, probably with another callback: conf is kept.
		cs.replace(c, conf.id)
	}
	_, _ = rand.Read(c.confirm[:]) // never fails
	return c.id, c.confirm, nfs4.NFS4_OK
}

// Confirm is SETCLIENTID_CONFIRM (RFC 7530, section 16.34.5).
func (cs *Clients) Confirm(id uint64, confirm [8]byte, p Principal) Status {
	cs.section.Lock()
	defer cs.section.Unlock()
	at := cs.lookup(id)
	if at == nil || at.minor {
		return nfs4.NFS4ERR_STALE_CLIENTID
	}
	known := cs.named(false, at.owner)
	switch u := known.unconfirmed; {
	case u != nil && u.id == id && u.confirm == confirm && !cs.leases.expired(u, cs.leases.now()):
		if u.principal != p {
			return nfs4.NFS4ERR_CLID_INUSE
		}
		if c := known.confirmed; c != nil && c.id == id {
			// Only the callback changes. The record with the state is kept.
			c.confirm = u.confirm
			c.hangUp()
			c.caller = u.caller
			cs.withdraw(u)
			cs.leases.renew(c)
			return nfs4.NFS4_OK
		}
		if known.confirmed != nil {
			cs.reaper.destroy(known.confirmed) // the client has restarted
		}
		cs.confirm(u)
		cs.grace.back(u)
		cs.leases.renew(u)
		return nfs4.NFS4_OK
	case at.confirmed && at.confirm == confirm:
		if at.principal != p {
			return nfs4.NFS4ERR_CLID_INUSE
		}
		cs.leases.renew(at)
		return nfs4.NFS4_OK // sent again
	}
	return nfs4.NFS4ERR_STALE_CLIENTID
}
