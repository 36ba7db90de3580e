package transaction

import (
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Options bounds what a Tracker holds, and says what it keeps. Zero fields
// take the defaults.
type Options struct {
	// KeepData keeps the bytes of all chunks, for Transaction.Data.
	KeepData bool
	// OnCompletion emits transactions as they end instead of in the order of
	// their first packets.
	OnCompletion bool
	// Packets is how many packets of a transaction are listed in
	// Transaction.Packets (none). Of a NoCall transaction's RDMA Writes only
	// the first and last packets can be.
	Packets int
	// Attribute, if set, is told of each packet of a transaction as soon as it
	// is known to be one: with the packet itself as a rule, later for those in
	// the middle of a Send, for a NAK, and for what only the reply explains. A
	// packet may come more than once, and belong to several transactions.
	Attribute func(*Transaction, *Packet)
	// Withdrawn, if set, is told of a transaction that is not emitted: it was made of
	// a cut Send that nothing proved to be RPC. Stats.OtherSends counts them.
	Withdrawn func(*Transaction)
	// Ended, if set, is told of a transaction when all is known of it, before it is
	// emitted, in the order in which they end and on the goroutine of the tracker: to
	// fill in Transaction.Blame. The Connection is not a copy.
	Ended func(*Transaction)
	// Message, if set, is told of each call and each reply as soon as it is known to be one: of copies, too. The transaction is not
	// complete yet and must not be kept.
	Message func(tx *Transaction, reply bool, s *rdma.Send)
	// Unmatched, if set, is called with each other Send.
	Unmatched func(c *rdma.Connection, s *rdma.Send)
	// Carries, if set, is asked about a connection with a Send that is not a message of RPC-over-RDMA, when nothing has
	// shown what the connection carries: whether it is RPC-over-RDMA, and whether that is known at all. Otherwise
	// the ports decide. See Malformed.
	Carries func(*rdma.Connection) (yes, known bool)
	// TraceXID, if set, limits both to transactions whose XID it accepts.
	TraceXID func(xid uint32) bool
	// Detach leaves an emitted transaction to the consumer, which may be
	// another goroutine, until it is given to Tracker.Recycle. Its Connection
	// is then a copy: ends and setup as they are at that time.
	Detach bool

	// Memory counts what transactions take, and Peers what is remembered of
	// connections. Without the first the Tracker has a budget of its own, of
	// HeldBytes; without the second Memory does for both.
	Memory, Peers *memory.Account

	Open       int // calls without a reply, on all connections (16384)
	Held       int // ended transactions that wait for an earlier one (1024)
	HeldBytes  int // all that is held, in bytes, if there is no Memory (32 MiB)
	Assembly   int // bytes of one message or chunk assembled from RDMA (4 MiB)
	Operations int // RDMA operations listed of one transaction (4096, at most 65534)
	Segments   int // of one message's chunk lists that are followed (4096)
}

func (o *Options) defaults() {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.Open, 16384)
	set(&o.Held, 1024)
	set(&o.HeldBytes, 32<<20)
	set(&o.Assembly, 4<<20)
	set(&o.Operations, 4096)
	o.Operations = min(o.Operations, maxOperations)
	set(&o.Segments, 4096)
}

// Tracker makes transactions of the Sends and RDMA operations of connections. It is
// the rdma.Handler of every fabric's tracker.
type Tracker struct {
	opt   Options
	emit  func(*Transaction)
	alone *memory.Budget // of storage, if it is the tracker's own

	queue    queue // all that have not been emitted
	open     int   // of these have not ended
	gen      uint64
	acks     acks
	ahead    ahead
	storage  storage
	pool     pool
	halves   halves
	reader   reader
	protocol protocol
	chunks   chunks
	tracer   *tracer
	sent     reconnects
	events   events
	scratch  []*Transaction

	// Stats counts what belongs to no transaction.
	Stats Stats
}

// Stats counts what a Tracker saw beside transactions.
type Stats struct {
	OtherSends  uint64 // Sends that carry no RPC
	Malformed   Malformed
	OrphanOps   uint64 // RDMA operations that no call has asked for
	OrphanBytes uint64
	Duplicates  uint64 // replies that came again
	Dones       uint64 // RDMA_DONE messages
	Evicted     uint64 // transactions given up for lack of memory
}

// Add adds what another Tracker saw.
func (s *Stats) Add(o *Stats) {
	s.OtherSends += o.OtherSends
	s.Malformed.Add(&o.Malformed)
	s.OrphanOps += o.OrphanOps
	s.OrphanBytes += o.OrphanBytes
	s.Duplicates += o.Duplicates
	s.Dones += o.Dones
	s.Evicted += o.Evicted
}

// half is what a Tracker knows of one side of a connection as a requester.
type half struct {
	c    *rdma.Connection
	side rdma.Side

	open    openCalls
	newest  uint64   // gen of the last transaction that began with a call
	memory  segments // offered by this side
	recent  recents
	orphans *orphans // nil: none yet

	// Only if packets are traced: refusals of what this side has sent, and
	// packets that could not be placed when they came, by PSN.
	naks      []refusal
	early     map[uint32]rdma.Ref
	earlySize int // bytes that early has taken

	credits credits

	proven bool // a Send was answered of which only the XID was captured
	calls  int  // looked at as possibly sent again after a reconnect
	hosts  hosts
	place  int // 1 + index in the list of reconnects for hosts

	size   int // bytes counted for it
	tables int // of these by open and memory
}

// NewTracker makes a tracker that hands ended transactions to emit.
func NewTracker(opt Options, emit func(*Transaction)) *Tracker {
	opt.defaults()
	t := &Tracker{opt: opt, emit: emit}
	held, peers := opt.Memory, opt.Peers
	if held == nil {
		t.alone = memory.NewBudget(opt.HeldBytes)
		held = t.alone.Account(100)
	}
	if peers == nil {
		peers = held
	}
	held.Evict = t.Evict
	t.queue = queue{opt: &t.opt, memory: held, out: t.out}
	t.storage = storage{opt: &t.opt, memory: held, queue: &t.queue}
	t.pool.memory, t.halves.peers = held, peers
	t.reader.halves = &t.halves
	t.protocol = protocol{asked: opt.Carries, stats: &t.Stats}
	if opt.Packets > 0 || opt.Attribute != nil {
		t.tracer = &tracer{limit: opt.Packets, attribute: opt.Attribute, storage: &t.storage, halves: &t.halves, entries: &t.pool.entries}
	}
	t.chunks = chunks{
		opt: &t.opt, stats: &t.Stats, storage: &t.storage, halves: &t.halves, entries: &t.pool.entries, tracer: t.tracer,
	}
	return t
}

// begin makes a transaction of side from of c, of which h is the half. The caller sets its first message and puts
// it into the queue.
func (t *Tracker) begin(h *half, c *rdma.Connection, from rdma.Side, xid uint32) *Transaction {
	if t.open >= t.opt.Open {
		t.evict(GivenUpCalls)
	}
	tx := t.pool.take()
	t.gen++
	tx.gen = t.gen
	tx.serial = t.gen
	tx.untraced = t.opt.TraceXID != nil && !t.opt.TraceXID(xid)
	tx.Connection, tx.From, tx.XID = c, from, xid
	h.open.put(xid, tx)
	t.halves.countTables(h)
	t.open++
	return tx
}

// FindCall implements rdma.Handler.
func (t *Tracker) FindCall(c *rdma.Connection, xid uint32) (rdma.Side, bool) {
	for side := range rdma.Side(2) {
		if h := halfOf(c, side); h != nil {
			switch tx := h.open.get(xid); {
			case tx == nil:
			case !tx.replied:
				return side, true
			case !tx.Call.Seen() && !tx.turned:
				return side.Other(), true
			}
		}
	}
	return 0, false
}

// Hooks returns what the Tracker can do for the trackers of the fabrics besides being their Handler.
func (t *Tracker) Hooks() rdma.Hooks {
	h := rdma.Hooks{FindMemory: t.findMemory, Differs: t.differs}
	if t.tracer != nil {
		h.Tracer = t.tracer
	}
	return h
}

// findMemory is rdma.Hooks.FindMemory.
func (t *Tracker) findMemory(c *rdma.Connection, handle uint32, offset uint64, length uint32) (rdma.Side, bool) {
	for side := range rdma.Side(2) {
		if h := halfOf(c, side); h != nil && h.memory.offers(handle, offset, length) {
			return side, true
		}
	}
	return 0, false
}
