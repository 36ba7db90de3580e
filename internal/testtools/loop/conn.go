package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/internal/ring"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// conn is one side of a connection. Locks are taken in the order smu of one
// side, then mu or memMu of either; nobody holds two of the latter.
type conn struct {
	p      *Provider
	peer   *conn
	info   verbs.Info
	params verbs.Params
	dialed bool
	qp     uint32

	smu     sync.Mutex
	sq      ring.Ring[verbs.WorkRequest] // posted, not executed
	number  uint64
	waits   bool      // the head of the queue waits for a receive or a delay
	rnrEnds time.Time // by when the peer has to post a receive
	delayed bool      // the head has had its delay

	mu       sync.Mutex
	filled   sync.Cond
	state    verbs.State
	err      error
	rq       ring.Ring[verbs.RecvRequest]
	cq       ring.Ring[completion]
	inUse    int // places of the send queue
	retiring int // executed since the last completion of the send queue
	drained  chan struct{}

	memMu   sync.RWMutex
	regions map[uint32]*region
	windows int

	wake chan struct{} // Async
}

// completion is a completion with the number of places that it frees in the send queue.
type completion struct {
	verbs.Completion
	retires int
}

func newConn(p *Provider, params verbs.Params, dialed bool) *conn {
	if params.SendDepth <= 0 {
		params.SendDepth = depth
	}
	if params.RecvDepth <= 0 {
		params.RecvDepth = depth
	}
	params.RecvDepth = max(params.RecvDepth, len(params.Recvs))
	c := &conn{
		p: p, params: params, dialed: dialed, state: verbs.StateRTS, qp: p.net.qp.Add(1) & 0xffffff,
		regions: make(map[uint32]*region), wake: make(chan struct{}, 1),
	}
	c.filled.L = &c.mu
	return c
}

func (c *conn) Info() verbs.Info { return c.info }

func (c *conn) State() verbs.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

func (c *conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *conn) Post(wrs ...verbs.WorkRequest) error {
	for i := range wrs {
		if err := c.valid(&wrs[i]); err != nil {
			return err
		}
	}
	c.smu.Lock()
	c.mu.Lock()
	switch {
	case c.state == verbs.StateError:
		err := c.err
		c.mu.Unlock()
		c.smu.Unlock()
		return err
	case c.state == verbs.StateSQD:
		c.mu.Unlock()
		c.smu.Unlock()
		return verbs.ErrDisconnected
	case c.inUse+len(wrs) > c.params.SendDepth:
		c.mu.Unlock()
		c.smu.Unlock()
		return verbs.ErrQueueFull
	}
	c.inUse += len(wrs)
	c.mu.Unlock()
	for i := range wrs {
		c.sq.Push(wrs[i])
	}
	if c.p.opts.Async {
		c.smu.Unlock()
		c.kick()
		return nil
	}
	c.execute()
	return nil
}

func (c *conn) valid(wr *verbs.WorkRequest) error {
	if len(wr.Local) > c.p.opts.MaxSGE {
		return fmt.Errorf("loop: %d slices, at most %d", len(wr.Local), c.p.opts.MaxSGE)
	}
	if size(wr) > maxMessage {
		return fmt.Errorf("loop: %d bytes, at most %d", size(wr), maxMessage)
	}
	switch wr.Op {
	case verbs.OpSend, verbs.OpWrite, verbs.OpRead:
		return nil
	case verbs.OpSendInvalidate:
		if !c.p.opts.NoInvalidate {
			return nil
		}
	case verbs.OpBind, verbs.OpLocalInvalidate:
		if !c.p.opts.NoWindows {
			return nil
		}
	}
	return verbs.ErrUnsupported
}

func size(wr *verbs.WorkRequest) (n int) {
	for _, b := range wr.Local {
		n += len(b)
	}
	return n
}

// kick wakes the goroutine of the connection to look at the send queue.
func (c *conn) kick() {
	if !c.p.opts.Async {
		c.smu.Lock()
		c.execute()
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// work executes work requests of an asynchronous connection until its end.
func (c *conn) work() {
	for range c.wake {
		c.smu.Lock()
		c.execute()
		// In this order: nothing is posted to a connection that has ended.
		ended := c.State() == verbs.StateError
		c.smu.Lock()
		empty := c.sq.Len() == 0
		c.smu.Unlock()
		if ended && empty {
			return
		}
	}
}

// execute executes the requests of the send queue. It unlocks smu.
func (c *conn) execute() {
	kickPeer := false
	for c.sq.Len() > 0 {
		wr := c.sq.Front()
		c.mu.Lock()
		dead := c.state == verbs.StateError
		c.mu.Unlock()
		if dead {
			c.complete(wr, verbs.StatusFlushed)
			c.sq.Pop()
			continue
		}
		f := Fault{}
		if c.p.opts.Fault != nil && !c.delayed && !c.waits {
			f = c.p.opts.Fault(Event{Info: c.info, Dialed: c.dialed, Op: wr.Op, Length: size(wr), Number: c.number})
			c.number++
		}
		if f.Disconnect {
			c.die(verbs.ErrDisconnected)
			c.peer.die(verbs.ErrDisconnected)
			kickPeer = true
			continue
		}
		if f.Delay > 0 {
			c.delayed = true
			time.AfterFunc(f.Delay, c.resume)
			break
		}
		if c.delayed {
			break
		}
		status := f.Status
		if status == verbs.StatusSuccess {
			var wait bool
			if status, wait = c.do(wr); wait {
				break
			}
		}
		c.waits = false
		if status == verbs.StatusSuccess {
			c.complete(wr, status)
		} else {
			c.fail(wr, status)
			kickPeer = true
		}
		c.sq.Pop()
	}
	if c.sq.Len() == 0 { // still with smu: more may be posted behind it, and Disconnect come, before anybody is told
		c.mu.Lock()
		if c.drained != nil {
			close(c.drained)
			c.drained = nil
		}
		c.mu.Unlock()
	}
	c.smu.Unlock()
	if kickPeer {
		c.peer.kick()
	}
}

// resume continues after a delay.
func (c *conn) resume() {
	c.smu.Lock()
	if !c.delayed {
		c.smu.Unlock()
		return
	}
	c.delayed = false
	// The fault was decided; the request itself is executed now.
	if c.sq.Len() > 0 {
		c.waits = true
	}
	c.smu.Unlock()
	c.kick()
}

// do executes one request. wait says that it cannot be executed yet.
func (c *conn) do(wr *verbs.WorkRequest) (status verbs.Status, wait bool) {
	for _, b := range wr.Local {
		if !c.p.owns(b) {
			return verbs.StatusLocalProtection, false
		}
	}
	switch wr.Op {
	case verbs.OpSend, verbs.OpSendInvalidate:
		return c.send(wr)
	case verbs.OpWrite, verbs.OpRead:
		return c.transfer(wr), false
	case verbs.OpLocalInvalidate:
		return c.invalidateWindow(wr.Handle), false
	case verbs.OpBind:
		return c.bind(wr), false
	}
	return verbs.StatusLocalQP, false
}

func (c *conn) send(wr *verbs.WorkRequest) (status verbs.Status, wait bool) {
	p := c.peer
	p.mu.Lock()
	if p.state == verbs.StateError {
		p.mu.Unlock()
		return verbs.StatusRetryExceeded, false
	}
	if p.rq.Len() == 0 {
		p.mu.Unlock()
		return c.notReady()
	}
	c.rnrEnds = time.Time{}
	rr := *p.rq.Front()
	p.rq.Pop()
	n := 0
	for _, b := range wr.Local {
		n += len(b)
	}
	done := verbs.Completion{ID: rr.ID, Op: verbs.OpRecv, Length: uint32(n), Time: time.Now()}
	if n > len(rr.Buffer) {
		done.Status, done.Length = verbs.StatusLocalLength, 0
		p.push(completion{Completion: done})
		p.mu.Unlock()
		return verbs.StatusRemoteInvalid, false
	}
	p.mu.Unlock()
	// The buffer is this request's alone, and nobody else sends to p.
	if wr.Op == verbs.OpSendInvalidate {
		if !p.close(wr.Handle) {
			return verbs.StatusRemoteAccess, false
		}
		done.Invalidated, done.Handle = true, wr.Handle
	}
	at := 0
	for _, b := range wr.Local {
		at += copy(rr.Buffer[at:], b)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state == verbs.StateError {
		// The peer died meanwhile, and all its receives but this one were flushed.
		done.Status, done.Length = verbs.StatusFlushed, 0
	}
	p.push(completion{Completion: done})
	return verbs.StatusSuccess, false
}

// rnrStep is how long one RNR retry waits.
const rnrStep = 10 * time.Millisecond

// notReady says what happens to a Send for which the peer has no receive.
func (c *conn) notReady() (verbs.Status, bool) {
	n := c.params.RNRRetryCount
	if n == 0 {
		return verbs.StatusRNRRetryExceeded, false
	}
	c.waits = true
	if n >= 7 {
		return 0, true
	}
	now := time.Now()
	if c.rnrEnds.IsZero() {
		c.rnrEnds = now.Add(time.Duration(n) * rnrStep)
		time.AfterFunc(time.Until(c.rnrEnds)+time.Millisecond, c.kick)
	}
	if now.After(c.rnrEnds) {
		return verbs.StatusRNRRetryExceeded, false
	}
	return 0, true
}

// complete reports the end of a request, if it has to be reported.
func (c *conn) complete(wr *verbs.WorkRequest, status verbs.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retiring++
	if status == verbs.StatusSuccess && !wr.Signaled {
		if c.state == verbs.StateError {
			c.filled.Broadcast() // it may have been the last
		}
		return
	}
	c.push(completion{verbs.Completion{ID: wr.ID, Op: wr.Op, Status: status, Time: time.Now()}, c.retiring})
	c.retiring = 0
}

// push adds a completion. mu is held.
func (c *conn) push(done completion) {
	c.cq.Push(done)
	c.filled.Signal()
}

// fail completes a request of c that has failed, and ends the connection on both sides. Both know why before either of them can see it and
// close the connection.
func (c *conn) fail(wr *verbs.WorkRequest, status verbs.Status) {
	c.because(&verbs.StatusError{Op: wr.Op, Status: status})
	switch status {
	case verbs.StatusRemoteAccess, verbs.StatusRemoteInvalid, verbs.StatusRemoteOperation:
		c.peer.because(&verbs.StatusError{Op: wr.Op, Status: status, Detail: "the peer's request"})
	default:
		c.peer.because(verbs.ErrDisconnected)
	}
	c.complete(wr, status)
	c.die(nil)
	c.peer.die(nil)
}

// because notes why the connection is about to end.
func (c *conn) because(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
}

// die moves the connection to StateError; err is why, unless that has been noted. The send queue is flushed by the next
// execute.
func (c *conn) die(err error) {
	c.mu.Lock()
	if c.state == verbs.StateError {
		c.mu.Unlock()
		return
	}
	c.state = verbs.StateError
	if c.err == nil {
		c.err = err
	}
	for c.rq.Len() > 0 {
		c.push(completion{Completion: verbs.Completion{ID: c.rq.Front().ID, Op: verbs.OpRecv, Status: verbs.StatusFlushed, Time: time.Now()}})
		c.rq.Pop()
	}
	c.filled.Broadcast()
	c.mu.Unlock()
	c.memMu.Lock()
	clear(c.regions)
	c.memMu.Unlock()
	c.p.mu.Lock()
	delete(c.p.conns, c)
	c.p.mu.Unlock()
}

func (c *conn) PostRecv(wrs ...verbs.RecvRequest) error {
	for i := range wrs {
		if !c.p.owns(wrs[i].Buffer) {
			return errors.New("loop: a receive in memory that is not the provider's")
		}
	}
	c.mu.Lock()
	if c.rq.Len()+len(wrs) > c.params.RecvDepth {
		c.mu.Unlock()
		return verbs.ErrQueueFull
	}
	for i := range wrs {
		if c.state == verbs.StateError {
			c.push(completion{Completion: verbs.Completion{ID: wrs[i].ID, Op: verbs.OpRecv, Status: verbs.StatusFlushed, Time: time.Now()}})
			continue
		}
		c.rq.Push(wrs[i])
	}
	c.mu.Unlock()
	if p := c.peer; p != nil && p.params.RNRRetryCount > 0 {
		p.kick()
	}
	return nil
}

func (c *conn) Poll(out []verbs.Completion) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for n < len(out) && c.cq.Len() > 0 {
		done := c.cq.Front()
		out[n] = done.Completion
		c.inUse -= done.retires
		c.cq.Pop()
		n++
	}
	return n
}

func (c *conn) Wait() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.cq.Len() == 0 {
		if c.state == verbs.StateError && c.inUse-c.retiring <= 0 {
			return c.err
		}
		c.filled.Wait()
	}
	return nil
}

func (c *conn) Disconnect(ctx context.Context) error {
	c.mu.Lock()
	if c.state == verbs.StateError {
		c.mu.Unlock()
		return nil
	}
	c.state = verbs.StateSQD
	if c.drained == nil {
		c.drained = make(chan struct{})
	}
	drained := c.drained
	c.mu.Unlock()
	c.kick()
	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.end()
	return err
}

// end disconnects in order.
func (c *conn) end() {
	c.die(verbs.ErrDisconnected)
	c.peer.die(verbs.ErrDisconnected)
	c.kick()
	c.peer.kick()
	c.mu.Lock()
	c.filled.Broadcast()
	c.mu.Unlock()
}

// Close ends the connection. When it has returned, no request of either side
// uses this side's memory.
func (c *conn) Close() error {
	if c.peer == nil {
		c.die(verbs.ErrDisconnected)
		return nil
	}
	c.end()
	// A request that is being executed sees the end of the connection afterwards.
	c.smu.Lock()
	c.smu.Unlock() //nolint:staticcheck // an empty critical section waits for the one that is under way
	c.peer.smu.Lock()
	c.peer.smu.Unlock() //nolint:staticcheck // as above
	return nil
}
