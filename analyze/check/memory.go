package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// memoryRules judge which memory is offered, and what is accessed.
type memoryRules struct {
	*verdicts
	mem   memory
	owner *transaction.Transaction // of the memory that the current operation is on
}

// memory remembers the segments that calls offered, past the end of the calls: the latest of all connections,
// in a ring. Segments with the same handle are chained from newest to oldest.
type memory struct {
	ring   [][]offered // in pages, so that it is not copied as it grows
	next   uint64      // sequence number of the next segment; its place in the ring is the remainder modulo the ring size
	newest map[handle]uint64
	calls  [256]callSegments // by packet number: of most calls that are open
}

// callSegments says where the segments of a call are: they have subsequent numbers, in the order of the header.
type callSegments struct {
	call uint64 // packet number
	seq  uint64 // of its first segment
}

// maxMemory is how many segments are remembered (some 80 bytes each).
const maxMemory = 1 << 16

// memoryPage is how many of them there is room for at a time.
const memoryPage = 1 << 10

// maxChain bounds the search among segments with the same handle.
const maxChain = 64

// handle is a key of a side of a connection, as one number: these are found in less time.
type handle uint64

func (s *conn) handle(owner rdma.Side, key uint32) handle {
	return handle(s.number<<33 | uint64(owner&1)<<32 | uint64(key))
}

func (h handle) key() uint32 { return uint32(h) }

func (h handle) owner() rdma.Side { return rdma.Side(h >> 32 & 1) }

type offered struct {
	handle     handle
	lost       *[2]int64 // conn.lost of the connection, which may have ended
	seq, older uint64    // older is 1 + the sequence number of the next in the chain; 0 if there is none
	offset     uint64
	length     uint32
	read       bool // stands in a Read list
	newer      bool // there is a newer one with this handle
	state      segmentState
	ended      rdma.Ref // of what ended it
	xid        uint32
	call       uint64 // packet number of the call
	program    uint32
	version    uint32
	procedure  uint32
	open       uint32 // of the newest with this handle: how many of those with this handle are open
	backward   bool
}

type segmentState uint8

const (
	segmentOpen segmentState = iota
	segmentAnswered
	segmentInvalidated
)

func (m *memory) at(seq uint64) *offered {
	return &m.ring[seq%maxMemory/memoryPage][seq%memoryPage]
}

// of returns the newest segment of a handle, or nil.
func (m *memory) of(h handle) *offered {
	if seq, ok := m.newest[h]; ok {
		return m.at(seq)
	}
	return nil
}

// add makes room for a segment; newest is what of returns for its handle. If that drops a segment whose call is still open, add returns when the
// sides of that connection lost something last, and the side whose memory it was.
func (m *memory) add(lost *[2]int64, h handle, newest *offered) (o *offered, dropped *[2]int64, owner rdma.Side) {
	if m.next < maxMemory && m.next%memoryPage == 0 {
		m.ring = append(m.ring, make([]offered, memoryPage))
	}
	o = m.at(m.next)
	if m.next >= maxMemory {
		if o.state == segmentOpen {
			dropped, owner = o.lost, o.handle.owner()
		}
		switch {
		case o == newest:
			newest = nil
		case !o.newer:
			delete(m.newest, o.handle)
		case o.state == segmentOpen:
			m.of(o.handle).open--
		}
	}
	*o = offered{handle: h, lost: lost, seq: m.next, open: 1}
	if newest != nil {
		newest.newer = true
		o.older = newest.seq + 1
		o.open += newest.open
	}
	m.newest[h] = m.next
	m.next++
	return o, dropped, owner
}

// older returns the next older segment with the same handle, or nil.
func (m *memory) older(o *offered) *offered {
	if o.older == 0 || o.older-1+maxMemory <= m.next {
		return nil
	}
	x := m.at(o.older - 1)
	if x.seq != o.older-1 || x.handle != o.handle {
		return nil
	}
	return x
}

// each calls f for the segments of a handle, newest first, until it returns true.
func (m *memory) each(newest *offered, f func(*offered) bool) {
	for o, n := newest, 0; o != nil && n < maxChain && !f(o); n++ {
		o = m.older(o)
	}
}

// eachOpen is each for the segments that are open. It stops when it has seen them all:
// handles are used again and again, and nearly all that are remembered of one are not open any more.
func (m *memory) eachOpen(newest *offered, f func(*offered) bool) {
	if newest == nil {
		return
	}
	left := newest.open
	m.each(newest, func(o *offered) bool {
		if left == 0 || o.state != segmentOpen {
			return left == 0
		}
		left--
		return f(o) || left == 0
	})
}

// end notes that the call of an open segment was answered.
func (m *memory) end(newest, o *offered, tx *transaction.Transaction) {
	newest.open--
	o.state, o.ended = segmentAnswered, tx.Reply.Last
	if tx.Reply.Invalidates && tx.Reply.Handle == o.handle.key() {
		o.state = segmentInvalidated
	}
}

// is reports whether a call that is open offers the segment.
func (o *offered) is(h handle, tx *transaction.Transaction) bool {
	return o.state == segmentOpen && o.handle == h && o.xid == tx.XID && o.call == tx.Call.First.Number
}

// overlaps reports whether the segment overlaps a range.
func (o *offered) overlaps(offset uint64, length uint32) bool {
	return length > 0 && o.length > 0 && offset-o.offset < uint64(o.length) || length > 0 && o.length > 0 && o.offset-offset < uint64(length)
}

// offered records the memory that a call offers.
func (c *memoryRules) offered(k *conn, st *callState, tx *transaction.Transaction) {
	h, number := &tx.Call.Header, tx.Call.First.Number
	c.mem.calls[number%uint64(len(c.mem.calls))] = callSegments{number, c.mem.next}
	for i := range h.Reads {
		c.offer(k, st, tx, &h.Reads[i].Segment, true)
	}
	for _, w := range h.Writes {
		for i := range w {
			c.offer(k, st, tx, &w[i], false)
		}
	}
	for i := range h.Reply {
		c.offer(k, st, tx, &h.Reply[i], false)
	}
}

func (c *memoryRules) offer(k *conn, st *callState, tx *transaction.Transaction, s *rpcrdma.Segment, read bool) {
	h := k.handle(tx.From, s.Handle)
	newest := c.mem.of(h)
	if k.unmatched != nil && k.unmatched.ahead(tx.From, s, read, tx.Call.First.Number) {
		st.overtaken = true
		c.overtaken(k, s, tx.From, read, tx.Call.First.Number)
	}
	if st.twice == nil && c.on[ruleHandleOpen] != Off {
		c.mem.eachOpen(newest, func(o *offered) bool {
			// Memory that is only read may be offered any number of times.
			if o.xid == tx.XID && o.call == tx.Call.First.Number || o.read && read || !o.overlaps(s.Offset, s.Length) {
				return false
			}
			f := k.finding(ruleHandleOpen, tx.Call.Last, tx.From, Requester)
			f.Expected = "separate memory for each open call"
			f.Seen = fmt.Sprintf("handle 0x%08x, offset 0x%x is offered by call 0x%08x (frame %d), too", s.Handle, s.Offset, o.xid, o.call)
			st.twice = f
			return true
		})
	}
	o, dropped, owner := c.mem.add(k.lost, h, newest)
	if dropped != nil {
		dropped[owner] = tx.Call.First.Time
	}
	o.offset, o.length, o.read = s.Offset, s.Length, read
	o.xid, o.call, o.backward = tx.XID, tx.Call.First.Number, tx.Backward
	o.program, o.version, o.procedure = tx.Program, tx.Version, tx.Procedure
}

// answered records a reply.
func (m *memory) answered(k *conn, tx *transaction.Transaction) {
	if !tx.Call.Seen() {
		return
	}
	seq := m.next // unknown
	if x := &m.calls[tx.Call.First.Number%uint64(len(m.calls))]; x.call == tx.Call.First.Number {
		seq = x.seq
	}
	h := &tx.Call.Header
	for i := range h.Reads {
		seq = m.answer(k, tx, h.Reads[i].Handle, seq)
	}
	for _, w := range h.Writes {
		for i := range w {
			seq = m.answer(k, tx, w[i].Handle, seq)
		}
	}
	for i := range h.Reply {
		seq = m.answer(k, tx, h.Reply[i].Handle, seq)
	}
}

// answer records the reply for a segment, which probably has the number seq, and returns that of the next.
func (m *memory) answer(k *conn, tx *transaction.Transaction, key uint32, seq uint64) uint64 {
	h := k.handle(tx.From, key)
	if seq < m.next {
		if o := m.at(seq); o.is(h, tx) && !o.newer {
			m.end(o, o, tx)
			return seq + 1
		}
	}
	newest := m.of(h)
	m.eachOpen(newest, func(o *offered) bool {
		if o.is(h, tx) {
			m.end(newest, o, tx)
		}
		return false
	})
	return seq + 1
}

// Operation is decode.Observer.Operation.
func (c *Checker) Operation(tx *transaction.Transaction, _ *rdma.Op) { c.memory.owner = tx }

// OpStart implements decode.Observer.
func (c *Checker) OpStart(k *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	s := c.conns.of(k)
	if op.Kind == rdma.Atomic {
		return
	}
	if !s.rpc {
		// The first call may appear in the capture after the operation.
		s.keepUnmatched(unmatchedOp{owner: op.From.Other(), kind: op.Kind, handle: op.Handle, offset: op.Offset, at: ref.Number})
		return
	}
	tx := c.memory.owner
	c.memory.owner = nil
	if fwd, ok := s.forward(); ok && (tx == nil && op.From == fwd || tx != nil && tx.From == op.From) {
		c.memory.byRequester(s, op, tx, ref)
		return
	}
	if tx != nil {
		for _, r := range [...]id{ruleRequesterRDMA, ruleAccessNotOffered, ruleAccessAfterReply, ruleAccessAfterInvalidate, ruleAccessWrongKind, ruleAccessEmpty, ruleFatalNAK} {
			c.ok(r)
		}
		return
	}
	if op.Late || op.Length == 0 && op.Kind == rdma.Write && s.c.Fabric == rdma.IWARP {
		return
	}
	c.memory.unmatched(s, op, ref)
}

// OpData implements decode.Observer.
func (c *Checker) OpData(*rdma.Connection, *rdma.Op, *rdma.Fragment) {}

func kindName(k rdma.OpKind) string {
	if k == rdma.Read {
		return "RDMA Read"
	}
	return "RDMA Write"
}

// byRequester reports an operation by the side that must not start any.
func (c *memoryRules) byRequester(k *conn, op *rdma.Op, tx *transaction.Transaction, ref rdma.Ref) {
	if c.on[ruleRequesterRDMA] == Off || tx == nil && c.opt.Match != nil {
		return
	}
	f := k.finding(ruleRequesterRDMA, ref, op.From, Requester)
	if tx != nil {
		c.named(f, tx)
		if c.opt.Match != nil && !c.opt.Match(&c.view) {
			return
		}
	}
	f.Expected = "RDMA operations of the responder only"
	f.Seen = fmt.Sprintf("%s of %d bytes, handle 0x%08x, offset 0x%x", kindName(op.Kind), op.Length, op.Handle, op.Offset)
	c.report(f)
}

// suspect is an operation on memory that no open call offers. The call may be missing from the capture, which
// later packets show.
type suspect struct {
	unmatchedOp
	f     *Finding
	rule  id
	at    rdma.Ref
	psn   uint32 // expected PSN of the owner's next request
	known bool   // psn is known
}

const maxSuspects = 64

// unmatched checks an operation that belongs to no open call.
func (c *memoryRules) unmatched(k *conn, op *rdma.Op, ref rdma.Ref) {
	owner := op.From.Other()
	rule := ruleAccessNotOffered
	var hit *offered
	read := op.Kind == rdma.Read
	fine := false
	c.mem.each(c.mem.of(k.handle(owner, op.Handle)), func(o *offered) bool {
		inside := op.Offset-o.offset < uint64(max(o.length, 1))
		switch {
		case !inside:
			return false
		case o.state == segmentOpen && o.read != read:
			if hit == nil {
				rule, hit = ruleAccessWrongKind, o
			}
			return false
		case o.state == segmentOpen && o.length == 0:
			if hit == nil {
				rule, hit = ruleAccessEmpty, o
			}
			fine = op.Length == 0
			return fine
		case o.state == segmentOpen:
			// Its bytes are moved a second time, which is allowed.
			fine = true
			return true
		case hit != nil:
			return false
		case o.state == segmentInvalidated:
			rule, hit = ruleAccessAfterInvalidate, o
		default:
			rule, hit = ruleAccessAfterReply, o
		}
		return false
	})
	if fine {
		return
	}
	what := unmatchedOp{owner: owner, kind: op.Kind, handle: op.Handle, offset: op.Offset, at: ref.Number}
	switch rule {
	case ruleAccessNotOffered:
		k.keepUnmatched(what)
	case ruleAccessAfterReply, ruleAccessAfterInvalidate:
		what.used = true
		k.keepUnmatched(what)
	}
	if c.on[rule] == Off {
		return
	}
	if why, ok := k.offers(owner, ref.Time); !ok {
		c.skip(rule, why)
		return
	}
	if len(k.suspects) >= maxSuspects {
		c.skip(rule, Limit)
		return
	}
	if c.opt.Match != nil {
		return
	}
	f := k.finding(rule, ref, op.From, Responder)
	f.Expected = "memory that an open call offers"
	f.Seen = fmt.Sprintf("%s of %d bytes, handle 0x%08x, offset 0x%x", kindName(op.Kind), op.Length, op.Handle, op.Offset)
	if hit != nil {
		f.HasXID, f.XID, f.Backward = true, hit.xid, hit.backward
		f.CallFrame, f.ReplyFrame = hit.call, hit.ended.Number
		f.Program, f.Operation = procedure(hit.program, hit.version, hit.procedure)
		switch rule {
		case ruleAccessAfterReply:
			f.Seen += fmt.Sprintf(", after the reply in frame %d", hit.ended.Number)
		case ruleAccessAfterInvalidate:
			f.Seen += fmt.Sprintf(", invalidated in frame %d", hit.ended.Number)
		case ruleAccessEmpty:
			f.Expected = "no access to a segment of length 0"
		case ruleAccessWrongKind:
			f.Expected = "a Read from Read chunks, a Write to Write and Reply chunks"
		}
	}
	k.suspects = append(k.suspects, suspect{what, f, rule, ref, k.wire[owner].next, k.wire[owner].started && !k.wire[owner].announced})
}

// unmatchedOp is an operation on memory that no open call had offered.
type unmatchedOp struct {
	owner  rdma.Side
	kind   rdma.OpKind
	handle uint32
	offset uint64
	at     uint64 // packet number; 0 if there is none
	used   bool   // an earlier call offered it
}

const (
	maxUnmatched = 16
	// maxOvertaken is how many packets a call may come after an operation that it asks for, in captures with
	// reordered packets. For memory that was offered before, the limit is lower, since there is another
	// explanation.
	maxOvertaken     = 64
	maxOvertakenUsed = 8
)

// unmatchedOps are the latest unmatched operations.
type unmatchedOps struct {
	ring [maxUnmatched]unmatchedOp
	at   int
}

func (s *conn) keepUnmatched(x unmatchedOp) {
	if s.unmatched == nil {
		s.unmatched = new(unmatchedOps)
	}
	s.unmatched.ring[s.unmatched.at] = x
	s.unmatched.at = (s.unmatched.at + 1) % maxUnmatched
}

// ahead reports whether operations on a segment came shortly before its call. No responder can guess handle
// and offset, so the capture has them in the wrong order.
func (s *unmatchedOps) ahead(owner rdma.Side, seg *rpcrdma.Segment, read bool, call uint64) bool {
	for i := range s.ring {
		x := &s.ring[i]
		if x.at != 0 && x.is(owner, seg, read, call) {
			return true
		}
	}
	return false
}

// is reports whether a segment that a call offers now is the memory that was accessed.
func (x *unmatchedOp) is(owner rdma.Side, s *rpcrdma.Segment, read bool, call uint64) bool {
	most := uint64(maxOvertaken)
	if x.used {
		most = maxOvertakenUsed
	}
	return x.at+most >= call && x.owner == owner && x.handle == s.Handle && x.offset-s.Offset < uint64(max(s.Length, 1)) && (x.kind == rdma.Read) == read
}

// overtaken drops the suspicion about operations on a segment that is offered now.
func (c *memoryRules) overtaken(k *conn, s *rpcrdma.Segment, owner rdma.Side, read bool, call uint64) {
	n := 0
	for i := range k.suspects {
		x := &k.suspects[i]
		if x.rule != ruleAccessWrongKind && x.rule != ruleAccessEmpty && x.unmatchedOp.is(owner, s, read, call) {
			c.skip(x.rule, Reordered)
			continue
		}
		k.suspects[n] = *x
		n++
	}
	clear(k.suspects[n:])
	k.suspects = k.suspects[:n]
}

// later reports whether enough has been seen after an operation to know whether a call before it is missing
// from the capture.
func (s *conn) later(x *suspect) bool {
	if s.c.Fabric == rdma.IWARP {
		// TCP delivers in order, so a hole is known before what follows it.
		return x.at.Number < s.settled[x.owner]
	}
	return x.known && s.wire[x.owner].proves(x.psn)
}

// suspected checks suspect operations where that is possible: once later requests of the same side have been
// acknowledged, or at the end.
func (c *memoryRules) suspected(k *conn, all bool) {
	n := 0
	for i := range k.suspects {
		x := &k.suspects[i]
		if !all && !k.later(x) {
			k.suspects[n] = *x
			n++
			continue
		}
		if why, ok := k.offers(x.owner, x.at.Time); !ok {
			c.skip(x.rule, why)
			continue
		}
		if all && len(k.fatals) == 0 && !k.later(x) {
			c.skip(x.rule, NotAcked)
			continue
		}
		if x.f.Reaction == "" && k.c.Terminated != "" {
			x.f.Reaction = "connection ended: " + k.c.Terminated
		}
		c.report(x.f)
	}
	clear(k.suspects[n:])
	k.suspects = k.suspects[:n]
}
