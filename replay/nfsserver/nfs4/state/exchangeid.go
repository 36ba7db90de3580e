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
func (t *Table) ExchangeID(owner []byte, verifier [8]byte, flags uint32, w Who, caller func() Caller) (id uint64, seq uint32, confirmed bool, st Status) {
	if flags&^exchangeFlags != 0 {
		return 0, 0, false, nfs4.NFS4ERR_INVAL
	}
	if caller == nil {
		caller = func() Caller { return nil }
	}
	p := w.Principal
	t.mu.Lock()
	defer t.unlock()
	known := t.byOwner1[string(owner)]
	var conf *Client
	if known != nil {
		conf = known.confirmed
	}
	if conf != nil && t.expired(conf, t.now()) {
		t.destroy(conf)
		conf = nil
	}
	if flags&nfs4.EXCHGID4_FLAG_UPD_CONFIRMED_REC_A != 0 {
		switch {
		case conf == nil: // 7
			return 0, 0, false, nfs4.NFS4ERR_NOENT
		case conf.verifier != verifier: // 8
			return 0, 0, false, nfs4.NFS4ERR_NOT_SAME
		case conf.principal != p: // 9
			return 0, 0, false, nfs4.NFS4ERR_PERM
		}
		t.renew(conf)
		return conf.id, conf.createSeq + 1, true, nfs4.NFS4_OK // 6
	}
	if conf != nil {
		switch {
		case conf.principal != p: // 3
			if len(conf.states) > 0 || len(conf.sessions) > 0 {
				return 0, 0, false, nfs4.NFS4ERR_CLID_INUSE
			}
			t.destroy(conf)
		case conf.verifier == verifier: // 2
			if u := t.byOwner1[string(owner)].unconfirmed; u != nil {
				t.destroy(u)
			}
			t.renew(conf)
			return conf.id, conf.createSeq + 1, true, nfs4.NFS4_OK
		}
		// 5: the client has restarted. Its state is dropped when CREATE_SESSION confirms the new
		// record.
	}
	if known := t.byOwner1[string(owner)]; known != nil && known.unconfirmed != nil {
		t.destroy(known.unconfirmed) // 4
	}
	c := t.newClient(true, owner, verifier, w, caller()) // 1
	if c == nil {
		return 0, 0, false, nfs4.NFS4ERR_DELAY
	}
	return c.id, c.createSeq + 1, false, nfs4.NFS4_OK
}

// DestroyClientID is DESTROY_CLIENTID, which only the creator of the client ID may send.
func (t *Table) DestroyClientID(id uint64, p Principal) Status {
	t.mu.Lock()
	defer t.unlock()
	c := t.lookup(id)
	switch {
	case c == nil || !c.minor:
		return nfs4.NFS4ERR_STALE_CLIENTID
	case c.principal != p:
		return nfs4.NFS4ERR_WRONG_CRED
	case len(c.sessions) > 0 || len(c.states) > 0:
		return nfs4.NFS4ERR_CLIENTID_BUSY
	}
	t.destroy(c)
	return nfs4.NFS4_OK
}

// ReclaimComplete is RECLAIM_COMPLETE of a whole client.
func (t *Table) ReclaimComplete(c *Client) Status {
	t.mu.Lock()
	defer t.unlock()
	if c.gone {
		return nfs4.NFS4ERR_STALE_CLIENTID
	}
	if c.reclaimed {
		return nfs4.NFS4ERR_COMPLETE_ALREADY
	}
	c.reclaimed = true
	t.reclaimedAll(c)
	return nfs4.NFS4_OK
}
