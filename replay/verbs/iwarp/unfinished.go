package iwarp

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// unfinished ends a connection whose peer has begun an FPDU, or a Send of several, and does not continue. Otherwise each
// outstanding call would wait until its own timeout.
type unfinished struct {
	c     *conn
	at    atomic.Uint64 // 1 + the FPDUs received, while the next one or a Send is incomplete; else 0
	runs  atomic.Bool   // whether the timer runs; the goroutine that sets it writes was
	timer *time.Timer
	was   uint64 // at, when the timer was started
}

func (u *unfinished) init(c *conn) {
	u.c = c
	u.timer = time.AfterFunc(math.MaxInt64, u.look)
	u.timer.Stop()
}

// wait is called before each read, with the number of FPDUs received and whether the next one, or a Send, has begun.
func (u *unfinished) wait(fpdus uint64, begun bool) {
	if !begun {
		u.at.Store(0)
		return
	}
	u.at.Store(fpdus + 1)
	u.start()
}

// start starts the timer unless it runs.
func (u *unfinished) start() {
	if at := u.at.Load(); at != 0 && !u.runs.Load() && u.runs.CompareAndSwap(false, true) {
		u.was = at
		u.timer.Reset(u.c.p.o.Stall)
	}
}

// look ends the connection if nothing has become complete since the timer was started.
func (u *unfinished) look() {
	if at := u.at.Load(); at == 0 || at != u.was {
		u.runs.Store(false)
		u.start()
		return
	}
	c := u.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail(&verbs.StatusError{
		Op: verbs.OpRecv, Status: verbs.StatusRetryExceeded, Detail: "the peer has begun a message and does not go on for " + c.p.o.Stall.String(),
	}, nil)
}

// stop is called when nothing is read any more.
func (u *unfinished) stop() { u.timer.Stop() }
