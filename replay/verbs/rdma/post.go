//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// sendEntry is a posted request of the send queue.
type sendEntry struct {
	id      uint64
	op      verbs.Op
	report  bool // its user wants a completion
	part    bool // a Read has more parts after this one
	sink    *C.struct_ibv_mr
	signals bool // the device reports it
	done    bool // it has
	status  verbs.Status
}

const recvFlag = 1 << 63 // of an identifier that the device sees: a receive

var opcodes = [...]C.uint32_t{
	verbs.OpSend:            C.IBV_WR_SEND,
	verbs.OpSendInvalidate:  C.IBV_WR_SEND_WITH_INV,
	verbs.OpWrite:           C.IBV_WR_RDMA_WRITE,
	verbs.OpRead:            C.IBV_WR_RDMA_READ,
	verbs.OpLocalInvalidate: C.IBV_WR_LOCAL_INV,
	verbs.OpBind:            C.IBV_WR_BIND_MW,
}

func (c *conn) Post(wrs ...verbs.WorkRequest) error {
	if len(wrs) == 0 {
		return nil
	}
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if c.State() != verbs.StateRTS {
		return c.refusal()
	}
	// Users may have as many requests as they asked for; the parts of Reads
	// come out of what the queue has beyond that.
	if len(wrs) > c.send.room() {
		return verbs.ErrQueueFull
	}
	c.wrs, c.sges = c.wrs[:0], c.sges[:0]
	tail := c.send.tail.Load()
	next := tail
	for i := range wrs {
		var err error
		if next, err = c.add(next, &wrs[i]); err != nil {
			c.unregister(tail, next)
			return err
		}
	}
	// The device reports the last, wanted or not, so that Disconnect knows when
	// all is done.
	c.signal(c.send.at(next-1), &c.wrs[len(c.wrs)-1])
	var reports int64
	for n := tail; n != next; n++ {
		if c.send.at(n).report {
			reports++
		}
	}
	if c.reports.Add(reports) > 0 && c.idle.Load() {
		C.rc_notify_sends(c.res)
		c.idle.Store(false)
	}
	return c.hand(tail, next, reports)
}

// signal makes the device report a request.
func (c *conn) signal(e *sendEntry, x *C.struct_rc_wr) {
	e.signals = true
	c.unsignaled = 0
	x.flags |= C.IBV_SEND_SIGNALED
}

// refusal returns why a request cannot be posted.
func (c *conn) refusal() error {
	if err := c.Err(); err != nil {
		return err
	}
	return verbs.ErrDisconnected
}

// hand posts c.wrs, the entries from tail to next, to the device.
func (c *conn) hand(tail, next uint32, reports int64) error {
	if len(c.sges) == 0 {
		c.sges = append(c.sges, C.struct_ibv_sge{}) // for its address
	}
	c.send.tail.Store(next)
	var done C.int
	err := errno("posting", C.rc_post(c.res.qp, &c.wrs[0], C.int(len(c.wrs)), &c.sges[0], &done))
	if err == nil {
		return nil
	}
	if done == 0 {
		// Nothing was taken: as if it had never been tried.
		c.send.tail.Store(tail)
		c.unregister(tail, next)
		c.reports.Add(-reports)
		return err
	}
	// The device has some of them, and the others can not follow.
	c.fail(&verbs.StatusError{Op: verbs.OpSend, Status: verbs.StatusGeneral, Detail: err.Error()})
	c.disconnect()
	return nil
}

// unregister closes the sinks of entries that were not posted.
func (c *conn) unregister(from, to uint32) {
	for n := from; n != to; n++ {
		if e := c.send.at(n); e.sink != nil {
			C.rc_dereg(e.sink)
			e.sink = nil
		}
	}
}

// add translates one request into c.wrs and the entries from next on.
func (c *conn) add(next uint32, w *verbs.WorkRequest) (uint32, error) {
	if int(w.Op) >= len(opcodes) {
		return next, verbs.ErrUnsupported
	}
	if len(w.Local) > c.p.caps.MaxSGE {
		return next, fmt.Errorf("rdma: %d slices, at most %d", len(w.Local), c.p.caps.MaxSGE)
	}
	x := C.struct_rc_wr{opcode: opcodes[w.Op], rkey: C.uint32_t(w.Handle), remote: C.uint64_t(w.Offset), sge: C.uint32_t(len(c.sges))}
	if w.Fence {
		x.flags |= C.IBV_SEND_FENCE
	}
	e := sendEntry{id: w.ID, op: w.Op, report: w.Signaled}
	switch w.Op {
	case verbs.OpBind:
		if err := c.bind(w, &x); err != nil {
			return next, err
		}
		return c.push(next, x, e)
	case verbs.OpLocalInvalidate:
		return c.push(next, x, e)
	}
	total := 0
	for _, b := range w.Local {
		if total += len(b); total > c.p.caps.MaxMessage {
			return next, fmt.Errorf("rdma: more than %d bytes in one request", c.p.caps.MaxMessage)
		}
	}
	left := total
	for _, b := range w.Local {
		if len(b) == 0 {
			continue
		}
		// What a device does not take in one Read goes into several.
		if w.Op == verbs.OpRead && int(x.num_sge) == c.readSlices {
			part := e
			part.part, part.report = true, false
			var err error
			if next, err = c.push(next, x, part); err != nil {
				return next, err
			}
			x.remote = C.uint64_t(w.Offset) + C.uint64_t(total-left)
			x.flags &^= C.IBV_SEND_FENCE | C.IBV_SEND_SIGNALED
			x.sge, x.num_sge = C.uint32_t(len(c.sges)), 0
			e.sink = nil
		}
		var key C.uint32_t
		var err error
		if w.Op == verbs.OpRead && c.readSink {
			// One slice in one Read: see newConn.
			if e.sink, err = c.sink(b); err == nil {
				key = e.sink.lkey
			}
		} else {
			key, err = c.localKey(b)
		}
		if err != nil {
			return next, err
		}
		c.sges = append(c.sges, C.struct_ibv_sge{addr: C.uint64_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: C.uint32_t(len(b)), lkey: key})
		x.num_sge++
		left -= len(b)
	}
	return c.push(next, x, e)
}

// push adds an entry. The device reports all Reads: where requests complete
// out of order, no other tells that one is done. So that the queue drains even
// if no user's request asks for a completion, it reports some of the others,
// too. All of siw's are reported: it sends what is not from the user's memory
// itself, without a copy, and says that later requests are done while TCP has yet
// to send it. The memory is the user's then, and other bytes would go out.
func (c *conn) push(next uint32, x C.struct_rc_wr, e sendEntry) (uint32, error) {
	if int(next-c.send.head.Load()) >= c.depth {
		if e.sink != nil {
			C.rc_dereg(e.sink)
		}
		return next, verbs.ErrQueueFull
	}
	c.unsignaled++
	if e.report || e.op == verbs.OpRead || c.dev.vendor == vendorSIW || c.unsignaled > int(c.send.limit)/4 {
		c.signal(&e, &x)
	}
	x.wr_id = C.uint64_t(next)
	*c.send.at(next) = e
	c.wrs = append(c.wrs, x)
	return next + 1, nil
}

func (c *conn) PostRecv(wrs ...verbs.RecvRequest) error {
	if len(wrs) == 0 {
		return nil
	}
	c.recvMu.Lock()
	defer c.recvMu.Unlock()
	if s := c.State(); s == verbs.StateError {
		return c.refusal()
	}
	if len(wrs) > c.recv.room() {
		return verbs.ErrQueueFull
	}
	c.recvSGEs = c.recvSGEs[:0]
	tail := c.recv.tail.Load()
	for i := range wrs {
		s := C.struct_ibv_sge{}
		if b := wrs[i].Buffer; len(b) > 0 {
			key, err := c.localKey(b)
			if err != nil {
				return err
			}
			s = C.struct_ibv_sge{addr: C.uint64_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), length: C.uint32_t(len(b)), lkey: key}
		}
		*c.recv.at(tail + uint32(i)) = wrs[i].ID
		c.recvSGEs = append(c.recvSGEs, s)
	}
	c.recv.tail.Store(tail + uint32(len(wrs)))
	var done C.int
	err := errno("posting receives", C.rc_post_recv(c.res.qp, C.uint64_t(tail)|recvFlag, &c.recvSGEs[0], C.int(len(wrs)), &done))
	if err != nil {
		c.recv.tail.Store(tail + uint32(done))
		if done > 0 {
			c.fail(&verbs.StatusError{Op: verbs.OpRecv, Status: verbs.StatusGeneral, Detail: err.Error()})
			c.disconnect()
		}
	}
	return err
}
