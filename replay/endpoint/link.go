package endpoint

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// link is one connection: its queues, its buffers, and its goroutine.
type link struct {
	vc     verbs.Conn
	o      *Options
	mem    *memory
	ctr    *counters
	peer   transport.Peer
	dialed bool

	inlineSend, inlineReceive int
	// invalidate says that our Sends may invalidate handles of the peer.
	invalidate bool
	readDepth  uint8

	// acct is that of a Responder's connection, nil of others.
	acct *budget.Account
	// stranger: no call has come yet, and few receives are posted.
	stranger bool
	// owing is how many exchanges wait for the peer to take or give something,
	// taken how often it has. Overdue compares them.
	owing     atomic.Int32
	taken     atomic.Uint64
	seenTaken uint64
	seenTime  time.Time

	calls *caller // ours: forward of who dialed, backward of who accepted
	serve *server // answers the peer's

	mu       sync.Mutex
	idle     sync.Cond // flushing has ended
	queue    ring[work]
	room     int // in the send queue
	depth    int
	silent   int // requests since the last that was signaled
	seq      uint64
	posted   ring[entry]
	corked   bool
	flushing bool
	dead     bool
	sendFree []*sendBuf
	sendAll  int
	recvs    []*recvBuf
	repost   []verbs.RecvRequest
	wrs      []verbs.WorkRequest // of flush
	again    []verbs.RecvRequest // of flush
	slabs    [][]byte
	slabbed  int64 // bytes of slabs
	maxSends int

	regMu   sync.Mutex
	regions map[uint64]verbs.Region // of allocations
	blocks  [32][]*block            // registered once
	kept    int
	windows []uint32 // free: the handle that each had last
	noAddr  atomic.Bool

	refs atomic.Int32

	hdr rpcrdma.Header // of the goroutine

	closeMu sync.Mutex
	onClose map[any]func()
	hooked  bool // what was in onClose has been called
	up      bool // vc is set
	evicted bool
}

// work is what is posted in order, all of it: wrs, then send if buf is set. It
// is copied; wrs belong to their owner until workDone.
type work struct {
	wrs   []verbs.WorkRequest
	send  verbs.WorkRequest
	buf   *sendBuf
	owner owner
}

// owner is told when its work is complete, or lost with the connection.
type owner interface{ workDone(ok bool) }

// entry is a work, or the beginning of one, that is posted.
type entry struct {
	seq   uint64
	n     int // requests
	buf   *sendBuf
	owner owner
}

// sendBuf is memory for one Send.
type sendBuf struct {
	b   []byte
	sgl [1][]byte
}

// recvBuf is memory for one receive.
type recvBuf struct {
	id int
	b  []byte
}

const (
	batchSize  = 64
	flushEvery = 16 // receives handled before what they caused is posted
)

// newLink prepares a connection; start makes it run. recvs are the receives
// that were posted with the connection.
func newLink(o *Options, mem *memory, ctr *counters, dialed bool) *link {
	l := &link{o: o, mem: mem, ctr: ctr, dialed: dialed, depth: o.SendDepth, room: o.SendDepth, regions: make(map[uint64]verbs.Region)}
	l.idle.L = &l.mu
	l.refs.Store(1)
	l.readDepth = uint8(min(o.ReadDepth, max(mem.caps.MaxReads, 1), 255))
	l.maxSends = int(o.MaxCredits+o.BackwardCredits)*2 + 64
	mem.hold()
	return l
}

// receives is how many are posted.
func (l *link) receives() int {
	n := int(l.o.MaxCredits)
	if !l.dialed && l.o.Policy == CreditsDynamic {
		n = int(min(l.o.Credits, l.o.MaxCredits))
	}
	return n + l.extraReceives()
}

// extraReceives are those that are not for the credits that are granted: for
// the other direction, for RDMA_DONE, and a few for what is being handled.
func (l *link) extraReceives() int {
	n := int(l.o.BackwardCredits) + 8
	if !l.dialed && (l.o.Model == ReadRead || l.o.Dialect != rpcrdma.DialectNone) {
		n += int(l.o.MaxCredits)
	}
	return n
}

// params are those of the connection to be, with its receives.
func (l *link) params() (verbs.Params, error) {
	n := l.receives()
	if !l.dialed {
		n = min(n, strangerReceives)
	}
	recvs, err := l.addReceives(n)
	if err != nil {
		return verbs.Params{}, err
	}
	p := l.terms()
	p.Recvs = recvs
	return p, nil
}

// strangerReceives is how many receives a peer finds that has not sent a call yet.
// It may send one before it has seen a grant (RFC 8166, section 3.3.1); some send a
// few. The others are posted with that first call, before its reply goes out.
const strangerReceives = 16

// terms are the parameters without receives.
func (l *link) terms() verbs.Params {
	return verbs.Params{
		PrivateData:        l.o.private(remoteCaps{l.invalidates()}),
		ResponderResources: l.readDepth, InitiatorDepth: l.readDepth,
		SendDepth: l.depth, RecvDepth: int(l.o.MaxCredits) + l.extraReceives(),
		RetryCount: l.o.RetryCount, RNRRetryCount: l.o.RNRRetryCount,
	}
}

// welcome posts the receives that the first call of a peer has earned.
func (l *link) welcome() {
	l.stranger = false
	l.acct.Proven()
	l.mu.Lock()
	l.slabbed += int64(l.mem.caps.Buffers)
	l.acct.Add(int64(l.mem.caps.Buffers))
	var more []verbs.RecvRequest
	var err error
	if n := l.receives() - len(l.recvs); n > 0 {
		more, err = l.addReceives(n)
		l.repost = append(l.repost, more...)
	}
	l.mu.Unlock()
	if err != nil {
		l.close()
	}
}

// evict ends a connection for the budget. It does not wait.
func (l *link) evict(error) {
	l.closeMu.Lock()
	l.evicted = true
	up := l.up
	l.closeMu.Unlock()
	if up {
		go l.close()
	}
}

// overdue is the check of a Responder's connection.
func (l *link) overdue(now time.Time) error {
	n := l.taken.Load()
	if l.owing.Load() == 0 || n != l.seenTaken || l.seenTime.IsZero() {
		l.seenTaken, l.seenTime = n, now
		return nil
	}
	if now.Sub(l.seenTime) >= l.o.PeerTimeout {
		return budget.ErrUnread
	}
	return nil
}

// addReceives makes n more receive buffers.
func (l *link) addReceives(n int) ([]verbs.RecvRequest, error) {
	size := l.o.InlineReceive
	slab, err := l.mem.p.Alloc(n * size)
	if err != nil {
		return nil, err
	}
	l.slab(slab)
	out := make([]verbs.RecvRequest, n)
	for i := range out {
		rb := &recvBuf{id: len(l.recvs), b: slab[i*size : (i+1)*size : (i+1)*size]}
		l.recvs = append(l.recvs, rb)
		out[i] = verbs.RecvRequest{ID: uint64(rb.id), Buffer: rb.b}
	}
	return out, nil
}

// slab keeps memory until the end of the connection.
func (l *link) slab(b []byte) {
	l.slabs = append(l.slabs, b)
	l.slabbed += int64(len(b))
	l.acct.Add(int64(len(b)))
}

// invalidates reports whether we can do our part of remote invalidation: as a
// Responder close the peer's handles, as a Requester have ours closed.
func (l *link) invalidates() bool {
	c := &l.mem.caps
	if !l.dialed {
		return c.SendInvalidate
	}
	return c.SendInvalidate && (c.Invalidates == verbs.InvalidatesAll || c.Invalidates == verbs.InvalidatesWindows && l.o.Registration == Windows)
}

// established takes over the connection and what the peer has said of itself.
func (l *link) established(vc verbs.Conn) {
	l.vc = vc
	l.closeMu.Lock()
	l.up = true
	evicted := l.evicted
	l.closeMu.Unlock()
	if evicted {
		go l.close()
	}
	info := vc.Info()
	own := l.o.own(remoteCaps{l.invalidates()})
	var theirs rdma.PrivateData
	theirs.Decode(info.PrivateData)
	l.inlineSend = min(int(rdma.InlineThreshold(&own, &theirs)), l.o.InlineSend)
	l.inlineReceive = min(int(rdma.InlineThreshold(&theirs, &own)), l.o.InlineReceive)
	// Both have to say that they can (RFC 8797, section 4.1).
	l.invalidate = own.RemoteInvalidate && theirs.RemoteInvalidate
	l.peer = transport.Peer{
		Transport: l.mem.p.Name(), Local: info.Local, Remote: info.Remote,
		Detail: info.Detail, ID: transport.NextID(),
	}
}

// sendBuffer returns memory for one Send; nil if the connection has ended or
// too many are under way.
func (l *link) sendBuffer() *sendBuf {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return nil
	}
	if n := len(l.sendFree); n > 0 {
		b := l.sendFree[n-1]
		l.sendFree = l.sendFree[:n-1]
		return b
	}
	if l.sendAll >= l.maxSends {
		return nil
	}
	const n = 16
	size := l.inlineSend
	slab, err := l.mem.p.Alloc(n * size)
	if err != nil {
		return nil
	}
	l.slab(slab)
	l.sendAll += n
	bufs := make([]sendBuf, n)
	for i := range bufs {
		bufs[i].b = slab[i*size : i*size : (i+1)*size]
		l.sendFree = append(l.sendFree, &bufs[i])
	}
	b := l.sendFree[len(l.sendFree)-1]
	l.sendFree = l.sendFree[:len(l.sendFree)-1]
	return b
}

func (l *link) freeSend(b *sendBuf) {
	l.mu.Lock()
	l.sendFree = append(l.sendFree, b)
	l.mu.Unlock()
}

// sendOf is the Send of a buffer.
func (b *sendBuf) request(invalidate uint32, with bool) verbs.WorkRequest {
	b.sgl[0] = b.b
	wr := verbs.WorkRequest{Op: verbs.OpSend, Local: b.sgl[:]}
	if with {
		wr.Op, wr.Handle = verbs.OpSendInvalidate, invalidate
	}
	return wr
}

// enqueue adds work to the send queue. It reports false, and has taken
// nothing, if the connection has ended. flush posts it.
func (l *link) enqueue(w work) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dead {
		return false
	}
	l.queue.push(w)
	return true
}

// recycle posts a receive again, with the next flush.
func (l *link) recycle(rb *recvBuf) {
	l.mu.Lock()
	l.repost = append(l.repost, verbs.RecvRequest{ID: uint64(rb.id), Buffer: rb.b})
	l.mu.Unlock()
}

// flush posts what is queued, unless the goroutine of the connection or
// another one is about to do it.
func (l *link) flush() {
	l.mu.Lock()
	if l.corked || l.flushing || l.dead {
		l.mu.Unlock()
		return
	}
	l.flushLocked()
	l.mu.Unlock()
}

func (l *link) flushLocked() {
	l.flushing = true
	for !l.dead {
		l.again = append(l.again[:0], l.repost...)
		l.repost = l.repost[:0]
		l.gather()
		if len(l.again) == 0 && len(l.wrs) == 0 {
			break
		}
		l.mu.Unlock()
		var err error
		if len(l.again) > 0 {
			err = l.vc.PostRecv(l.again...)
		}
		if len(l.wrs) > 0 && err == nil {
			err = l.vc.Post(l.wrs...)
		}
		if err != nil && l.vc.Err() == nil {
			// It cannot be: the queues are as deep as was asked for. Without
			// the requests the connection is of no use.
			_ = l.vc.Close()
		}
		l.mu.Lock()
		if err != nil {
			break
		}
	}
	l.flushing = false
	l.idle.Broadcast()
}

// gather moves what fits into the send queue to l.wrs. l.mu is held.
func (l *link) gather() {
	l.wrs = l.wrs[:0]
	for l.queue.len() > 0 && l.room > 0 && len(l.wrs) < batchSize {
		w := l.queue.front()
		n := min(len(w.wrs), l.room)
		at := len(l.wrs)
		l.wrs = append(l.wrs, w.wrs[:n]...)
		w.wrs = w.wrs[n:]
		e := entry{n: n}
		whole := len(w.wrs) == 0 && (w.buf == nil || n < l.room)
		if whole {
			if w.buf != nil {
				l.wrs = append(l.wrs, w.send)
				e.n++
			}
			e.buf, e.owner = w.buf, w.owner
			l.queue.pop()
		}
		if e.n == 0 {
			if e.owner != nil { // no request at all: cannot be, but must not be lost
				l.posted.push(entry{seq: l.seq, owner: e.owner})
			}
			continue
		}
		l.seq++
		e.seq = l.seq
		l.room -= e.n
		l.silent += e.n
		last := &l.wrs[len(l.wrs)-1]
		for i := at; i < len(l.wrs); i++ {
			l.wrs[i].ID, l.wrs[i].Signaled = l.seq, false
		}
		if e.owner != nil || l.silent >= l.depth/4 || !whole {
			last.Signaled = true
			l.silent = 0
		}
		l.posted.push(e)
		if !whole {
			break
		}
	}
	// With the queue full and nothing signaled it would stay so.
	if l.room == 0 && len(l.wrs) > 0 && l.silent > 0 {
		l.wrs[len(l.wrs)-1].Signaled = true
		l.silent = 0
	}
	for i := range l.wrs {
		l.count(&l.wrs[i])
	}
}

func (l *link) count(wr *verbs.WorkRequest) {
	switch wr.Op {
	case verbs.OpSend, verbs.OpSendInvalidate:
		l.ctr.sends.Add(1)
	case verbs.OpRead:
		l.ctr.reads.Add(1)
		l.ctr.readBytes.Add(uint64(len(wr.Local[0])))
	case verbs.OpWrite:
		l.ctr.writes.Add(1)
		l.ctr.writeBytes.Add(uint64(len(wr.Local[0])))
	}
}

// retire takes back what is complete up to seq.
func (l *link) retire(seq uint64) {
	for {
		l.mu.Lock()
		if l.posted.len() == 0 || l.posted.front().seq > seq {
			l.mu.Unlock()
			return
		}
		var owner owner
		for owner == nil && l.posted.len() > 0 && l.posted.front().seq <= seq {
			e := l.posted.pop()
			l.room += e.n
			if e.buf != nil {
				l.sendFree = append(l.sendFree, e.buf)
			}
			owner = e.owner
		}
		l.mu.Unlock()
		if owner != nil {
			owner.workDone(true)
		}
	}
}

// run serves the connection until its end.
func (l *link) run() {
	var batch [batchSize]verbs.Completion
	handled := 0
	for l.vc.Wait() == nil {
		l.mu.Lock()
		l.corked = true
		l.mu.Unlock()
		for {
			n := l.vc.Poll(batch[:])
			if n == 0 {
				break
			}
			for i := range batch[:n] {
				c := &batch[i]
				switch {
				case c.Status != verbs.StatusSuccess:
					// The connection is over; Wait will say so.
				case c.Op != verbs.OpRecv:
					l.retire(c.ID)
				default:
					l.ctr.receives.Add(1)
					l.received(c)
					if handled++; handled%flushEvery == 0 {
						l.post()
					}
				}
			}
			l.post()
		}
		l.mu.Lock()
		l.corked = false
		l.mu.Unlock()
		l.flush()
	}
	l.teardown()
}

// post is flush for the goroutine of the connection while it holds the others
// back.
func (l *link) post() {
	l.mu.Lock()
	if !l.flushing && !l.dead {
		l.flushLocked()
	}
	l.mu.Unlock()
}

// received handles a message.
func (l *link) received(c *verbs.Completion) {
	l.mu.Lock()
	rb := l.recvs[c.ID]
	l.mu.Unlock()
	if l.stranger {
		l.welcome()
	}
	if l.owing.Load() == 0 {
		l.acct.Progress() // else it is what the peer takes that counts
	}
	n := min(int(c.Length), len(rb.b))
	h := &l.hdr
	err := h.Decode(rb.b[:n], n)
	if n < 8 {
		l.ctr.dropped.Add(1)
		l.recycle(rb) // not even an XID and a version
		return
	}
	var reply bool
	if l.dialed {
		reply = err != nil || !isCall(h)
	} else {
		reply = err == nil && (h.Type == rpcrdma.TypeError || isReply(h))
	}
	if reply {
		l.calls.reply(l, h, err, rb, c)
		return
	}
	l.serve.call(l, h, err, rb, c)
}

// isCall and isReply tell by the RPC message, which has to be inline, what a
// message is that may be either (RFC 8167, section 4).
func isCall(h *rpcrdma.Header) bool  { return direction(h) == uint32(oncrpc.TypeCall) }
func isReply(h *rpcrdma.Header) bool { return direction(h) == uint32(oncrpc.TypeReply) }

func direction(h *rpcrdma.Header) uint32 {
	if !h.Inline() || len(h.Payload) < 8 {
		return ^uint32(0)
	}
	return binary.BigEndian.Uint32(h.Payload[4:])
}

// ref keeps the buffers of the connection until unref.
func (l *link) ref() { l.refs.Add(1) }

func (l *link) unref() {
	if l.refs.Add(-1) != 0 {
		return
	}
	l.mu.Lock()
	slabs := l.slabs
	l.slabs = nil
	l.mu.Unlock()
	for _, s := range slabs {
		l.mem.p.Free(s)
	}
	l.acct.Add(-l.slabbed)
	l.mem.release()
}

// close ends the connection; run does the rest.
func (l *link) close() { _ = l.vc.Close() }

// shut ends the connection in order.
func (l *link) shut() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.vc.Disconnect(ctx)
	_ = l.vc.Close()
}

// teardown gives back what the connection held, after its end.
func (l *link) teardown() {
	_ = l.vc.Close()
	l.mu.Lock()
	l.dead = true
	for l.flushing {
		l.idle.Wait()
	}
	owners := make([]owner, 0, l.posted.len()+l.queue.len())
	for l.posted.len() > 0 {
		if e := l.posted.pop(); e.owner != nil {
			owners = append(owners, e.owner)
		}
	}
	for l.queue.len() > 0 {
		if w := l.queue.pop(); w.owner != nil {
			owners = append(owners, w.owner)
		}
	}
	l.mu.Unlock()
	for _, o := range owners {
		o.workDone(false)
	}
	l.serve.lost(l)
	l.calls.lost(l)
	l.regMu.Lock()
	var blocks []*block
	for i := range l.blocks {
		blocks = append(blocks, l.blocks[i]...)
		l.blocks[i] = nil
	}
	l.regMu.Unlock()
	for _, b := range blocks {
		l.mem.put(b)
	}
	l.closeMu.Lock()
	hooks := l.onClose
	l.onClose, l.hooked = nil, true
	l.closeMu.Unlock()
	for _, f := range hooks {
		f()
	}
	l.unref()
}

func (l *link) isDead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dead
}

// setOnClose keeps f for the end of the connection, or calls it if that has
// come.
func (l *link) setOnClose(key any, f func()) {
	l.closeMu.Lock()
	over := l.hooked
	if !over {
		if l.onClose == nil {
			l.onClose = make(map[any]func())
		}
		l.onClose[key] = f
	}
	l.closeMu.Unlock()
	if over {
		f()
	}
}
