package endpoint

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// server answers calls of one direction on one connection.
type server struct {
	o        *Options
	backward bool
	handler  *atomic.Pointer[transport.Handler]
	// connections is how many there are now, for the policy of credits; nil is
	// one.
	connections *atomic.Int32

	mu     sync.Mutex
	posted uint32 // receives for calls
	asked  atomic.Uint32

	pulling int // bytes of calls that are held
	holding int // exchanges that the connection's account is charged for
	waiting ring[*exchange]
	held    map[uint32]*exchange // ReadRead: until RDMA_DONE
	order   ring[heldCall]
	timer   *time.Timer
	// retry lets calls begin that wait although nothing else is under way, since
	// there is no memory for them.
	retry  *time.Timer
	waited time.Duration
	dead   bool
}

type heldCall struct {
	xid   uint32
	x     *exchange
	until time.Time
}

// exchange is a call of the peer's, from its Send until the memory of its reply
// is free.
type exchange struct {
	l  *link
	s  *server
	rb *recvBuf

	hdr    rpcrdma.Header
	call   transport.Message
	items  []transport.Item
	blocks []*block // of what was pulled
	wrs    []verbs.WorkRequest
	sgl    [][]byte
	size   int // bytes that are pulled
	// charge is what the connection's account is charged for, in bytes: first what
	// is pulled and what the peer expects in chunks of the reply, later what the
	// reply is. counted: it is one of server.holding.
	charge  int64
	counted bool
	owing   bool // one of link.owing

	out      rpcrdma.Header // of the reply
	segments []rpcrdma.Segment
	op       opening
	release  func()
	answered atomic.Bool
	stage    stage
	// Of stageHold; server.mu protects them. busy: the reply is being sent;
	// over: the memory is to be closed when it has been.
	busy, over bool
	trace      Trace
}

// stage says what an exchange's work is.
type stage uint8

const (
	stagePull  stage = iota // chunks of the call are being read
	stageReply              // the reply is being sent
	stageHold               // as stageReply, and then it waits for RDMA_DONE
	stageClose              // windows are being closed
)

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// call handles a message that is no reply.
func (s *server) call(l *link, h *rpcrdma.Header, err error, rb *recvBuf, done *verbs.Completion) {
	switch old := h.Version == rpcrdma.Version0 && s.o.Dialect != rpcrdma.DialectNone && !s.backward; {
	case h.Version != rpcrdma.Version1 && !old:
		// Errors are never answered, whatever their version.
		if h.Length >= 16 && h.Type == rpcrdma.TypeError || wireType(rb.b[:done.Length]) == uint32(rpcrdma.TypeError) {
			break
		}
		s.refuse(l, h, rb, rpcrdma.ErrVers)
		return
	case err != nil:
		// Without the fixed part there is nobody to tell.
		if h.Version == rpcrdma.Version1 && done.Length >= 16 && h.Type != rpcrdma.TypeError && h.Type != rpcrdma.TypeDone {
			s.refuse(l, h, rb, rpcrdma.ErrChunk)
			return
		}
	case h.Type == rpcrdma.TypeDone:
		s.done(l, h.XID)
	case h.Type == rpcrdma.TypeError:
	default:
		s.accept(l, h, rb, done)
		return
	}
	l.ctr.dropped.Add(1)
	l.recycle(rb)
}

// wireType is the message type where versions 1 and 2 have it.
func wireType(b []byte) uint32 {
	if len(b) < 16 {
		return math.MaxUint32
	}
	return binary.BigEndian.Uint32(b[12:])
}

// refuse answers with RDMA_ERROR. If too many Sends are under way the peer goes
// without an answer.
func (s *server) refuse(l *link, h *rpcrdma.Header, rb *recvBuf, code rpcrdma.ErrorCode) {
	xid, version := h.XID, h.Version
	grant := s.grant(l, h.Credits)
	l.recycle(rb)
	s.sendError(l, xid, version, grant, code)
}

func (s *server) sendError(l *link, xid, version, grant uint32, code rpcrdma.ErrorCode) {
	l.ctr.errors.Add(1)
	buf := l.sendBuffer()
	if buf == nil {
		return
	}
	e := rpcrdma.Header{
		XID: xid, Credits: grant, Type: rpcrdma.TypeError, Error: code,
		Low: rpcrdma.Version1, High: rpcrdma.Version1,
	}
	// RFC 8166, section 4.5.1 wants a version that the peer understands, with the
	// layout of version 1. Version 0 has no errors.
	e.Version = rpcrdma.Version1
	buf.b = e.Append(buf.b[:0])
	if version != rpcrdma.Version0 {
		binary.BigEndian.PutUint32(buf.b[4:], version)
	}
	if l.enqueue(work{send: buf.request(0, false), buf: buf}) {
		l.flush()
	}
}

// accept begins an exchange.
func (s *server) accept(l *link, h *rpcrdma.Header, rb *recvBuf, done *verbs.Completion) {
	total, ok := s.check(h)
	if !ok {
		s.refuse(l, h, rb, rpcrdma.ErrChunk)
		return
	}
	l.ctr.calls.Add(1)
	x := exchanges.Get().(*exchange)
	x.l, x.s, x.rb = l, s, rb
	x.answered.Store(false)
	x.hdr.Take(h)
	x.items, x.wrs, x.sgl, x.segments, x.size = x.items[:0], x.wrs[:0], x.sgl[:0], x.segments[:0], total
	x.charge, x.counted, x.owing = 0, false, false
	x.op.reset()
	if s.o.Trace != nil {
		x.trace = Trace{Peer: l.peer, XID: x.hdr.XID, Backward: s.backward, Answered: true, Received: done.Time}
	}
	l.ref()
	s.asked.Store(x.hdr.Credits)
	if x.charge = int64(total) + x.expected(); x.charge == 0 {
		x.begin()
		return
	}
	s.mu.Lock()
	if s.dead {
		s.mu.Unlock()
		x.end()
		return
	}
	if s.waiting.len() > 0 || !s.fits(x) {
		s.waiting.push(x)
		s.mu.Unlock()
		return
	}
	s.take(x)
	s.mu.Unlock()
	x.begin()
}

// expected is how long a reply the peer has made room for in chunks.
func (x *exchange) expected() int64 {
	n := x.hdr.Reply.Length()
	for _, w := range x.hdr.Writes {
		n = min(n, math.MaxUint32) + min(w.Length(), math.MaxUint32)
	}
	return int64(min(n, uint64(x.s.o.MaxMessage)))
}

// fits reports whether a call may begin. If something else of the connection is
// under way, the end of that lets it begin later, otherwise a timer. mu is held.
func (s *server) fits(x *exchange) bool {
	if s.holding > 0 {
		return x.l.acct.Room() && (s.pulling == 0 || s.pulling+x.size <= s.o.MaxPulled)
	}
	if x.l.acct.Admit(x.charge, s.waited) {
		s.waited = 0
		return true
	}
	const step = 20 * time.Millisecond
	if s.waited += step; s.retry == nil {
		s.retry = time.AfterFunc(step, s.resume)
	} else {
		s.retry.Reset(step)
	}
	return false
}

// take counts a call that begins. mu is held.
func (s *server) take(x *exchange) {
	s.pulling += x.size
	s.holding++
	x.counted = true
	x.l.acct.Add(x.charge)
}

// recharge changes what the account is charged for.
func (x *exchange) recharge(n int64) {
	if !x.counted {
		x.s.mu.Lock()
		x.s.holding++
		x.s.mu.Unlock()
		x.counted, x.charge, x.size = true, 0, 0
	}
	x.l.acct.Add(n - x.charge)
	x.charge = n
}

// begin begins with the work for a call.
func (x *exchange) begin() {
	if len(x.hdr.Reads) == 0 {
		x.call = transport.Message{Stream: x.hdr.Payload}
		x.dispatch()
		return
	}
	x.pull()
}

// check holds the lists of a call against the rules (RFC 8166, section 3.4 and
// 4.3). It returns the bytes of the Read list.
func (s *server) check(h *rpcrdma.Header) (total int, ok bool) {
	if s.backward && (len(h.Reads) > 0 || len(h.Writes) > 0 || h.HasReply || h.Type == rpcrdma.TypeNoMsg) {
		return 0, false // RFC 8167, section 4.3: we do not support chunks there
	}
	most := s.o.MaxSegments
	if len(h.Reads) > 4*most || len(h.Writes) > 4*most || len(h.Reply) > most {
		return 0, false
	}
	segments := 0
	for _, w := range h.Writes {
		if segments += len(w); len(w) > most {
			return 0, false
		}
	}
	if segments > 4*most {
		return 0, false
	}
	var sum uint64
	zero := uint64(0)
	for i := range h.Reads {
		r := &h.Reads[i]
		if r.Position%4 != 0 {
			return 0, false
		}
		sum += uint64(r.Length)
		if r.Position == 0 {
			zero += uint64(r.Length)
		}
	}
	if sum+uint64(len(h.Payload)) > uint64(s.o.MaxMessage) {
		return 0, false
	}
	// A long message has the call at position zero and nothing inline; others
	// have nothing at position zero.
	long := h.Type == rpcrdma.TypeNoMsg || h.Version == rpcrdma.Version0 && h.PayloadLength == 0
	if long {
		return int(sum), zero >= 8
	}
	return int(sum), zero == 0 && len(h.Payload) >= 8
}

// pull reads the chunks of a call.
func (x *exchange) pull() {
	l := x.l
	for _, chunk := range x.hdr.ReadChunks() {
		b, err := l.mem.get(int(chunk.Length))
		if err != nil {
			x.refuse()
			return
		}
		x.blocks = append(x.blocks, b)
		dst := b.b[:chunk.Length:chunk.Length]
		if chunk.Position == 0 {
			x.call.Stream = dst
		} else {
			x.items = append(x.items, transport.Item{Position: chunk.Position, Data: dst})
		}
		for _, s := range chunk.Segments {
			x.wrs, x.sgl = l.appendOps(x.wrs, x.sgl, verbs.OpRead, s.Segment, dst[:s.Length])
			dst = dst[s.Length:]
		}
	}
	if len(x.hdr.Payload) > 0 && (x.hdr.Type == rpcrdma.TypeMsg || x.hdr.Type == rpcrdma.TypeMsgP) {
		x.call.Stream = x.hdr.Payload
	}
	x.call.Items = x.items
	// Positions count what stands before them, other chunks included.
	end := len(x.call.Stream)
	for i := range x.items {
		if int(x.items[i].Position) > end {
			x.refuse()
			return
		}
		end += (len(x.items[i].Data) + 3) &^ 3
	}
	x.trace.ReadBytes = x.size
	if len(x.wrs) == 0 {
		x.dispatch()
		return
	}
	x.stage = stagePull
	x.owes()
	if !l.enqueue(work{wrs: x.wrs, owner: x}) {
		x.end()
		return
	}
	l.flush()
}

// owes notes that the exchange waits for the peer.
func (x *exchange) owes() {
	x.owing = true
	x.l.owing.Add(1)
}

// paid notes that it does not any more.
func (x *exchange) paid() {
	if x.owing {
		x.owing = false
		x.l.owing.Add(-1)
	}
}

// refuse ends an exchange with ERR_CHUNK before its handler has seen it.
func (x *exchange) refuse() {
	l, s := x.l, x.s
	xid, version, grant := x.hdr.XID, x.hdr.Version, s.grant(l, x.hdr.Credits)
	x.answered.Store(true)
	x.end()
	s.sendError(l, xid, version, grant, rpcrdma.ErrChunk)
}

// dispatch hands the call to the handler.
func (x *exchange) dispatch() {
	m := &x.call
	if len(m.Stream) < 8 || binary.BigEndian.Uint32(m.Stream) != x.hdr.XID || binary.BigEndian.Uint32(m.Stream[4:]) != uint32(oncrpc.TypeCall) {
		x.refuse()
		return
	}
	if x.s.o.Trace != nil {
		x.trace.Queued = time.Now()
	}
	if h := x.s.handler.Load(); h != nil && *h != nil {
		(*h).ServeRPC(x)
		return
	}
	r := oncrpc.Reply{XID: x.hdr.XID, Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
	x.Reply(&transport.Message{Stream: r.Append(nil)})
}

// workDone goes on when what was posted for the exchange is complete.
func (x *exchange) workDone(ok bool) {
	x.paid()
	if ok {
		x.l.taken.Add(1)
		x.l.acct.Progress()
	}
	switch {
	case !ok:
		x.s.unhold(x)
		x.end()
	case x.stage == stagePull:
		x.wrs, x.sgl = x.wrs[:0], x.sgl[:0]
		x.dispatch()
	case x.stage == stageHold:
		// Its memory stays open until the peer has read it.
		x.s.mu.Lock()
		x.busy = false
		over := x.over
		x.s.mu.Unlock()
		if over {
			x.close()
		}
	case x.stage == stageClose:
		x.l.windowsClosed(&x.op)
		x.end()
	default:
		x.end()
	}
}

// end gives back what the exchange holds.
func (x *exchange) end() {
	l, s := x.l, x.s
	if x.release != nil {
		x.release()
		x.release = nil
	}
	l.giveBounces(&x.op)
	for i, b := range x.blocks {
		l.mem.put(b)
		x.blocks[i] = nil
	}
	x.blocks = x.blocks[:0]
	if x.rb != nil {
		l.recycle(x.rb)
		x.rb = nil
	}
	x.paid()
	size, counted := x.size, x.counted
	if counted {
		l.acct.Add(-x.charge)
	}
	clear(x.items)
	clear(x.sgl)
	x.l, x.s, x.call = nil, nil, transport.Message{}
	exchanges.Put(x)
	if counted {
		s.freed(size)
	}
	l.unref()
}

// freed makes room for calls that wait to begin.
func (s *server) freed(n int) {
	s.mu.Lock()
	s.pulling -= n
	s.holding--
	s.mu.Unlock()
	s.resume()
}

// resume begins with the calls that there is room for.
func (s *server) resume() {
	s.mu.Lock()
	var next []*exchange
	for s.waiting.len() > 0 && !s.dead {
		x := *s.waiting.front()
		if !s.fits(x) {
			break
		}
		s.take(x)
		s.waiting.pop()
		next = append(next, x)
	}
	s.mu.Unlock()
	for _, x := range next {
		x.begin()
	}
}

// lost ends what waits for a connection that has ended.
func (s *server) lost(*link) {
	s.mu.Lock()
	s.dead = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.retry != nil {
		s.retry.Stop()
	}
	var all []*exchange
	for s.waiting.len() > 0 {
		all = append(all, s.waiting.pop())
	}
	for _, x := range s.held {
		// One that is being put together finds the connection gone.
		if !x.busy {
			all = append(all, x)
		}
	}
	s.held = nil
	s.mu.Unlock()
	for _, x := range all {
		x.end()
	}
}

// Call is the call.
func (x *exchange) Call() *transport.Message { return &x.call }
func (x *exchange) Peer() transport.Peer     { return x.l.peer }
func (x *exchange) Disconnect()              { x.l.close() }

// MaxResult is how long an item of the reply may be to travel by itself.
func (x *exchange) MaxResult(n int) uint32 {
	if x.readRead() {
		return math.MaxInt32
	}
	if n < 0 || n >= len(x.hdr.Writes) {
		return 0
	}
	return uint32(min(x.hdr.Writes[n].Length(), math.MaxUint32))
}

// Backward sends calls the other way.
func (x *exchange) Backward() transport.Requester { return backward{x.l} }

func (x *exchange) OnClose(key any, f func()) { x.l.setOnClose(key, f) }

// Drop gives up the call. Its credit stays with the call: the peer waits.
func (x *exchange) Drop() {
	if x.answered.CompareAndSwap(false, true) {
		x.end()
	}
}

// grant is how many credits a reply grants.
func (s *server) grant(l *link, asked uint32) uint32 {
	switch {
	case s.backward:
		return s.o.BackwardCredits
	case s.o.Policy == CreditsFixed:
		return min(max(asked, 1), s.o.Credits)
	case s.o.Policy != CreditsDynamic:
		return s.o.Credits
	}
	connections := uint32(1)
	if s.connections != nil {
		connections = uint32(max(s.connections.Load(), 1))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.o.Dynamic.grant(asked, s.posted, connections, s.o.MaxCredits)
	if n > s.posted {
		l.mu.Lock()
		more, err := l.addReceives(int(n - s.posted))
		if err == nil {
			l.repost = append(l.repost, more...)
		}
		l.mu.Unlock()
		if err != nil {
			return s.posted
		}
		s.posted = n
	}
	return n
}
