package endpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// caller sends calls in one direction: forward on one connection after the
// other, or backward on one.
type caller struct {
	o        *Options
	mem      *memory
	ctr      *counters
	backward bool
	again    bool        // calls survive their connection
	lostLink func(*link) // tells the Requester

	mu       sync.Mutex
	link     *link
	table    map[uint32]*callState
	zombies  map[uint32]*zombie // given up, but the peer has not answered
	queue    ring[*callState]
	inFlight uint32
	granted  uint32
	asked    uint32
	seq      uint64
	nextXID  uint32
	closed   error
	timer    *time.Timer
	armed    time.Time
}

// callPlace says where a call is. caller.mu protects it.
type callPlace uint8

const (
	callIdle callPlace = iota
	callQueued
	callMarshal // a goroutine puts it together
	callSent
	callTaking  // its reply is being handled
	callPulling // Reads of ReadRead are under way
	callClosing // windows are being closed
)

// callState is the endpoint's part of a transport.Call.
type callState struct {
	c      *caller
	call   *transport.Call
	at     callPlace
	link   *link
	seq    uint64
	due    time.Time
	xid    uint32
	giveUp error // it is to end with this as soon as it can

	hdr    rpcrdma.Header
	op     opening
	writes int    // chunks offered for Results
	reply  *block // of the Reply chunk

	pulls  []verbs.WorkRequest
	sgl    [][]byte // of pulls
	blocks []*block // of what was pulled
	used   []int    // bytes in each Write chunk
	items  []transport.Item
	rb     *recvBuf
	err    error
	moved  [2]int // bytes: Reads, Writes

	do   bool
	done chan struct{}
	keep []byte // the reply of Do
}

// zombie is a call that was given up. Its blocks stay as long as the peer may
// still write to them.
type zombie struct{ op opening }

var states = sync.Pool{New: func() any { return &callState{done: make(chan struct{}, 1)} }}

func newCaller(o *Options, mem *memory, ctr *counters) *caller {
	return &caller{
		o: o, mem: mem, ctr: ctr, table: make(map[uint32]*callState), zombies: make(map[uint32]*zombie),
		nextXID: rand.Uint32(),
	}
}

// attach makes l the connection, and sends what waits.
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

// start begins a call.
func (c *caller) start(call *transport.Call, cs *callState) {
	call.Err, call.Reply, call.Times = nil, transport.Message{}, transport.Times{Queued: time.Now()}
	call.Private = cs
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = c.o.Timeout
	}
	cs.c, cs.call, cs.at, cs.link, cs.giveUp, cs.err = c, call, callIdle, nil, nil, nil
	cs.due = call.Times.Queued.Add(timeout)
	c.ctr.calls.Add(1)
	l, err := c.enter(cs)
	if err != nil {
		cs.complete(err)
		return
	}
	if l != nil {
		c.send(l, cs)
		l.flush()
		l.unref()
	}
}

// enter puts a call into the table. If it can be sent at once, it returns the
// connection, with a reference; otherwise the call is in the queue.
func (c *caller) enter(cs *callState) (*link, error) {
	call := cs.call
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
	xid := call.XID
	if xid == 0 {
		for xid == 0 || c.table[xid] != nil || c.zombies[xid] != nil {
			c.nextXID++
			xid = c.nextXID
		}
	} else if c.table[xid] != nil || c.zombies[xid] != nil {
		return nil, fmt.Errorf("%w: %#08x", transport.ErrXID, xid)
	}
	call.XID, cs.xid = xid, xid
	binary.BigEndian.PutUint32(call.Stream, xid)
	c.seq++
	cs.seq = c.seq
	c.table[xid] = cs
	c.arm(cs.due)
	if c.link == nil || c.queue.len() > 0 || c.inFlight >= c.granted {
		cs.at = callQueued
		c.queue.push(cs)
		if c.link != nil {
			c.ctr.creditWaits.Add(1)
		}
		return nil, nil
	}
	return c.take(cs), nil
}

// take gives a call a credit of the connection. c.mu is held.
func (c *caller) take(cs *callState) *link {
	c.inFlight++
	cs.at, cs.link = callMarshal, c.link
	c.link.ref()
	return c.link
}

// pump sends calls of the queue as far as the credits go.
func (c *caller) pump() {
	var last *link
	for {
		c.mu.Lock()
		if c.link == nil || c.inFlight >= c.granted || c.queue.len() == 0 {
			c.mu.Unlock()
			break
		}
		cs := c.queue.pop()
		if cs == nil { // it was given up
			c.mu.Unlock()
			continue
		}
		l := c.take(cs)
		c.mu.Unlock()
		c.send(l, cs)
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

// send puts a call together and queues it on l.
func (c *caller) send(l *link, cs *callState) {
	buf, err := c.marshal(l, cs)
	if err != nil {
		c.unsent(l, cs, nil)
	}
	c.mu.Lock()
	switch {
	case cs.giveUp != nil:
		err = cs.giveUp
	case c.link != l:
		// The connection has ended meanwhile, and lost has left the call alone.
		if c.closed == nil && c.again {
			c.requeue(cs)
			c.mu.Unlock()
			c.unsent(l, cs, buf)
			c.ready(cs)
			c.pump()
			return
		}
		if err = c.closed; err == nil {
			err = disconnected(l)
		}
	case err != nil && l.vc.Err() != nil:
		// It is about to end: lost will come, and find a call without reply.
		cs.at = callSent
		c.mu.Unlock()
		return
	}
	if err != nil {
		if c.link == l {
			c.inFlight--
		}
		delete(c.table, cs.xid)
		cs.at = callIdle
		c.mu.Unlock()
		c.unsent(l, cs, buf)
		cs.complete(err)
		return
	}
	cs.at = callSent
	cs.call.Times.Sent = time.Now()
	cs.op.bound = len(cs.op.binds) > 0
	l.enqueue(work{wrs: cs.op.binds, send: buf.request(0, false), buf: buf})
	c.mu.Unlock()
}

// requeue puts a call back into the queue, but not yet for use: see ready. c.mu
// is held.
func (c *caller) requeue(cs *callState) { cs.at, cs.link = callMarshal, nil }

// ready makes a call of requeue wait for the next connection.
func (c *caller) ready(cs *callState) {
	c.mu.Lock()
	if cs.giveUp != nil || c.closed != nil {
		err := cs.giveUp
		if err == nil {
			err = c.closed
		}
		delete(c.table, cs.xid)
		cs.at = callIdle
		c.mu.Unlock()
		cs.complete(err)
		return
	}
	c.insert(cs)
	c.mu.Unlock()
}

// insert queues a call by the order in which calls were started. c.mu is held.
func (c *caller) insert(cs *callState) {
	cs.at, cs.link = callQueued, nil
	c.queue.push(cs)
	for i := c.queue.len() - 1; i > 0; i-- {
		a, b := c.queue.at(i-1), c.queue.at(i)
		if *a != nil && (*a).seq < (*b).seq {
			break
		}
		*a, *b = *b, *a
	}
}

// unsent closes what marshal has opened for a call that is not sent.
func (c *caller) unsent(l *link, cs *callState, buf *sendBuf) {
	if buf != nil {
		l.freeSend(buf)
	}
	cs.op.bound = false
	l.closeRegions(&cs.op)
	cs.release(l)
}

// release gives back the blocks of a call, which are closed to the peer.
func (cs *callState) release(l *link) {
	l.giveBounces(&cs.op)
	cs.op.reset()
	cs.reply = nil
	for i, b := range cs.blocks {
		l.mem.put(b)
		cs.blocks[i] = nil
	}
	cs.blocks = cs.blocks[:0]
}

// reply handles a message of the peer that is no call.
func (c *caller) reply(l *link, h *rpcrdma.Header, err error, rb *recvBuf, done *verbs.Completion) {
	c.mu.Lock()
	cs := c.table[h.XID]
	version := c.o.version()
	if c.backward {
		version = rpcrdma.Version1
	}
	if cs == nil || cs.at != callSent || cs.link != l || h.Version != version && !(err == nil && h.Type == rpcrdma.TypeError) {
		z := c.zombies[h.XID]
		if z != nil && h.Version == version {
			delete(c.zombies, h.XID)
			c.credits(h, err)
			c.inFlight--
		}
		c.mu.Unlock()
		if z != nil {
			l.giveBounces(&z.op)
			c.pump()
		} else {
			l.ctr.dropped.Add(1)
		}
		l.recycle(rb)
		return
	}
	cs.at = callTaking // nobody else finishes it now
	c.credits(h, err)
	c.mu.Unlock()
	if done.Invalidated {
		cs.op.invalidated(done.Handle)
	}
	cs.call.Times.Replied = done.Time
	if cs.call.Times.Replied.IsZero() {
		cs.call.Times.Replied = time.Now()
	}
	cs.rb = rb
	if err != nil {
		err = fmt.Errorf("%w: %w", transport.ErrBadReply, err)
	} else {
		err = cs.take(l, h)
	}
	if err == nil && len(cs.pulls) > 0 {
		cs.pull(l)
		return
	}
	cs.finish(l, err)
}

// credits takes the grant of a reply. c.mu is held.
func (c *caller) credits(h *rpcrdma.Header, err error) {
	if err != nil && h.Length < 16 || h.Version == rpcrdma.Version0 {
		return
	}
	limit := c.o.MaxCredits
	if c.backward {
		limit = c.o.BackwardCredits
	}
	c.granted = min(max(h.Credits, 1), limit)
}

// finish ends a call whose reply was handled: it closes what is open, and then
// tells the caller.
func (cs *callState) finish(l *link, err error) {
	cs.err = err
	if wrs := l.closeRegions(&cs.op); len(wrs) > 0 {
		cs.move(l, callClosing)
		if l.enqueue(work{wrs: wrs, owner: cs}) {
			l.flush()
			return
		}
	}
	cs.end(l)
}

// move makes a call whose reply is being handled wait for the peer once more,
// unless it has been given up meanwhile.
func (cs *callState) move(l *link, at callPlace) {
	cs.c.mu.Lock()
	cs.at = at
	over := cs.giveUp != nil
	cs.c.mu.Unlock()
	if over {
		l.close()
	}
}

// workDone goes on when Reads of a reply are there, or windows are closed.
func (cs *callState) workDone(ok bool) {
	l := cs.link
	cs.c.mu.Lock()
	at := cs.at
	cs.c.mu.Unlock()
	if !ok {
		return // lost sees to it
	}
	if at == callPulling {
		cs.move(l, callTaking)
		cs.finish(l, cs.pulled(l))
		return
	}
	l.windowsClosed(&cs.op)
	cs.end(l)
}

// end takes a call whose memory is closed out of the table, and tells its
// caller.
func (cs *callState) end(l *link) {
	c, call := cs.c, cs.call
	if cs.err == nil {
		cs.copyOut()
	}
	c.mu.Lock()
	delete(c.table, cs.xid)
	c.inFlight--
	cs.at = callIdle
	c.mu.Unlock()
	rb := cs.rb
	cs.rb = nil
	if cs.err != nil {
		call.Reply = transport.Message{}
	}
	cs.trace(l, cs.err)
	if cs.do {
		cs.keepReply()
		cs.release(l)
		l.recycle(rb)
		cs.complete(cs.err)
	} else {
		// The reply is in memory of the connection while Done runs.
		cs.tell(cs.err)
		cs.release(l)
		l.recycle(rb)
		cs.free()
	}
	c.pump()
}

// complete ends a call that holds nothing of a connection.
func (cs *callState) complete(err error) {
	if cs.do {
		cs.tell(err)
		cs.done <- struct{}{}
		return
	}
	cs.tell(err)
	cs.free()
}

// tell gives the call back to its caller.
func (cs *callState) tell(err error) {
	call := cs.call
	call.Err = err
	if err != nil {
		cs.c.ctr.errors.Add(1)
	} else {
		cs.c.ctr.replies.Add(1)
	}
	if call.Release != nil {
		call.Release()
	}
	if !cs.do {
		call.Private = nil
	}
	if call.Done != nil {
		call.Done(call)
	}
}

func (cs *callState) free() {
	cs.call, cs.c, cs.link = nil, nil, nil
	clear(cs.items)
	states.Put(cs)
}

// keepReply moves the reply to memory of the call, where it stays until the
// next use of the call.
func (cs *callState) keepReply() {
	m := &cs.call.Reply
	n := len(m.Stream)
	results := cs.call.Results
	for i := range m.Items {
		if d := m.Items[i].Data; i >= len(results) || base(d) != base(results[i]) {
			n += len(d)
		}
	}
	if cap(cs.keep) < n {
		cs.keep = make([]byte, 0, n)
	}
	b := append(cs.keep[:0], m.Stream...)
	m.Stream = b[:len(b):len(b)]
	for i := range m.Items {
		if d := m.Items[i].Data; i >= len(results) || base(d) != base(results[i]) {
			at := len(b)
			b = append(b, d...)
			m.Items[i].Data = b[at:len(b):len(b)]
		}
	}
	cs.keep = b
}

// giveUp ends a call because of err, unless it has ended.
func (c *caller) giveUp(cs *callState, xid uint32, err error) {
	c.mu.Lock()
	if c.table[xid] != cs || cs.giveUp != nil {
		c.mu.Unlock()
		return
	}
	l := cs.link
	switch cs.at {
	case callQueued:
		for i := range c.queue.len() {
			if p := c.queue.at(i); *p == cs {
				*p = nil
			}
		}
		delete(c.table, xid)
		cs.at = callIdle
		c.mu.Unlock()
		cs.complete(err)
		return
	case callSent:
		// The memory has to be closed before the call ends. If that cannot be
		// done for the call alone, or if too few credits are left because the
		// peer does not answer, the connection goes.
		if !cs.op.pinned && !cs.op.bound && uint32(len(c.zombies)+1) < max(c.granted, 2) {
			z := &zombie{}
			z.op, cs.op = cs.op, z.op
			delete(c.table, xid)
			c.zombies[xid] = z
			cs.at = callIdle
			l.ref()
			c.mu.Unlock()
			l.closeRegions(&z.op)
			cs.release(l)
			l.unref()
			cs.complete(err)
			return
		}
	}
	cs.giveUp = err
	wait := cs.at == callMarshal || cs.at == callTaking
	c.mu.Unlock()
	if !wait {
		l.close()
	}
}

// lost takes the calls of a connection that has ended.
func (c *caller) lost(l *link) {
	ended := disconnected(l)
	c.mu.Lock()
	if c.link == l {
		c.link = nil
	}
	var failed, again []*callState
	for xid, cs := range c.table {
		if cs.link != l || cs.at == callMarshal {
			continue
		}
		if cs.giveUp != nil || !c.again || c.closed != nil {
			delete(c.table, xid)
			if cs.giveUp == nil {
				cs.giveUp = ended
				if c.closed != nil {
					cs.giveUp = c.closed
				}
			}
			cs.at = callIdle
			failed = append(failed, cs)
			continue
		}
		c.requeue(cs)
		again = append(again, cs)
	}
	if !c.again || c.closed != nil {
		for c.queue.len() > 0 {
			if cs := c.queue.pop(); cs != nil {
				delete(c.table, cs.xid)
				cs.giveUp = ended
				if c.closed != nil {
					cs.giveUp = c.closed
				}
				cs.at = callIdle
				failed = append(failed, cs)
			}
		}
		if c.timer != nil && len(c.table) == 0 {
			c.timer.Stop()
			c.armed = time.Time{}
		}
	}
	zombies := c.zombies
	c.zombies = make(map[uint32]*zombie)
	c.mu.Unlock()
	for _, z := range zombies {
		l.giveBounces(&z.op)
	}
	slices.SortFunc(again, func(a, b *callState) int {
		if a.seq < b.seq {
			return -1
		}
		return 1
	})
	for _, cs := range again {
		cs.rb = nil
		cs.release(l)
		c.ready(cs)
	}
	for _, cs := range failed {
		cs.rb = nil
		cs.release(l)
		cs.trace(l, cs.giveUp)
		cs.complete(cs.giveUp)
	}
	if c.lostLink != nil {
		c.lostLink(l)
	}
}

// end refuses further calls, and ends those that no connection has.
func (c *caller) end(err error) {
	c.mu.Lock()
	if c.closed == nil {
		c.closed = err
	}
	if c.timer != nil {
		c.timer.Stop()
	}
	var failed []*callState
	for c.queue.len() > 0 {
		if cs := c.queue.pop(); cs != nil {
			delete(c.table, cs.xid)
			cs.at = callIdle
			failed = append(failed, cs)
		}
	}
	c.mu.Unlock()
	for _, cs := range failed {
		cs.complete(err)
	}
}

// do is start, and waits.
func (c *caller) do(ctx context.Context, call *transport.Call) error {
	cs, _ := call.Private.(*callState)
	if cs == nil {
		cs = states.Get().(*callState)
	}
	cs.do = true
	c.start(call, cs)
	select {
	case <-cs.done:
	case <-ctx.Done():
		c.giveUp(cs, call.XID, ctx.Err())
		<-cs.done
	}
	return call.Err
}

// arm sees to it that the timer fires at t or before. c.mu is held.
func (c *caller) arm(t time.Time) {
	if !c.armed.IsZero() && !t.Before(c.armed) {
		return
	}
	c.armed = t
	if c.timer == nil {
		c.timer = time.AfterFunc(time.Until(t), c.expire)
		return
	}
	c.timer.Reset(time.Until(t))
}

// expire ends the calls that are due.
func (c *caller) expire() {
	type late struct {
		cs  *callState
		xid uint32
	}
	now := time.Now()
	var all []late
	var next time.Time
	c.mu.Lock()
	c.armed = time.Time{}
	if c.closed != nil {
		c.mu.Unlock()
		return
	}
	for xid, cs := range c.table {
		switch {
		case cs.giveUp != nil:
		case !cs.due.After(now):
			all = append(all, late{cs, xid})
		case next.IsZero() || cs.due.Before(next):
			next = cs.due
		}
	}
	if !next.IsZero() {
		c.arm(next)
	}
	c.mu.Unlock()
	for _, x := range all {
		c.giveUp(x.cs, x.xid, transport.ErrTimeout)
	}
}

func (cs *callState) trace(l *link, err error) {
	if l.o.Trace == nil {
		return
	}
	t := &cs.call.Times
	x := Trace{
		Peer: l.peer, XID: cs.xid, Backward: cs.c.backward, Queued: t.Queued, Sent: t.Sent, Replied: t.Replied, Done: time.Now(),
		ReadBytes: cs.moved[0], WriteBytes: cs.moved[1], Segments: len(cs.op.segments), Err: err,
	}
	l.o.Trace(&x)
}

// disconnected is why calls fail with the connection.
func disconnected(l *link) error {
	if err := l.vc.Err(); err != nil && !errors.Is(err, verbs.ErrDisconnected) {
		return fmt.Errorf("%w: %w", transport.ErrDisconnected, err)
	}
	return transport.ErrDisconnected
}
