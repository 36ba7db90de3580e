package planner

import (
	"encoding/binary"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// state4 are the operations on opens, locks and delegations.
func (c *call) state4(x *rpc.Operation) bool {
	f, p, s := &c.form, &c.compound, &c.b.states
	o := p.cur.real()
	// result binds the state id of a reply.
	result := func(id *nfs4.Stateid4, kind plan.StateKind, w *owner) {
		s.result(c, p.at, id, kind, o, w)
	}
	switch a := x.Args.(type) {
	case *nfs4.OPEN4args:
		c.open4(x, a)
	case *nfs4.OPEN_CONFIRM4args:
		st := c.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, writes)
		c.seqid("seqid", c.ownerOf(st, "open"), a.Seqid)
		if r, is := x.Result.(*nfs4.OPEN_CONFIRM4res); is && c.ok {
			result(&r.Resok4.OpenStateid, plan.OpenState, nil)
		}
	case *nfs4.OPEN_DOWNGRADE4args:
		st := c.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, writes)
		c.seqid("seqid", c.ownerOf(st, "open"), a.Seqid)
		f.u32("share_access", uint32(a.ShareAccess))
		f.u32("share_deny", a.ShareDeny)
		if r, is := x.Result.(*nfs4.OPEN_DOWNGRADE4res); is && c.ok {
			result(&r.Resok4.OpenStateid, plan.OpenState, nil)
		}
	case *nfs4.CLOSE4args:
		st := c.stateOf(&a.OpenStateid, plan.OpenState, o)
		c.seqid("seqid", c.ownerOf(st, "open"), a.Seqid)
		c.stateid("open_stateid", &a.OpenStateid, plan.OpenState, o, writes)
		if r, is := x.Result.(*nfs4.CLOSE4res); is && c.ok && st != nil && r.OpenStateid.Other == a.OpenStateid.Other {
			st.seqid = r.OpenStateid.Seqid
		}
	case *nfs4.DELEGRETURN4args:
		c.stateid("deleg_stateid", &a.DelegStateid, plan.DelegationState, o, writes)
	case *nfs4.FREE_STATEID4args:
		c.stateid("fsa_stateid", &a.FsaStateid, plan.LockState, o, writes)
	case *nfs4.TEST_STATEID4args:
		f.u32("ts_stateids", uint32(len(a.TsStateids)))
		for i := range a.TsStateids {
			c.stateid("stateid", &a.TsStateids[i], plan.OpenState, nil, reads)
		}
	case *nfs4.LOCK4args:
		f.u32("locktype", uint32(a.Locktype))
		f.bool("reclaim", a.Reclaim)
		f.u64("offset", a.Offset)
		f.u64("length", a.Length)
		f.bool("new_lock_owner", a.Locker.NewLockOwner)
		var w *owner
		if a.Locker.NewLockOwner {
			l := &a.Locker.OpenOwner
			st := c.stateOf(&l.OpenStateid, plan.OpenState, o)
			c.seqid("open_seqid", c.ownerOf(st, "open"), l.OpenSeqid)
			c.stateid("open_stateid", &l.OpenStateid, plan.OpenState, o, reads)
			cl := c.clientOf(l.LockOwner.Clientid)
			w = s.owner(cl, "lock", l.LockOwner.Owner)
			c.seqid("lock_seqid", w, l.LockSeqid)
			c.clientID("lock_owner.clientid", l.LockOwner.Clientid)
			f.text("lock_owner.owner", l.LockOwner.Owner)
		} else {
			l := &a.Locker.LockOwner
			st := c.stateid("lock_stateid", &l.LockStateid, plan.LockState, o, writes)
			w = c.ownerOf(st, "lock")
			c.seqid("lock_seqid", w, l.LockSeqid)
		}
		c.locks(o, a.Offset, a.Length)
		if r, is := x.Result.(*nfs4.LOCK4res); is && c.ok {
			result(&r.Resok4.LockStateid, plan.LockState, w)
		}
	case *nfs4.LOCKU4args:
		f.u32("locktype", uint32(a.Locktype))
		st := c.stateOf(&a.LockStateid, plan.LockState, o)
		c.seqid("seqid", c.ownerOf(st, "lock"), a.Seqid)
		c.stateid("lock_stateid", &a.LockStateid, plan.LockState, o, writes)
		f.u64("offset", a.Offset)
		f.u64("length", a.Length)
		c.locks(o, a.Offset, a.Length)
		if r, is := x.Result.(*nfs4.LOCKU4res); is && c.ok {
			result(&r.LockStateid, plan.LockState, nil)
		}
	case *nfs4.LOCKT4args:
		f.u32("locktype", uint32(a.Locktype))
		f.u64("offset", a.Offset)
		f.u64("length", a.Length)
		c.clientID("owner.clientid", a.Owner.Clientid)
		f.text("owner.owner", a.Owner.Owner)
		c.locks(o, a.Offset, a.Length)
	case *nfs4.RELEASE_LOCKOWNER4args:
		cl := c.clientID("lock_owner.clientid", a.LockOwner.Clientid)
		f.text("lock_owner.owner", a.LockOwner.Owner)
		w := s.owner(cl, "lock", a.LockOwner.Owner)
		c.dep(w.last.op, w.last.end, plan.DepSeqid)
		w.last = flight{c.op.ID, c.end}
	default:
		return false
	}
	return true
}

// stateOf is the state of a state id, without a field for it.
func (c *call) stateOf(id *nfs4.Stateid4, kind plan.StateKind, o *obj) *state {
	if isSpecial(id) != "" {
		return nil
	}
	return c.b.states.state(c, id, kind, o)
}

// locks orders operations on locks of overlapping ranges.
func (c *call) locks(o *obj, offset, length uint64) {
	if o = o.real(); o == nil || !c.executed() {
		return
	}
	end := offset + length
	if length == forever || end < offset {
		end = forever
	}
	c.span(offset, length)
	c.use(&o.own().locks, offset, end, writes, plan.DepRange)
}

// open4 is OPEN.
func (c *call) open4(x *rpc.Operation, a *nfs4.OPEN4args) {
	f, p, s := &c.form, &c.compound, &c.b.space
	d := p.cur.real()
	cl := c.clientOf(a.Owner.Clientid)
	w := c.b.states.owner(cl, "open", a.Owner.Owner)
	c.seqid("seqid", w, a.Seqid)
	f.u32("share_access", uint32(a.ShareAccess))
	f.u32("share_deny", a.ShareDeny)
	c.clientID("owner.clientid", a.Owner.Clientid)
	f.text("owner.owner", a.Owner.Owner)
	f.raw("openhow", &a.Openhow)
	create := a.Openhow.Opentype == nfs4.OPEN4_CREATE
	var name []byte
	f.u32("claim", uint32(a.Claim.Claim))
	switch a.Claim.Claim {
	case nfs4.CLAIM_NULL:
		name = a.Claim.File
		f.name("file", name, c.leads(d, name))
	case nfs4.CLAIM_PREVIOUS:
		f.u32("delegate_type", uint32(a.Claim.DelegateType))
	case nfs4.CLAIM_DELEGATE_CUR:
		name = a.Claim.DelegateCurInfo.File
		c.stateid("delegate_stateid", &a.Claim.DelegateCurInfo.DelegateStateid, plan.DelegationState, nil, reads)
		f.name("file", name, c.leads(d, name))
	case nfs4.CLAIM_DELEGATE_PREV:
		name = a.Claim.FileDelegatePrev
		f.name("file", name, c.leads(d, name))
	case nfs4.CLAIM_DELEG_CUR_FH:
		c.stateid("oc_delegate_stateid", &a.Claim.OcDelegateStateid, plan.DelegationState, d, reads)
	}
	c.op.Modifies = c.op.Modifies || create
	r, _ := x.Result.(*nfs4.OPEN4res)
	if name == nil {
		c.opened(r, d, w, a)
		return
	}
	c.at(name)
	if c.executed() {
		if create {
			c.changes(d, name)
		} else {
			c.looks(d, name)
		}
	}
	p.cur = nil
	switch {
	case !c.replied:
		if create {
			c.maybe(d, name)
		}
	case c.ok && r != nil:
		h := c.handleAfter()
		existed := !create
		if create && a.Openhow.How.Mode == nfs4.UNCHECKED4 && d != nil {
			n := s.state(d, name)
			existed = n.obj != nil || !n.touched && !n.absent && r.Resok4.Cinfo.Before == r.Resok4.Cinfo.After
		}
		if existed {
			p.cur = s.find(d, name, h)
			if o := p.cur.real(); o != nil && o.created != 0 {
				c.dep(o.created, o.createdAt, plan.DepCreate)
			}
		} else {
			p.cur = s.create(c, d, name, h, "file")
		}
		if f.fields[len(f.fields)-1].Kind == plan.FieldName && existed {
			f.fields[len(f.fields)-1].Ref = s.refIfHandle(p.cur)
		}
		if create && existed && a.Openhow.How.Mode == nfs4.UNCHECKED4 {
			c.truncates(&a.Openhow.How.Createattrs, p.cur)
		}
		c.opened(r, p.cur, w, a)
	case x.Result != nil && x.Code == uint32(nfs4.NFS4ERR_NOENT):
		s.missing(d, name)
	case x.Result != nil && x.Code == uint32(nfs4.NFS4ERR_EXIST):
		s.find(d, name, nil)
	}
}

// truncates is an OPEN of an existing file that sets its size.
func (c *call) truncates(f *nfs4.Fattr4, o *obj) {
	if f.Attrmask.Has(nfs4.FATTR4_SIZE) && c.b.attrs.Decode(f) == nil {
		c.resized(o, c.b.attrs.Size)
	}
}

// opened takes what OPEN gives.
func (c *call) opened(r *nfs4.OPEN4res, o *obj, w *owner, a *nfs4.OPEN4args) {
	if r == nil || !c.ok {
		return
	}
	if o = o.real(); o != nil && o.typ == "" {
		o.typ = "file"
	}
	c.saw(o)
	s, at := &c.b.states, c.compound.at
	if x := s.result(c, at, &r.Resok4.Stateid, plan.OpenState, o, w); x != nil {
		x.Access |= uint32(a.ShareAccess) & (nfs4.OPEN4_SHARE_ACCESS_READ | nfs4.OPEN4_SHARE_ACCESS_WRITE)
		c.use(&x.uses, 0, 1, writes, plan.DepState)
	}
	if id := delegated(&r.Resok4.Delegation); id != nil {
		if x := s.result(c, at, id, plan.DelegationState, o, nil); x != nil {
			x.client = s.clientsIn[w.Client-1]
		}
	}
}

// client4 are the operations on clients and sessions.
func (c *call) client4(x *rpc.Operation) bool {
	f, p, s := &c.form, &c.compound, &c.b.states
	switch a := x.Args.(type) {
	case *nfs4.SEQUENCE4args:
		e := c.sessionID("sa_sessionid", a.SaSessionid)
		p.session = e
		f.symbol(plan.Field{N: "sa_sequenceid", Kind: plan.FieldSequence, Ref: e.ID}, binary.BigEndian.AppendUint32(nil, a.SaSequenceid))
		f.symbol(plan.Field{N: "sa_slotid", Kind: plan.FieldSlot, Ref: e.ID, Value: uint64(a.SaSlotid)}, binary.BigEndian.AppendUint32(nil, a.SaSlotid))
		f.symbol(plan.Field{N: "sa_highest_slotid", Kind: plan.FieldHighest, Ref: e.ID, Value: uint64(a.SaHighestSlotid)}, binary.BigEndian.AppendUint32(nil, a.SaHighestSlotid))
		f.bool("sa_cachethis", a.SaCachethis)
		if a.SaSlotid < maxSlots {
			last := e.slots[a.SaSlotid]
			c.dep(last.op, last.end, plan.DepSlot)
			if _, ok := e.slots[a.SaSlotid]; !ok {
				c.b.room.take(slotSize)
			}
			e.slots[a.SaSlotid] = flight{c.op.ID, c.end}
			if e.DefinedBy == 0 {
				e.Slots = max(e.Slots, a.SaSlotid+1)
			}
		}
		if e.client.ready != 0 {
			c.dep(e.client.ready, e.client.readyAt, plan.DepClient)
		}
	case *nfs4.EXCHANGE_ID4args:
		w := s.ownerID(c, a.EiaClientowner.CoOwnerid, a.EiaClientowner.CoVerifier)
		f.symbol(plan.Field{N: "co_verifier", Kind: plan.FieldVerifier, Ref: w.ID}, a.EiaClientowner.CoVerifier[:])
		f.symbol(plan.Field{N: "co_ownerid", Kind: plan.FieldOwnerID, Ref: w.ID}, appendOpaque(a.EiaClientowner.CoOwnerid))
		f.u32("eia_flags", a.EiaFlags)
		if a.EiaStateProtect.SpaHow == nfs4.SP4_NONE {
			f.raw("eia_state_protect", &a.EiaStateProtect)
		} else {
			f.symbol(plan.Field{N: "eia_state_protect", Kind: plan.FieldU32, Value: uint64(nfs4.SP4_NONE)}, a.EiaStateProtect.Append(nil))
			c.worse(plan.Inferred, "without the protection of state by a machine's credential, which needs RPCSEC_GSS")
		}
		f.u32("eia_client_impl_id", uint32(len(a.EiaClientImplId)))
		for i := range a.EiaClientImplId {
			f.raw("eia_client_impl_id", &a.EiaClientImplId[i])
		}
		if r, is := x.Result.(*nfs4.EXCHANGE_ID4res); is && c.ok {
			y := s.named(c, w, r.EirResok4.EirClientid)
			c.dep(y.set, y.setAt, plan.DepClient)
			y.set, y.setAt = c.op.ID, c.end
			// A client that comes again has given up what it had.
			c.dep(y.ready, y.readyAt, plan.DepClient)
			c.afterAll(y)
			c.op.Binds = append(c.op.Binds, plan.Bind{At: p.at, Kind: plan.FieldClient, Ref: y.ID})
		}
	case *nfs4.CREATE_SESSION4args:
		y := c.clientID("csa_clientid", a.CsaClientid)
		c.dep(y.set, y.setAt, plan.DepClient)
		f.symbol(plan.Field{N: "csa_sequence", Kind: plan.FieldCreateSeq, Ref: y.ID}, binary.BigEndian.AppendUint32(nil, a.CsaSequence))
		f.u32("csa_flags", a.CsaFlags)
		f.raw("csa_fore_chan_attrs", &a.CsaForeChanAttrs)
		f.raw("csa_back_chan_attrs", &a.CsaBackChanAttrs)
		f.u32("csa_cb_program", a.CsaCbProgram)
		f.u32("csa_sec_parms", uint32(len(a.CsaSecParms)))
		for i := range a.CsaSecParms {
			f.raw("csa_sec_parms", &a.CsaSecParms[i])
		}
		if r, is := x.Result.(*nfs4.CREATE_SESSION4res); is && c.ok {
			k := sessionKey{c.server, r.CsrResok4.CsrSessionid}
			e := s.sessions[k]
			if e == nil {
				e = s.addSession(k, y)
			}
			if e.DefinedBy == 0 && e.Class == "" {
				n := &r.CsrResok4.CsrForeChanAttrs
				e.DefinedBy, e.Class = c.op.ID, plan.Exact
				e.Slots, e.MaxOps = n.CaMaxrequests, n.CaMaxoperations
				e.MaxRequest, e.MaxResponse, e.MaxCached = n.CaMaxrequestsize, n.CaMaxresponsesize, n.CaMaxresponsesizeCached
			}
			c.op.Binds = append(c.op.Binds, plan.Bind{At: p.at, Kind: plan.FieldSession, Ref: e.ID})
		}
	case *nfs4.DESTROY_SESSION4args:
		e := c.sessionID("dsa_sessionid", a.DsaSessionid)
		c.after(e)
	case *nfs4.DESTROY_CLIENTID4args:
		y := c.clientID("dca_clientid", a.DcaClientid)
		c.afterAll(y)
	case *nfs4.BIND_CONN_TO_SESSION4args:
		c.sessionID("bctsa_sessid", a.BctsaSessid)
		f.u32("bctsa_dir", uint32(a.BctsaDir))
		f.bool("bctsa_use_conn_in_rdma_mode", a.BctsaUseConnInRdmaMode)
	case *nfs4.RECLAIM_COMPLETE4args:
		f.bool("rca_one_fs", a.RcaOneFs)
		if c.client != nil && c.ok {
			c.client.reclaimed = true
			c.client.ready, c.client.readyAt = c.op.ID, c.end
		}
	case *nfs4.SETCLIENTID4args:
		w := s.ownerID(c, a.Client.Id, a.Client.Verifier)
		f.symbol(plan.Field{N: "verifier", Kind: plan.FieldVerifier, Ref: w.ID}, a.Client.Verifier[:])
		f.symbol(plan.Field{N: "id", Kind: plan.FieldOwnerID, Ref: w.ID}, appendOpaque(a.Client.Id))
		f.u32("cb_program", a.Callback.CbProgram)
		f.symbol(plan.Field{N: "cb_location", Kind: plan.FieldCallback, Text: strings.ToValidUTF8(string(a.Callback.CbLocation.NaRNetid)+" "+string(a.Callback.CbLocation.NaRAddr), "?")},
			a.Callback.CbLocation.Append(nil))
		f.u32("callback_ident", a.CallbackIdent)
		if r, is := x.Result.(*nfs4.SETCLIENTID4res); is && c.ok {
			y := s.named(c, w, r.Resok4.Clientid)
			c.op.Binds = append(c.op.Binds, plan.Bind{At: p.at, Kind: plan.FieldClient, Ref: y.ID}, plan.Bind{At: p.at, Kind: plan.FieldConfirm, Ref: y.ID})
			y.set, y.setAt = c.op.ID, c.end
		}
	case *nfs4.SETCLIENTID_CONFIRM4args:
		y := c.clientID("clientid", a.Clientid)
		c.dep(y.set, y.setAt, plan.DepClient)
		f.symbol(plan.Field{N: "setclientid_confirm", Kind: plan.FieldConfirm, Ref: y.ID}, a.SetclientidConfirm[:])
		if c.ok {
			y.ready, y.readyAt = c.op.ID, c.end
		}
	case *nfs4.RENEW4args:
		c.clientID("clientid", a.Clientid)
	case *nfs4.DELEGPURGE4args:
		c.clientID("clientid", a.Clientid)
	default:
		return false
	}
	return true
}

// maxSlots bounds the slots of a session that are followed.
const maxSlots = 1 << 12

func appendOpaque(b []byte) []byte {
	var f form
	f.text("", b)
	return f.bytes
}

// sessionID adds a session.
func (c *call) sessionID(n string, id [16]byte) *session {
	e := c.b.states.session(c, id)
	c.client = e.client
	c.must(e.DefinedBy, plan.DepClient)
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldSession, Ref: e.ID}, id[:])
	return e
}

// after waits for what was last sent on each slot of a session.
func (c *call) after(e *session) {
	for _, last := range e.slots {
		c.dep(last.op, last.end, plan.DepClient)
	}
	if len(e.slots) > manySlots && c.end >= 0 {
		// Whoever would wait for them all waits for this one.
		clear(e.slots)
		e.slots[maxSlots] = flight{c.op.ID, c.end}
	}
}

// afterAll is after for all sessions of a client.
func (c *call) afterAll(y *client) {
	for _, e := range y.sessions {
		c.after(e)
	}
	if n := len(y.sessions); n > manySlots && c.end >= 0 {
		e := y.sessions[n-1]
		clear(e.slots)
		e.slots[maxSlots] = flight{c.op.ID, c.end}
		y.sessions = append(y.sessions[:0], e)
	}
}

// manySlots is how many slots, or sessions, calls wait for one by one.
const manySlots = 64

// new4 are operations on layouts and other state of NFSv4.1 and 4.2.
func (c *call) new4(x *rpc.Operation) bool {
	f, p := &c.form, &c.compound
	o := p.cur.real()
	switch a := x.Args.(type) {
	case *nfs4.LAYOUTGET4args:
		f.bool("loga_signal_layout_avail", a.LogaSignalLayoutAvail)
		f.u32("loga_layout_type", uint32(a.LogaLayoutType))
		f.u32("loga_iomode", uint32(a.LogaIomode))
		f.u64("loga_offset", a.LogaOffset)
		f.u64("loga_length", a.LogaLength)
		f.u64("loga_minlength", a.LogaMinlength)
		c.stateid("loga_stateid", &a.LogaStateid, plan.OpenState, o, reads)
		f.u32("loga_maxcount", a.LogaMaxcount)
		if r, is := x.Result.(*nfs4.LAYOUTGET4res); is && c.ok {
			c.b.states.result(c, p.at, &r.LogrResok4.LogrStateid, plan.LayoutState, o, nil)
		}
	case *nfs4.OFFLOAD_CANCEL4args:
		c.stateid("oca_stateid", &a.OcaStateid, plan.CopyState, o, writes)
	case *nfs4.OFFLOAD_STATUS4args:
		c.stateid("osa_stateid", &a.OsaStateid, plan.CopyState, o, reads)
	case *nfs4.COPY_NOTIFY4args:
		c.stateid("cna_src_stateid", &a.CnaSrcStateid, plan.OpenState, o, reads)
		f.raw("cna_destination_server", &a.CnaDestinationServer)
	case *nfs4.LAYOUTRETURN4args, *nfs4.LAYOUTCOMMIT4args, *nfs4.LAYOUTSTATS4args, *nfs4.LAYOUTERROR4args,
		*nfs4.GETDEVICEINFO4args, *nfs4.SET_SSV4args, *nfs4.BACKCHANNEL_CTL4args, *nfs4.WANT_DELEGATION4args:
		f.raw("arguments", x.Args)
		c.worse(plan.Inferred, x.Name+" kept as it is: handles and state ids in it mean nothing to another server")
	default:
		return false
	}
	return true
}
