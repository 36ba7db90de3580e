package planner

import (
	"errors"
	"fmt"
	"math/bits"
	"path/filepath"
	"slices"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// Options say how a plan is made. The zero value is a good choice.
type Options struct {
	Payload plan.PayloadMode // Captured
	// NoResults leaves the captured results out of the plan: then only the status and the other
	// expectations can be compared.
	NoResults bool
	// Objects is how many objects and names are followed (1 Mi).
	Objects int
	// Memory is roughly how many bytes the tables of the plan may take while it is made (80 MiB):
	// objects, names, states, clients, credentials.
	Memory int
	// Sources are named in the header.
	Sources []string
	Tool    string
	// Files knows the input files, which must not be overwritten; may be nil.
	Files *outfile.Files
	// Same are addresses that belong to one server, whatever the capture shows; with
	// Separate each address is a server of its own.
	Same     []plan.SameServer
	Separate bool
	// Answered are calls whose copies without a reply are left out, since a later one has a reply: see LateError.
	Answered []Resent
	// Retry makes Build return a LateError without a plan, as the caller will call it again.
	Retry bool
	// Unwrap decrypts RPCSEC_GSS messages for Build; it may be nil.
	Unwrap rpc.Unwrapper
	// Decoded is called by Build after each transaction, Ended after the last one; both may be nil.
	Decoded func(*rpc.View)
	Ended   func(*decode.Decoder)
}

// Builder makes a plan of transactions. What it holds in memory grows with the
// number of objects, names and states, up to Options.Memory, and with nothing else: ops wait in a
// spill, since the tables come before them. The plan and its data get their names when both are
// complete.
type Builder struct {
	opt   Options
	room  room
	out   string
	file  *outfile.File
	t     plan.Tables
	spill *spill // ops and skips
	data  *dataFile
	err   error

	ops        int
	started    bool
	start, end int64 // ns since the epoch
	summary    *plan.Summary
	reasons    map[plan.Reason]int // Count is 0 in the key
	notReplay  map[plan.Reason]int
	limits     map[string]bool
	fabrics    map[string]bool
	graph      order.Graph
	facts      facts
	uses       order.Uses

	servers map[string]int // by address
	ids     identity
	creds   credentials
	conns   map[int]*connection // by ID in the capture
	rest    *connection         // the latest, which stands for those without room
	space   space
	states  states
	resent  resent
	waiting waitingLocks
	content content
	call    call
	// Of the call.
	compound compound
	attrs    nfs4.Attrs
}

// connection is what a Builder keeps of a connection.
type connection struct {
	id       int
	inFlight []order.Flight // sorted by end
	last     order.Flight   // whose reply came last before the call at hand
	called   bool           // a call of a client was seen
	first    uint32         // XID of the first one
}

// follows reports whether the call with an XID was probably sent after the first one that was seen. Clients count their XIDs up, and
// those with little-endian processors may do so from the other end.
func (c *connection) follows(xid uint32) bool {
	const many = 1 << 16
	after := func(n uint32) bool { return n > 0 && n < many }
	return after(xid-c.first) || after(bits.ReverseBytes32(xid)-bits.ReverseBytes32(c.first))
}

// NewBuilder makes a Builder that writes to a file, which is compressed if its
// name says so. Captured data goes to a file beside it.
func NewBuilder(out string, opt Options) (*Builder, error) {
	if opt.Payload == "" {
		opt.Payload = plan.Captured
	}
	if opt.Objects <= 0 {
		opt.Objects = 1 << 20
	}
	if opt.Memory <= 0 {
		opt.Memory = DefaultMemory
	}
	file, err := opt.Files.Create(out)
	if err != nil {
		return nil, err
	}
	b := &Builder{
		opt: opt, room: room{opt.Memory}, out: out, file: file, spill: newSpill(out),
		servers: map[string]int{}, conns: map[int]*connection{},
		reasons: map[plan.Reason]int{}, notReplay: map[plan.Reason]int{}, limits: map[string]bool{}, fabrics: map[string]bool{},
		resent: newResent(opt.Answered),
		summary: &plan.Summary{
			Programs: map[string]int{}, Procedures: map[string]int{}, Roles: map[plan.Role]int{}, Edges: map[plan.DepKind]int{},
		},
	}
	b.uses = order.Uses{Max: min(order.MaxUses, max(opt.Memory/(DefaultMemory/order.MaxUses), 1<<10)), Each: b.histories, Limit: b.limit}
	b.waiting = waitingLocks{map[blockedKey]*blocked{}, b.limit}
	b.creds = credentials{ids: map[string]int{}, room: &b.room, limit: b.limit}
	b.space.init(b)
	b.ids.init(b)
	b.states.init(b)
	if opt.Payload == plan.Captured {
		b.data = &dataFile{files: opt.Files, name: out + ".data"}
	}
	b.content = content{opt.Payload, b.data, &b.room, b.summary, b.limit, b.fail}
	return b, nil
}

// Abort discards the plan and removes its files.
func (b *Builder) Abort() error {
	b.file.Discard()
	if b.data != nil {
		b.data.f.Discard()
	}
	return b.spill.discard()
}

func (b *Builder) connection(v *rpc.View) *connection {
	tx := v.Tx
	key, program := tx.Connection.ID, ""
	if tx.Named && tx.Program == nlm.NLM_PROG {
		key, program = ^key, "nlm" // another server may have it at another port
	}
	if c := b.conns[key]; c != nil {
		return c
	}
	fabric := tx.Connection.Fabric.String()
	b.fabrics[fabric] = true
	id := len(b.t.Connections) + 1
	if id > 1 && (id > maxConnections || b.room.full()) {
		b.limit("more connections than are followed: the calls of the rest go over one")
		return b.rest
	}
	b.room.take(connectionSize)
	client, server := tx.Client(), tx.Server()
	from := tx.From
	if tx.Backward {
		client, server, from = server, client, from.Other()
	}
	x := plan.Connection{ID: id, Fabric: fabric, Client: endString(client), Server: b.server(server), Address: endString(server), Program: program}
	// What one side can receive limits what the other may send (RFC 8797).
	mine, theirs := &tx.Connection.Setup[from].Private, &tx.Connection.Setup[from.Other()].Private
	if mine.Present && theirs.Present {
		x.InlineSend = min(mine.SendSize, theirs.ReceiveSize)
		x.InlineReceive = min(theirs.SendSize, mine.ReceiveSize)
	}
	b.t.Connections = append(b.t.Connections, x)
	c := &connection{id: id}
	b.conns[key] = c
	b.rest = c
	return c
}

func (b *Builder) server(end rdma.End) int {
	a := end.Addr.String()
	if id := b.servers[a]; id != 0 {
		return id
	}
	if id, why := b.ids.assigned(a); id != 0 {
		b.t.Servers[id-1].Same = append(b.t.Servers[id-1].Same, why)
		b.servers[a] = id
		return id
	}
	id := len(b.t.Servers) + 1
	if id > maxServers {
		b.limit("more servers than are followed: the rest is taken for one")
		return maxServers
	}
	b.room.take(serverSize)
	b.t.Servers = append(b.t.Servers, plan.Server{ID: id, Addr: a})
	b.ids.add()
	b.servers[a] = id
	return id
}

// Limits of tables whose rows every capture has.
const (
	maxServers     = 1 << 12
	maxConnections = 1 << 16
	maxVersions    = 16
)

func (b *Builder) version(server int, v string) {
	s := &b.t.Servers[server-1]
	if len(s.Versions) < maxVersions && !slices.Contains(s.Versions, v) {
		s.Versions = append(s.Versions, v)
		slices.Sort(s.Versions)
	}
}

func endString(e rdma.End) string {
	switch {
	case e.QPN != 0:
		return fmt.Sprintf("%s QP 0x%x", e.Addr, e.QPN)
	case e.Addr.Is6():
		return fmt.Sprintf("[%s]:%d", e.Addr, e.Port)
	}
	return fmt.Sprintf("%s:%d", e.Addr, e.Port)
}

// advance notes which replies had come before a call.
func (c *connection) advance(start int64) {
	if len(c.inFlight) == 0 || c.inFlight[0].End > start {
		return
	}
	n := 0
	for n < len(c.inFlight) && c.inFlight[n].End <= start {
		c.last = c.inFlight[n]
		n++
	}
	c.inFlight = append(c.inFlight[:0], c.inFlight[n:]...)
}

func (c *connection) add(op int, end int64) {
	i, _ := slices.BinarySearchFunc(c.inFlight, end, func(f order.Flight, end int64) int {
		if f.End <= end {
			return -1
		}
		return 1
	})
	c.inFlight = slices.Insert(c.inFlight, i, order.Flight{Op: op, End: end})
}

// began reports whether the capture has the beginning of a connection.
func began(c *rdma.Connection) bool { return c.Setup[0].Seen() || c.Setup[1].Seen() }

// skip writes a transaction that is not replayed.
func (b *Builder) skip(c *call, class plan.Class, reason string) {
	s := &plan.Skip{XID: c.v.Tx.XID, Connection: c.conn.id, Time: c.start, What: c.about.of(c.v), Class: class, Reason: reason}
	switch {
	case reason == plan.ReasonCut:
		s.Code = plan.SkipCut
		s.Touches, s.Reads = (&toucher{space: &b.space, server: c.server}).touches(c.v)
	case reason == notCaptured && c.conn.called && (began(c.v.Tx.Connection) || c.conn.follows(c.v.Tx.XID)), reason == noHeader:
		// It may have changed anything. A reply that comes before all calls of its connection belongs to a call from
		// before the capture: what that did was there from the start, and is prepared. So may the next ones, if the
		// connection is older than the capture, and their XIDs do not say that they are later.
		s.Code = plan.SkipCut
	}
	if class == plan.Impossible {
		b.summary.Ops.Impossible++
		countReason(b.reasons, plan.Reason{Class: class, Reason: reason})
	} else {
		countReason(b.notReplay, plan.Reason{Class: class, Reason: reason})
	}
	b.fail(b.spill.Skip(s))
}

// write finishes an op.
func (b *Builder) write(c *call) {
	o := c.op
	for _, x := range c.effects.objs {
		if x.real().others {
			c.reasons.add(plan.Inferred, "somebody who is not in the capture had changed the file")
		}
	}
	for _, r := range c.reasons {
		o.Reasons = append(o.Reasons, r.Reason)
		countReason(b.reasons, r)
		if r.Class.Worse(o.Class) {
			o.Class = r.Class
		}
	}
	if o.After != 0 {
		c.deps.Needs(o.After, plan.DepProgram)
	}
	o.Deps = b.graph.Reduce(o.ID, c.deps.List())
	for _, d := range o.Deps {
		b.summary.Edges[d.Kind]++
	}
	s := b.summary
	switch o.Class {
	case plan.Exact:
		s.Ops.Exact++
	case plan.Inferred:
		s.Ops.Inferred++
	default:
		s.Ops.Synthesised++
	}
	s.Roles[o.Role]++
	count(s.Procedures, procedure(c.v))
	count(s.Programs, program(c.v))
	if o.Modifies {
		s.Modifying++
	}
	b.facts.add(&b.states, o)
	b.fail(b.spill.Op(o))
}

// Finish writes the plan.
func (b *Builder) Finish() (*plan.Summary, error) {
	err := b.err
	if err == nil {
		b.tables()
		err = b.assemble()
	}
	// Both are completely on disk before either gets its name.
	if err == nil && b.data != nil {
		err = b.data.close()
	}
	if err == nil && b.data != nil && b.data.size > 0 {
		err = b.data.f.Commit()
	}
	if err == nil {
		err = b.file.Commit()
	}
	return b.summary, errors.Join(err, b.Abort())
}

// tables fills the tables.
func (b *Builder) tables() {
	b.space.finish()
	b.states.finish()
	b.ids.finish()
	h := &b.t.Header
	*h = plan.Header{
		Format: plan.Format, Tool: b.opt.Tool, Start: b.start, Duration: b.end - b.start,
		Payload: b.opt.Payload, Summary: b.summary, Sources: []string{}, Fabrics: []string{},
	}
	for _, s := range b.opt.Sources {
		h.Sources = append(h.Sources, filepath.Base(s))
	}
	for f := range b.fabrics {
		h.Fabrics = append(h.Fabrics, f)
	}
	slices.Sort(h.Fabrics)
	if b.data != nil && b.data.size > 0 {
		h.Data, h.DataBytes = filepath.Base(b.out+".data"), b.data.size
	}
	if b.t.Credentials = b.creds.list; len(b.t.Credentials) == 0 && b.ops > 0 {
		b.t.Credentials = []plan.Credential{{ID: 1, Flavor: "none"}}
	}
	h.Facts = b.facts.header(&b.space)
	b.count()
}

// assemble writes tables and ops to the plan.
func (b *Builder) assemble() error {
	w, err := plan.NewFileWriter(b.file, b.out)
	if err != nil {
		return err
	}
	err = w.Stream(&b.t, b.space.all())
	if err == nil {
		err = b.spill.drain(w)
	}
	return errors.Join(err, w.Close())
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *Builder) limit(what string) { b.limits[what] = true }

// histories visits the histories of all that a Builder knows.
func (b *Builder) histories(f func(*order.History)) {
	for _, o := range b.space.objects {
		f(&o.attr)
		if o.details != &none {
			f(&o.details.bytes)
			f(&o.details.dir)
			f(&o.details.locks)
		}
	}
	for _, x := range b.states.statesIn {
		f(&x.uses)
	}
}
