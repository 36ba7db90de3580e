package planner

import (
	"encoding/binary"
	"strconv"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// ownerOf is the owner of a state; an unknown owner is made up.
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

// stateid adds a state id. how is what the operation does with the state.
func (c *call) stateid(n string, id *nfs4.Stateid4, kind plan.StateKind, o *obj, how order.Access) *state {
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
		c.deps.Needs(x.DefinedBy, plan.DepState)
	} else {
		c.worse(plan.Synthesised, string(x.Kind)+" state from before the capture: acquired before the start")
	}
	if c.executed() {
		c.deps.Use(&x.uses, 0, 1, how, plan.DepState)
	}
	return x
}

// stateOf is the state of a state id, without a field for it.
func (c *call) stateOf(id *nfs4.Stateid4, kind plan.StateKind, o *obj) *state {
	if isSpecial(id) != "" {
		return nil
	}
	return c.b.states.state(c, id, kind, o)
}

// seqid adds a sequence number of an owner; later minor versions ignore it.
func (c *call) seqid(n string, w *owner, v uint32) {
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
	c.deps.Needs(x.DefinedBy, plan.DepClient)
	c.deps.After(x.ready, plan.DepClient) // an unconfirmed client ID must not be used (RFC 7530, sections 16.33.5 and 16.34.5)
	c.form.symbol(plan.Field{N: n, Kind: plan.FieldClient, Ref: x.ID}, binary.BigEndian.AppendUint64(nil, id))
	return x
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

func hex64(v uint64) string {
	s := strconv.FormatUint(v, 16)
	return "0000000000000000"[len(s):] + s
}

// delegated is the state id of a delegation, nil if none was given.
func delegated(d *nfs4.OpenDelegation4) *nfs4.Stateid4 {
	switch d.DelegationType {
	case nfs4.OPEN_DELEGATE_READ, nfs4.OPEN_DELEGATE_READ_ATTRS_DELEG:
		return &d.Read.Stateid
	case nfs4.OPEN_DELEGATE_WRITE, nfs4.OPEN_DELEGATE_WRITE_ATTRS_DELEG:
		return &d.Write.Stateid
	}
	return nil
}
