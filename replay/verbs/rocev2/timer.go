package rocev2

import (
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// rto is how long to wait for an answer before packets are repeated. It is
// shorter than the ACK timeout that was agreed on, since datagrams do get lost;
// how long to hope is up to the latter.
func (c *Conn) rto() time.Duration {
	d := max(4*c.srtt, c.p.opt.RepeatAfter) << min(c.backoff, 12)
	return min(d, c.ackTimeout)
}

// arm sees to it that onTimer is called in time. mu is held.
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

// onTimer repeats what is due.
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
