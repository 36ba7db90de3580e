package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// putOff is the reason to leave out a call that the server delayed. The client sends
// it again, and a server that accepts both would execute it twice.
const putOff = "put off by the server: sent again by the client"

// lostState is the reason to leave out a call that needs a lost state.
const lostState = "its state comes from a call that is not replayed"

// refused are the statuses of operations that were not executed because the server had forgotten
// its client.
var refused = map[nfs4.Nfsstat4]bool{
	nfs4.NFS4ERR_BADSESSION: true, nfs4.NFS4ERR_DEADSESSION: true, nfs4.NFS4ERR_STALE_CLIENTID: true,
	nfs4.NFS4ERR_STALE_STATEID: true, nfs4.NFS4ERR_EXPIRED: true, nfs4.NFS4ERR_GRACE: true,
	nfs4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION: true,
}

// recovery handles the effects of a restart of the captured server: the server of the replay does
// not restart. A reason means that the COMPOUND is left out.
func (c *call) recovery() string {
	p := &c.compound
	if len(p.ops) == 0 {
		return ""
	}
	if reason := c.notExecuted(); reason != "" {
		return reason
	}
	if reason := c.madeAgain(&p.ops[0]); reason != "" {
		return reason
	}
	reclaim := false
	for i := range p.ops {
		switch a := p.ops[i].Args.(type) {
		case *nfs4.OPEN4args:
			reclaim = reclaim || a.Claim.Claim == nfs4.CLAIM_PREVIOUS || a.Claim.Claim == nfs4.CLAIM_DELEGATE_PREV ||
				a.Claim.Claim == nfs4.CLAIM_DELEG_PREV_FH
		case *nfs4.LOCK4args:
			reclaim = reclaim || a.Reclaim
		case *nfs4.RECLAIM_COMPLETE4args:
			if s := c.sessionOf(); s != nil && s.client.reclaimed && !a.RcaOneFs {
				return "RECLAIM_COMPLETE after the server's restart"
			}
		}
	}
	if reclaim {
		c.reclaims()
		return "reclaims what was held before the server's restart"
	}
	if c.loses() {
		return lostState
	}
	return ""
}

// notExecuted says why the server did not execute the COMPOUND, if that shows in
// the status of its last operation.
func (c *call) notExecuted() string {
	p := &c.compound
	last := &p.ops[len(p.ops)-1]
	for i := range p.ops {
		if p.ops[i].Result != nil {
			last = &p.ops[i]
		}
	}
	if last.Result == nil {
		return ""
	}
	st := nfs4.Nfsstat4(last.Code)
	switch {
	case refused[st] || st == nfs4.NFS4ERR_BAD_STATEID && c.b.states.restarted:
		switch st {
		case nfs4.NFS4ERR_BADSESSION, nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID:
			c.b.states.restarted = true
		}
		if s := c.sessionOf(); s != nil && last.Number == uint32(nfs4.OP_SEQUENCE) && st != nfs4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION {
			s.gone = true
		}
		return "refused with " + st.Symbol() + ": the server had forgotten its client"
	case last.Number == uint32(nfs4.OP_SEQUENCE) && last.Code != 0:
		return "refused with " + last.Status + " by SEQUENCE: not executed"
	case st == nfs4.NFS4ERR_DELAY && !c.changed():
		return putOff
	}
	return ""
}

// madeAgain says what an operation makes again that the server had forgotten.
func (c *call) madeAgain(x *rpc.Operation) string {
	if x.Result == nil || x.Code != 0 {
		return ""
	}
	if a, ok := x.Args.(*nfs4.EXCHANGE_ID4args); ok {
		if r, ok := x.Result.(*nfs4.EXCHANGE_ID4res); ok && c.b.states.again(c, &a.EiaClientowner, r.EirResok4.EirClientid) {
			return "makes a client again that the server had forgotten"
		}
	}
	if a, ok := x.Args.(*nfs4.CREATE_SESSION4args); ok {
		if r, ok := x.Result.(*nfs4.CREATE_SESSION4res); ok && c.b.states.replaces(c, a.CsaClientid, r.CsrResok4.CsrSessionid) {
			return "makes a session again that the server had forgotten"
		}
	}
	return ""
}

// again takes the id of a client that sends EXCHANGE_ID anew, with the verifier that it had, and gets another id than before: the server has
// forgotten it (RFC 8881, section 18.35.4). It reports whether that is so.
func (s *states) again(c *call, w *nfs4.ClientOwner4, id uint64) bool {
	x := s.pending[pendingKey(c.server, w.CoOwnerid, w.CoVerifier)]
	if x == nil && s.restarted {
		x = s.unnamed(c)
	}
	if x == nil || s.clients[clientKey{c.server, id}] == x || s.b.room.full() {
		return false
	}
	live := false
	for _, e := range x.sessions {
		if !e.ended {
			e.gone, live = true, true
		}
	}
	if !live {
		return false // it had no session yet, or has ended in order
	}
	s.clients[clientKey{c.server, id}] = x
	s.b.room.take(entrySize)
	if x.DefinedBy == 0 {
		x.reclaimed = true // before the capture
	}
	return true
}

// unnamed is the only client from before the capture at the address of a call; nil if there are none or several.
func (s *states) unnamed(c *call) (found *client) {
	for _, x := range s.clientsIn {
		if x.Server != c.server || x.Addr != c.clientAddr() || x.Minor != c.minor || x.DefinedBy != 0 || x.Owner != "" || x.OwnerHex != nil {
			continue
		}
		if found != nil {
			return nil
		}
		found = x
	}
	return found
}

// replaces makes the id of a new session another name of the one that the server had forgotten, and reports whether there is one.
func (s *states) replaces(c *call, of uint64, id [16]byte) bool {
	x := s.clients[clientKey{c.server, of}]
	if x == nil || s.b.room.full() {
		return false
	}
	for _, e := range x.sessions {
		if e.gone && !e.ended {
			e.gone = false
			s.expectedOf(c)
			s.sessions[sessionKey{c.server, id}] = e
			s.b.room.take(entrySize)
			return true
		}
	}
	return false
}

// changed reports whether an operation of the COMPOUND may have changed something
// before the one that failed.
func (c *call) changed() bool {
	for i := range c.compound.ops {
		x := &c.compound.ops[i]
		if x.Result == nil || x.Code != 0 {
			return false
		}
		if e := ops.Operation(x.Number); e == nil || e.Class != ops.Nothing || e.State {
			return true
		}
	}
	return false
}

// reclaims gives a state from before the restart its new ids.
func (c *call) reclaims() {
	if x := c.sessionOf(); x != nil {
		c.client = x.client
	}
	var at ops.Trail
	for i := range c.compound.ops {
		x := &c.compound.ops[i]
		if x.Result == nil || x.Code != 0 {
			return
		}
		cur := c.b.space.of(c.server, at.Current.Handle)
		switch a := x.Args.(type) {
		case *nfs4.OPEN4args:
			r, ok := x.Result.(*nfs4.OPEN4res)
			if !ok {
				return
			}
			w := c.b.states.owner(c.clientOf(a.Owner.Clientid), "open", a.Owner.Owner)
			c.took(&r.Resok4.Stateid, plan.OpenState, cur, w)
			if id := delegated(&r.Resok4.Delegation); id != nil {
				c.took(id, plan.DelegationState, cur, nil)
			}
		case *nfs4.LOCK4args:
			if r, ok := x.Result.(*nfs4.LOCK4res); ok {
				c.took(&r.Resok4.LockStateid, plan.LockState, cur, nil)
			}
		}
		at.Step(x.Number, x.Args, x.Result)
	}
}

// took takes a state id that a reclaim returned.
func (c *call) took(id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) {
	s := &c.b.states
	if s.reclaimed(c, id, kind, o, w) == nil && isSpecial(id) == "" {
		x := s.state(c, id, kind, o)
		x.owner = w
	}
}

// loses reports whether an operation needs a state that is lost.
func (c *call) loses() bool {
	for i := range c.compound.ops {
		x := &c.compound.ops[i]
		if e := ops.Operation(x.Number); e != nil {
			if id := e.Held(x.Args); id != nil && c.lost(id) {
				return true
			}
		}
	}
	return false
}

// lost reports a state id that no reply has shown, of a client that began in the capture. It is
// therefore not from before the capture, but from a call that was lost or is encrypted.
func (c *call) lost(id *nfs4.Stateid4) bool {
	if isSpecial(id) != "" || c.b.states.states[stateKey{c.server, id.Other}] != nil {
		return false
	}
	x := c.client
	if x == nil {
		if s := c.sessionOf(); s != nil {
			x = s.client
		}
	}
	if x == nil {
		for i := len(c.b.states.clientsIn) - 1; i >= 0 && i > len(c.b.states.clientsIn)-64; i-- {
			if y := c.b.states.clientsIn[i]; y.Server == c.server && y.Addr == c.clientAddr() && y.Minor == c.minor {
				x = y
				break
			}
		}
	}
	return x != nil && x.DefinedBy != 0
}
