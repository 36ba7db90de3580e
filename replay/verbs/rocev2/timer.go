package rocev2

import (
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// rto returns how long to wait for an answer before packets are retransmitted. It is
// shorter than the negotiated ACK timeout, since datagrams do get lost; the ACK timeout
// decides when to give up.
func (c *Conn) rto() time.Duration {
	d := max(4*c.srtt, c.p.opt.RepeatAfter) << min(c.backoff, 12)
	return min(d, c.ackTimeout)
}

// arm sets the timer so that onTimer is called in time. mu is held.
func (c *Conn) arm() {
	if c.state != verbs.StateRTS && c.state != verbs.StateSQD {
		return
	}
	at := c.wait
	if at.IsZero() {
		if !c.outstanding() {
			c.deadline = time.Time{}
			return
		}
		if c.deadline.IsZero() {
			now := time.Now()
			if c.backoff == 0 && !c.lost && c.progress.Before(now) {
				// What is outstanding may have been sent just now.
				c.progress = now
			}
			c.deadline = now.Add(c.rto())
		}
		at = c.deadline
	}
	if c.timerAt.IsZero() || at.Before(c.timerAt) {
		c.timerAt = at
		c.timer.Reset(time.Until(at))
	}
}

// onTimer retransmits what is due.
func (c *Conn) onTimer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timerAt = time.Time{}
	if c.state != verbs.StateRTS && c.state != verbs.StateSQD {
		return
	}
	now := time.Now()
	c.now = now
	switch {
	case !c.wait.IsZero():
		if !now.Before(c.wait) {
			c.wait = time.Time{}
			c.transmit()
		}
	case c.deadline.IsZero() || now.Before(c.deadline) || !c.outstanding():
	case now.Sub(c.progress) > time.Duration(c.retries+1)*c.ackTimeout:
		c.failOldest(verbs.StatusRetryExceeded, "no answer for "+now.Sub(c.progress).Round(time.Millisecond).String())
		return
	default:
		c.backoff++
		c.p.count(&c.p.stats.Timeouts)
		c.lost = true
		c.shrink()
		c.rewind()
		c.transmit()
	}
	c.arm()
}
