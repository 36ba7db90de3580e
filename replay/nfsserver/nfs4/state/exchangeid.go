package state

import "github.com/rpcrdma/toolkit/decode/nfs/nfs4"

const exchangeFlags = nfs4.EXCHGID4_FLAG_SUPP_MOVED_REFER | nfs4.EXCHGID4_FLAG_SUPP_MOVED_MIGR |
	nfs4.EXCHGID4_FLAG_SUPP_FENCE_OPS | // NFSv4.2
	nfs4.EXCHGID4_FLAG_BIND_PRINC_STATEID |
	nfs4.EXCHGID4_FLAG_USE_NON_PNFS | nfs4.EXCHGID4_FLAG_USE_PNFS_MDS | nfs4.EXCHGID4_FLAG_USE_PNFS_DS |
	nfs4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A

// ExchangeID is EXCHANGE_ID. The numbers refer to the table of cases in RFC
// 8881, section 18.35.4. seq is what the client's next CREATE_SESSION must carry. caller makes
// the Caller of a new client.
func (cs *Clients) ExchangeID(owner []byte, verifier [8]byte, flags uint32, w Who, caller func() Caller) (id uint64, seq uint32, confirmed bool, st Status) {
	if flags&^exchangeFlags != 0 {
		return 0, 0, false, nfs4.NFS4ERR_INVAL
	}
	if caller == nil {
		caller = func() Caller { return nil }
	}
	p := w.Principal
	cs.section.Lock()
	defer cs.section.Unlock()
	conf := cs.current(true, owner).confirmed
	if flags&nfs4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A != 0 {
		switch {
		case conf == nil: // 7
			return 0, 0, false, nfs4.NFS4ERR_NOENT
		case conf.verifier != verifier: // 8
			return 0, 0, false, nfs4.NFS4ERR_NOT_SAME
		case conf.principal != p: // 9
			return 0, 0, false, nfs4.NFS4ERR_PERM
		}
		cs.leases.renew(conf)
		return conf.id, conf.createSeq + 1, true, nfs4.NFS4_OK // 6
	}
	same := conf != nil && conf.principal == p && conf.verifier == verifier
	if conf != nil && conf.principal != p { // 3
		if len(conf.states) > 0 || len(conf.sessions) > 0 {
			return 0, 0, false, nfs4.NFS4ERR_CLID_INUSE
		}
		cs.reaper.destroy(conf)
	}
	if u := cs.named(true, string(owner)).unconfirmed; u != nil {
		cs.reaper.destroy(u) // 4
	}
	if same { // 2
		cs.leases.renew(conf)
		return conf.id, conf.createSeq + 1, true, nfs4.NFS4_OK
	}
	// 1, or 5: the client has restarted. Its state is dropped when CREATE_SESSION confirms the new
	// record.
	c := cs.add(&Client{minor: true, owner: string(owner), verifier: verifier, principal: p, source: w.Source, caller: caller()})
	if c == nil {
		return 0, 0, false, nfs4.NFS4ERR_DELAY
	}
	return c.id, c.createSeq + 1, false, nfs4.NFS4_OK
}

// Destroy is DESTROY_CLIENTID, which only the creator of the client ID may send.
func (cs *Clients) Destroy(id uint64, p Principal) Status {
	cs.section.Lock()
	defer cs.section.Unlock()
	c := cs.lookup(id)
	switch {
	case c == nil || !c.minor:
		return nfs4.NFS4ERR_STALE_CLIENTID
	case c.principal != p:
		return nfs4.NFS4ERR_WRONG_CRED
	case len(c.sessions) > 0 || len(c.states) > 0:
		return nfs4.NFS4ERR_CLIENTID_BUSY
	}
	cs.reaper.destroy(c)
	return nfs4.NFS4_OK
}

// ReclaimComplete is RECLAIM_COMPLETE of a whole client.
func (cs *Clients) ReclaimComplete(c *Client) Status {
	cs.section.Lock()
	defer cs.section.Unlock()
	if c.gone {
		return nfs4.NFS4ERR_STALE_CLIENTID
	}
	if c.reclaimed {
		return nfs4.NFS4ERR_COMPLETE_ALREADY
	}
	cs.grace.complete(c)
	return nfs4.NFS4_OK
}
