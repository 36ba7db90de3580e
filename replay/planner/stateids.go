package planner

import (
	"encoding/binary"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// sender is who sent a COMPOUND.
type sender struct {
	server, conn int
	addr         string
	minor        uint32
	client       *client // of the session, or of the client id seen last
}

// identifiers translates what a server has given out for clients, sessions, owners of locks or states.
type identifiers struct {
	sender
	*outcome
	states   *states
	op       *plan.Op
	sequence *nfs4.SEQUENCE4args // that begins the COMPOUND, or nil
	form     *form
	deps     *order.Deps
	reasons  *reasons
}

// given takes a state id from the result of an operation.
func (c *identifiers) given(at int, id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) *state {
	x := c.states.result(&c.sender, c.op.ID, id, kind, o, w)
	if x != nil {
		c.op.Binds = append(c.op.Binds, plan.Bind{At: at, Kind: plan.FieldState, Ref: x.ID, State: kind})
	}
	return x
}

// ownerOf is the owner of a state; an unknown owner is made up.
func (c *identifiers) ownerOf(x *state, kind string) *owner {
	if x == nil {
		return nil
	}
	if x.owner == nil && c.minor == 0 {
		cl := x.client
		if cl == nil {
			cl = c.anyClient()
			x.client = cl
		}
		x.owner = c.states.owner(cl, kind, []byte("state "+itoa(x.ID)))
		x.owner.Class = plan.Synthesised
	}
	return x.owner
}

// anyClient is the only client of the address, or one that is made up.
func (c *identifiers) anyClient() *client {
	if c.client != nil {
		return c.client
	}
	x := c.states.latest(&c.sender)
	if x == nil {
		x = c.states.newClient(c.server)
		x.Addr, x.Minor = c.addr, c.minor
	}
	return x
}

// stateid adds a state id. how is what the operation does with the state.
func (c *identifiers) stateid(n string, id *nfs4.Stateid4, kind plan.StateKind, o *obj, how order.Access) *state {
	if name := isSpecial(id); name != "" {
		c.form.symbol(plan.Field{N: n, Kind: plan.FieldState0, Text: name}, id.Append(nil))
		return nil
	}
	if c.lost(id) {
		c.form.symbol(plan.Field{N: n, Kind: plan.FieldState0, Text: "anonymous"}, id.Append(nil))
		c.reasons.add(plan.Inferred, "its state comes from a call that is not replayed: sent with the anonymous state id")
		return nil
	}
	x := c.states.state(&c.sender, id, kind, o)
	f := plan.Field{N: n, Kind: plan.FieldState, Ref: x.ID}
	if id.Seqid == 0 && (c.minor > 0 || x.seqid != 0) {
		f.Zero = true
	} else if x.seqid > id.Seqid {
		f.Value = uint64(x.seqid - id.Seqid)
	}
	c.form.symbol(f, id.Append(nil))
	if x.DefinedBy != 0 {
		c.deps.Needs(x.DefinedBy, plan.DepState)
	} else {
		c.reasons.add(plan.Synthesised, string(x.Kind)+" state from before the capture: acquired before the start")
	}
	if c.executed {
		c.deps.Use(&x.uses, 0, 1, how, plan.DepState)
	}
	return x
}

// stateOf is the state of a state id, without a field for it.
func (c *identifiers) stateOf(id *nfs4.Stateid4, kind plan.StateKind, o *obj) *state {
	if isSpecial(id) != "" {
		return nil
	}
	return c.states.state(&c.sender, id, kind, o)
}

// seqid adds a sequence number of an owner; later minor versions ignore it.
func (c *identifiers) seqid(n string, w *owner, v uint32) {
	if c.minor != 0 || w == nil {
		c.form.u32(n, v)
		return
	}
	if w.last.End < 0 && v != w.number {
		// The capture lacks the reply; the client had it, or it would not have gone on (RFC 7530, section 9.1.7).
		c.deps.Needs(w.last.Op, plan.DepSeqid)
	}
	c.deps.After(w.last, plan.DepSeqid)
	w.last, w.number = c.deps.Flight, v
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldSeqid, Ref: w.ID}, binary.BigEndian.AppendUint32(nil, v))
}

// clientID adds a client id.
func (c *identifiers) clientID(n string, id uint64) *client {
	if id == 0 {
		c.form.u64(n, 0)
		if c.client != nil {
			return c.client
		}
		return c.clientOf(0)
	}
	x := c.clientOf(id)
	c.client = x
	c.deps.Needs(x.DefinedBy, plan.DepClient)
	c.deps.After(x.ready, plan.DepClient) // an unconfirmed client ID must not be used (RFC 7530, sections 16.33.5 and 16.34.5)
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldClient, Ref: x.ID}, binary.BigEndian.AppendUint64(nil, id))
	return x
}

// clientOf is the client of a client id in the arguments.
func (c *identifiers) clientOf(id uint64) *client {
	s := c.states
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
	return s.client(&c.sender, id)
}

// sessionOf is the session of the COMPOUND, if it is known.
func (c *identifiers) sessionOf() *session {
	if c.sequence == nil {
		return nil
	}
	return c.states.sessions[sessionKey{c.server, c.sequence.SaSessionid}]
}

// sessionID adds a session.
func (c *identifiers) sessionID(n string, id [16]byte) *session {
	e := c.states.session(&c.sender, id)
	c.client = e.client
	c.deps.Needs(e.DefinedBy, plan.DepClient)
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldSession, Ref: e.ID}, id[:])
	return e
}

// afterAll is after for all sessions of a client.
func (c *identifiers) afterAll(y *client) {
	for _, e := range y.sessions {
		c.after(e)
	}
	if n := len(y.sessions); n > manySlots && c.deps.End >= 0 {
		e := y.sessions[n-1]
		clear(e.slots)
		e.slots[maxSlots] = c.deps.Flight
		y.sessions = append(y.sessions[:0], e)
	}
}

// after waits for the last call on each slot of a session.
func (c *identifiers) after(e *session) {
	for _, last := range e.slots {
		c.deps.After(last, plan.DepClient)
	}
	if len(e.slots) > manySlots && c.deps.End >= 0 {
		// A call that would wait for all of them waits for this one.
		clear(e.slots)
		e.slots[maxSlots] = c.deps.Flight
	}
}

// lost reports a state id that no reply has shown, of a client that began in the capture. It is
// therefore not from before the capture, but from a call that was lost or is encrypted.
func (c *identifiers) lost(id *nfs4.Stateid4) bool {
	if isSpecial(id) != "" || c.states.states[stateKey{c.server, id.Other}] != nil {
		return false
	}
	x := c.client
	if x == nil {
		if s := c.sessionOf(); s != nil {
			x = s.client
		}
	}
	if x == nil {
		x = c.states.latest(&c.sender)
	}
	return x != nil && x.DefinedBy != 0
}

func hex64(v uint64) string {
	s := strconv.FormatUint(v, 16)
	return "0000000000000000"[len(s):] + s
}
