package endpoint

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/ring"
	"github.com/rpcrdma/toolkit/replay/internal/deadline"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// caller sends calls in one direction: forward on one connection after the
// other, or backward on one.
//
// This file has the way of a call up to its Send. finish.go has the way from the
// reply to the end, abandon.go every other end, callstate.go the states between.
type caller struct {
	o        *Options
	ctr      *counters
	backward bool
	again    bool        // calls survive their connection
	lostLink func(*link) // tells the Requester

	mu       sync.Mutex
	link     *link // nil: there is no connection
	table    map[uint32]*pendingCall
	zombies  map[uint32]*zombie // calls that have ended without an answer
	queue    callQueue
	inFlight uint32 // credits in use
	granted  uint32
	asked    uint32
	seq      uint64
	nextXID  uint32
	closed   error // why no further calls are taken
	timer    *deadline.Timer
}

func newCaller(o *Options, ctr *counters) *caller {
	c := &caller{
		o: o, ctr: ctr, table: make(map[uint32]*pendingCall), zombies: make(map[uint32]*zombie),
		nextXID: rand.Uint32(),
	}
	c.timer = deadline.New(c.expire)
	return c
}

// attach makes l the connection, and sends the calls that wait.
func (c *caller) attach(l *link) {
	c.mu.Lock()
	c.link, c.inFlight = l, 0
	c.granted = 1
	if c.o.Dialect != rpcrdma.DialectNone && !c.backward {
		c.granted = c.o.Credits // version 0 has no credits to wait for
	}
	clear(c.zombies)
	c.mu.Unlock()
	c.pump()
}

// startCall begins a call. Done tells its end.
func (c *caller) startCall(call *transport.Call) {
	pc := pendingCalls.Get().(*pendingCall)
	pc.do = false
	c.start(call, pc)
}

// do makes a call and waits for its end.
func (c *caller) do(ctx context.Context, call *transport.Call) error {
	pc, _ := call.Private.(*pendingCall)
	if pc == nil {
		pc = pendingCalls.Get().(*pendingCall)
	}
	pc.do = true
	c.start(call, pc)
	select {
	case <-pc.done:
	case <-ctx.Done():
		c.giveUp(pc, call.XID, ctx.Err())
		<-pc.done
	}
	return call.Err
}

func (c *caller) start(call *transport.Call, pc *pendingCall) {
	pc.reset(c, call)
	c.ctr.calls.Add(1)
	l, err := c.enter(pc)
	if err != nil {
		pc.complete(err)
		return
	}
	if l != nil {
		c.send(l, pc)
		l.flush()
		l.unref()
	}
}

// enter puts a call into the table. If it can be sent at once, enter returns the
// connection, with a reference; otherwise the call is in the queue.
func (c *caller) enter(pc *pendingCall) (*link, error) {
	call := pc.call
	if len(call.Stream) < 8 {
		return nil, transport.ErrMessage
	}
	if call.Size() > 1<<30 || call.MaxReply < 0 || call.MaxReply > 1<<30 {
		return nil, transport.ErrTooLong
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed != nil {
		return nil, c.closed
	}
	if c.link == nil && !c.again {
		return nil, transport.ErrDisconnected
	}
	xid, err := c.pickXID(call.XID)
	if err != nil {
		return nil, err
	}
	call.XID, pc.xid = xid, xid
	binary.BigEndian.PutUint32(call.Stream, xid)
	c.seq++
	pc.seq = c.seq
	c.table[xid] = pc
	c.timer.Arm(pc.due)
	if c.link == nil || c.queue.Len() > 0 || c.inFlight >= c.granted {
		c.step(pc, callWait)
		c.queue.Push(pc)
		if c.link != nil {
			c.ctr.creditWaits.Add(1)
		}
		return nil, nil
	}
	return c.take(pc), nil
}

// pickXID returns the XID that was asked for, or a free one for 0. c.mu is held.
func (c *caller) pickXID(xid uint32) (uint32, error) {
	used := func() bool { return c.table[xid] != nil || c.zombies[xid] != nil }
	if xid != 0 {
		if used() {
			return 0, fmt.Errorf("%w: %#08x", transport.ErrXID, xid)
		}
		return xid, nil
	}
	for xid == 0 || used() {
		c.nextXID++
		xid = c.nextXID
	}
	return xid, nil
}

// take gives a call a credit of the connection, which it returns with a
// reference. c.mu is held.
func (c *caller) take(pc *pendingCall) *link {
	c.step(pc, callCredit)
	c.link.ref()
	return c.link
}

// pump sends calls of the queue as far as the credits go.
func (c *caller) pump() {
	var last *link
	for {
		c.mu.Lock()
		if c.link == nil || c.inFlight >= c.granted || c.queue.Len() == 0 {
			c.mu.Unlock()
			break
		}
		pc := c.queue.Pop()
		if pc == nil { // it was withdrawn
			c.mu.Unlock()
			continue
		}
		l := c.take(pc)
		c.mu.Unlock()
		c.send(l, pc)
		if last != nil {
			last.unref()
		}
		last = l
	}
	if last != nil {
		last.flush()
		last.unref()
	}
}

// send encodes a call and queues it on l.
func (c *caller) send(l *link, pc *pendingCall) {
	if pc.sent && pc.call.Again != nil {
		pc.call.Again(pc.call)
	}
	buf, err := c.marshal(l, pc)
	if err != nil {
		c.unsent(l, pc, nil)
	}
	c.mu.Lock()
	switch {
	case pc.giveUp != nil:
		err = pc.giveUp
	case c.link != l:
		// The connection has ended meanwhile, and lost has left the call alone.
		if c.closed == nil && c.again {
			c.step(pc, callResend)
			c.mu.Unlock()
			c.unsent(l, pc, buf)
			c.ready(pc)
			c.pump()
			return
		}
		if err = c.closed; err == nil {
			err = disconnected(l)
		}
	case err != nil && l.vc.Err() != nil:
		// The connection is about to end. lost ends the call as one that was
		// sent, or sends it again.
		c.step(pc, callSend)
		c.mu.Unlock()
		return
	}
	if err != nil {
		c.step(pc, callFail)
		c.mu.Unlock()
		c.unsent(l, pc, buf)
		pc.complete(err)
		return
	}
	c.step(pc, callSend)
	pc.sent = true
	pc.call.Times.Sent = time.Now()
	pc.op.bound = len(pc.op.binds) > 0
	l.enqueue(work{wrs: pc.op.binds, send: buf.request(0, false), buf: buf})
	c.mu.Unlock()
}

// unsent closes what marshal has opened for a call that is not sent.
func (c *caller) unsent(l *link, pc *pendingCall, buf *sendBuf) {
	if buf != nil {
		l.freeSend(buf)
	}
	pc.op.bound = false
	l.closeRegions(&pc.op)
	pc.release(l)
}

// ready makes a requeued call, which holds nothing any more, wait for the next
// connection.
func (c *caller) ready(pc *pendingCall) {
	c.mu.Lock()
	if err := pc.giveUp; err != nil || c.closed != nil {
		if err == nil {
			err = c.closed
		}
		c.step(pc, callFail)
		c.mu.Unlock()
		pc.complete(err)
		return
	}
	c.step(pc, callWait)
	c.queue.insert(pc)
	c.mu.Unlock()
}

func (c *caller) stats() transport.Stats {
	s := c.ctr.stats()
	c.mu.Lock()
	s.CreditsHeld, s.CreditsAsked = c.granted, c.o.Credits
	if c.o.Policy == CreditsDynamic {
		s.CreditsAsked = c.asked
	}
	if c.backward {
		s.CreditsAsked = c.o.BackwardCredits
	}
	c.mu.Unlock()
	return s
}

// callQueue holds the calls that wait, in the order in which they were started.
// One that was withdrawn leaves a nil.
type callQueue struct{ ring.Ring[*pendingCall] }

// insert queues a call that was started before others that wait already.
func (q *callQueue) insert(pc *pendingCall) {
	q.Push(pc)
	for i := q.Len() - 1; i > 0; i-- {
		a, b := q.At(i-1), q.At(i)
		if *a != nil && (*a).seq < (*b).seq {
			break
		}
		*a, *b = *b, *a
	}
}

// withdraw takes a call out.
func (q *callQueue) withdraw(pc *pendingCall) {
	for i := range q.Len() {
		if p := q.At(i); *p == pc {
			*p = nil
		}
	}
}

// drain empties the queue.
func (q *callQueue) drain() []*pendingCall {
	var all []*pendingCall
	for q.Len() > 0 {
		if pc := q.Pop(); pc != nil {
			all = append(all, pc)
		}
	}
	return all
}
