package transaction

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
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

// ackWait is how long a reply waits for its acknowledgement, in nanoseconds of
// capture time, before its transaction ends without.
const ackWait = 2e9

// headOnly is what is kept of a large message when memory is short: enough
// for the names and numbers before the data.
const headOnly = 8 << 10

// Tracker matches calls, replies and RDMA operations. It is the rdma.Handler
// of every fabric's tracker.
type Tracker struct {
	opt     Options
	emit    func(*Transaction)
	tracing bool // packets

	// Transactions in the order of their first packets: from the oldest that
	// has not been emitted.
	head, tail *Transaction
	open       int // not ended
	held       int // ended, not emitted
	heldBytes  int // of these, in bytes

	memory *memory.Account
	peers  *memory.Account
	alone  *memory.Budget // that of memory, if it is the tracker's own

	// Transactions whose reply waits for an acknowledgement, oldest first.
	waiting ring
	// early are those whose call has not been seen, in the order of their
	// coming from earlyAt on.
	early   []waiter
	earlyAt int

	free      []*Transaction
	freeBytes int            // held by those in free
	peek      rpcrdma.Header // of the Send at hand
	peekErr   error
	gen       uint64

	halves  []*half // of connections that are closed, for others
	sent    reconnects
	events  events
	scratch []*Transaction
	packet  Packet // for Options.Attribute

	// Stats counts what belongs to no transaction.
	Stats Stats
}

// Stats counts what a Tracker saw beside transactions.
type Stats struct {
	OtherSends  uint64 // Sends that carry no RPC
	OrphanOps   uint64 // RDMA operations that no call has asked for
	OrphanBytes uint64
	Duplicates  uint64 // replies that came again
	Dones       uint64 // RDMA_DONE messages
	Evicted     uint64 // transactions given up for lack of memory
}

// half is what a Tracker knows of one side of a connection as a requester.
type half struct {
	c    *rdma.Connection
	side rdma.Side

	open     openCalls
	memory   segments // offered by this side
	recent   [32]recent
	at       int
	orphans  *[maxOrphans]orphan // RDMA operations on this side's memory without a call
	orphanAt int

	// Only if packets are traced: refusals of what this side has sent, and
	// packets that could not be placed when they came, by PSN.
	naks      []refusal
	early     map[uint32]rdma.Ref
	earlySize int // bytes that early has taken

	proven bool // a Send was answered of which only the XID was captured
	calls  int  // looked at as possibly sent again after a reconnect
	hosts  hosts
	place  int // 1 + index in the list of reconnects for hosts

	size   int // bytes counted for it
	tables int // of these by open and memory
}

// maxOrphans is how many RDMA operations without a call are remembered of a
// side.
const maxOrphans = 16

// recent is a transaction that has ended with a reply.
type recent struct {
	set    bool
	xid    uint32
	origin int // connection of the first copy of its call
	sum    uint64
	print  uint64 // of the reply
	number uint64 // first packet of the call; 0 if that was not captured
}

// orphan is an RDMA operation whose call was not captured. The reply may still
// name its segment.
type orphan struct {
	set    bool
	gen    uint64
	kind   rdma.OpKind
	from   rdma.Side
	handle uint32
	length uint32
	bytes  uint32
	again  int
	offset uint64
	first  rdma.Ref
	last   rdma.Ref
	data   []byte // of a Write: its start, for a Reply chunk
}

// NewTracker makes a tracker that hands ended transactions to emit.
func NewTracker(opt Options, emit func(*Transaction)) *Tracker {
	opt.defaults()
	t := &Tracker{opt: opt, emit: emit, tracing: opt.Packets > 0 || opt.Attribute != nil}
	t.accounts()
	return t
}

func (t *Tracker) half(c *rdma.Connection, side rdma.Side) *half {
	if h, ok := c.Upper[side].(*half); ok {
		return h
	}
	h := t.newHalf()
	h.c, h.side = c, side
	c.Upper[side] = h
	t.remembers(h, halfSize)
	if h.orphans != nil {
		t.remembers(h, orphansSize)
	}
	t.tables(h)
	return h
}

// Send implements rdma.Handler.
func (t *Tracker) Send(c *rdma.Connection, s *rdma.Send) (rdma.Tag, uint64) {
	t.enforce()
	t.expire(s.Last.Time)
	if c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return t.plain(c, s)
	}
	switch {
	case rpcrdma.Plausible(s.Data, s.Length),
		rpcrdma.PlausibleV2(s.Data, s.Length),
		rpcrdma.PlausibleV0(s.Data, s.Length):
	default:
		if may, sure := rpcrdma.PlausibleCut(s.Data, s.Length); may {
			return t.fragment(c, s, sure)
		}
		if !t.unknownVersion(s) {
			t.Stats.OtherSends++
			return nil, 0
		}
	}
	return t.transport(c, s)
}

// unknownVersion recognises a call of a version that does not exist, which
// has to be answered with ERR_VERS: its fixed part and its RPC message are
// those of version 1.
func (t *Tracker) unknownVersion(s *rdma.Send) bool {
	b := s.Data
	if len(b) < 28+24 || binary.BigEndian.Uint32(b[4:]) > 255 || binary.BigEndian.Uint32(b[12:]) > 4 {
		return false
	}
	xid := binary.BigEndian.Uint32(b)
	// Empty lists, then the call.
	return binary.BigEndian.Uint32(b[28:]) == xid && binary.BigEndian.Uint32(b[32:]) <= 1
}

// plain takes an RPC message that has no transport header.
func (t *Tracker) plain(c *rdma.Connection, s *rdma.Send) (rdma.Tag, uint64) {
	if len(s.Data) < 8 {
		return nil, 0
	}
	xid := binary.BigEndian.Uint32(s.Data)
	var tx *Transaction
	if binary.BigEndian.Uint32(s.Data[4:]) == 0 {
		if old := t.half(c, s.From).open.get(xid); old != nil {
			if t.overtook(old) {
				return t.late(old, s, false, true)
			}
			if t.sameCall(old, s) {
				return &old.tags.call, old.gen
			}
		}
		tx = t.begin(c, s.From, xid)
		t.setMessage(tx, &tx.Call, s, false)
		t.placed(tx)
		t.named(tx)
		t.traceSend(tx, CallPart, s, false)
		t.resent(tx)
		return &tx.tags.call, tx.gen
	}
	tx = t.match(c, s, xid)
	if tx == nil {
		return nil, 0
	}
	t.setMessage(tx, &tx.Reply, s, false)
	t.traceSend(tx, ReplyPart, s, false)
	t.reply(tx)
	if c.Fabric == rdma.UDP && tx.Call.Seen() {
		t.finish(tx)
		return nil, 0
	}
	return &tx.tags.reply, tx.gen
}

// sameCall reports whether s repeats the call of an open transaction, and
// notes the repetition.
func (t *Tracker) sameCall(old *Transaction, s *rdma.Send) bool {
	if old.Call.SendBytes != s.Length || len(old.Call.raw) > len(s.Data) {
		return false
	}
	// The credit word may differ.
	a, b := old.Call.raw, s.Data[:len(old.Call.raw)]
	if len(a) < 12 || string(a[:8]) != string(b[:8]) || string(a[12:]) != string(b[12:]) {
		return false
	}
	old.Retransmits += s.Packets
	t.traceSend(old, CallPart, s, true)
	old.note(CallRepeated)
	return true
}

// transport takes a message with an RPC-over-RDMA header.
func (t *Tracker) transport(c *rdma.Connection, s *rdma.Send) (rdma.Tag, uint64) {
	xid := binary.BigEndian.Uint32(s.Data)
	d, sure := t.direction(c, s)
	switch d {
	case isCall:
		if old := t.half(c, s.From).open.get(xid); old != nil {
			if t.overtook(old) {
				return t.late(old, s, true, sure)
			}
			if t.sameCall(old, s) {
				return &old.tags.call, old.gen
			}
			if !old.replied {
				old.note(XIDReused)
			}
			t.finish(old)
		}
		tx := t.begin(c, s.From, xid)
		t.setMessage(tx, &tx.Call, s, true)
		t.placed(tx)
		t.offer(tx)
		t.overtaken(tx)
		if sure {
			tx.assumed = !tx.Call.Header.Inline() && forwardSide(c) == unknownSide
			t.named(tx)
		} else {
			tx.note(AssumedCall)
		}
		t.traceSend(tx, CallPart, s, false)
		t.resent(tx)
		return &tx.tags.call, tx.gen
	case isControl:
		t.Stats.OtherSends++
		return nil, 0
	case isDone:
		t.Stats.Dones++
		if tx := t.half(c, s.From).open.get(xid); tx != nil {
			tx.Done = s.Last
			t.traceSend(tx, DonePart, s, false)
			if tx.replied {
				t.finish(tx)
			}
		}
		return nil, 0
	}
	tx := t.match(c, s, xid)
	if tx == nil {
		return nil, 0
	}
	t.setMessage(tx, &tx.Reply, s, true)
	t.traceSend(tx, ReplyPart, s, false)
	t.reply(tx)
	return &tx.tags.reply, tx.gen
}

type direction uint8

const (
	isCall direction = iota
	isReply
	isDone
	isControl // a message of version 2 about the connection itself
)

// direction tells calls from replies. Where the RPC message is inline, it
// says so itself. In a Position-Zero Read chunk it is read only later (see
// disclosed); until then a message with the XID of an open call of the other
// side is taken for its reply, and another one for what its sender sends as a
// rule. sure is false if the capture holds too little of the message to tell.
func (t *Tracker) direction(c *rdma.Connection, s *rdma.Send) (d direction, sure bool) {
	h := &t.peek
	if h.Length > keepHeader {
		*h = rpcrdma.Header{} // no need to keep the lists of a giant
	}
	err := h.Decode(s.Data, s.Length)
	switch h.Type {
	case rpcrdma.TypeDone:
		return isDone, true
	case rpcrdma.TypeError:
		return isReply, true
	}
	if h.Cut && s.Length == 16 {
		return isDone, true // no other message is so short
	}
	if h.Version == rpcrdma.Version2 {
		switch h.Type {
		case rpcrdma.TypeCallExternal, rpcrdma.TypeCallInline, rpcrdma.TypeCallMiddle:
			return isCall, true
		case rpcrdma.TypeReplyExternal, rpcrdma.TypeReplyInline, rpcrdma.TypeReplyMiddle:
			return isReply, true
		}
		return isControl, true
	}
	if h.Inline() && len(h.Payload) >= 8 {
		if binary.BigEndian.Uint32(h.Payload[4:]) == 0 {
			return isCall, true
		}
		return isReply, true
	}
	if err != nil && !h.Cut && len(s.Data) >= 36 && binary.BigEndian.Uint32(s.Data[32:]) == 0 {
		return isCall, true
	}
	tx := t.half(c, s.From.Other()).open.get(h.XID)
	answers := tx != nil && !tx.replied
	side := forwardSide(c)
	cut := h.Cut || len(h.Payload) < min(h.PayloadLength, 8)
	switch {
	case h.Version == rpcrdma.Version0 && answers:
		return isReply, true // a long one has a list at offset 0 as well
	case len(h.Reads) > 0:
		// In the read-read model a reply has a Read list, too: its message or
		// results wait to be read.
		if answers && tx.mayBeExposed() || (tx == nil || tx.replied) && side != unknownSide && side != s.From {
			return isReply, answers
		}
		return isCall, true
	case h.Type == rpcrdma.TypeNoMsg && !h.Cut, answers, !cut:
		return isReply, true // as a call it would have a Read list, or its message
	}
	// Whatever it is, it comes from where calls come from, or from where
	// replies do.
	if side == unknownSide || side == s.From {
		return isCall, side != unknownSide
	}
	return isReply, true
}

// mayBeExposed reports whether the reply of a call may offer memory: the
// requester has offered none for it, and the responder has read all of the
// call.
func (tx *Transaction) mayBeExposed() bool {
	h := &tx.Call.Header
	if h.HasReply || len(h.Writes) > 0 {
		return false
	}
	for i := range tx.segments {
		if s := &tx.segments[i]; s.chunk < 0 && s.asked.bytes < uint64(s.length) {
			return false
		}
	}
	return true
}

// match finds the call of a reply, or begins a transaction without one. It
// returns nil for a reply that was seen before.
func (t *Tracker) match(c *rdma.Connection, s *rdma.Send, xid uint32) *Transaction {
	from := s.From.Other()
	h := t.half(c, from)
	if tx := h.open.get(xid); tx != nil {
		if !tx.replied {
			return tx
		}
		tx.Retransmits += s.Packets
		t.traceSend(tx, ReplyPart, s, true)
		if printOf(s.Data, s.Length) == tx.Reply.print {
			tx.note(ReplyRepeated)
		} else {
			tx.note(ReplyRepeatedOther)
		}
		t.Stats.Duplicates++
		return nil
	}
	another := false
	for i := range h.recent {
		if r := &h.recent[i]; r.set && r.xid == xid {
			if r.print == printOf(s.Data, s.Length) {
				t.Stats.Duplicates++
				return nil
			}
			another = true
		}
	}
	tx := t.begin(c, from, xid)
	tx.Reply.First = s.First
	t.placed(tx)
	if another {
		tx.note(SecondReply)
	}
	return tx
}

// begin makes a transaction. The caller sets its first message and calls
// placed.
func (t *Tracker) begin(c *rdma.Connection, from rdma.Side, xid uint32) *Transaction {
	if t.open >= t.opt.Open {
		t.evict(nil, GivenUpCalls)
	}
	tx := t.take()
	t.gen++
	tx.gen = t.gen
	tx.serial = t.gen
	tx.untraced = t.opt.TraceXID != nil && !t.opt.TraceXID(xid)
	tx.Connection, tx.From, tx.XID = c, from, xid
	h := t.half(c, from)
	h.open.put(xid, tx)
	t.tables(h)
	t.open++
	return tx
}

// placed puts a new transaction in its place in the order of first packets.
func (t *Tracker) placed(tx *Transaction) {
	first := tx.First().Number
	after := t.tail
	for after != nil && after.First().Number > first {
		after = after.prev
	}
	tx.prev = after
	if after == nil {
		tx.next = t.head
		t.head = tx
	} else {
		tx.next = after.next
		after.next = tx
	}
	if tx.next == nil {
		t.tail = tx
	} else {
		tx.next.prev = tx
	}
}

// setMessage copies what was sent.
func (t *Tracker) setMessage(tx *Transaction, m *Message, s *rdma.Send, transport bool) {
	m.First, m.Last, m.original = s.First, s.Last, s.Last
	m.stamp, m.againStamp = tx.Connection.Stamp, rdma.Stamp{}
	m.Packets = s.Packets
	m.SendBytes = s.Length
	m.Cut = len(s.Data) < s.Length
	m.Invalidates, m.Handle = s.Invalidates, s.Handle
	m.Transport = transport
	m.print = printOf(s.Data, s.Length)
	tx.Retransmits += s.Again
	data := s.Data
	if len(data) > headOnly && !t.room(len(data)) {
		data = data[:headOnly]
		m.Cut = true
		tx.note(MessageNotKept)
	}
	before := cap(m.raw)
	m.raw = append(m.raw[:0], data...)
	t.grew(tx, cap(m.raw)-before)
	if !transport {
		m.Payload, m.PayloadLength = m.raw, s.Length
		return
	}
	// An error here is part of the story: conformance checks report it.
	if t.peekErr != nil {
		if t.peek.Cut {
			tx.note(HeaderCut)
		} else {
			tx.Note(Note{Kind: HeaderMalformed, Why: t.peekErr.Error()})
		}
	}
	// direction has decoded the header where the Send lies. The message takes
	// it over, with the payload in bytes of its own.
	m.Header.Take(&t.peek)
	t.listed(tx)
	h := &m.Header
	if h.Payload != nil {
		at := min(h.Length, len(m.raw))
		h.Payload = m.raw[at:len(m.raw):len(m.raw)]
	}
	if h.Inline() {
		m.Payload, m.PayloadLength = h.Payload, h.PayloadLength
	}
}

// offer registers the memory that a call offers.
func (t *Tracker) offer(tx *Transaction) {
	h := &tx.Call.Header
	n := len(h.Reads) + len(h.Call) + len(h.Reply)
	for _, c := range h.Writes {
		n += len(c)
	}
	if n == 0 {
		return
	}
	if n > t.opt.Segments {
		tx.note(SegmentsLimit)
		n = t.opt.Segments
	}
	if cap(tx.segments) < n {
		tx.segments = make([]segment, 0, max(n, 8))
		t.grew(tx, cap(tx.segments)*segmentSize)
	}
	owner := t.half(tx.Connection, tx.From)
	o := offering{tx: tx, mem: &owner.memory, left: n, keep: t.opt.KeepData}
	if h.Version == rpcrdma.Version2 {
		o.reads(h.Call, -1)
	}
	for ci, c := range h.ReadChunks() {
		if c.Position == 0 && h.Version != rpcrdma.Version2 {
			ci = -1
		}
		o.reads(c.Segments, ci)
	}
	for ci, c := range h.Writes {
		o.writes(c, WriteList, ci)
	}
	o.writes(h.Reply, ReplyChunk, 0)
	t.tables(owner)
	t.listed(tx) // ReadChunks has made lists, too
}

// offering registers segments.
type offering struct {
	tx   *Transaction
	mem  *segments
	left int
	keep bool
}

// reads takes the segments of a chunk of the Read list, or with chunk −1 those
// that hold the message itself.
func (o *offering) reads(list []rpcrdma.ReadSegment, chunk int) {
	base := uint64(0)
	for i := range list {
		o.add(&list[i].Segment, ReadList, chunk, i, base, o.keep || chunk < 0)
		base += uint64(list[i].Length)
	}
}

func (o *offering) writes(c rpcrdma.WriteChunk, kind ChunkKind, chunk int) {
	base := uint64(0)
	for i := range c {
		o.add(&c[i], kind, chunk, i, base, o.keep || kind == ReplyChunk)
		base += uint64(c[i].Length)
	}
}

func (o *offering) add(s *rpcrdma.Segment, kind ChunkKind, chunk, index int, base uint64, keep bool) {
	if o.left == 0 {
		return
	}
	o.left--
	tx := o.tx
	tx.segments = tx.segments[:len(tx.segments)+1]
	p := &tx.segments[len(tx.segments)-1]
	*p = segment{
		handle: s.Handle, length: s.Length, offset: s.Offset,
		tx: tx, at: int32(len(tx.segments) - 1), kind: kind, chunk: chunk, index: index, base: base, keep: keep,
		cover: coverage{spans: p.cover.spans[:0]}, asked: coverage{spans: p.asked.spans[:0]},
	}
	o.mem.add(p)
}

// named reads the program from the call, and settles the direction.
func (t *Tracker) named(tx *Transaction) {
	if b := tx.Call.Payload; len(b) >= 24 && binary.BigEndian.Uint32(b[4:]) == 0 {
		tx.Program = binary.BigEndian.Uint32(b[12:])
		tx.Version = binary.BigEndian.Uint32(b[16:])
		tx.Procedure = binary.BigEndian.Uint32(b[20:])
		tx.Named = true
	}
	c := tx.Connection
	side := forwardSide(c)
	if side == unknownSide {
		h := &tx.Call.Header
		if !tx.Named && len(h.Reads)+len(h.Call) == 0 {
			return // a reply alone may as well be one to a callback
		}
		side = tx.From
		if tx.Named && callbackProgram(tx.Program) && c.Fabric != rdma.UDP && c.Fabric != rdma.TCP {
			// Only a forward call can have come before it.
			side = tx.From.Other()
		}
		setForwardSide(c, side)
	}
	tx.Backward = tx.From != side
}

const unknownSide = 2

// forwardSide is the side that sends forward calls, kept with the connection.
func forwardSide(c *rdma.Connection) rdma.Side {
	if c.Forward == 0 {
		if c.Setup[0].Seen {
			return 0
		}
		return unknownSide
	}
	return rdma.Side(c.Forward - 1)
}

func setForwardSide(c *rdma.Connection, s rdma.Side) { c.Forward = uint8(s) + 1 }

// callbackProgram reports whether a program number is in the transient range
// (RFC 5531, section 8.4), from which NFSv4 clients take that of their
// callback service.
func callbackProgram(p uint32) bool { return p >= 0x40000000 && p < 0x60000000 }

// reply notes that the reply of tx has arrived.
func (t *Tracker) reply(tx *Transaction) {
	tx.replied = true
	h := &tx.Reply.Header
	if tx.Reply.Transport && len(h.Reads) > 0 && h.Type != rpcrdma.TypeError {
		t.serve(tx)
	}
	if !tx.Call.Seen() && tx.Reply.Transport {
		t.adopt(tx)
	}
	tx.waitingUntil = tx.Reply.Last.Time + ackWait
	if !tx.waiting {
		tx.waiting = true
		t.waiting.push(tx, tx.gen, t.open)
	}
	if !tx.Call.Seen() {
		t.ahead(tx)
	}
}

// serve registers the memory that a reply offers: the read-read model of the
// pre-standard protocol, in which the requester reads the result.
func (t *Tracker) serve(tx *Transaction) {
	h := &tx.Reply.Header
	n := min(len(h.Reads), t.opt.Segments)
	if cap(tx.served) < n {
		tx.served = make([]segment, 0, n)
		t.grew(tx, n*segmentSize)
	}
	owner := t.half(tx.Connection, tx.From.Other())
	defer t.tables(owner)
	mem := &owner.memory
	for ci, c := range h.ReadChunks() {
		base := uint64(0)
		if c.Position == 0 {
			ci = -1
		}
		for i := range c.Segments {
			if len(tx.served) == n {
				return
			}
			s := &c.Segments[i]
			tx.served = tx.served[:len(tx.served)+1]
			p := &tx.served[len(tx.served)-1]
			*p = segment{
				handle: s.Handle, length: s.Length, offset: s.Offset, reply: true,
				tx: tx, at: int32(len(tx.served) - 1), kind: ReadList, chunk: ci, index: i, base: base, keep: ci < 0 || t.opt.KeepData,
				cover: coverage{spans: p.cover.spans[:0]}, asked: coverage{spans: p.asked.spans[:0]},
			}
			mem.add(p)
			base += uint64(s.Length)
		}
	}
}

// adopt attributes RDMA Writes whose call was not captured to the reply that
// names their segments.
func (t *Tracker) adopt(tx *Transaction) {
	orphans := t.half(tx.Connection, tx.From).orphans
	if orphans == nil {
		return
	}
	h := &tx.Reply.Header
	claim := func(s rpcrdma.Segment, kind ChunkKind, index int, base uint64) {
		for i := range orphans {
			o := &orphans[i]
			if !o.set || o.kind != rdma.Write || o.handle != s.Handle ||
				o.offset < s.Offset || o.offset-s.Offset >= uint64(s.Length) {
				continue
			}
			o.set = false
			t.list(tx, Operation{
				Kind: o.kind, From: o.from, Chunk: kind, Index: index, Handle: o.handle, Offset: o.offset,
				Length: o.length, Bytes: o.bytes, First: o.first, Last: o.last, Again: o.again,
			})
			tx.Writes++
			tx.WriteBytes += uint64(o.bytes)
			tx.Retransmits += o.again
			if !tx.Times.FirstPush.Seen() || o.first.Number < tx.Times.FirstPush.Number {
				tx.Times.FirstPush = o.first
			}
			if o.last.Number > tx.Times.LastPush.Number {
				tx.Times.LastPush = o.last
			}
			t.traceOrphan(tx, o)
			if kind == ReplyChunk && len(o.data) > 0 {
				t.store(tx, &tx.Reply.long, base+o.offset-s.Offset, o.data)
			}
		}
	}
	n := 0
	for ci, c := range h.Writes {
		for i := range c {
			if n++; n > t.opt.Segments {
				return
			}
			claim(c[i], WriteList, ci, 0)
		}
	}
	base := uint64(0)
	for i := range h.Reply {
		if n++; n > t.opt.Segments {
			return
		}
		claim(h.Reply[i], ReplyChunk, 0, base)
		base += uint64(h.Reply[i].Length)
	}
}

// SendAgain implements rdma.Handler.
func (t *Tracker) SendAgain(c *rdma.Connection, from rdma.Side, tag rdma.Tag, gen uint64, ref rdma.Ref, complete bool) {
	s, ok := tag.(*sendTag)
	if !ok || s.tx == nil || s.tx.gen != gen || s.tx.finished {
		return
	}
	tx := s.tx
	t.again(tx, from, ref)
	if t.tracing {
		role := CallPart
		if s.reply {
			role = ReplyPart
		}
		t.trace(tx, Packet{Ref: ref, Header: c.Header, Role: role, From: from, Again: true})
	}
	if !complete {
		return
	}
	// The copy that is acknowledged is the one that counts.
	switch {
	case s.reply && !tx.acked:
		tx.Reply.repeated(ref, c.Stamp)
		tx.waitingUntil = ref.Time + ackWait
	case !s.reply && !tx.replied && len(tx.Operations) == 0 && !tx.callAcked:
		tx.Call.repeated(ref, c.Stamp)
	}
}

// repeated notes a complete repetition.
func (m *Message) repeated(ref rdma.Ref, stamp rdma.Stamp) {
	m.Last = ref
	if !m.againStamp.Present {
		m.againStamp = stamp
	}
}

// answered decides between the copies of a message by the acknowledgment. The
// original had arrived if the acknowledgment reports data that came twice
// (RFC 2883), if it echoes a timestamp older than that of the first repetition
// (RFC 7323, section 4.3), or if both copies have the same timestamp: then the
// network has doubled the segment, its sender has not.
func (m *Message) answered(ack rdma.Stamp) {
	if m.Last == m.original || !m.stamp.Present || !m.againStamp.Present {
		return
	}
	if ack.Twice || m.stamp.Value == m.againStamp.Value ||
		ack.Present && int32(ack.Echo-m.stamp.Value) >= 0 && int32(ack.Echo-m.againStamp.Value) < 0 {
		m.Last = m.original
	}
}

// SendAcked implements rdma.Handler.
func (t *Tracker) SendAcked(c *rdma.Connection, from rdma.Side, tag rdma.Tag, gen uint64, ref rdma.Ref) {
	s, ok := tag.(*sendTag)
	if !ok || s.tx == nil || s.tx.gen != gen || s.tx.finished {
		return
	}
	tx := s.tx
	if !s.reply {
		if !tx.callAcked {
			tx.callAcked = true
			tx.Call.answered(c.Stamp)
		}
		return
	}
	tx.Reply.answered(c.Stamp)
	tx.acked = true
	tx.Times.Ack = ref
	if len(tx.served) == 0 && tx.Call.Seen() {
		t.finish(tx)
	}
}

// FindCall implements rdma.Handler.
func (t *Tracker) FindCall(c *rdma.Connection, xid uint32) (rdma.Side, bool) {
	for side := range rdma.Side(2) {
		if h, ok := c.Upper[side].(*half); ok {
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

// FindMemory implements rdma.MemoryFinder.
func (t *Tracker) FindMemory(c *rdma.Connection, handle uint32, offset uint64, length uint32) (rdma.Side, bool) {
	for side := range rdma.Side(2) {
		if h, ok := c.Upper[side].(*half); ok && h.memory.offers(handle, offset, length) {
			return side, true
		}
	}
	return 0, false
}

// Closed implements rdma.Handler: calls without a reply get none.
func (t *Tracker) Closed(c *rdma.Connection, ref rdma.Ref) {
	for side := range rdma.Side(2) {
		h, ok := c.Upper[side].(*half)
		if !ok {
			continue
		}
		t.sent.closed(h)
		t.peers.Add(t.sent.grown())
		t.forget(h)
		if h.open.n == 0 {
			continue
		}
		// In the order of the list, so that the output is the same each time.
		all := t.scratch[:0]
		for _, tx := range h.open.all() {
			all = append(all, tx)
		}
		slices.SortFunc(all, func(a, b *Transaction) int {
			return cmp.Or(cmp.Compare(a.First().Number, b.First().Number), cmp.Compare(a.gen, b.gen))
		})
		for _, tx := range all {
			if !tx.replied && c.Terminated != "" {
				tx.Note(Note{Kind: ConnectionEnded, Why: c.Terminated})
			}
			t.end(tx)
		}
		clear(all)
		if t.scratch = all[:0]; cap(all) > maxScratch {
			t.scratch = nil
		}
	}
	// What is remembered of the connection goes; the connection itself may be
	// kept by those who list it.
	for side := range c.Upper {
		if h, ok := c.Upper[side].(*half); ok {
			t.forget(h)
			c.Upper[side] = nil
			t.recycleHalf(h)
		}
	}
	t.drain()
}

// maxScratch is how many transactions Closed sorts without making room each
// time.
const maxScratch = 1024

// Flush ends all transactions at the end of the capture.
func (t *Tracker) Flush() {
	for tx := t.head; tx != nil; tx = tx.next {
		if !tx.finished {
			t.end(tx)
		}
	}
	t.drain()
}
