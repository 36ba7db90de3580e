// Package traced makes transactions of what the kernels of clients and servers record of their calls: the trace events of sunrpc and
// rpcrdma, as records or lines of text (package capture/ftrace). No packet is needed, so it works with any adapter. What no event says is
// absent from the transactions: see transaction.Kernel, and docs/kernel-events.md for which event says what.
package traced

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/capture/ftrace"
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Limits of what is remembered, of each kind. What is beyond them is forgotten, all or the oldest.
const (
	maxCalls       = 1 << 15
	maxTasks       = 1 << 12
	maxThreads     = 1 << 12
	maxRequests    = 1 << 10
	maxConnections = 1 << 12
	maxNames       = 1 << 12
	maxSegments    = 1 << 8 // of one message
)

// Tracker joins events.
type Tracker struct {
	// Counter, if set, is told of a counter of a port that has grown since the second before.
	Counter func(at rdma.Ref, port, name string, grown uint64)

	tx       *transaction.Tracker
	numbers  *rdma.Numbers
	closed   func(*rdma.Connection, rdma.Ref)
	event    ftrace.Event
	header   rpcrdma.Header
	bytes    []byte
	names    map[name]procedure
	numbered map[string]uint32 // operations, as a server calls them
	conns    map[connKey]*rdma.Connection
	order    []*rdma.Connection

	// Of clients.
	calls     map[callKey]rdma.Tag
	tasks     map[taskKey]*task
	callbacks map[uint32]rdma.Tag
	peers     []ftrace.Event          // Threshold, one for each pair of addresses
	servers   map[uint32]netip.Addr   // by the number of the rpc_clnt
	found     map[uint32]netip.Addr   // by XID
	links     map[uint32]ftrace.Event // Transport, by its number
	failures  map[callKey]uint32      // status of a reply whose call is not complete
	// Of servers.
	threads  map[uint32]*thread
	requests map[uint32]*request // by XID
	waiting  []*request          // the oldest first
	replies  []*thread           // with a reply that may go on, the oldest first
}

// name is what a kernel calls a procedure.
type name struct {
	program, procedure string
	version            uint32
}

// procedure is what it is.
type procedure struct {
	program, version, number uint32
	known                    bool
	operation                string
}

// connKey tells connections apart: those of a client by the addresses, those of a server by the queue of its receives, too.
type connKey struct {
	client, server netip.Addr
	queue          uint32
	served         bool
}

// New makes a Tracker that gives its transactions to tx, and tells closed of connections at the end.
func New(tx *transaction.Tracker, numbers *rdma.Numbers, closed func(*rdma.Connection, rdma.Ref)) *Tracker {
	return &Tracker{
		tx: tx, numbers: numbers, closed: closed,
		names: make(map[name]procedure), conns: make(map[connKey]*rdma.Connection),
		calls: make(map[callKey]rdma.Tag), tasks: make(map[taskKey]*task), callbacks: make(map[uint32]rdma.Tag),
		servers: make(map[uint32]netip.Addr), found: make(map[uint32]netip.Addr),
		links: make(map[uint32]ftrace.Event), failures: make(map[callKey]uint32), numbered: make(map[string]uint32),
		threads: make(map[uint32]*thread), requests: make(map[uint32]*request),
	}
}

// Event takes the record or the line of an event; at is its place in the input. It returns the connection that the event is about, if that is known.
func (t *Tracker) Event(at rdma.Ref, data []byte) *rdma.Connection {
	e := &t.event
	if !e.Decode(data) {
		return nil
	}
	t.settle(e, at)
	var c *rdma.Connection
	switch e.Kind {
	case ftrace.Transport, ftrace.Counter, ftrace.Failed, ftrace.FailedOperation:
		t.learns(e, at)
	case ftrace.Operation:
		c = t.executes(e)
	case ftrace.Threshold, ftrace.ChunkRead, ftrace.ChunkWrite, ftrace.ChunkReply, ftrace.Granted, ftrace.Found:
		t.prepares(e, at)
	case ftrace.Marshal:
		c = t.marshal(e, at)
	case ftrace.Reply:
		c = t.reply(e, at)
	case ftrace.Latency:
		c = t.latency(e, at)
	case ftrace.CallbackCall, ftrace.CallbackReply:
		c = t.callback(e, at)
	case ftrace.Dequeued, ftrace.ReadSegment, ftrace.WriteSegment:
		t.receives(e)
	case ftrace.Request:
		t.request(e, at)
	case ftrace.Process:
		c = t.process(e, at)
	case ftrace.Served, ftrace.Returned:
		c = t.serves(e, at)
	}
	if c != nil {
		c.Last = at
	}
	return c
}

// Flush ends what has not ended. at is the last event.
func (t *Tracker) Flush(at rdma.Ref) {
	for len(t.replies) > 0 {
		t.replied(t.replies[0])
	}
	for _, c := range t.order {
		t.closed(c, at)
	}
	t.order = nil
	clear(t.conns)
}

// connection finds or begins a connection.
func (t *Tracker) connection(k connKey, at rdma.Ref) *rdma.Connection {
	c := t.conns[k]
	if c != nil {
		return c
	}
	if len(t.order) >= maxConnections {
		oldest := slices.MinFunc(t.order, func(a, b *rdma.Connection) int { return cmp.Compare(a.Last.Number, b.Last.Number) })
		oldest.Terminated = "evicted: too many connections"
		t.closed(oldest, at)
		t.order = slices.DeleteFunc(t.order, func(c *rdma.Connection) bool { return c == oldest })
		for k, c := range t.conns {
			if c == oldest {
				delete(t.conns, k)
			}
		}
	}
	c = t.numbers.New(rdma.AnyRDMA, at)
	c.Ends[client].Addr, c.Ends[server].Addr = k.client, k.server
	t.conns[k] = c
	t.order = append(t.order, c)
	return c
}

// The sides of a connection.
const (
	client rdma.Side = 0
	server rdma.Side = 1
)

// call sets what a transaction calls.
func (t *Tracker) call(tx *transaction.Transaction, e *ftrace.Event) { t.called(e).set(tx) }

// called is the procedure that an event names.
func (t *Tracker) called(e *ftrace.Event) procedure {
	p, ok := t.names[name{string(e.Program), string(e.Procedure), e.Version}]
	if !ok {
		n := name{string(e.Program), string(e.Procedure), e.Version}
		p = find(n)
		if len(t.names) >= maxNames {
			clear(t.names)
		}
		t.names[n] = p
	}
	return p
}

// set makes the procedure that of a transaction.
func (p procedure) set(tx *transaction.Transaction) {
	tx.Program, tx.Version, tx.Procedure, tx.Named = p.program, p.version, p.number, p.known
	tx.Kernel.Operation = p.operation
}

// find looks a procedure up. The kernel's client calls a COMPOUND by what it is for.
func find(n name) procedure {
	program := ftrace.ProgramName(n.program)
	if p, number, ok := nfs.Find(program, n.version, n.procedure); ok {
		return procedure{program: p.Number, version: n.version, number: number, known: true}
	}
	x := procedure{version: n.version}
	if n.procedure != "" && len(n.procedure) <= 64 && strings.IndexFunc(n.procedure, foreign) < 0 {
		x.operation = n.procedure
	}
	for _, compound := range []string{"COMPOUND", "CB_COMPOUND"} {
		if p, number, ok := nfs.Find(program, n.version, compound); ok {
			x.program, x.number, x.known = p.Number, number, true
		}
	}
	return x
}

// foreign reports whether no procedure has a letter in its name.
func foreign(r rune) bool { return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') }

// micros is a time of the kernel.
func micros(n uint64) time.Duration { return time.Duration(n) * time.Microsecond }

// encode makes the transport header of a message out of t.header. If that is shorter or longer than the kernel says, the events do not
// tell all of its chunks; then only the part before the lists is kept.
func (t *Tracker) encode(length uint32) []byte {
	h := &t.header
	t.bytes = h.Append(t.bytes[:0])
	if uint32(len(t.bytes)) != length {
		return t.bytes[:fixedLength]
	}
	return t.bytes
}

// fixedLength is the length of a transport header before its chunk lists (RFC 8166, section 4.2).
const fixedLength = 16
