//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"fmt"
	"time"

	"syscall"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// statuses maps those of libibverbs; what is not here is StatusGeneral.
var statuses = map[C.enum_ibv_wc_status]verbs.Status{
	C.IBV_WC_SUCCESS:           verbs.StatusSuccess,
	C.IBV_WC_LOC_LEN_ERR:       verbs.StatusLocalLength,
	C.IBV_WC_LOC_QP_OP_ERR:     verbs.StatusLocalQP,
	C.IBV_WC_LOC_PROT_ERR:      verbs.StatusLocalProtection,
	C.IBV_WC_LOC_ACCESS_ERR:    verbs.StatusLocalProtection,
	C.IBV_WC_WR_FLUSH_ERR:      verbs.StatusFlushed,
	C.IBV_WC_MW_BIND_ERR:       verbs.StatusBind,
	C.IBV_WC_BAD_RESP_ERR:      verbs.StatusBadResponse,
	C.IBV_WC_REM_INV_REQ_ERR:   verbs.StatusRemoteInvalid,
	C.IBV_WC_REM_ACCESS_ERR:    verbs.StatusRemoteAccess,
	C.IBV_WC_REM_OP_ERR:        verbs.StatusRemoteOperation,
	C.IBV_WC_RETRY_EXC_ERR:     verbs.StatusRetryExceeded,
	C.IBV_WC_RNR_RETRY_EXC_ERR: verbs.StatusRNRRetryExceeded,
}

func statusOf(s C.enum_ibv_wc_status) verbs.Status {
	if s == C.IBV_WC_SUCCESS {
		return verbs.StatusSuccess
	}
	if v, ok := statuses[s]; ok {
		return v
	}
	return verbs.StatusGeneral
}

// lingering is how long a device may take to flush the queues of a failed connection. After
// that the queue pair is destroyed.
const lingering = 2 * time.Second

func (c *conn) Poll(out []verbs.Completion) int {
	c.pollMu.Lock()
	defer c.pollMu.Unlock()
	if c.readyAt == len(c.ready) {
		c.take()
	}
	n := copy(out, c.ready[c.readyAt:])
	if c.readyAt += n; c.readyAt == len(c.ready) {
		c.ready, c.readyAt = c.ready[:0], 0
	}
	return n
}

// look collects completions for a later Poll.
func (c *conn) look() {
	c.pollMu.Lock()
	before := len(c.ready)
	for c.take() > 0 {
	}
	more := len(c.ready) > before
	c.pollMu.Unlock()
	if more {
		c.wakeOnce()
	}
}

// wakeOnce ends a wait that may have armed the queue before look emptied it.
func (c *conn) wakeOnce() {
	c.file.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed file wakes by itself
}

// take moves the device's completions to c.ready, and returns how many there were. pollMu is
// held.
func (c *conn) take() int {
	if c.dead {
		return 0
	}
	n := int(C.rc_poll(c.res, &c.wcs[0], C.int(len(c.wcs))))
	if n <= 0 {
		return 0
	}
	now := time.Now()
	for i := range n {
		w := &c.wcs[i]
		if w.wr_id&recvFlag != 0 {
			c.received(w, now)
		} else {
			c.sent(w, now)
		}
	}
	return n
}

func (c *conn) received(w *C.struct_ibv_wc, now time.Time) {
	head := c.recv.head.Load()
	// Receives complete in order; a device that leaves some out has flushed
	// them.
	for ; head != uint32(w.wr_id); head++ {
		if head == c.recv.tail.Load() {
			return // not ours
		}
		c.ready = append(c.ready, verbs.Completion{ID: *c.recv.at(head), Op: verbs.OpRecv, Status: verbs.StatusFlushed, Time: now})
	}
	d := verbs.Completion{ID: *c.recv.at(head), Op: verbs.OpRecv, Status: statusOf(w.status), Time: now}
	c.recv.head.Store(head + 1)
	if d.Status == verbs.StatusSuccess {
		d.Length = uint32(w.byte_len)
		if w.wc_flags&C.IBV_WC_WITH_INV != 0 {
			d.Invalidated, d.Handle = true, invalidated(w)
		}
	} else {
		c.failure(d.Op, w)
	}
	c.ready = append(c.ready, d)
}

// failure ends the connection for a request that failed.
func (c *conn) failure(op verbs.Op, w *C.struct_ibv_wc) {
	if w.status == C.IBV_WC_WR_FLUSH_ERR {
		// Not the reason. If nothing tells it, the peer has gone.
		if c.State() == verbs.StateRTS {
			c.fail(verbs.ErrDisconnected)
		}
	} else {
		c.fail(&verbs.StatusError{Op: op, Status: statusOf(w.status), Detail: fmt.Sprintf("status %d, vendor error %#x", w.status, w.vendor_err)})
	}
	// The peer may have nothing posted that could tell it.
	c.end()
}

// sent records the completion of a request of the send queue. Users get completions in
// order, although the kernel's siw completes other requests while an earlier Read is under
// way.
func (c *conn) sent(w *C.struct_ibv_wc, now time.Time) {
	n, head, tail := uint32(w.wr_id), c.send.head.Load(), c.send.tail.Load()
	if n-head >= tail-head {
		return // not ours
	}
	e := c.send.at(n)
	e.done, e.status = true, statusOf(w.status)
	if e.status != verbs.StatusSuccess {
		c.failure(e.op, w)
	}
	if c.newest-head >= tail-head || n-head > c.newest-head {
		c.newest = n
	}
	for ; head != tail; head++ {
		e := c.send.at(head)
		switch {
		case e.done:
			c.retire(e, e.status, now)
			c.sendFailed = c.sendFailed || e.status != verbs.StatusSuccess
		case e.signals || c.newest-head >= tail-head || c.newest == head:
			return
		case c.sendFailed:
			c.retire(e, verbs.StatusFlushed, now)
		default:
			// It was not reported, but a later one was, so it is done.
			c.retire(e, verbs.StatusSuccess, now)
		}
		c.send.head.Store(head + 1)
	}
}

// retire removes an entry of the send queue.
func (c *conn) retire(e *sendEntry, status verbs.Status, now time.Time) {
	if e.sink != nil {
		C.rc_dereg(e.sink)
		e.sink = nil
	}
	if e.report {
		c.reports.Add(-1)
	}
	report := e.report || status != verbs.StatusSuccess
	if e.part || c.partFailed {
		// The parts of a Read are one request: the first failure is its
		// outcome.
		report = report && !c.partFailed
		c.partFailed = e.part && (c.partFailed || status != verbs.StatusSuccess)
	}
	if report {
		c.ready = append(c.ready, verbs.Completion{ID: e.id, Op: e.op, Status: status, Time: now})
	}
}

// drop destroys the queue pair; what it had not completed is flushed. pollMu
// is held.
func (c *conn) drop() {
	if c.dead {
		return
	}
	for c.take() > 0 {
	}
	C.rc_destroy_qp(c.res)
	for c.take() > 0 { // some devices flush when the queue pair goes
	}
	c.dead = true
	now := time.Now()
	for n := c.send.head.Load(); n != c.send.tail.Load(); n++ {
		e := c.send.at(n)
		if !e.done {
			e.status = verbs.StatusFlushed
		}
		c.retire(e, e.status, now)
		c.send.head.Store(n + 1)
	}
	for n := c.recv.head.Load(); n != c.recv.tail.Load(); n++ {
		c.ready = append(c.ready, verbs.Completion{ID: *c.recv.at(n), Op: verbs.OpRecv, Status: verbs.StatusFlushed, Time: now})
		c.recv.head.Store(n + 1)
	}
}

func (c *conn) Wait() error {
	for {
		done, err := c.check()
		if done || err != nil {
			return err
		}
		if err := c.block(); err != nil && !c.closed.Load() && c.State() != verbs.StateError {
			// Woken for completions that look has found.
			c.file.SetReadDeadline(time.Time{}) //nolint:errcheck // see below
			if c.State() == verbs.StateError {
				c.wake() // it failed between the two
			}
		}
	}
}

// check reports whether Poll has completions, or why there will be none. In all other cases
// it arms the completion queue.
func (c *conn) check() (bool, error) {
	c.pollMu.Lock()
	defer c.pollMu.Unlock()
	for armed := false; ; armed = true {
		for c.readyAt == len(c.ready) && c.take() > 0 {
		}
		if c.readyAt < len(c.ready) {
			return true, nil
		}
		if c.State() == verbs.StateError {
			if c.dead || c.send.empty() && c.recv.empty() {
				return false, c.Err()
			}
			if time.Since(c.failedAt()) > lingering {
				c.drop()
				continue
			}
		}
		if armed {
			return false, nil
		}
		// Nobody wants to be woken for requests whose completions it does not
		// get: their queue is armed if somebody waits for one, or if nothing
		// else would tell of a failure.
		sends := C.int(0)
		c.idle.Store(true)
		if c.reports.Load() > 0 || c.recv.empty() {
			sends = 1
		}
		if err := errno("arming", C.rc_notify(c.res, sends)); err != nil {
			return false, err
		}
	}
}

func (c *conn) failedAt() time.Time {
	c.errMu.Lock()
	defer c.errMu.Unlock()
	return c.since
}

// block waits for an event of the completion channel. For a failed connection it returns
// soon, since its device may have no more events.
func (c *conn) block() error {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	if c.State() == verbs.StateError {
		c.file.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) //nolint:errcheck // Read fails, too
	}
	return raw.Read(func(uintptr) bool {
		c.pollMu.Lock()
		defer c.pollMu.Unlock()
		if c.closed.Load() || c.dead || c.res == nil {
			return true
		}
		return C.rc_cq_event(c.res.channel) != -C.int(syscall.EAGAIN)
	})
}
