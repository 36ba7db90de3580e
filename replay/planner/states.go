package planner

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// client is an NFSv4 client.
type client struct {
	plan.Client
	ready, set order.Flight // what made it usable; the latest SETCLIENTID
	reclaimed  bool         // RECLAIM_COMPLETE was sent
	owners     map[string]*owner
	sessions   []*session
}

// session is an NFSv4.1 session.
type session struct {
	plan.Session
	client *client
	slots  map[uint32]order.Flight // last op on each slot
	gone   bool                    // the server has forgotten it
	ended  bool                    // the client has destroyed it
}

// owner is an open or lock owner.
type owner struct {
	plan.Owner
	last   order.Flight
	number uint32 // sequence number of the last op
}

// state is what a state id refers to.
type state struct {
	plan.State
	obj    *obj
	client *client
	owner  *owner
	into   *state // reclaimed after a restart: the same
	seqid  uint32 // latest that the client knows
	uses   order.History
}

type stateKey struct {
	server int
	other  [12]byte
}

type clientKey struct {
	server int
	id     uint64
}

type sessionKey struct {
	server int
	id     [16]byte
}

// states are the clients of the captured servers and their state.
type states struct {
	b         *Builder
	clients   map[clientKey]*client
	pending   map[string]*client // named by an owner, without a client id yet
	sessions  map[sessionKey]*session
	prefixes  map[clientKey]*client // of sessions from before the capture
	expected  map[int]*session      // by connection: made by a call whose reply the capture lacks, and not used yet
	states    map[stateKey]*state
	clientsIn []*client
	sessIn    []*session
	ownersIn  []*owner
	nlmOwners map[nlmOwner]*owner
	statesIn  []*state
	restarted bool // a server has forgotten its clients
}

// maxStates bounds each of the tables.
const (
	maxStates  = 1 << 20
	maxOwners  = 1 << 20
	maxClients = 1 << 16
)

func (s *states) init(b *Builder) {
	*s = states{
		b: b, clients: map[clientKey]*client{}, pending: map[string]*client{}, sessions: map[sessionKey]*session{},
		expected: map[int]*session{}, prefixes: map[clientKey]*client{}, states: map[stateKey]*state{},
	}
}

func (s *states) session(c *sender, id [16]byte) *session {
	k := sessionKey{c.server, id}
	x := s.sessions[k]
	if x == nil {
		if x = s.expectedOf(c); x != nil {
			x.SessionID, s.sessions[k] = hex.EncodeToString(id[:]), x
			return x
		}
		// A Linux server's session ids begin with the client id. The client was there before, if no call has made it since.
		prefix := clientKey{c.server, binary.BigEndian.Uint64(id[:8])}
		cl := s.clients[prefix]
		if cl == nil || cl.DefinedBy != 0 {
			cl = s.newClient(c.server)
			s.first(c, cl)
		}
		if _, ok := s.prefixes[prefix]; !ok && !s.b.room.full() {
			s.prefixes[prefix] = cl
			s.b.room.take(entrySize)
		}
		if x = s.addSession(k, cl); x.Class == "" {
			x.Class = plan.Synthesised
		}
	}
	return x
}

// expect adds the session of a CREATE_SESSION whose reply the capture lacks: it is the next one on the
// connection that nobody knows.
func (s *states) expect(c *sender, op int, cl *client) *session {
	if cl.DefinedBy == 0 {
		return nil // nobody can make it: it is made as one from before the capture
	}
	if s.expected[c.conn] != nil {
		return nil // which of two it is cannot be told
	}
	n := len(s.sessIn)
	x := s.addSession(sessionKey{server: c.server}, cl)
	delete(s.sessions, sessionKey{server: c.server})
	if len(s.sessIn) == n {
		return nil
	}
	x.SessionID, x.DefinedBy, x.Class = "", op, plan.Inferred
	s.expected[c.conn] = x
	return x
}

// expectedOf is the session that is expected to be used on a connection; nil if there is none.
func (s *states) expectedOf(c *sender) *session {
	x := s.expected[c.conn]
	delete(s.expected, c.conn)
	return x
}

func (s *states) addSession(k sessionKey, cl *client) *session {
	if n := len(s.sessIn); n > 0 && (n >= maxClients || s.b.room.full()) {
		s.b.limit("more sessions than are followed")
		return s.sessIn[n-1]
	}
	x := &session{Session: plan.Session{ID: len(s.sessIn) + 1, SessionID: hex.EncodeToString(k.id[:])}, client: cl, slots: map[uint32]order.Flight{}}
	s.b.room.take(sessionSize)
	s.sessIn = append(s.sessIn, x)
	s.sessions[k] = x
	cl.sessions = append(cl.sessions, x)
	return x
}

// client returns the client of a client id; a new one was there before the capture.
func (s *states) client(c *sender, id uint64) *client {
	k := clientKey{c.server, id}
	x := s.clients[k]
	if x == nil {
		if x = s.prefixes[k]; x == nil || x.ClientID != "" {
			x = s.newClient(c.server)
		}
		if x.ClientID == "" {
			x.ClientID = fmt.Sprintf("%016x", id)
		}
		s.first(c, x)
		if !s.b.room.full() {
			s.clients[k] = x
			s.b.room.take(entrySize)
		}
	}
	return x
}

// pendingKey is the key of states.pending.
func pendingKey(server int, id []byte, verifier [8]byte) string {
	return fmt.Sprintf("%d %x %s", server, verifier, id)
}

// ownerID is the client of an owner string, whether it has an id yet or not.
func (s *states) ownerID(c *sender, id []byte, verifier [8]byte) *client {
	k := pendingKey(c.server, id, verifier)
	x := s.pending[k]
	if x == nil {
		x = s.newClient(c.server)
		s.first(c, x)
		if x.Owner != "" || x.OwnerHex != nil {
			return x // there is no room for more clients
		}
		if utf8.Valid(id) {
			x.Owner = string(id)
		} else {
			x.OwnerHex = append([]byte(nil), id...)
		}
		x.Verifier = append([]byte(nil), verifier[:]...)
		s.pending[k] = x
		s.b.room.take(entrySize + 3*len(id))
	}
	return x
}

// named gives a client its id.
func (s *states) named(c *sender, by order.Flight, x *client, id uint64) *client {
	k := clientKey{c.server, id}
	old := s.clients[k]
	if old != nil && old != x && old.DefinedBy == 0 && old.Class == plan.Synthesised {
		// It was in use before its name was seen.
		return old
	}
	if old == x || !s.b.room.full() {
		s.clients[k] = x
		s.b.room.take(entrySize)
	}
	if x.DefinedBy == 0 {
		x.DefinedBy, x.Class, x.ClientID = by.Op, plan.Exact, fmt.Sprintf("%016x", id)
		x.ready = by
	}
	return x
}

func (s *states) newClient(server int) *client {
	if n := len(s.clientsIn); n > 0 && (n >= maxClients || s.b.room.full()) {
		s.b.limit("more clients than are followed")
		return s.clientsIn[n-1]
	}
	s.b.room.take(clientSize)
	s.b.ids.used[server] = true
	c := &client{Client: plan.Client{ID: len(s.clientsIn) + 1, Server: server, Class: plan.Synthesised}, owners: map[string]*owner{}}
	s.clientsIn = append(s.clientsIn, c)
	return c
}

// latest is one of the latest clients that has the address of a sender; nil if there is none.
func (s *states) latest(c *sender) *client {
	n := len(s.clientsIn)
	for _, x := range slices.Backward(s.clientsIn[max(0, n-63):]) {
		if x.Server == c.server && x.Addr == c.addr && x.Minor == c.minor {
			return x
		}
	}
	return nil
}

// first notes where a client was seen first.
func (s *states) first(c *sender, x *client) {
	if x.Addr == "" {
		x.Addr, x.Minor = c.addr, c.minor
	}
}

func (s *states) owner(cl *client, kind string, name []byte) *owner {
	k := kind + string(name)
	x := cl.owners[k]
	if n := len(s.ownersIn); x == nil && n > 0 && (n >= maxOwners || s.b.room.full()) {
		s.b.limit("more owners than are followed")
		return s.ownersIn[n-1]
	}
	if x == nil {
		x = &owner{Owner: plan.Owner{ID: len(s.ownersIn) + 1, Kind: kind, Client: cl.ID, Bytes: append([]byte{}, name...)}}
		s.b.room.take(ownerSize + 2*len(name))
		s.ownersIn = append(s.ownersIn, x)
		cl.owners[k] = x
	}
	return x
}

// reclaimed makes a state id from after the server's restart another name of the one that it
// replaces; nil if there is none.
func (s *states) reclaimed(c *sender, id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) *state {
	if isSpecial(id) != "" {
		return nil
	}
	o = o.real()
	if o == nil {
		return nil
	}
	for i := len(o.held) - 1; i >= 0; i-- {
		x := o.held[i]
		if x.into == nil && x.Kind == kind && (kind == plan.DelegationState || w == nil || x.owner == nil || string(x.owner.Bytes) == string(w.Bytes)) {
			if s.b.room.full() {
				s.b.limit("more states than are followed")
				return x
			}
			s.states[stateKey{c.server, id.Other}] = x
			s.b.room.take(entrySize)
			x.seqid = id.Seqid
			return x
		}
	}
	return nil
}

// result learns a state id from a reply.
func (s *states) result(c *sender, op int, id *nfs4.Stateid4, kind plan.StateKind, o *obj, w *owner) *state {
	if isSpecial(id) != "" {
		return nil
	}
	k := stateKey{c.server, id.Other}
	x := s.states[k].real()
	if x == nil {
		x = s.addState(k, kind)
		x.Class, x.DefinedBy = plan.Exact, op
		x.obj, x.client, x.owner = o, c.client, w
		if w != nil {
			x.client = s.clientsIn[w.Client-1]
		}
	}
	x.seqid = id.Seqid
	o.real().holds(x)
	return x
}

// state returns the state of a state id in a call; a new one was there before the capture.
func (s *states) state(c *sender, id *nfs4.Stateid4, kind plan.StateKind, o *obj) *state {
	k := stateKey{c.server, id.Other}
	x := s.states[k].real()
	if x == nil {
		x = s.addState(k, kind)
		x.Class = plan.Synthesised
		x.seqid = id.Seqid
		x.obj, x.client = o, c.client
	}
	if x.DefinedBy == 0 {
		if x.Kind == plan.OpenState && (kind == plan.DelegationState || kind == plan.LockState) {
			x.Kind = kind
		}
		if id.Seqid > x.seqid {
			x.seqid = id.Seqid
		}
	}
	if x.obj == nil {
		x.obj = o
	}
	o.real().holds(x)
	return x
}

func (s *states) addState(k stateKey, kind plan.StateKind) *state {
	x := &state{State: plan.State{ID: len(s.statesIn) + 1, Kind: kind, Other: hex.EncodeToString(k.other[:])}}
	if n := len(s.statesIn); n > 0 && (n >= maxStates || s.b.room.full()) {
		s.b.limit("more states than are followed")
		s.statesIn[0].uses = order.History{}
		return s.statesIn[0]
	}
	s.b.room.take(stateSize)
	s.statesIn = append(s.statesIn, x)
	s.states[k] = x
	return x
}

func (o *obj) holds(x *state) {
	if o == nil || slices.Contains(o.held, x) {
		return
	}
	d := o.own()
	if len(d.held) >= maxHeld {
		d.held = append(d.held[:0], d.held[1:]...)
	}
	d.held = append(d.held, x)
}

// maxHeld is how many states of an object are remembered for reclaims.
const maxHeld = 64

// isSpecial recognises state ids with a special meaning.
func isSpecial(id *nfs4.Stateid4) string { return plan.SpecialState(id.Seqid, id.Other) }

func (x *state) real() *state {
	for x != nil && x.into != nil {
		x = x.into
	}
	return x
}

func (s *states) finish() {
	t := &s.b.t
	for _, c := range s.clientsIn {
		t.Clients = append(t.Clients, c.Client)
	}
	for _, x := range s.sessIn {
		x.Client = x.client.ID
		t.Sessions = append(t.Sessions, x.Session)
	}
	for _, x := range s.ownersIn {
		t.Owners = append(t.Owners, x.Owner)
	}
	for _, x := range s.statesIn {
		if x.obj != nil {
			x.Object = s.b.space.ref(x.obj)
		}
		if x.client != nil {
			x.Client = x.client.ID
		}
		if x.owner != nil {
			x.Owner = x.owner.ID
		}
		t.States = append(t.States, x.State)
	}
}
