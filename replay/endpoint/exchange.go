package endpoint

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/ring"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// server answers calls of one direction on one connection.
type server struct {
	o        *Options
	backward bool
	handler  *atomic.Pointer[transport.Handler]
	// connections is the number of connections, for the credit policy; nil means
	// one.
	connections *atomic.Int32

	mu     sync.Mutex
	posted uint32 // receives posted for calls
	asked  atomic.Uint32

	pulling int // bytes pulled for calls under way
	holding int // exchanges that the connection's account is charged for
	waiting ring.Ring[*exchange]
	held    map[uint32]*exchange // ReadRead: replies until RDMA_DONE, by XID
	order   ring.Ring[heldCall]
	timer   *time.Timer
	// retry fires for calls that wait for memory while nothing else is under way
	// whose end would let them begin.
	retry  *time.Timer
	waited time.Duration
	dead   bool
}

// exchange is a call of the peer's, from its Send until the memory of its reply
// is free. exchangestate.go holds its states.
type exchange struct {
	progress
	l  *link
	s  *server
	rb *recvBuf

	hdr    rpcrdma.Header
	call   transport.Message
	items  []transport.Item
	blocks []*block // memory for what is pulled, and copies of what is written
	wrs    []verbs.WorkRequest
	sgl    [][]byte
	size   int // bytes that are pulled
	// charge is what the connection's account is charged for, in bytes: first what
	// is pulled and what the peer expects in chunks of the reply, later the size of
	// the reply. counted: the exchange is one of server.holding.
	charge  int64
	counted bool
	owing   bool // it is one of link.owing

	out      rpcrdma.Header // of the reply
	segments []rpcrdma.Segment
	op       opening
	release  func()
	trace    Trace
}

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

// call handles a message that is not a reply.
func (s *server) call(l *link, h *rpcrdma.Header, err error, rb *recvBuf, done *verbs.Completion) {
	switch old := h.Version == rpcrdma.Version0 && s.o.Dialect != rpcrdma.DialectNone && !s.backward; {
	case h.Version != rpcrdma.Version1 && !old:
		// RDMA_ERROR is never answered, whatever its version.
		if h.Length >= 16 && h.Type == rpcrdma.TypeError || wireType(rb.b[:done.Length]) == uint32(rpcrdma.TypeError) {
			break
		}
		s.refuse(l, h, rb, rpcrdma.ErrVers)
		return
	case err != nil:
		// Without the fixed part of the header there is nothing to answer to.
		if h.Version == rpcrdma.Version1 && done.Length >= 16 && h.Type != rpcrdma.TypeError && h.Type != rpcrdma.TypeDone {
			s.refuse(l, h, rb, rpcrdma.ErrChunk)
			return
		}
	case h.Type == rpcrdma.TypeDone:
		s.done(h.XID)
	case h.Type == rpcrdma.TypeError:
	default:
		s.accept(l, h, rb, done)
		return
	}
	l.ctr.dropped.Add(1)
	l.recycle(rb)
}

// wireType reads the message type at the place where versions 1 and 2 have it.
func wireType(b []byte) uint32 {
	if len(b) < 16 {
		return math.MaxUint32
	}
	return binary.BigEndian.Uint32(b[12:])
}

// refuse answers with RDMA_ERROR. If too many Sends are under way, there is no
// answer.
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
	// RFC 8166, section 4.5.1, asks for the peer's version with the layout of
	// version 1. Version 0 has no errors.
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
	x.progress.begin()
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
	if s.waiting.Len() > 0 || !s.fits(x) {
		s.waiting.Push(x)
		s.mu.Unlock()
		return
	}
	s.take(x)
	s.mu.Unlock()
	x.begin()
}

// check checks the chunk lists of a call (RFC 8166, sections 3.4 and 4.3). It returns
// the bytes of the Read list.
func (s *server) check(h *rpcrdma.Header) (total int, ok bool) {
	if s.backward && (len(h.Reads) > 0 || len(h.Writes) > 0 || h.HasReply || h.Type == rpcrdma.TypeNoMsg) {
		return 0, false // RFC 8167, section 4.3: we do not support chunks in this direction
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
	// A long message has the call in a chunk at position zero and nothing inline.
	// No other message has a chunk at position zero.
	long := h.Type == rpcrdma.TypeNoMsg || h.Version == rpcrdma.Version0 && h.PayloadLength == 0
	if long {
		return int(sum), zero >= 8
	}
	return int(sum), zero == 0 && len(h.Payload) >= 8
}

// begin starts the work for a call.
func (x *exchange) begin() {
	if len(x.hdr.Reads) == 0 {
		x.call = transport.Message{Stream: x.hdr.Payload}
		x.dispatch()
		return
	}
	x.pull()
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
	// Positions count all bytes before them, other chunks included.
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
	x.step(exchangePull)
	x.owes()
	if !l.enqueue(work{wrs: x.wrs, owner: x}) {
		x.end()
		return
	}
	l.flush()
}

// refuse ends an exchange with ERR_CHUNK before the handler has seen it.
func (x *exchange) refuse() {
	l, s := x.l, x.s
	xid, version, grant := x.hdr.XID, x.hdr.Version, s.grant(l, x.hdr.Credits)
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
	x.step(exchangeServe)
	if h := x.s.handler.Load(); h != nil && *h != nil {
		(*h).ServeRPC(x)
		return
	}
	r := oncrpc.Reply{XID: x.hdr.XID, Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
	x.Reply(&transport.Message{Stream: r.Append(nil)})
}

// workDone continues when the work of the exchange is complete.
func (x *exchange) workDone(ok bool) {
	x.paid()
	if !ok {
		x.s.unhold(x)
		x.end()
		return
	}
	x.l.taken.Add(1)
	x.l.acct.Progress()
	switch x.now() {
	case exchangePulling:
		x.wrs, x.sgl = x.wrs[:0], x.sgl[:0]
		x.dispatch()
		return
	case exchangeClosing:
		x.l.windowsClosed(&x.op)
		x.end()
		return
	}
	switch to, _ := x.step(exchangeSent); to {
	case exchangeExposed:
		// Its memory stays open until the peer has read it.
	case exchangeClosing:
		x.close()
	default:
		x.end()
	}
}

// end releases what the exchange holds, and the exchange.
func (x *exchange) end() {
	l, s := x.l, x.s
	x.step(exchangeEnd)
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

// lost ends the exchanges that wait for a connection that has ended.
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
	for s.waiting.Len() > 0 {
		all = append(all, s.waiting.Pop())
	}
	for _, x := range s.held {
		// One whose reply is still being sent finds the connection gone.
		if x.now() == exchangeExposed {
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

func (x *exchange) Peer() transport.Peer { return x.l.peer }

func (x *exchange) Disconnect() { x.l.close() }

// MaxResult returns how long an item of the reply may be to travel in a chunk.
func (x *exchange) MaxResult(n int) uint32 {
	if x.readRead() {
		return math.MaxInt32
	}
	if n < 0 || n >= len(x.hdr.Writes) {
		return 0
	}
	return uint32(min(x.hdr.Writes[n].Length(), math.MaxUint32))
}

// Backward returns a Requester for calls in the other direction.
func (x *exchange) Backward() transport.Requester { return backward{x.l} }

// OnClose keeps f for the end of the connection.
func (x *exchange) OnClose(key any, f func()) { x.l.hooks.Set(key, f) }

// Drop gives up the call. Its credit stays in use: the peer waits for a reply.
func (x *exchange) Drop() {
	if _, ok := x.step(exchangeDrop); ok {
		x.end()
	}
}
