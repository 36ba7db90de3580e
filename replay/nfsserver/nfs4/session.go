package nfs4

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
)

// place is a COMPOUND's place in a session.
type place struct {
	*request
	reply  *reply
	at     state.Place
	placed bool // a SEQUENCE was answered
	// retried: the COMPOUND was sent again and its reply is no longer known.
	retried bool
}

func (x *place) reset() { x.placed, x.retried = false, false }

// end keeps the reply in the slot; nil if it is not to be kept.
func (x *place) end(reply []byte) {
	if x.placed {
		x.placed = false
		x.at.End(reply)
	}
}

// position checks whether an operation is allowed at its position (RFC 8881, section 2.10.6.3 and
// those of the operations).
func (x *place) position(number uint32) status {
	switch {
	case x.minor == 0:
		return ok
	case x.retried:
		// Only the SEQUENCE of the first reply is known.
		return nfs4.NFS4ERR_RETRY_UNCACHED_REP
	case number == uint32(nfs4.OP_SEQUENCE):
		if x.index > 0 {
			return nfs4.NFS4ERR_SEQUENCE_POS
		}
	case number == uint32(nfs4.OP_BIND_CONN_TO_SESSION):
		if x.count != 1 {
			return nfs4.NFS4ERR_NOT_ONLY_OP
		}
	case x.placed:
	case number == uint32(nfs4.OP_EXCHANGE_ID), number == uint32(nfs4.OP_CREATE_SESSION),
		number == uint32(nfs4.OP_DESTROY_SESSION), number == uint32(nfs4.OP_DESTROY_CLIENTID):
		if x.count != 1 {
			return nfs4.NFS4ERR_NOT_ONLY_OP
		}
	default:
		return nfs4.NFS4ERR_OP_NOT_IN_SESSION
	}
	return ok
}

// sequence is SEQUENCE. sent says that the whole COMPOUND has been answered.
func (x *place) sequence(a *nfs4.SEQUENCE4args, ops []nfs4.Op) (st status, sent bool) {
	if st = x.position(uint32(nfs4.OP_SEQUENCE)); st != ok {
		return st, false
	}
	print := state.Fingerprint{Principal: x.principal(), Ops: x.count, Operations: 14695981039346656037}
	for i := range ops {
		print.Operations = (print.Operations ^ uint64(ops[i].Number)) * 1099511628211 // FNV-1a
	}
	c := x.c
	out, repeat, st := x.s.table.Sessions.Sequence(a, print, c.Message().Size(), &x.at, c.Out[:x.reply.start])
	if st != ok {
		return st, false
	}
	switch repeat {
	case state.Cached:
		c.Out = out
		c.Send()
		return ok, true
	case state.Uncached:
		x.retried = true
	default:
		x.placed, x.client = true, x.at.Client
		r := x.reply
		r.keep = x.at.Keep
		r.limit = min(r.limit, max(int(x.at.Reply)-replyHeader, 0))
		if kept := max(int(x.at.Cached)-replyHeader, 0); r.keep && kept < r.limit {
			r.limit, r.beyond = kept, nfs4.NFS4ERR_REP_TOO_BIG_TO_CACHE
		}
	}
	c.Out = x.at.Result.Append(c.Out)
	return ok, false
}

// clientOps executes the operations on client IDs, on sessions or on stateids of any kind.
type clientOps struct {
	*request
	*objects
	*reply
	place *place
}

func (x *clientOps) exchangeID(a *nfs4.EXCHANGE_ID4args) status {
	switch a.EiaStateProtect.SpaHow {
	case nfs4.SP4_NONE:
	case nfs4.SP4_SSV:
		return nfs4.NFS4ERR_ENCR_ALG_UNSUPP
	default:
		return nfs4.NFS4ERR_INVAL // SP4_MACH_CRED is not offered; clients go on with SP4_NONE
	}
	if x.minor < 2 && a.EiaFlags&nfs4.EXCHGID4_FLAG_SUPP_FENCE_OPS != 0 {
		return nfs4.NFS4ERR_INVAL
	}
	id, seq, confirmed, st := x.s.table.Clients.ExchangeID(a.EiaClientowner.CoOwnerid, a.EiaClientowner.CoVerifier, a.EiaFlags, x.who(), x.s.newCaller)
	if st != ok {
		return st
	}
	flags := uint32(nfs4.EXCHGID4_FLAG_USE_NON_PNFS)
	if confirmed {
		flags |= nfs4.EXCHGID4_FLAG_CONFIRMED_R
	}
	r := nfs4.EXCHANGE_ID4resok{EirClientid: id, EirSequenceid: seq, EirFlags: flags, EirServerScope: x.s.owner}
	r.EirStateProtect.SprHow = nfs4.SP4_NONE
	r.EirServerOwner.SoMajorId = x.s.owner
	x.c.Out = r.Append(x.c.Out)
	return ok
}

func (x *clientOps) createSession(a *nfs4.CREATE_SESSION4args) status {
	r := x.s.table.Sessions.Create(a, x.who(), x.c.Exchange().Backward() != nil)
	if r.CsrStatus == ok {
		x.bindNew(a, &r.CsrResok4)
		x.c.Out = r.CsrResok4.Append(x.c.Out)
	}
	return r.CsrStatus
}

func (x *clientOps) destroySession(a *nfs4.DESTROY_SESSION4args) status {
	if x.place.placed && a.DsaSessionid == x.place.at.Session() && x.index+1 != int(x.count) {
		return nfs4.NFS4ERR_NOT_ONLY_OP // has to be the last one in its own session
	}
	return x.s.table.Sessions.Destroy(a.DsaSessionid, x.principal())
}

func (x *clientOps) bindConn(a *nfs4.BIND_CONN_TO_SESSION4args) status {
	if st := x.s.table.Sessions.Bind(a.BctsaSessid, x.principal()); st != ok {
		return st
	}
	back := x.c.Exchange().Backward() != nil
	dir := nfs4.CDFS4_FORE
	switch a.BctsaDir {
	case nfs4.CDFC4_FORE:
	case nfs4.CDFC4_FORE_OR_BOTH, nfs4.CDFC4_BACK_OR_BOTH:
		if back {
			dir = nfs4.CDFS4_BOTH
		}
	case nfs4.CDFC4_BACK:
		if !back {
			return nfs4.NFS4ERR_NOTSUPP
		}
		dir = nfs4.CDFS4_BACK
	default:
		return nfs4.NFS4ERR_INVAL
	}
	if dir != nfs4.CDFS4_FORE {
		x.bind(a.BctsaSessid)
	}
	r := nfs4.BIND_CONN_TO_SESSION4resok{BctsrSessid: a.BctsaSessid, BctsrDir: dir}
	x.c.Out = r.Append(x.c.Out)
	return ok
}

func (x *clientOps) destroyClientID(a *nfs4.DESTROY_CLIENTID4args) status {
	return x.s.table.Clients.Destroy(a.DcaClientid, x.principal())
}

func (x *clientOps) reclaimComplete(a *nfs4.RECLAIM_COMPLETE4args) status {
	if a.RcaOneFs {
		if !x.hasFH {
			return nfs4.NFS4ERR_NOFILEHANDLE
		}
		return ok // there is one file system, and nothing was moved
	}
	return x.s.table.Clients.ReclaimComplete(x.client)
}

func (x *clientOps) testStateid(a *nfs4.TEST_STATEID4args) status {
	b := xdr.AppendUint32(x.c.Out, uint32(len(a.TsStateids)))
	for i := range a.TsStateids {
		b = xdr.AppendUint32(b, uint32(x.s.table.Stateids.Test(x.client, &a.TsStateids[i])))
	}
	x.c.Out = b
	return ok
}

func (x *clientOps) freeStateid(a *nfs4.FREE_STATEID4args) status {
	id, st := x.stateid(&a.FsaStateid)
	if st != ok {
		return st
	}
	return x.s.table.Stateids.Free(x.client, id, x.principal())
}

// Client IDs of NFSv4.0.

func (x *clientOps) setclientid(a *nfs4.SETCLIENTID4args) status {
	id, confirm, st := x.s.table.Clients.SetClientID(a.Client.Id, a.Client.Verifier, x.who(), x.s.newCaller0(a, x.c.Peer().Remote.Addr()))
	switch st {
	case ok:
		r := nfs4.SETCLIENTID4resok{Clientid: id, SetclientidConfirm: confirm}
		x.c.Out = r.Append(x.c.Out)
	case nfs4.NFS4ERR_CLID_INUSE:
		var using nfs4.Netaddr4 // where the other client is stays private
		x.c.Out = using.Append(x.c.Out)
		x.tail = true
	}
	return st
}

func (x *clientOps) setclientidConfirm(a *nfs4.SETCLIENTID_CONFIRM4args) status {
	st := x.s.table.Clients.Confirm(a.Clientid, a.SetclientidConfirm, x.principal())
	if c := channel(x.s.table.Clients.Caller(a.Clientid)); st == ok && c != nil {
		c.Probe()
	}
	return st
}

func (x *clientOps) renew(a *nfs4.RENEW4args) status { return x.s.table.Clients.Renew(a.Clientid) }
