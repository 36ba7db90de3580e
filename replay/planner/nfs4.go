package planner

import (
	"encoding/binary"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// compound is where a COMPOUND has come to.
type compound struct {
	ops        []rpc.Operation
	at         int
	cur, saved *obj
	session    *session
}

// refused are statuses of a whole COMPOUND that say that the operation has not
// been executed because the server had forgotten its client.
var refused = map[nfs4.Nfsstat4]bool{
	nfs4.NFS4ERR_BADSESSION: true, nfs4.NFS4ERR_DEADSESSION: true, nfs4.NFS4ERR_STALE_CLIENTID: true,
	nfs4.NFS4ERR_STALE_STATEID: true, nfs4.NFS4ERR_EXPIRED: true, nfs4.NFS4ERR_GRACE: true,
	nfs4.NFS4ERR_CONN_NOT_BOUND_TO_SESSION: true,
}

// nfs4 fills the op with a COMPOUND. A reason means that it is not replayed.
func (c *call) nfs4() string {
	a, ok := c.v.Args.(*nfs4.CompoundArgs)
	if !ok {
		return "no COMPOUND"
	}
	c.minor = a.Minorversion
	c.compound = compound{ops: c.v.Operations()}
	if reason := c.recovery(); reason != "" {
		return reason
	}
	o := c.op
	o.Compound = &plan.Compound{Minor: a.Minorversion}
	o.Compound.Tag, o.Compound.TagBytes = text(string(a.Tag))
	o.Role = roleOf(a.Ops)
	whole := c.replied && c.v.ResultErr == nil
	p := &c.compound
	for p.at = range a.Ops {
		x := &p.ops[p.at]
		c.form.reset()
		if whole || x.Result != nil {
			c.replied, c.ok = true, x.Result != nil && x.Code == 0
		} else {
			c.replied, c.ok = false, false
		}
		c.operation(x)
		if !c.form.matches(x.Args, c.scratch) {
			c.form.reset()
			c.form.raw("arguments", x.Args)
			c.worse(plan.Inferred, x.Name+" kept as it is: handles and state ids in it mean nothing to another server")
		}
		o.Compound.Ops = append(o.Compound.Ops, plan.CompoundOp{Op: x.Number, Name: x.Name, Args: c.form.fields})
	}
	c.replied = whole
	return ""
}

func roleOf(ops []nfs4.Op) plan.Role {
	only := true
	for i := range ops {
		switch nfs4.NfsOpnum4(ops[i].Number) {
		case nfs4.OP_EXCHANGE_ID, nfs4.OP_CREATE_SESSION, nfs4.OP_DESTROY_SESSION, nfs4.OP_DESTROY_CLIENTID,
			nfs4.OP_RECLAIM_COMPLETE, nfs4.OP_BIND_CONN_TO_SESSION, nfs4.OP_BACKCHANNEL_CTL, nfs4.OP_SETCLIENTID,
			nfs4.OP_SETCLIENTID_CONFIRM:
			return plan.Sessions
		case nfs4.OP_PUTROOTFH, nfs4.OP_SECINFO_NO_NAME:
			return plan.Mounting
		case nfs4.OP_SEQUENCE, nfs4.OP_RENEW:
		default:
			only = false
		}
	}
	if only && len(ops) > 0 {
		return plan.Keepalive
	}
	return plan.Workload
}

// recovery deals with what a restart of the server has brought about: the
// server that is replayed to does not restart.
func (c *call) recovery() string {
	p := &c.compound
	if len(p.ops) == 0 {
		return ""
	}
	last := &p.ops[len(p.ops)-1]
	for i := range p.ops {
		if p.ops[i].Result != nil {
			last = &p.ops[i]
		}
	}
	if st := nfs4.Nfsstat4(last.Code); last.Result != nil && (refused[st] || st == nfs4.NFS4ERR_BAD_STATEID && c.b.states.restarted) {
		switch st {
		case nfs4.NFS4ERR_BADSESSION, nfs4.NFS4ERR_STALE_CLIENTID, nfs4.NFS4ERR_STALE_STATEID:
			c.b.states.restarted = true
		}
		return "refused with " + st.Symbol() + ": the server had forgotten its client"
	}
	if last.Number == uint32(nfs4.OP_SEQUENCE) && last.Result != nil && last.Code != 0 {
		return "refused with " + last.Status + " by SEQUENCE: not executed"
	}
	if last.Result != nil && last.Code == uint32(nfs4.NFS4ERR_DELAY) && !c.changed() {
		return putOff
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
	if !reclaim && c.loses() {
		return lostState
	}
	if !reclaim {
		return ""
	}
	c.reclaims()
	return "reclaims what was held before the server's restart"
}

// putOff is why a call is left out that the server did not want at the time.
// The client sends it again, and a server that takes both would do it twice.
const putOff = "put off by the server: sent again by the client"

// changed reports whether an operation of the COMPOUND may have changed
// something before the one that failed.
func (c *call) changed() bool {
	for i := range c.compound.ops {
		x := &c.compound.ops[i]
		if x.Result == nil || x.Code != 0 {
			return false
		}
		switch nfs4.NfsOpnum4(x.Number) {
		case nfs4.OP_SEQUENCE, nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_SAVEFH, nfs4.OP_RESTOREFH, nfs4.OP_LOOKUP,
			nfs4.OP_LOOKUPP, nfs4.OP_GETFH, nfs4.OP_GETATTR, nfs4.OP_ACCESS, nfs4.OP_READ, nfs4.OP_READDIR, nfs4.OP_VERIFY,
			nfs4.OP_NVERIFY, nfs4.OP_READLINK:
		default:
			return true
		}
	}
	return false
}

// sessionOf is the session of the COMPOUND, if it is known.
func (c *call) sessionOf() *session {
	if len(c.compound.ops) == 0 {
		return nil
	}
	if a, ok := c.compound.ops[0].Args.(*nfs4.SEQUENCE4args); ok {
		return c.b.states.sessions[sessionKey{c.server, a.SaSessionid}]
	}
	return nil
}

// reclaims gives the state that was held before the restart its new ids.
func (c *call) reclaims() {
	s := &c.b.states
	if x := c.sessionOf(); x != nil {
		c.client = x.client
	}
	var cur *obj
	for i := range c.compound.ops {
		x := &c.compound.ops[i]
		if x.Result == nil || x.Code != 0 {
			return
		}
		switch a := x.Args.(type) {
		case *nfs4.PUTFH4args:
			cur = c.b.space.of(c.server, a.Object)
		case *nfs4.OPEN4args:
			r, ok := x.Result.(*nfs4.OPEN4res)
			if !ok {
				return
			}
			w := s.owner(c.clientOf(a.Owner.Clientid), "open", a.Owner.Owner)
			c.took(&r.Resok4.Stateid, plan.OpenState, cur, w)
			if id := delegated(&r.Resok4.Delegation); id != nil {
				c.took(id, plan.DelegationState, cur, nil)
			}
		case *nfs4.LOCK4args:
			if r, ok := x.Result.(*nfs4.LOCK4res); ok {
				c.took(&r.Resok4.LockStateid, plan.LockState, cur, nil)
			}
		}
	}
}

// took is a state id that a reclaim has brought.
func (c *call) took(id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) {
	s := &c.b.states
	if s.reclaimed(c, id, kind, o, w) == nil && isSpecial(id) == "" {
		x := s.state(c, id, kind, o)
		x.owner = w
	}
}

func delegated(d *nfs4.OpenDelegation4) *nfs4.Stateid4 {
	switch d.DelegationType {
	case nfs4.OPEN_DELEGATE_READ, nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG:
		return &d.Read.Stateid
	case nfs4.OPEN_DELEGATE_WRITE, nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG:
		return &d.Write.Stateid
	}
	return nil
}

// clientOf is the client of a client id in the arguments.
func (c *call) clientOf(id uint64) *client {
	s := &c.b.states
	k := clientKey{c.server, id}
	if x := s.clients[k]; x != nil {
		return x
	}
	if c.client != nil && (c.client.ClientID == "" || id == 0) {
		// The session was there before the capture: now its client has an id.
		if id != 0 {
			c.client.ClientID = hex64(id)
			s.clients[k] = c.client
		}
		return c.client
	}
	return s.client(c, id)
}

func hex64(v uint64) string {
	s := strconv.FormatUint(v, 16)
	return "0000000000000000"[len(s):] + s
}

// clientID adds a client id.
func (c *call) clientID(n string, id uint64) *client {
	if id == 0 {
		c.form.u64(n, 0)
		if c.client != nil {
			return c.client
		}
		return c.clientOf(0)
	}
	x := c.clientOf(id)
	c.client = x
	c.must(x.DefinedBy, plan.DepClient)
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldClient, Ref: x.ID}, binary.BigEndian.AppendUint64(nil, id))
	return x
}

// executed reports whether the operation at hand took place, as far as that is
// known.
func (c *call) executed() bool {
	return !c.replied || c.compound.ops[c.compound.at].Result != nil
}

// stateid adds a state id. how is what the operation does with the state.
func (c *call) stateid(n string, id *nfs4.Stateid4, kind plan.StateKind, o *obj, how access) *state {
	if name := isSpecial(id); name != "" {
		c.form.symbol(plan.Field{N: n, Kind: plan.FieldState0, Text: name}, id.Append(nil))
		return nil
	}
	if c.lost(id) {
		c.form.symbol(plan.Field{N: n, Kind: plan.FieldState0, Text: "anonymous"}, id.Append(nil))
		c.worse(plan.Inferred, "its state comes from a call that is not replayed: sent with the anonymous state id")
		return nil
	}
	x := c.b.states.state(c, id, kind, o)
	f := plan.Field{N: n, Kind: plan.FieldState, Ref: x.ID}
	if id.Seqid == 0 && (c.minor > 0 || x.seqid != 0) {
		f.Zero = true
	} else if x.seqid > id.Seqid {
		f.Value = uint64(x.seqid - id.Seqid)
	}
	c.form.symbol(f, id.Append(nil))
	if x.DefinedBy != 0 {
		c.must(x.DefinedBy, plan.DepState)
	} else {
		c.worse(plan.Synthesised, string(x.Kind)+" state from before the capture: acquired before the start")
	}
	if c.executed() {
		c.use(&x.uses, 0, 1, how, plan.DepState)
	}
	return x
}

// lost reports a state id that no reply has shown, of a client that began in
// the capture: so it is not from before, but from a call that was lost or is
// encrypted.
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

// loses reports whether an operation on state is about one that is lost.
func (c *call) loses() bool {
	for i := range c.compound.ops {
		var id *nfs4.Stateid4
		switch a := c.compound.ops[i].Args.(type) {
		case *nfs4.CLOSE4args:
			id = &a.OpenStateid
		case *nfs4.DELEGRETURN4args:
			id = &a.DelegStateid
		case *nfs4.OPEN_CONFIRM4args:
			id = &a.OpenStateid
		case *nfs4.OPEN_DOWNGRADE4args:
			id = &a.OpenStateid
		case *nfs4.LOCKU4args:
			id = &a.LockStateid
		case *nfs4.LOCK4args:
			id = &a.Locker.LockOwner.LockStateid
			if a.Locker.NewLockOwner {
				id = &a.Locker.OpenOwner.OpenStateid
			}
		case *nfs4.FREE_STATEID4args:
			id = &a.FsaStateid
		case *nfs4.OPEN4args:
			switch a.Claim.Claim {
			case nfs4.CLAIM_DELEGATE_CUR:
				id = &a.Claim.DelegateCurInfo.DelegateStateid
			case nfs4.CLAIM_DELEG_CUR_FH:
				id = &a.Claim.OcDelegateStateid
			}
		}
		if id != nil && c.lost(id) {
			return true
		}
	}
	return false
}

// lostState is why a call is left out that needs a state which is lost.
const lostState = "its state comes from a call that is not replayed"

// seqid adds a sequence number of an owner, which only NFSv4.0 heeds.
func (c *call) seqid(n string, w *owner, v uint32) {
	if c.minor != 0 || w == nil {
		c.form.u32(n, v)
		return
	}
	c.dep(w.last.op, w.last.end, plan.DepSeqid)
	w.last = flight{c.op.ID, c.end}
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldSeqid, Ref: w.ID}, binary.BigEndian.AppendUint32(nil, v))
}

// ownerOf is the owner of a state; one is made up if it is not known.
func (c *call) ownerOf(x *state, kind string) *owner {
	if x == nil {
		return nil
	}
	if x.owner == nil && c.minor == 0 {
		cl := x.client
		if cl == nil {
			cl = c.anyClient()
			x.client = cl
		}
		x.owner = c.b.states.owner(cl, kind, []byte("state "+itoa(x.ID)))
		x.owner.Class = plan.Synthesised
	}
	return x.owner
}

// anyClient is the only client of the address, or one that is made up.
func (c *call) anyClient() *client {
	if c.client != nil {
		return c.client
	}
	for i := len(c.b.states.clientsIn) - 1; i >= 0 && i > len(c.b.states.clientsIn)-64; i-- {
		x := c.b.states.clientsIn[i]
		if x.Server == c.server && x.Addr == c.clientAddr() && x.Minor == c.minor {
			return x
		}
	}
	x := c.b.states.newClient(c.server)
	x.Addr, x.Minor = c.clientAddr(), c.minor
	return x
}

// handleAfter is the handle that a later operation shows of what the one at
// hand has made the current file handle.
func (c *call) handleAfter() []byte {
	p := &c.compound
	for i := p.at + 1; i < len(p.ops); i++ {
		x := &p.ops[i]
		if x.Result == nil || x.Code != 0 {
			return nil
		}
		switch r := x.Result.(type) {
		case *nfs4.GETFH4res:
			return r.Resok4.Object
		case *nfs4.GETATTR4res:
			if f := &r.Resok4.ObjAttributes; f.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) && c.b.attrs.Decode(f) == nil {
				return c.b.attrs.Filehandle
			}
		}
		switch nfs4.NfsOpnum4(x.Number) {
		case nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_PUTPUBFH, nfs4.OP_LOOKUP, nfs4.OP_LOOKUPP, nfs4.OP_OPEN,
			nfs4.OP_CREATE, nfs4.OP_RESTOREFH, nfs4.OP_OPENATTR, nfs4.OP_SECINFO, nfs4.OP_SECINFO_NO_NAME:
			return nil
		}
	}
	return nil
}

// operation fills the form with the arguments of an operation.
func (c *call) operation(x *rpc.Operation) {
	if !c.objects4(x) && !c.data4(x) && !c.state4(x) && !c.client4(x) && !c.new4(x) {
		if _, void := x.Args.(xdr.Void); void {
			return
		}
		c.form.raw("arguments", x.Args)
	}
}

// fattr4 adds attributes to be set on an object, nil for one that is new.
func (c *call) fattr4(n string, f *nfs4.Fattr4, o *obj) {
	c.form.raw(n, f)
	a := &c.b.attrs
	if a.Decode(f) != nil {
		return
	}
	if a.Has(nfs4.FATTR4_MODE) {
		c.detail += " mode=0" + strconv.FormatUint(uint64(a.Mode), 8)
	}
	size, sized := a.Size, a.Has(nfs4.FATTR4_SIZE)
	if o = o.real(); o != nil && (c.ok || !c.replied) {
		o.modeChanged = o.modeChanged || a.Has(nfs4.FATTR4_MODE) || a.Has(nfs4.FATTR4_MODE_SET_MASKED)
		o.ownerChanged = o.ownerChanged || a.Has(nfs4.FATTR4_OWNER) || a.Has(nfs4.FATTR4_OWNER_GROUP)
	}
	if sized && c.executed() {
		c.resized(o, size)
	}
}

// shows is GETFH: the handle of the current object.
func (s *space) shows(o *obj, server int, h []byte) *obj {
	o = o.real()
	k := handleKey{server, string(h)}
	known := s.byHandle[k].real()
	switch {
	case len(h) == 0:
		return o
	case o == nil:
		return s.of(server, h)
	case known == nil && o.handle == "":
		s.give(o, k)
		return o
	case known == nil:
		return s.of(server, h)
	case known != o && o.handle == "":
		if o.origin == plan.Above {
			known.origin, known.typ = plan.Above, "dir"
		}
		s.merge(o, known)
	}
	return known
}
