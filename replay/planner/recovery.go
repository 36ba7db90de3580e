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

// restart recognises what a client did only because the captured server had restarted: the server of the replay does
// not restart.
type restart struct {
	ops   []rpc.Operation
	ids   *identifiers
	space *space
}

// reason says why a COMPOUND is left out; empty if it is not.
func (r *restart) reason() string {
	if len(r.ops) == 0 {
		return ""
	}
	if reason := r.notExecuted(); reason != "" {
		return reason
	}
	if reason := r.madeAgain(&r.ops[0]); reason != "" {
		return reason
	}
	reclaim := false
	for i := range r.ops {
		switch a := r.ops[i].Args.(type) {
		case *nfs4.OPEN4args:
			reclaim = reclaim || a.Claim.Claim == nfs4.CLAIM_PREVIOUS || a.Claim.Claim == nfs4.CLAIM_DELEGATE_PREV ||
				a.Claim.Claim == nfs4.CLAIM_DELEG_PREV_FH
		case *nfs4.LOCK4args:
			reclaim = reclaim || a.Reclaim
		case *nfs4.RECLAIM_COMPLETE4args:
			if s := r.ids.sessionOf(); s != nil && s.client.reclaimed && !a.RcaOneFs {
				return "RECLAIM_COMPLETE after the server's restart"
			}
		}
	}
	if reclaim {
		r.reclaims()
		return "reclaims what was held before the server's restart"
	}
	if r.loses() {
		return lostState
	}
	return ""
}

// notExecuted says why the server did not execute the COMPOUND, if that shows in
// the status of its last operation.
func (r *restart) notExecuted() string {
	last := &r.ops[len(r.ops)-1]
	for i := range r.ops {
		if r.ops[i].Result != nil {
			last = &r.ops[i]
		}
	}
	if last.Result == nil {
		return ""
	}
	st := nfs4.Nfsstat4(last.Code)
	switch {
	case refused[st] || st == nfs4.NFS4ERR_BAD_STATEID && r.ids.states.restarted:
		switch st {
		case nfs4.NFS4ERR_BADSESSION, nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID:
			r.ids.states.restarted = true
		}
		if s := r.ids.sessionOf(); s != nil && last.Number == uint32(nfs4.OP_SEQUENCE) && st != nfs4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION {
			s.gone = true
		}
		return "refused with " + st.Symbol() + ": the server had forgotten its client"
	case last.Number == uint32(nfs4.OP_SEQUENCE) && last.Code != 0:
		return "refused with " + last.Status + " by SEQUENCE: not executed"
	case st == nfs4.NFS4ERR_DELAY && !r.changed():
		return putOff
	}
	return ""
}

// madeAgain says what an operation makes again that the server had forgotten.
func (r *restart) madeAgain(x *rpc.Operation) string {
	if x.Result == nil || x.Code != 0 {
		return ""
	}
	if a, ok := x.Args.(*nfs4.EXCHANGE_ID4args); ok {
		if res, ok := x.Result.(*nfs4.EXCHANGE_ID4res); ok && r.ids.states.again(&r.ids.sender, &a.EiaClientowner, res.EirResok4.EirClientid) {
			return "makes a client again that the server had forgotten"
		}
	}
	if a, ok := x.Args.(*nfs4.CREATE_SESSION4args); ok {
		if res, ok := x.Result.(*nfs4.CREATE_SESSION4res); ok && r.ids.states.replaces(&r.ids.sender, a.CsaClientid, res.CsrResok4.CsrSessionid) {
			return "makes a session again that the server had forgotten"
		}
	}
	return ""
}

// again takes the id of a client that sends EXCHANGE_ID anew, with the verifier that it had, and gets another id than before: the server has
// forgotten it (RFC 8881, section 18.35.4). It reports whether that is so.
func (s *states) again(c *sender, w *nfs4.ClientOwner4, id uint64) bool {
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
func (s *states) unnamed(c *sender) (found *client) {
	for _, x := range s.clientsIn {
		if x.Server != c.server || x.Addr != c.addr || x.Minor != c.minor || x.DefinedBy != 0 || x.Owner != "" || x.OwnerHex != nil {
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
func (s *states) replaces(c *sender, of uint64, id [16]byte) bool {
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
func (r *restart) changed() bool {
	for i := range r.ops {
		x := r.ops[i]
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
func (r *restart) reclaims() {
	if x := r.ids.sessionOf(); x != nil {
		r.ids.client = x.client
	}
	var at ops.FileWalk
	for i := range r.ops {
		x := r.ops[i]
		if x.Result == nil || x.Code != 0 {
			return
		}
		cur := r.space.of(r.ids.server, at.Current.Handle)
		switch a := x.Args.(type) {
		case *nfs4.OPEN4args:
			res, ok := x.Result.(*nfs4.OPEN4res)
			if !ok {
				return
			}
			w := r.ids.states.owner(r.ids.clientOf(a.Owner.Clientid), "open", a.Owner.Owner)
			r.took(&res.Resok4.Stateid, plan.OpenState, cur, w)
			if id := res.Resok4.Delegation.Stateid(); id != nil {
				r.took(id, plan.DelegationState, cur, nil)
			}
		case *nfs4.LOCK4args:
			if res, ok := x.Result.(*nfs4.LOCK4res); ok {
				r.took(&res.Resok4.LockStateid, plan.LockState, cur, nil)
			}
		}
		at.Step(x.Number, x.Args, x.Result)
	}
}

// took takes a state id that a reclaim returned.
func (r *restart) took(id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) {
	s := r.ids.states
	if s.reclaimed(&r.ids.sender, id, kind, o, w) == nil && isSpecial(id) == "" {
		x := s.state(&r.ids.sender, id, kind, o)
		x.owner = w
	}
}

// loses reports whether an operation needs a state that is lost.
func (r *restart) loses() bool {
	for i := range r.ops {
		x := r.ops[i]
		if e := ops.Operation(x.Number); e != nil {
			if id := e.Held(x.Args); id != nil && r.ids.lost(id) {
				return true
			}
		}
	}
	return false
}
