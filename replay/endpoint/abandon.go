package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/deadline"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// zombie is what an abandoned call leaves behind: a credit that is in use until
// the peer answers, and blocks that the peer may still write to.
type zombie struct{ op opening }

// giveUp ends a call with err, unless it has ended.
func (c *caller) giveUp(pc *pendingCall, xid uint32, err error) {
	c.mu.Lock()
	if c.table[xid] != pc || pc.giveUp != nil {
		c.mu.Unlock()
		return
	}
	l := pc.link
	switch {
	case pc.state == callQueued:
		c.queue.withdraw(pc)
		c.step(pc, callFail)
		if l = nil; errors.Is(err, transport.ErrTimeout) && c.starved() {
			l = c.link
		}
		c.mu.Unlock()
		pc.complete(err)
		if l != nil {
			l.close()
		}
	case pc.state == callSent && c.abandonable(pc):
		c.step(pc, callAbandon)
		z := &zombie{}
		z.op, pc.op = pc.op, z.op
		c.zombies[xid] = z
		l.ref()
		c.mu.Unlock()
		l.closeRegions(&z.op)
		pc.release(l)
		l.unref()
		pc.complete(err)
	case pc.state == callMarshal || pc.state == callRequeued || pc.state == callTaking:
		pc.giveUp = err // seen by whoever has the call now
		c.mu.Unlock()
	default:
		pc.giveUp = err
		c.mu.Unlock()
		l.close() // lost ends the call
	}
}

// abandonable reports whether a call that was sent can end while its connection
// goes on. Its memory has to be closed first. If that cannot be done for the call
// alone, or if too few credits would be left because the peer does not answer, the
// connection has to end. c.mu is held.
func (c *caller) abandonable(pc *pendingCall) bool {
	return !pc.op.pinned && !pc.op.bound && uint32(len(c.zombies)+1) < max(c.granted, 2)
}

// starved reports whether calls wait for credits that only calls without an answer have: the peer grants fewer than when
// these were given up. c.mu is held.
func (c *caller) starved() bool {
	return c.link != nil && c.inFlight >= c.granted && c.inFlight == uint32(len(c.zombies))
}

// expire ends the calls that are due.
func (c *caller) expire() {
	type late struct {
		pc  *pendingCall
		xid uint32
	}
	var all []late
	c.mu.Lock()
	if c.closed != nil {
		c.mu.Unlock()
		return
	}
	deadline.Sweep(c.timer, c.table, time.Now(), (*pendingCall).deadline, func(xid uint32, pc *pendingCall) {
		all = append(all, late{pc, xid})
	})
	c.mu.Unlock()
	for _, x := range all {
		c.giveUp(x.pc, x.xid, transport.ErrTimeout)
	}
}

// deadline is when the call is to be given up; zero if it has been.
func (pc *pendingCall) deadline() time.Time {
	if pc.giveUp != nil {
		return time.Time{}
	}
	return pc.due
}

// lost takes the calls of a connection that has ended.
func (c *caller) lost(l *link) {
	ended := disconnected(l)
	c.mu.Lock()
	if c.link == l {
		c.link = nil
	}
	if c.closed != nil {
		ended = c.closed
	}
	resend := c.again && c.closed == nil
	var failed, again []*pendingCall
	fail := func(pc *pendingCall) {
		if pc.giveUp == nil {
			pc.giveUp = ended
		}
		failed = append(failed, pc)
	}
	for _, pc := range c.table {
		switch {
		case pc.link != l || pc.state == callMarshal: // send sees that the connection is gone
		case resend && pc.giveUp == nil:
			if c.step(pc, callResend) {
				again = append(again, pc)
			}
		case c.step(pc, callFail):
			fail(pc)
		}
	}
	if !resend {
		for _, pc := range c.queue.drain() {
			c.step(pc, callFail)
			fail(pc)
		}
		if len(c.table) == 0 {
			c.timer.Stop()
		}
	}
	zombies := c.zombies
	c.zombies = make(map[uint32]*zombie)
	c.mu.Unlock()
	for _, z := range zombies {
		l.giveBounces(&z.op)
	}
	slices.SortFunc(again, func(a, b *pendingCall) int { return cmp.Compare(a.seq, b.seq) })
	for _, pc := range again {
		pc.rb = nil
		pc.release(l)
		c.ready(pc)
	}
	for _, pc := range failed {
		pc.rb = nil
		pc.release(l)
		pc.trace(l, pc.giveUp)
		pc.complete(pc.giveUp)
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
	c.timer.Stop()
	failed := c.queue.drain()
	for _, pc := range failed {
		c.step(pc, callFail)
	}
	c.mu.Unlock()
	for _, pc := range failed {
		pc.complete(err)
	}
}

// disconnected is why calls fail with the connection.
func disconnected(l *link) error {
	if err := l.vc.Err(); err != nil && !errors.Is(err, verbs.ErrDisconnected) {
		return fmt.Errorf("%w: %w", transport.ErrDisconnected, err)
	}
	return transport.ErrDisconnected
}
