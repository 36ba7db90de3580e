package transaction

import (
	"encoding/binary"

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

	Open       int // calls without a reply, on all connections (16384)
	Held       int // ended transactions that wait for an earlier one (1024)
	HeldBytes  int // messages held in bytes (24 MiB)
	Assembly   int // bytes of one message or chunk assembled from RDMA (4 MiB)
	Operations int // RDMA operations listed of one transaction (4096)
}

func (o *Options) defaults() {
	set := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	set(&o.Open, 16384)
	set(&o.Held, 1024)
	set(&o.HeldBytes, 24<<20)
	set(&o.Assembly, 4<<20)
	set(&o.Operations, 4096)
}

// ackWait is how long a reply waits for its acknowledgement, in nanoseconds of
// capture time, before its transaction ends without.
const ackWait = 2e9

// headOnly is what is kept of a large message when memory is short: enough
// for the names and numbers before the data.
const headOnly = 8 << 10

// keepBuffer is how large a buffer may be to be kept for the next transaction.
const keepBuffer = 32 << 10

// Tracker matches calls, replies and RDMA operations. It is the rdma.Handler
// of every fabric's tracker.
type Tracker struct {
	opt  Options
	emit func(*Transaction)

	// Transactions in the order of their first packets: from the oldest that
	// has not been emitted.
	head, tail *Transaction
	open       int // not ended
	held       int // ended, not emitted
	bytes      int // messages held

	// Transactions whose reply waits for an acknowledgement, oldest first.
	waiting ring

	free []*Transaction
	peek rpcrdma.Header // scratch of direction
	gen  uint64

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
	open   map[uint32]*Transaction
	memory segments // offered by this side
	recent [32]recent
	at     int
	orphan [16]orphan // RDMA operations on this side's memory without a call
	orphAt int
}

type recent struct {
	xid uint32
	set bool
}

// orphan is an RDMA operation whose call was not captured. The reply may still
// name its segment.
type orphan struct {
	set  bool
	op   Operation
	kind rdma.OpKind
}

// NewTracker makes a tracker that hands ended transactions to emit.
func NewTracker(opt Options, emit func(*Transaction)) *Tracker {
	opt.defaults()
	return &Tracker{opt: opt, emit: emit}
}

func (t *Tracker) half(c *rdma.Connection, side rdma.Side) *half {
	if h, ok := c.Upper[side].(*half); ok {
		return h
	}
	h := &half{open: make(map[uint32]*Transaction)}
	c.Upper[side] = h
	return h
}

// Send implements rdma.Handler.
func (t *Tracker) Send(c *rdma.Connection, s *rdma.Send) (any, uint64) {
	t.expire(s.Last.Time)
	if c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
		return t.plain(c, s)
	}
	switch {
	case rpcrdma.Plausible(s.Data, s.Length),
		rpcrdma.PlausibleV2(s.Data, s.Length),
		rpcrdma.PlausibleV0(s.Data, s.Length):
	default:
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
func (t *Tracker) plain(c *rdma.Connection, s *rdma.Send) (any, uint64) {
	if len(s.Data) < 8 {
		return nil, 0
	}
	xid := binary.BigEndian.Uint32(s.Data)
	var tx *Transaction
	if binary.BigEndian.Uint32(s.Data[4:]) == 0 {
		if old := t.half(c, s.From).open[xid]; old != nil {
			if t.sameCall(old, s) {
				return &old.callTag, old.gen
			}
		}
		tx = t.begin(c, s.From, xid)
		t.setMessage(tx, &tx.Call, s, false)
		t.placed(tx)
		t.named(tx)
		return &tx.callTag, tx.gen
	}
	tx = t.match(c, s, xid)
	if tx == nil {
		return nil, 0
	}
	t.setMessage(tx, &tx.Reply, s, false)
	t.reply(tx)
	if c.Fabric == rdma.UDP {
		t.finish(tx)
		return nil, 0
	}
	return &tx.replyTag, tx.gen
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
	old.Note("call sent again with the same XID")
	return true
}

// transport takes a message with an RPC-over-RDMA header.
func (t *Tracker) transport(c *rdma.Connection, s *rdma.Send) (any, uint64) {
	xid := binary.BigEndian.Uint32(s.Data)
	switch t.direction(c, s) {
	case isCall:
		if old := t.half(c, s.From).open[xid]; old != nil {
			if t.sameCall(old, s) {
				return &old.callTag, old.gen
			}
			if !old.replied {
				old.Note("XID used again for another call")
			}
			t.finish(old)
		}
		tx := t.begin(c, s.From, xid)
		t.setMessage(tx, &tx.Call, s, true)
		t.placed(tx)
		t.offer(tx)
		t.named(tx)
		return &tx.callTag, tx.gen
	case isDone:
		t.Stats.Dones++
		if tx := t.half(c, s.From).open[xid]; tx != nil {
			tx.Done = s.Last
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
	t.reply(tx)
	return &tx.replyTag, tx.gen
}

type direction uint8

const (
	isCall direction = iota
	isReply
	isDone
)

// direction tells calls from replies. Where the RPC message is inline, it
// says so itself; otherwise the chunk lists do: only a call has a Position-
// Zero Read chunk, and the lists of a reply hold what was offered to it.
func (t *Tracker) direction(c *rdma.Connection, s *rdma.Send) direction {
	h := &t.peek
	err := h.Decode(s.Data, s.Length)
	switch h.Type {
	case rpcrdma.TypeDone:
		return isDone
	case rpcrdma.TypeError:
		return isReply
	}
	if h.Version == rpcrdma.Version2 {
		switch h.Type {
		case rpcrdma.TypeCallExternal, rpcrdma.TypeCallInline, rpcrdma.TypeCallMiddle:
			return isCall
		case rpcrdma.TypeReplyExternal, rpcrdma.TypeReplyInline, rpcrdma.TypeReplyMiddle:
			return isReply
		}
		return isDone
	}
	if h.Inline() && len(h.Payload) >= 8 {
		if binary.BigEndian.Uint32(h.Payload[4:]) == 0 {
			return isCall
		}
		return isReply
	}
	if err != nil && !h.Cut && len(s.Data) >= 36 && binary.BigEndian.Uint32(s.Data[32:]) == 0 {
		return isCall
	}
	if h.Version == rpcrdma.Version0 || h.Type == rpcrdma.TypeNoMsg {
		// In version 0 a long reply has a list at offset 0 as well.
		if tx := t.half(c, s.From.Other()).open[h.XID]; tx != nil && !tx.replied {
			return isReply
		}
	}
	if len(h.Reads) > 0 {
		return isCall
	}
	return isReply
}

// match finds the call of a reply, or begins a transaction without one. It
// returns nil for a reply that was seen before.
func (t *Tracker) match(c *rdma.Connection, s *rdma.Send, xid uint32) *Transaction {
	from := s.From.Other()
	h := t.half(c, from)
	if tx := h.open[xid]; tx != nil {
		if !tx.replied {
			return tx
		}
		tx.Retransmits += s.Packets
		tx.Note("reply sent again")
		t.Stats.Duplicates++
		return nil
	}
	for i := range h.recent {
		if h.recent[i].set && h.recent[i].xid == xid {
			t.Stats.Duplicates++
			return nil
		}
	}
	tx := t.begin(c, from, xid)
	tx.Reply.First = s.First
	t.placed(tx)
	return tx
}

// begin makes a transaction. The caller sets its first message and calls
// placed.
func (t *Tracker) begin(c *rdma.Connection, from rdma.Side, xid uint32) *Transaction {
	if t.open >= t.opt.Open {
		t.evict()
	}
	var tx *Transaction
	if n := len(t.free); n > 0 {
		tx = t.free[n-1]
		t.free = t.free[:n-1]
	} else {
		tx = new(Transaction)
		tx.callTag = sendTag{tx, false}
		tx.replyTag = sendTag{tx, true}
	}
	t.gen++
	tx.gen = t.gen
	tx.Connection, tx.From, tx.XID = c, from, xid
	t.half(c, from).open[xid] = tx
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
	tx.Retransmits += s.Again
	data := s.Data
	if len(data) > headOnly && t.bytes+len(data) > t.opt.HeldBytes {
		t.release()
		if t.bytes+len(data) > t.opt.HeldBytes {
			data = data[:headOnly]
			m.Cut = true
			tx.Note("message not kept whole: memory limit reached")
		}
	}
	m.raw = append(m.raw[:0], data...)
	t.grew(tx, len(data))
	if !transport {
		m.Payload, m.PayloadLength = m.raw, s.Length
		return
	}
	// An error here is part of the story: conformance checks report it.
	if err := m.Header.Decode(m.raw, s.Length); err != nil {
		if m.Header.Cut {
			tx.Note("transport header cut by the capture")
		} else {
			tx.Note("transport header malformed: " + err.Error())
		}
	}
	if m.Header.Inline() {
		m.Payload, m.PayloadLength = m.Header.Payload, m.Header.PayloadLength
	}
}

func (t *Tracker) grew(tx *Transaction, n int) {
	tx.size += n
	t.bytes += n
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
	if cap(tx.segments) < n {
		tx.segments = make([]segment, 0, max(n, 8))
	}
	mem := &t.half(tx.Connection, tx.From).memory
	add := func(s segment) {
		tx.segments = tx.segments[:len(tx.segments)+1]
		p := &tx.segments[len(tx.segments)-1]
		spans := p.cover.spans[:0]
		*p = s
		p.cover.spans = spans
		p.tx, p.gen = tx, tx.gen
		mem.add(p)
	}
	keep := t.opt.KeepData
	if h.Version == rpcrdma.Version2 {
		base := uint64(0)
		for i := range h.Call {
			s := &h.Call[i]
			add(segment{handle: s.Handle, length: s.Length, offset: s.Offset, kind: ReadList, chunk: -1, index: i, base: base, keep: true})
			base += uint64(s.Length)
		}
	}
	for ci, c := range h.ReadChunks() {
		base := uint64(0)
		whole := c.Position == 0 && h.Version != rpcrdma.Version2
		for i := range c.Segments {
			s := &c.Segments[i]
			chunk := ci
			if whole {
				chunk = -1
			}
			add(segment{handle: s.Handle, length: s.Length, offset: s.Offset, kind: ReadList, chunk: chunk, index: i, base: base, keep: whole || keep})
			base += uint64(s.Length)
		}
	}
	for ci, c := range h.Writes {
		base := uint64(0)
		for i := range c {
			s := &c[i]
			add(segment{handle: s.Handle, length: s.Length, offset: s.Offset, kind: WriteList, chunk: ci, index: i, base: base, keep: keep})
			base += uint64(s.Length)
		}
	}
	base := uint64(0)
	for i := range h.Reply {
		s := &h.Reply[i]
		add(segment{handle: s.Handle, length: s.Length, offset: s.Offset, kind: ReplyChunk, index: i, base: base, keep: true})
		base += uint64(s.Length)
	}
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
		switch {
		case c.Setup[0].Seen:
			side = 0
		case tx.Named && callbackProgram(tx.Program) && c.Fabric != rdma.UDP && c.Fabric != rdma.TCP:
			// Only a forward call can have come before it.
			side = tx.From.Other()
		default:
			side = tx.From
		}
		setForwardSide(c, side)
	}
	tx.Backward = tx.From != side
}

const unknownSide = 2

// forwardSide is the side that sends forward calls, kept with the connection.
func forwardSide(c *rdma.Connection) rdma.Side {
	if c.Forward == 0 {
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
		t.waiting.push(tx, tx.gen)
	}
}

// serve registers the memory that a reply offers: the read-read model of the
// pre-standard protocol, in which the requester reads the result.
func (t *Tracker) serve(tx *Transaction) {
	h := &tx.Reply.Header
	if cap(tx.served) < len(h.Reads) {
		tx.served = make([]segment, 0, len(h.Reads))
	}
	mem := &t.half(tx.Connection, tx.From.Other()).memory
	for ci, c := range h.ReadChunks() {
		base := uint64(0)
		for i := range c.Segments {
			s := &c.Segments[i]
			chunk := ci
			if c.Position == 0 {
				chunk = -1
			}
			tx.served = append(tx.served, segment{
				handle: s.Handle, length: s.Length, offset: s.Offset,
				tx: tx, gen: tx.gen, kind: ReadList, chunk: chunk, index: i, base: base, keep: chunk < 0 || t.opt.KeepData,
			})
			mem.add(&tx.served[len(tx.served)-1])
			base += uint64(s.Length)
		}
	}
}

// adopt attributes RDMA Writes whose call was not captured to the reply that
// names their segments.
func (t *Tracker) adopt(tx *Transaction) {
	hf := t.half(tx.Connection, tx.From)
	h := &tx.Reply.Header
	claim := func(s rpcrdma.Segment, kind ChunkKind, index int) {
		for i := range hf.orphan {
			o := &hf.orphan[i]
			if !o.set || o.kind != rdma.Write || o.op.Handle != s.Handle ||
				o.op.Offset < s.Offset || o.op.Offset-s.Offset > uint64(s.Length) {
				continue
			}
			o.set = false
			o.op.Chunk, o.op.Index = kind, index
			tx.Operations = append(tx.Operations, o.op)
			tx.Writes++
			tx.WriteBytes += uint64(o.op.Bytes)
			if !tx.Times.FirstPush.Seen() || o.op.First.Number < tx.Times.FirstPush.Number {
				tx.Times.FirstPush = o.op.First
			}
			if o.op.Last.Number > tx.Times.LastPush.Number {
				tx.Times.LastPush = o.op.Last
			}
		}
	}
	for ci, c := range h.Writes {
		for i := range c {
			claim(c[i], WriteList, ci)
		}
	}
	for i := range h.Reply {
		claim(h.Reply[i], ReplyChunk, 0)
	}
}

// SendAgain implements rdma.Handler.
func (t *Tracker) SendAgain(c *rdma.Connection, from rdma.Side, tag any, gen uint64, ref rdma.Ref, complete bool) {
	s, ok := tag.(*sendTag)
	if !ok || s.tx.gen != gen || s.tx.finished {
		return
	}
	tx := s.tx
	tx.Retransmits++
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

// answered decides between the copies of a message by the acknowledgment: if
// it echoes a timestamp older than that of the first repetition, the original
// had arrived (RFC 7323, section 4.3).
func (m *Message) answered(ack rdma.Stamp) {
	if m.Last != m.original && m.stamp.Present && m.againStamp.Present && ack.Present &&
		m.stamp.Value != m.againStamp.Value &&
		int32(ack.Echo-m.stamp.Value) >= 0 && int32(ack.Echo-m.againStamp.Value) < 0 {
		m.Last = m.original
	}
}

// SendAcked implements rdma.Handler.
func (t *Tracker) SendAcked(c *rdma.Connection, from rdma.Side, tag any, gen uint64, ref rdma.Ref) {
	s, ok := tag.(*sendTag)
	if !ok || s.tx.gen != gen || s.tx.finished {
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
	if len(tx.served) == 0 {
		t.finish(tx)
	}
}

// OpStart implements rdma.Handler.
func (t *Tracker) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	owner := t.half(c, op.From.Other())
	s := owner.memory.find(op)
	if s == nil {
		op.Tag = nil
		t.Stats.OrphanOps++
		o := &owner.orphan[owner.orphAt]
		owner.orphAt = (owner.orphAt + 1) % len(owner.orphan)
		*o = orphan{set: true, kind: op.Kind, op: Operation{
			Kind: op.Kind, From: op.From, Handle: op.Handle, Offset: op.Offset,
			Length: op.Length, First: ref, Last: ref,
		}}
		return
	}
	op.Tag, op.TagGen = s, s.gen
	tx := s.tx
	if len(tx.Operations) < t.opt.Operations {
		tx.Operations = append(tx.Operations, Operation{
			Kind: op.Kind, From: op.From, Chunk: s.kind, Index: s.chunk,
			Handle: op.Handle, Offset: op.Offset, Length: op.Length, First: ref, Last: ref,
		})
	} else {
		tx.OperationsLost++
	}
	if op.Kind == rdma.Read {
		if op.From == tx.From {
			tx.ReadsByRequester++
			return
		}
		tx.Reads++
		if !tx.Times.FirstRead.Seen() {
			tx.Times.FirstRead = ref
		}
		return
	}
	tx.Writes++
	if !tx.Times.FirstPush.Seen() {
		tx.Times.FirstPush = ref
		tx.Times.LastPush = ref
	}
}

// operation finds the listed operation of op.
func (tx *Transaction) operation(op *rdma.Op) *Operation {
	n := len(tx.Operations)
	for i := n - 1; i >= 0 && i >= n-32; i-- {
		if o := &tx.Operations[i]; o.First == op.First && o.Offset == op.Offset && o.Handle == op.Handle {
			return o
		}
	}
	return nil
}

// OpData implements rdma.Handler.
func (t *Tracker) OpData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	s, ok := op.Tag.(*segment)
	if !ok {
		t.orphanData(c, op, f)
		return
	}
	tx := s.tx
	if s.gen != op.TagGen || tx.gen != s.gen || tx.finished {
		return
	}
	o := tx.operation(op)
	if f.Again {
		tx.Retransmits++
		if o != nil {
			o.Again++
		}
	}
	var fresh uint64
	if f.Offset >= s.offset {
		from := f.Offset - s.offset
		to := from + uint64(f.Length)
		if to > uint64(s.length) {
			tx.Note("RDMA operation beyond the end of its segment")
			to = max(uint64(s.length), from)
		}
		fresh = s.cover.add(from, to)
		if s.keep && len(f.Data) > 0 {
			t.keep(tx, s, from, f.Data)
		}
	}
	if o != nil {
		o.Bytes += uint32(fresh)
		o.Last = f.Ref
		if op.Length > o.Length {
			o.Length = op.Length // iWARP tells the length of a Write only at its end
		}
	}
	if op.Kind == rdma.Read {
		if op.From == tx.From {
			return
		}
		tx.ReadBytes += fresh
		if tx.Times.LastRead.Number < f.Ref.Number {
			tx.Times.LastRead = f.Ref
		}
		return
	}
	tx.WriteBytes += fresh
	if tx.Times.LastPush.Number < f.Ref.Number && !tx.acked {
		tx.Times.LastPush = f.Ref
	}
}

func (t *Tracker) orphanData(c *rdma.Connection, op *rdma.Op, f *rdma.Fragment) {
	if f.Again {
		return
	}
	t.Stats.OrphanBytes += uint64(f.Length)
	owner := t.half(c, op.From.Other())
	for i := range owner.orphan {
		if o := &owner.orphan[i]; o.set && o.op.First == op.First && o.op.Offset == op.Offset {
			o.op.Bytes += f.Length
			o.op.Last = f.Ref
			if op.Length > o.op.Length {
				o.op.Length = op.Length
			}
			return
		}
	}
}

// keep stores bytes of a chunk that are wanted.
func (t *Tracker) keep(tx *Transaction, s *segment, from uint64, data []byte) {
	if left := uint64(s.length) - min(from, uint64(s.length)); uint64(len(data)) > left {
		data = data[:left]
	}
	var b *buffer
	switch {
	case s.kind == ReplyChunk:
		b = &tx.Reply.long
	case s.kind == ReadList && s.chunk < 0 && s.tx.replied && len(tx.served) > 0 && s.listedIn(tx.served):
		b = &tx.Reply.long
	case s.kind == ReadList && s.chunk < 0:
		b = &tx.Call.long
	default:
		b = tx.chunk(s.kind, s.chunk)
	}
	room := t.opt.HeldBytes - t.bytes
	if len(data) > room && !t.opt.KeepData {
		tx.Note("chunk not assembled: memory limit reached")
		return
	}
	grown, ok := b.put(s.base+from, data, t.opt.Assembly)
	if !ok {
		tx.Note("chunk not assembled: longer than the limit")
		return
	}
	t.grew(tx, grown)
}

func (s *segment) listedIn(list []segment) bool {
	for i := range list {
		if s == &list[i] {
			return true
		}
	}
	return false
}

func (tx *Transaction) chunk(kind ChunkKind, index int) *buffer {
	for i := range tx.chunkData {
		if d := &tx.chunkData[i]; d.kind == kind && d.index == index {
			return &d.buf
		}
	}
	if n := len(tx.chunkData); n < cap(tx.chunkData) {
		tx.chunkData = tx.chunkData[:n+1]
	} else {
		tx.chunkData = append(tx.chunkData, chunkData{})
	}
	d := &tx.chunkData[len(tx.chunkData)-1]
	d.kind, d.index = kind, index
	d.buf.reset(keepBuffer)
	return &d.buf
}

// Data returns the bytes of a chunk as far as they arrived without a hole:
// index counts chunks by position in the Read list, or chunks of the Write
// list. It needs Options.KeepData.
func (tx *Transaction) Data(kind ChunkKind, index int) []byte {
	for i := range tx.chunkData {
		if d := &tx.chunkData[i]; d.kind == kind && d.index == index {
			return d.buf.prefix()
		}
	}
	return nil
}

// CallData returns the bytes of the n-th chunk of the Read list that is not at
// position zero, by ascending position. It needs Options.KeepData.
func (tx *Transaction) CallData(n int) []byte {
	if c := tx.Call.Header.ReadChunks(); len(c) > 0 && c[0].Position == 0 && tx.Call.Header.Version != rpcrdma.Version2 {
		n++
	}
	return tx.Data(ReadList, n)
}

// OpAgain implements rdma.Handler.
func (t *Tracker) OpAgain(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	s, ok := op.Tag.(*segment)
	if !ok || s.gen != op.TagGen || s.tx.gen != s.gen || s.tx.finished {
		return
	}
	s.tx.Retransmits++
	if o := s.tx.operation(op); o != nil {
		o.Again++
	}
}

// Event implements rdma.Handler.
func (t *Tracker) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
}

// FindCall implements rdma.Handler.
func (t *Tracker) FindCall(c *rdma.Connection, xid uint32) (rdma.Side, bool) {
	for side := range rdma.Side(2) {
		if h, ok := c.Upper[side].(*half); ok {
			if tx := h.open[xid]; tx != nil && !tx.replied {
				return side, true
			}
		}
	}
	return 0, false
}

// Merged implements rdma.Handler.
func (t *Tracker) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	h, ok := from.Upper[was].(*half)
	if !ok {
		return
	}
	for _, tx := range h.open {
		tx.Connection, tx.From = into, side
		tx.Backward = forwardSide(into) != side && forwardSide(into) != unknownSide
	}
	if old, ok := into.Upper[side].(*half); ok {
		for xid, tx := range old.open {
			if _, dup := h.open[xid]; !dup {
				h.open[xid] = tx
			}
		}
	}
	into.Upper[side] = h
}

// Closed implements rdma.Handler: calls without a reply get none.
func (t *Tracker) Closed(c *rdma.Connection, ref rdma.Ref) {
	for side := range rdma.Side(2) {
		h, ok := c.Upper[side].(*half)
		if !ok || len(h.open) == 0 {
			continue
		}
		// In the order of the list, so that the output is the same each time.
		left := len(h.open)
		for tx := t.head; tx != nil && left > 0; {
			next := tx.next
			if !tx.finished && tx.Connection == c && tx.From == side {
				left--
				if !tx.replied && c.Terminated != "" {
					tx.Note("no reply before the connection ended: " + c.Terminated)
				}
				t.end(tx)
			}
			tx = next
		}
	}
	t.drain()
}

// Flush ends all transactions at the end of the capture.
func (t *Tracker) Flush() {
	for tx := t.head; tx != nil; tx = tx.next {
		if !tx.finished {
			t.end(tx)
		}
	}
	t.drain()
}
