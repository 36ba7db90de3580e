package session

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/link"
)

// Schemas of what is printed as JSON.
const (
	ReportSchema = "rpcrdma.sessions/1"
	LineSchema   = "rpcrdma.session/1" // of one line: kind and value
)

// Report is what a Recorder found. Durations are nanoseconds.
type Report struct {
	Schema   string    `json:"schema"`
	Inputs   []string  `json:"inputs"`
	Sessions []Session `json:"sessions"`
	Trunks   []Trunk   `json:"trunks"`
	Servers  []Server  `json:"servers,omitempty"` // where EXCHANGE_ID succeeded
	Clients  []Client  `json:"clients"`           // of versions without sessions
	Layouts  []Layout  `json:"layouts"`
	Devices  []*Device `json:"devices"`
	Recalls  uint64    `json:"layout_recalls"`
	Beyond   Lost      `json:"beyond_limits"`
	Notes    []string  `json:"notes"`
}

// Session is an NFSv4.1 session.
type Session struct {
	Tap         string            `json:"tap,omitempty"` // that saw most of it; in a report of several
	ID          string            `json:"session"`
	ClientID    string            `json:"client_id"` // empty if CREATE_SESSION was not captured
	Client      string            `json:"client_owner"`
	Server      string            `json:"server_owner"`
	ServerMinor uint64            `json:"server_minor_id"`
	Scope       string            `json:"server_scope"`
	Captured    bool              `json:"created_in_capture"`
	Destroyed   bool              `json:"destroyed"`
	Asked       *Channel          `json:"asked,omitempty"`
	Granted     *Channel          `json:"granted,omitempty"`
	Backward    *Channel          `json:"backward_granted,omitempty"`
	Persistent  bool              `json:"persistent"`
	BackHere    bool              `json:"backward_on_creating_connection"`
	Calls       uint64            `json:"calls"`
	Slots       Slots             `json:"slots"`
	BackSlots   Slots             `json:"backward_slots"`
	Failed      map[string]uint64 `json:"sequence_errors"`
	Replies     uint64            `json:"sequence_replies"` // without an error
	StatusFlags map[string]uint64 `json:"status_flags"`     // in how many of these
	Callbacks   map[string]uint64 `json:"callbacks"`
	Connections []Connection      `json:"connections"`
	Interval    int64             `json:"interval_ns"`
	Series      []Interval        `json:"intervals"`
}

// Slots is how the slots of a channel were used.
type Slots struct {
	Target  uint32  `json:"target"`       // newest of the server; 0 if not known
	Least   uint32  `json:"least_target"` // least of the server
	Used    uint32  `json:"used"`         // highest slot that was used, plus 1
	Said    uint32  `json:"said"`         // highest slot in use as the client said, plus 1
	Most    int     `json:"in_use_max"`
	Mean    float64 `json:"in_use_mean"`
	Full    int64   `json:"full_ns"` // time with all in use
	Time    int64   `json:"time_ns"` // from the first call to the last reply
	After   uint64  `json:"calls_after_full"`
	Soonest int64   `json:"after_full_min_ns"`
	Soon    int64   `json:"after_full_mean_ns"`
}

// Connection is what a connection carried.
type Connection struct {
	ID        int     `json:"connection"`
	Fabric    string  `json:"fabric"`
	Client    string  `json:"client"`
	Server    string  `json:"server"`
	Bound     string  `json:"bound_by,omitempty"`
	Calls     uint64  `json:"calls"`
	Share     float64 `json:"share"` // of the calls
	Callbacks uint64  `json:"callbacks"`
	Read      uint64  `json:"bytes_read"`
	Written   uint64  `json:"bytes_written"`
	Bytes     float64 `json:"bytes_share"`
	InFlight  int     `json:"in_flight_max"`
	Mean      int64   `json:"mean_ns"` // from call to reply; 0 if none was answered
}

// Server is an address at which EXCHANGE_ID succeeded.
type Server struct {
	Address       string `json:"address"`
	Owner         string `json:"server_owner"`
	Minor         uint64 `json:"server_minor_id"`
	Scope         string `json:"server_scope"`
	Client        string `json:"client_owner"`
	ServerProgram string `json:"server_implementation"` // empty if it does not name itself
	ClientProgram string `json:"client_implementation"`
	Used          bool   `json:"used"` // sessions have connections to it
	// SameAs is another address of the same server that sessions use; empty if there is none.
	SameAs string `json:"same_as,omitempty"`
}

// Trunk are sessions of one client with one server, or a session over several addresses.
type Trunk struct {
	Client   string   `json:"client_owner"`
	Server   string   `json:"server_owner"`
	Sessions []string `json:"sessions"`
	Servers  []string `json:"server_addresses"`
	Clients  []string `json:"client_addresses"`
	Kind     string   `json:"kind"` // session trunking, client ID trunking
}

// Client is a client of a version without sessions.
type Client struct {
	Client      string       `json:"client"`
	Server      string       `json:"server"`
	Version     string       `json:"version"`
	Connections []Connection `json:"connections"`
}

// Layout is the layout of a file.
type Layout struct {
	Handle   string            `json:"handle"`
	Path     string            `json:"path"`
	Server   string            `json:"metadata_server"`
	Type     string            `json:"type"`
	Read     uint64            `json:"granted_read"`
	Write    uint64            `json:"granted_read_write"`
	Segments uint64            `json:"segments"`
	Returned uint64            `json:"returned"`
	Refused  map[string]uint64 `json:"refused"`
	Devices  []string          `json:"devices"`
	IO       []*DataIO         `json:"data_servers"`
}

func (l *conns) report() []Connection {
	var calls, bytes uint64
	for _, c := range l.list {
		calls += c.calls
		bytes += c.read + c.sent
	}
	out := make([]Connection, 0, len(l.list))
	place := make(map[int]int) // of a connection in out: two may turn out to be one
	for _, c := range l.list {
		k := c.c.Resolve()
		if i, ok := place[k.ID]; ok {
			out[i].add(c, calls, bytes)
			continue
		}
		place[k.ID] = len(out)
		x := Connection{
			ID: k.ID, Fabric: k.Fabric.String(), Client: address(k.Ends[c.client]), Server: address(k.Ends[c.client.Other()]), Bound: c.bound.String(),
			Calls: c.calls, Callbacks: c.callbacks, Read: c.read, Written: c.sent, InFlight: c.most,
		}
		if calls > 0 {
			x.Share = float64(c.calls) / float64(calls)
		}
		if bytes > 0 {
			x.Bytes = float64(c.read+c.sent) / float64(bytes)
		}
		if c.answered > 0 {
			x.Mean = c.time / int64(c.answered)
		}
		out = append(out, x)
	}
	return out
}

// Even says how evenly connections carried: what the busiest of them carried, as a multiple of an equal share of the
// calls and of the bytes (1 if all carried the same; 0 if there was nothing to carry), and how many carried calls.
func Even(list []Connection) (calls, bytes float64, busy int) {
	for i := range list {
		if c := &list[i]; c.Calls > 0 {
			busy++
			calls, bytes = max(calls, c.Share), max(bytes, c.Bytes)
		}
	}
	return calls * float64(busy), bytes * float64(busy), busy
}

// add counts what was seen of the connection before it was known to be the same.
func (x *Connection) add(c *conn, calls, bytes uint64) {
	x.Calls += c.calls
	x.Callbacks += c.callbacks
	x.Read += c.read
	x.Written += c.sent
	x.InFlight = max(x.InFlight, c.most)
	if calls > 0 {
		x.Share = float64(x.Calls) / float64(calls)
	}
	if bytes > 0 {
		x.Bytes = float64(x.Read+x.Written) / float64(bytes)
	}
	if x.Mean == 0 && c.answered > 0 {
		x.Mean = c.time / int64(c.answered)
	}
}

func (t *table) report() Slots {
	s := Slots{Used: t.used, Said: t.said, Most: t.most, Full: t.full, After: t.after, Soonest: t.soonst}
	if s.Time = t.last - t.start; s.Time > 0 {
		s.Mean = float64(t.area) / float64(s.Time)
	}
	if t.after > 0 {
		s.Soon = t.soon / int64(t.after)
	}
	return s
}

// Report is what was found so far.
func (r *Recorder) Report(inputs []string) *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	rep := &Report{
		Schema: ReportSchema, Inputs: append([]string{}, inputs...), Sessions: []Session{}, Clients: []Client{}, Layouts: []Layout{},
		Devices: append([]*Device{}, r.pnfs.byOrder...), Recalls: r.pnfs.recalls, Beyond: r.lost, Notes: []string{},
	}
	for _, x := range r.order {
		rep.Sessions = append(rep.Sessions, x.report())
	}
	for _, g := range r.byOrder {
		c := Client{Client: link.AddrString(g.client), Server: link.AddrString(g.server), Version: version(g.version), Connections: g.conns.report()}
		for i := range c.Connections {
			c.Connections[i].Bound = ""
		}
		rep.Clients = append(rep.Clients, c)
	}
	for _, l := range r.pnfs.order {
		x := Layout{
			Handle: hex.EncodeToString([]byte(l.handle)), Path: l.path, Server: l.server, Type: kindName(l.kind), Read: l.modes[1], Write: l.modes[2],
			Segments: l.segments, Returned: l.returned, Refused: l.refused, Devices: []string{}, IO: append([]*DataIO{}, l.servers...),
		}
		if x.Refused == nil {
			x.Refused = map[string]uint64{}
		}
		for _, id := range l.devices {
			x.Devices = append(x.Devices, hex.EncodeToString(id[:]))
		}
		rep.Layouts = append(rep.Layouts, x)
	}
	rep.trunks()
	r.servers(rep)
	r.notes(rep)
	return rep
}

func (x *session) report() Session {
	s := Session{
		ID: hex.EncodeToString(x.id[:]), Client: x.owner.client, Server: x.owner.server, ServerMinor: x.owner.minor, Scope: x.owner.scope,
		Captured: x.created.Seen(), Destroyed: x.destroyed.Seen(), Calls: x.calls, Slots: x.fore.report(), BackSlots: x.back.report(),
		Failed: x.failed, Replies: x.replies, StatusFlags: x.statusFlags(), Callbacks: x.callbacks, Connections: x.conns.report(), Interval: x.series.length, Series: append([]Interval{}, x.series.list...),
	}
	if s.Failed == nil {
		s.Failed = map[string]uint64{}
	}
	if s.Callbacks == nil {
		s.Callbacks = map[string]uint64{}
	}
	s.Slots.Target, s.Slots.Least = x.target, x.least
	for i := range s.Series {
		s.Series[i].Start = int64(i) * s.Interval
	}
	if s.Captured {
		s.ClientID = fmt.Sprintf("%016x", x.clientID)
		s.Asked, s.Granted, s.Backward = &x.asked, &x.granted, &x.backGranted
		s.Persistent, s.BackHere = x.flags&1 != 0, x.flags&2 != 0
	}
	return s
}

// trunks finds sessions that belong together (RFC 8881, section 2.10.5).
func (r *Report) trunks() {
	type pair struct{ client, server string }
	r.Trunks = []Trunk{}
	groups := make(map[pair]*Trunk)
	var order []pair
	for i := range r.Sessions {
		s := &r.Sessions[i]
		key := pair{s.Client, s.Server}
		if s.Client == "" {
			key.client = s.ID // unknown: a group of its own
		}
		t := groups[key]
		if t == nil {
			t = &Trunk{Client: s.Client, Server: s.Server, Sessions: []string{}, Servers: []string{}, Clients: []string{}}
			groups[key] = t
			order = append(order, key)
		}
		t.Sessions = append(t.Sessions, s.ID)
		servers := len(t.Servers)
		for _, c := range s.Connections {
			if c.Calls == 0 && c.Bound == BoundByUse.String() {
				continue
			}
			t.Servers, t.Clients = with(t.Servers, c.Server), with(t.Clients, c.Client)
		}
		if len(s.Connections) > 1 && len(t.Servers)-servers > 1 {
			t.Kind = "session trunking"
		}
	}
	for _, key := range order {
		t := groups[key]
		if t.Kind == "" && len(t.Sessions) > 1 && len(t.Servers) > 1 {
			t.Kind = "client ID trunking"
		}
		if t.Kind != "" {
			r.Trunks = append(r.Trunks, *t)
		}
	}
}

// servers lists where EXCHANGE_ID succeeded, and which of these addresses are of one server (RFC 8881, section 2.10.5): same major id and scope.
func (r *Recorder) servers(rep *Report) {
	type place struct {
		tenant  uint64
		address netip.Addr
	}
	used := make(map[place]bool)
	for _, x := range r.order {
		for _, c := range x.conns.list {
			used[place{x.tenant, c.c.Resolve().Ends[c.client.Other()].Addr}] = true
		}
	}
	for i := range r.greets {
		g := &r.greets[i]
		s := Server{
			Address: link.AddrString(g.address), Owner: g.server, Minor: g.minor, Scope: g.scope, Client: g.client,
			ServerProgram: g.serverProgram, ClientProgram: g.clientProgram, Used: used[place{g.tenant, g.address}],
		}
		for j := range r.greets {
			o := &r.greets[j]
			if o.tenant == g.tenant && o.server == g.server && o.scope == g.scope && o.address != g.address && used[place{o.tenant, o.address}] {
				s.SameAs = link.AddrString(o.address)
				break
			}
		}
		rep.Servers = append(rep.Servers, s)
	}
}

func with(list []string, s string) []string {
	if !slices.Contains(list, s) {
		list = append(list, s)
	}
	return list
}

func (r *Recorder) notes(rep *Report) {
	note := func(n uint64, format string) {
		if n > 0 {
			rep.Notes = append(rep.Notes, fmt.Sprintf(format, n))
		}
	}
	note(r.hidden, "COMPOUNDs that could not be decoded: %d; what session they belong to is not known")
	note(r.lost.Sessions, "calls of sessions beyond the limit of sessions: %d")
	note(r.lost.Clients, "calls from clients beyond the limit of clients: %d")
	note(r.lost.Connections, "calls on connections beyond the limit of connections of a session or client: %d")
	note(r.lost.Slots, "%d calls used slots beyond the limit of slots")
	note(r.lost.Calls, "%d calls were beyond the limit of open calls")
	note(r.lost.Layouts, "%d layouts, handles or devices were beyond their limits")
	for _, x := range r.order {
		if x.backRefused && !slices.ContainsFunc(x.conns.list, func(c *conn) bool { return c.back }) {
			rep.Notes = append(rep.Notes, fmt.Sprintf("session %s has no backchannel: the client asked for one, and CREATE_SESSION granted none, so the server can recall nothing", hex.EncodeToString(x.id[:])))
		}
		for _, c := range x.conns.list {
			k := c.c.Resolve()
			if c.callbacks > 0 && !c.back && (x.created.Seen() || k.Setup[0].Seen() && k.Setup[1].Seen()) && r.hidden == 0 {
				rep.Notes = append(rep.Notes, fmt.Sprintf(
					"%d callbacks of session %s came on connection %d, which is not bound to its backchannel: the client need not answer them there", c.callbacks, hex.EncodeToString(x.id[:]), k.ID))
			}
		}
	}
	if len(rep.Sessions) > 0 {
		rep.Notes = append(rep.Notes, slotNote)
	}
}

const slotNote = "a client that waits for a slot sends nothing: a capture shows that all slots were in use and that a call followed as one became free, not how long the call had waited"

func version(v uint32) string {
	if v == 4 {
		return "4.0"
	}
	return fmt.Sprint(v)
}

// Empty reports whether nothing was seen that Spread may tell of, together with what other taps saw.
func (r *Report) Empty() bool { return len(r.Sessions)+len(r.Clients)+len(r.Layouts) == 0 }

// Spread reports whether sessions show more than connections by themselves: a session or client
// over several connections, slots that were all in use, sessions that failed, a trunk, or a
// layout.
func (r *Report) Spread() bool {
	for i := range r.Sessions {
		if s := &r.Sessions[i]; len(s.Connections) > 1 || s.Slots.Full > 0 || len(s.Failed) > 0 {
			return true
		}
	}
	for i := range r.Clients {
		busy := 0
		for _, c := range r.Clients[i].Connections {
			if c.Calls > 0 {
				busy++
			}
		}
		if busy > 1 {
			return true
		}
	}
	return len(r.Trunks)+len(r.Layouts) > 0
}
