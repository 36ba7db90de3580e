package rocev2

import (
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// completions is the completion queue of a connection.
type completions struct {
	mu      sync.Mutex
	q       queue[verbs.Completion]
	ended   bool
	wake    chan struct{}
	waiting bool
}

func (c *completions) init() { c.wake = make(chan struct{}, 1) }

// push adds a completion. The depths of the queues bound their number: a request keeps its
// place until its completion has been polled.
func (c *completions) push(x verbs.Completion) {
	c.mu.Lock()
	*c.q.push() = x
	w := c.waiting
	c.waiting = false
	c.mu.Unlock()
	if w {
		c.signal()
	}
}

func (c *completions) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// end records that nothing will be added any more.
func (c *completions) end() {
	c.mu.Lock()
	c.ended = true
	c.waiting = false
	c.mu.Unlock()
	c.signal()
}

// poll moves completions to out, and counts the completions of each queue.
func (c *completions) poll(out []verbs.Completion) (n, sends, recvs int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n < len(out) && c.q.len() > 0 {
		out[n] = *c.q.at(c.q.head)
		c.q.head++
		if out[n].Op == verbs.OpRecv {
			recvs++
		} else {
			sends++
		}
		n++
	}
	return n, sends, recvs
}

// wait waits for completions. It reports false when there will be none any more.
func (c *completions) wait() bool {
	for {
		c.mu.Lock()
		some, ended := c.q.len() > 0, c.ended
		c.waiting = !some && !ended
		c.mu.Unlock()
		if some || ended {
			return some
		}
		<-c.wake
	}
}

// complete tells the consumer how a request of the send queue ended.
func (c *Conn) complete(w *wqe, s verbs.Status, now time.Time) {
	c.cq.push(verbs.Completion{ID: w.id, Op: w.op, Status: s, Time: now})
}
