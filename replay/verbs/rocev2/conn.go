package rocev2

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

var (
	errTooLong  = fmt.Errorf("rocev2: a work request has at most %d bytes", maxMessage)
	errSlices   = fmt.Errorf("rocev2: a work request has at most %d slices", maxSGE)
	errNoReads  = errors.New("rocev2: no RDMA Reads were agreed with the peer")
	errBind     = errors.New("rocev2: a window is bound to one slice")
	errOp       = fmt.Errorf("%w: operation", verbs.ErrUnsupported)
	errTimedOut = errors.New("rocev2: the peer does not answer")
)

// Conn is a queue pair.
type Conn struct {
	s   *socket
	p   *Provider
	qpn uint32

	// Set before the connection is ready.
	peer         netip.AddrPort
	peerQPN      uint32
	local        netip.AddrPort // of the service
	remote       netip.AddrPort
	mtu          uint32
	initDepth    uint8
	respRes      uint8
	rnrRetries   uint8
	retries      uint8
	ackTimeout   time.Duration
	private      []byte
	sendDepth    int32
	recvDepth    int32
	rnrSyndrome  roce.Syndrome
	outbound     icrc
	establishing sync.Once
	established  chan struct{} // closed when RTU, or a packet that implies it, arrives

	sendUsed, recvUsed atomic.Int32 // requests posted and not yet polled
	cq                 completions
	mem                memory

	// mu protects the fields below. It is held during system calls that send.
	mu      sync.Mutex
	cm      *cmID
	state   verbs.State
	err     error
	closed  bool
	pumping bool
	blocked bool // the socket's buffer was full
	drained chan struct{}
	inbound icrc
	requester
	responder
	timer   *time.Timer
	timerAt time.Time // when timer fires; zero if it is not set
}

// newConn returns a queue pair in StateInit. addConn makes it known to the socket.
func newConn(s *socket, p *verbs.Params) (*Conn, error) {
	c := &Conn{
		s: s, p: s.p,
		sendDepth: depth(p.SendDepth), recvDepth: depth(p.RecvDepth),
		rnrRetries: min(p.RNRRetryCount, 7), retries: p.RetryCount,
		rnrSyndrome: rnrSyndrome(s.p.opt.RNRTimer),
		established: make(chan struct{}),
	}
	if c.retries == 0 {
		c.retries = defaultRetries
	}
	c.cq.init()
	c.mem.init(s.p.handles)
	c.timer = time.AfterFunc(time.Hour, c.onTimer)
	c.timer.Stop()
	if err := c.PostRecv(p.Recvs...); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Conn) setCM(id *cmID) {
	c.mu.Lock()
	c.cm = id
	c.mu.Unlock()
}

func depth(n int) int32 {
	if n <= 0 {
		n = defaultQueue
	}
	return int32(min(n, maxQueue))
}

// rnrSyndrome returns the syndrome with the shortest timer that is at least d.
func rnrSyndrome(d time.Duration) roce.Syndrome {
	best := roce.RNR(0) // the longest
	for code := uint8(31); code > 0 && roce.RNR(code).RNRTimer() >= d; code-- {
		best = roce.RNR(code)
	}
	return best
}

// connect makes the queue pair ready to receive and send.
func (c *Conn) connect(peer netip.AddrPort, peerQPN, sendPSN, recvPSN uint32, mtu int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connectLocked(peer, peerQPN, sendPSN, recvPSN, mtu)
}

func (c *Conn) connectLocked(peer netip.AddrPort, peerQPN, sendPSN, recvPSN uint32, mtu int) {
	if c.state != verbs.StateInit {
		return
	}
	c.peer, c.peerQPN, c.mtu = peer, peerQPN, uint32(mtu)
	c.outbound.set(c.s.local, peer)
	c.inbound.set(peer, c.s.local)
	c.requester.start(c, sendPSN)
	c.responder.start(recvPSN, int(c.respRes))
	c.state = verbs.StateRTS
}

func (c *Conn) establish() { c.establishing.Do(func() { close(c.established) }) }

// Info implements verbs.Conn.
func (c *Conn) Info() verbs.Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	detail := "soft"
	if c.s.segmenting.Load() {
		detail += ", segmentation offload"
	}
	return verbs.Info{
		Fabric: "rocev2", Local: c.local, Remote: c.remote, LocalQP: c.qpn, RemoteQP: c.peerQPN, MTU: int(c.mtu),
		ResponderResources: c.respRes, InitiatorDepth: c.initDepth, PrivateData: c.private, Detail: detail,
	}
}

// State implements verbs.Conn.
func (c *Conn) State() verbs.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Err implements verbs.Conn.
func (c *Conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Post implements verbs.Conn.
func (c *Conn) Post(wrs ...verbs.WorkRequest) error {
	for i := range wrs {
		if err := c.valid(&wrs[i]); err != nil {
			return err
		}
	}
	if !reserve(&c.sendUsed, len(wrs), c.sendDepth) {
		return verbs.ErrQueueFull
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != verbs.StateRTS {
		c.sendUsed.Add(-int32(len(wrs)))
		return c.refusal()
	}
	for i := range wrs {
		c.enqueue(&wrs[i])
	}
	c.transmit()
	return nil
}

// refusal returns why nothing can be posted.
func (c *Conn) refusal() error {
	switch {
	case c.closed:
		return verbs.ErrClosed
	case c.err != nil:
		return c.err
	}
	return verbs.ErrDisconnected
}

func (c *Conn) valid(w *verbs.WorkRequest) error {
	if len(w.Local) > maxSGE {
		return errSlices
	}
	n := 0
	for _, b := range w.Local {
		if n += len(b); n > maxMessage {
			return errTooLong
		}
	}
	switch w.Op {
	case verbs.OpSend, verbs.OpSendInvalidate, verbs.OpWrite, verbs.OpLocalInvalidate:
	case verbs.OpRead:
		if c.initDepth == 0 {
			return errNoReads
		}
	case verbs.OpBind:
		if len(w.Local) != 1 {
			return errBind
		}
	default:
		return errOp
	}
	return nil
}

func reserve(used *atomic.Int32, n int, limit int32) bool {
	for {
		v := used.Load()
		if int64(v)+int64(n) > int64(limit) {
			return false
		}
		if used.CompareAndSwap(v, v+int32(n)) {
			return true
		}
	}
}

// PostRecv implements verbs.Conn.
func (c *Conn) PostRecv(wrs ...verbs.RecvRequest) error {
	if !reserve(&c.recvUsed, len(wrs), c.recvDepth) {
		return verbs.ErrQueueFull
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == verbs.StateError {
		c.recvUsed.Add(-int32(len(wrs)))
		return c.refusal()
	}
	for i := range wrs {
		*c.rq.push() = wrs[i]
	}
	return nil
}

// Poll implements verbs.Conn.
func (c *Conn) Poll(out []verbs.Completion) int {
	n, sends, recvs := c.cq.poll(out)
	if sends > 0 {
		c.sendUsed.Add(-int32(sends))
	}
	if recvs > 0 {
		c.recvUsed.Add(-int32(recvs))
	}
	return n
}

// Wait implements verbs.Conn.
func (c *Conn) Wait() error {
	if c.cq.wait() {
		return nil
	}
	return c.Err()
}

// Register implements verbs.Conn.
func (c *Conn) Register(mem []byte, access verbs.Access, offset uint64) (verbs.Region, error) {
	return c.mem.register(mem, access, offset)
}

// Deregister implements verbs.Conn.
func (c *Conn) Deregister(handle uint32) error { return c.mem.deregister(handle) }

// AllocWindow implements verbs.Conn.
func (c *Conn) AllocWindow() (uint32, error) { return c.mem.allocWindow() }

// Disconnect implements verbs.Conn.
func (c *Conn) Disconnect(ctx context.Context) error {
	c.mu.Lock()
	if c.state != verbs.StateRTS {
		err := c.err
		c.mu.Unlock()
		if errors.Is(err, verbs.ErrDisconnected) {
			return nil
		}
		return err
	}
	c.state = verbs.StateSQD
	drained := make(chan struct{})
	if c.sq.len() == 0 {
		close(drained)
	} else {
		c.drained = drained
	}
	id := c.cm
	c.mu.Unlock()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
	}
	gone := c.p.cm.disconnect(id)
	select {
	case <-gone:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.mu.Lock()
	c.fail(verbs.ErrDisconnected)
	if err == nil && !errors.Is(c.err, verbs.ErrDisconnected) {
		err = c.err
	}
	c.mu.Unlock()
	return err
}

// disconnected ends the connection because the peer has asked for it.
func (c *Conn) disconnected() {
	c.establish()
	c.mu.Lock()
	c.fail(verbs.ErrDisconnected)
	c.mu.Unlock()
}

// Close implements verbs.Conn.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.fail(verbs.ErrDisconnected)
	id := c.cm
	c.mu.Unlock()
	c.p.removeConn(c)
	c.mem.end()
	c.p.cm.disconnect(id)
	return nil
}

// fail ends the queue pair: everything that is posted completes as flushed. mu
// is held.
func (c *Conn) fail(err error) { c.failWith(err, verbs.StatusFlushed, verbs.StatusFlushed) }

// failWith is fail with the status of the oldest request of each queue.
func (c *Conn) failWith(err error, send, recv verbs.Status) {
	if c.state == verbs.StateError {
		return
	}
	c.state, c.err = verbs.StateError, err
	now := time.Now()
	if c.timer.Stop() {
		c.timerAt = time.Time{}
	}
	if c.drained != nil {
		close(c.drained)
		c.drained = nil
	}
	for ; c.sq.head != c.sq.tail; c.sq.head++ {
		w := c.sq.at(c.sq.head)
		if w.done {
			if w.signaled {
				c.complete(w, verbs.StatusSuccess, now)
			} else {
				c.sendUsed.Add(-1)
			}
		} else {
			c.complete(w, send, now)
			send = verbs.StatusFlushed
		}
		clear(w.local)
	}
	if c.rx.recv {
		c.rx.recv = false
		c.cq.push(verbs.Completion{ID: c.rx.request.ID, Op: verbs.OpRecv, Status: recv, Time: now})
		c.rx.request = verbs.RecvRequest{}
	}
	for ; c.rq.head != c.rq.tail; c.rq.head++ {
		r := c.rq.at(c.rq.head)
		c.cq.push(verbs.Completion{ID: r.ID, Op: verbs.OpRecv, Status: verbs.StatusFlushed, Time: now})
		*r = verbs.RecvRequest{}
	}
	c.sq, c.rq, c.reads = queue[wqe]{}, queue[verbs.RecvRequest]{}, nil
	c.cq.end()
}

// handle handles a packet. mu is held; the caller calls transmit afterwards.
func (c *Conn) handle(pkt *roce.Packet, now time.Time) {
	if c.state != verbs.StateRTS && c.state != verbs.StateSQD || c.dying {
		c.repeatNAK(pkt)
		return
	}
	c.now = now
	switch op := pkt.Opcode; {
	case op.Service() != roce.ServiceRC:
		return
	case op.IsReadResponse():
		c.onReadResponse(pkt)
	case op == roce.RCAcknowledge:
		c.onAck(pkt)
	case op.IsResponse():
		return
	default:
		c.onRequest(pkt)
	}
	c.establish()
}

// transmitLimit bounds the bytes of Read responses that are sent at a time, so that a long
// Read does not delay other work.
const transmitLimit = 1 << 20

// transmit sends whatever can be sent. mu is held.
func (c *Conn) transmit() {
	if c.state != verbs.StateRTS && c.state != verbs.StateSQD {
		return
	}
	if c.idle() {
		return
	}
	more := false
	if !c.blocked {
		more = c.send()
	}
	if (more || c.blocked) && !c.pumping {
		c.pumping = true
		go c.pump()
	}
	c.arm()
}

// idle reports whether there is nothing to send.
func (c *Conn) idle() bool {
	return c.activeReads == 0 && c.answer == answerNone && c.cur == c.sq.tail
}

// send sends a batch. It reports whether something is left that could have been sent.
func (c *Conn) send() (more bool) {
	b := newBatch(&c.outbound, c.s.segmenting.Load())
	defer b.free()
	if c.activeReads > 0 {
		// Memory stays open until the data read from it have been sent.
		c.mem.mu.RLock()
		for budget := transmitLimit; c.activeReads > 0 && !c.blocked; {
			if budget <= 0 {
				more = true
				break
			}
			c.respond(b, &budget)
			c.flush(b)
		}
		c.mem.mu.RUnlock()
	}
	for !c.blocked {
		full := c.request(b)
		if c.activeReads == 0 {
			c.acknowledge(b) // short, and so part of the same datagram
		}
		c.flush(b)
		if !full {
			break
		}
	}
	if c.dying && c.answer == answerNone {
		c.die()
		return false
	}
	return more
}

// flush sends a batch. Packets that do not fit into the socket's buffer are put back, as
// if they had not been tried.
func (c *Conn) flush(b *batch) {
	if c.state == verbs.StateError {
		b.reset() // the memory does not belong to us any more
	}
	if b.empty() {
		return
	}
	n := c.s.send(b, c.peer)
	if n < len(b.segments) {
		c.blocked = true
		for i := len(b.segments) - 1; i >= n; i-- {
			switch s := &b.segments[i]; s.kind {
			case kindRequest, kindReadRequest:
				c.unsend(s)
			case kindResponse:
				c.unrespond(s)
			case kindAck:
				c.answer, c.answerPSN = answer(s.ref), s.index
			}
		}
	}
	b.reset()
}

// pump sends what transmit has left, until there is nothing left.
func (c *Conn) pump() {
	for {
		c.mu.Lock()
		if c.blocked {
			// The network is slower than we are.
			c.mu.Unlock()
			time.Sleep(200 * time.Microsecond)
			c.mu.Lock()
			c.blocked = false
		}
		if c.state != verbs.StateRTS && c.state != verbs.StateSQD {
			c.pumping = false
			c.mu.Unlock()
			return
		}
		more := c.send()
		c.arm()
		if !more && !c.blocked {
			c.pumping = false
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
	}
}
