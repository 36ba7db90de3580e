package state

import (
	"crypto/rand"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
)

// SetClientID is SETCLIENTID (RFC 7530, section 16.33.5). The letters in the
// comments are from that section: x the client's name, v its verifier, p the
// principal, c the client ID, s the number to confirm with. caller is used once the client has
// confirmed.
func (t *Table) SetClientID(name []byte, verifier [8]byte, w Who, caller Caller) (id uint64, confirm [8]byte, st Status) {
	p := w.Principal
	t.mu.Lock()
	defer t.unlock()
	known := t.byOwner0[string(name)]
	var conf, unconf *Client
	if known != nil {
		conf, unconf = known.confirmed, known.unconfirmed
	}
	if conf != nil && t.expired(conf, t.now()) {
		t.destroy(conf)
		conf = nil
	}
	if conf != nil && conf.principal != p && len(conf.states) > 0 {
		return 0, confirm, nfs4.NFS4ERR_CLID_INUSE
	}
	if unconf != nil {
		t.destroy(unconf)
	}
	c := t.newClient(false, name, verifier, w, caller)
	if c == nil {
		return 0, confirm, nfs4.NFS4ERR_RESOURCE
	}
	if conf != nil && conf.principal == p && conf.verifier == verifier {
		// The same client again, probably with another callback: c is kept.
		delete(t.clients, c.tag())
		c.id = conf.id
	}
	_, _ = rand.Read(c.confirm[:]) // never fails
	return c.id, c.confirm, nfs4.NFS4_OK
}

// ConfirmClientID is SETCLIENTID_CONFIRM (RFC 7530, section 16.34.5).
func (t *Table) ConfirmClientID(id uint64, confirm [8]byte, p Principal) Status {
	t.mu.Lock()
	defer t.unlock()
	at := t.lookup(id)
	if at == nil || at.minor {
		return nfs4.NFS4ERR_STALE_CLIENTID
	}
	known := t.byOwner0[at.owner]
	switch u := known.unconfirmed; {
	case u != nil && u.id == id && u.confirm == confirm && !t.expired(u, t.now()):
		if u.principal != p {
			return nfs4.NFS4ERR_CLID_INUSE
		}
		if c := known.confirmed; c != nil && c.id == id {
			// Only the callback changes. The record with the state is kept.
			c.confirm = u.confirm
			if c.caller != nil {
				c.caller.Close()
			}
			c.caller = u.caller
			u.gone = true
			t.records.give(u.source, 1)
			known.unconfirmed = nil
			t.renew(c)
			return nfs4.NFS4_OK
		}
		if known.confirmed != nil {
			t.destroy(known.confirmed) // the client has restarted
		}
		t.setConfirmed(u)
		return nfs4.NFS4_OK
	case at.confirmed && at.confirm == confirm:
		if at.principal != p {
			return nfs4.NFS4ERR_CLID_INUSE
		}
		t.renew(at)
		return nfs4.NFS4_OK // sent again
	}
	return nfs4.NFS4ERR_STALE_CLIENTID
}
