package endpoint

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// reply handles a message of the peer that is not a call. It runs on the goroutine
// of the connection, as all of this file does.
func (c *caller) reply(l *link, h *rpcrdma.Header, err error, rb *recvBuf, done *verbs.Completion) {
	c.mu.Lock()
	pc := c.table[h.XID]
	version := c.o.version()
	if c.backward {
		version = rpcrdma.Version1
	}
	// An RDMA_ERROR that can be read counts whatever its version is.
	understood := h.Version == version || err == nil && h.Type == rpcrdma.TypeError
	if pc == nil || pc.link != l || !understood || !c.step(pc, callReply) {
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
	c.credits(h, err)
	c.mu.Unlock()
	if done.Invalidated {
		pc.op.invalidated(done.Handle)
	}
	pc.call.Times.Replied = done.Time
	if pc.call.Times.Replied.IsZero() {
		pc.call.Times.Replied = time.Now()
	}
	pc.rb = rb
	if err != nil {
		err = fmt.Errorf("%w: %w", transport.ErrBadReply, err)
	} else {
		err = pc.take(l, h)
	}
	if err == nil && len(pc.pulls) > 0 {
		pc.pull(l)
		return
	}
	pc.finish(l, err)
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

// pull posts the Reads that the reply asks for. RDMA_DONE follows when they are
// complete, and not behind a fence: that would hold up the Reads of all other
// replies.
func (pc *pendingCall) pull(l *link) {
	pc.move(l, callPull)
	l.enqueue(work{wrs: pc.pulls, owner: pc}) // if the connection is over, lost ends the call
	l.flush()
}

// finish ends a call whose reply was handled: it closes what is open, and then
// tells the owner.
func (pc *pendingCall) finish(l *link, err error) {
	pc.err = err
	if wrs := l.closeRegions(&pc.op); len(wrs) > 0 {
		pc.move(l, callClose)
		if l.enqueue(work{wrs: wrs, owner: pc}) {
			l.flush()
			return
		}
	}
	pc.end(l)
}

// move takes a step with a call whose reply is being handled. If the call has been
// given up meanwhile, it ends the connection: the peer may let us wait forever.
func (pc *pendingCall) move(l *link, e callEvent) {
	pc.c.mu.Lock()
	pc.c.step(pc, e)
	over := pc.giveUp != nil
	pc.c.mu.Unlock()
	if over {
		l.close()
	}
}

// workDone goes on when the Reads of a reply are complete, or windows are closed.
func (pc *pendingCall) workDone(ok bool) {
	if !ok {
		return // lost ends the call
	}
	l := pc.link
	pc.c.mu.Lock()
	state := pc.state
	pc.c.mu.Unlock()
	if state == callPulling {
		pc.move(l, callPulled)
		pc.finish(l, pc.pulled(l))
		return
	}
	l.windowsClosed(&pc.op)
	pc.end(l)
}

// end takes a call whose memory is closed out of the table, and tells its owner.
func (pc *pendingCall) end(l *link) {
	c, call := pc.c, pc.call
	if pc.err == nil {
		pc.copyOut()
	}
	c.mu.Lock()
	c.step(pc, callEnd)
	c.mu.Unlock()
	rb := pc.rb
	pc.rb = nil
	if pc.err != nil {
		call.Reply = transport.Message{}
	}
	pc.trace(l, pc.err)
	if pc.do {
		pc.keepReply()
		pc.release(l)
		l.recycle(rb)
		pc.complete(pc.err)
	} else {
		// The reply is in memory of the connection while Done runs.
		pc.tell(pc.err)
		pc.release(l)
		l.recycle(rb)
		pc.free()
	}
	c.pump()
}
