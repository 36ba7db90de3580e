package planner

import (
	"encoding/binary"
	"strings"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// clientOps are the operations on clients and sessions.
var clientOps = opTable{
	nfs4.OP_DELEGPURGE:           op4(delegpurge4),
	nfs4.OP_RENEW:                op4(renew4),
	nfs4.OP_SETCLIENTID:          op4(setclientid4),
	nfs4.OP_SETCLIENTID_CONFIRM:  op4(setclientidConfirm4),
	nfs4.OP_BACKCHANNEL_CTL:      kept4,
	nfs4.OP_BIND_CONN_TO_SESSION: op4(bindConn4),
	nfs4.OP_EXCHANGE_ID:          op4(exchangeID4),
	nfs4.OP_CREATE_SESSION:       op4(createSession4),
	nfs4.OP_DESTROY_SESSION:      op4(destroySession4),
	nfs4.OP_SEQUENCE:             op4(sequence4),
	nfs4.OP_SET_SSV:              kept4,
	nfs4.OP_DESTROY_CLIENTID:     op4(destroyClientID4),
	nfs4.OP_RECLAIM_COMPLETE:     op4(reclaimComplete4),
}

func sequence4(c *compound, a *nfs4.SEQUENCE4args, _ *nfs4.SEQUENCE4res) {
	f := &c.form
	e := c.ids.sessionID("sa_sessionid", a.SaSessionid)
	f.symbol(plan.Field{N: "sa_sequenceid", Kind: plan.FieldSequence, Ref: e.ID}, binary.BigEndian.AppendUint32(nil, a.SaSequenceid))
	f.symbol(plan.Field{N: "sa_slotid", Kind: plan.FieldSlot, Ref: e.ID, Value: uint64(a.SaSlotid)}, binary.BigEndian.AppendUint32(nil, a.SaSlotid))
	f.symbol(plan.Field{N: "sa_highest_slotid", Kind: plan.FieldHighest, Ref: e.ID, Value: uint64(a.SaHighestSlotid)}, binary.BigEndian.AppendUint32(nil, a.SaHighestSlotid))
	f.bool("sa_cachethis", a.SaCachethis)
	if a.SaSlotid < maxSlots {
		last := e.slots[a.SaSlotid]
		c.deps.After(last, plan.DepSlot)
		if _, ok := e.slots[a.SaSlotid]; !ok {
			c.states.b.room.take(slotSize)
		}
		e.slots[a.SaSlotid] = c.deps.Flight
		if e.DefinedBy == 0 {
			e.Slots = max(e.Slots, a.SaSlotid+1)
		}
	}
	c.deps.After(e.client.ready, plan.DepClient)
}

func exchangeID4(c *compound, a *nfs4.EXCHANGE_ID4args, r *nfs4.EXCHANGE_ID4res) {
	f, s := &c.form, c.states
	w := s.ownerID(&c.ids.sender, a.EiaClientowner.CoOwnerid, a.EiaClientowner.CoVerifier)
	f.symbol(plan.Field{N: "co_verifier", Kind: plan.FieldVerifier, Ref: w.ID}, a.EiaClientowner.CoVerifier[:])
	f.symbol(plan.Field{N: "co_ownerid", Kind: plan.FieldOwnerID, Ref: w.ID}, appendOpaque(a.EiaClientowner.CoOwnerid))
	f.u32("eia_flags", a.EiaFlags)
	if a.EiaStateProtect.SpaHow == nfs4.SP4_NONE {
		f.raw("eia_state_protect", &a.EiaStateProtect)
	} else {
		f.symbol(plan.Field{N: "eia_state_protect", Kind: plan.FieldU32, Value: uint64(nfs4.SP4_NONE)}, a.EiaStateProtect.Append(nil))
		c.reasons.add(plan.Inferred, "without the protection of state by a machine's credential, which needs RPCSEC_GSS")
	}
	f.u32("eia_client_impl_id", uint32(len(a.EiaClientImplId)))
	for i := range a.EiaClientImplId {
		f.raw("eia_client_impl_id", &a.EiaClientImplId[i])
	}
	if r != nil {
		y := s.named(&c.ids.sender, c.deps.Flight, w, r.EirResok4.EirClientid)
		c.deps.After(y.set, plan.DepClient)
		y.set = c.deps.Flight
		// A client that registers again has given up its state.
		c.deps.After(y.ready, plan.DepClient)
		c.ids.afterAll(y)
		c.op.Binds = append(c.op.Binds, plan.Bind{At: c.at, Kind: plan.FieldClient, Ref: y.ID})
	}
}

func createSession4(c *compound, a *nfs4.CREATE_SESSION4args, r *nfs4.CREATE_SESSION4res) {
	f, s := &c.form, c.states
	y := c.ids.clientID("csa_clientid", a.CsaClientid)
	c.deps.After(y.set, plan.DepClient)
	f.symbol(plan.Field{N: "csa_sequence", Kind: plan.FieldCreateSeq, Ref: y.ID}, binary.BigEndian.AppendUint32(nil, a.CsaSequence))
	f.u32("csa_flags", a.CsaFlags)
	f.raw("csa_fore_chan_attrs", &a.CsaForeChanAttrs)
	f.raw("csa_back_chan_attrs", &a.CsaBackChanAttrs)
	f.u32("csa_cb_program", a.CsaCbProgram)
	f.u32("csa_sec_parms", uint32(len(a.CsaSecParms)))
	for i := range a.CsaSecParms {
		f.raw("csa_sec_parms", &a.CsaSecParms[i])
	}
	switch {
	case r != nil:
		s.expectedOf(&c.ids.sender) // it was not made, or the client has lost it, too
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
		c.op.Binds = append(c.op.Binds, plan.Bind{At: c.at, Kind: plan.FieldSession, Ref: e.ID})
	case c.deps.End < 0:
		if e := s.expect(&c.ids.sender, c.op.ID, y); e != nil {
			c.op.Binds = append(c.op.Binds, plan.Bind{At: c.at, Kind: plan.FieldSession, Ref: e.ID})
		}
	}
}

func destroySession4(c *compound, a *nfs4.DESTROY_SESSION4args, _ *nfs4.Status4res) {
	e := c.ids.sessionID("dsa_sessionid", a.DsaSessionid)
	c.ids.after(e)
	e.ended = e.ended || c.ok
}

func destroyClientID4(c *compound, a *nfs4.DESTROY_CLIENTID4args, _ *nfs4.Status4res) {
	y := c.ids.clientID("dca_clientid", a.DcaClientid)
	c.ids.afterAll(y)
}

func bindConn4(c *compound, a *nfs4.BIND_CONN_TO_SESSION4args, _ *nfs4.BIND_CONN_TO_SESSION4res) {
	f := &c.form
	c.ids.sessionID("bctsa_sessid", a.BctsaSessid)
	f.u32("bctsa_dir", uint32(a.BctsaDir))
	f.bool("bctsa_use_conn_in_rdma_mode", a.BctsaUseConnInRdmaMode)
}

func reclaimComplete4(c *compound, a *nfs4.RECLAIM_COMPLETE4args, _ *nfs4.Status4res) {
	f := &c.form
	f.bool("rca_one_fs", a.RcaOneFs)
	if c.ids.client != nil && c.ok {
		c.ids.client.reclaimed = true
		c.ids.client.ready = c.deps.Flight
	}
}

func setclientid4(c *compound, a *nfs4.SETCLIENTID4args, r *nfs4.SETCLIENTID4res) {
	f, s := &c.form, c.states
	w := s.ownerID(&c.ids.sender, a.Client.Id, a.Client.Verifier)
	f.symbol(plan.Field{N: "verifier", Kind: plan.FieldVerifier, Ref: w.ID}, a.Client.Verifier[:])
	f.symbol(plan.Field{N: "id", Kind: plan.FieldOwnerID, Ref: w.ID}, appendOpaque(a.Client.Id))
	f.u32("cb_program", a.Callback.CbProgram)
	f.symbol(plan.Field{N: "cb_location", Kind: plan.FieldCallback, Text: strings.ToValidUTF8(string(a.Callback.CbLocation.NaRNetid)+" "+string(a.Callback.CbLocation.NaRAddr), "?")},
		a.Callback.CbLocation.Append(nil))
	f.u32("callback_ident", a.CallbackIdent)
	if r != nil {
		y := s.named(&c.ids.sender, c.deps.Flight, w, r.Resok4.Clientid)
		c.op.Binds = append(c.op.Binds, plan.Bind{At: c.at, Kind: plan.FieldClient, Ref: y.ID}, plan.Bind{At: c.at, Kind: plan.FieldConfirm, Ref: y.ID})
		y.set = c.deps.Flight
	}
}

func setclientidConfirm4(c *compound, a *nfs4.SETCLIENTID_CONFIRM4args, _ *nfs4.Status4res) {
	f := &c.form
	y := c.ids.clientID("clientid", a.Clientid)
	c.deps.After(y.set, plan.DepClient)
	f.symbol(plan.Field{N: "setclientid_confirm", Kind: plan.FieldConfirm, Ref: y.ID}, a.SetclientidConfirm[:])
	if c.ok {
		y.ready = c.deps.Flight
	}
}

func renew4(c *compound, a *nfs4.RENEW4args, _ *nfs4.Status4res) {
	c.ids.clientID("clientid", a.Clientid)
}

func delegpurge4(c *compound, a *nfs4.DELEGPURGE4args, _ *nfs4.Status4res) {
	c.ids.clientID("clientid", a.Clientid)
}

// maxSlots bounds the slots of a session that are followed.
const maxSlots = 1 << 12

// manySlots is up to how many slots, or sessions, calls wait for individually.
const manySlots = 64

func appendOpaque(b []byte) []byte {
	var f form
	f.text("", b)
	return f.bytes
}
