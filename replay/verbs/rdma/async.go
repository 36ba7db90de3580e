//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"os"
	"sync"
	"syscall"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Devices report some failures of queue pairs as asynchronous events, for example when a
// responder has refused the peer's request. The library opens each device once in a
// process, so there is one reader for each.
type asyncReader struct {
	ctx   *C.struct_ibv_context
	file  *os.File
	conns map[*C.struct_ibv_qp]*conn
}

var async struct {
	sync.Mutex
	readers map[*C.struct_ibv_context]*asyncReader
}

// watch adds a connection to its device's reader.
func watch(c *conn) *asyncReader {
	ctx := C.rc_context(c.id.id)
	async.Lock()
	defer async.Unlock()
	r := async.readers[ctx]
	if r == nil {
		fd := C.rc_async_fd(ctx)
		if C.rc_nonblock(fd) != 0 {
			return nil
		}
		file, err := dupFile(int(fd), "uverbs")
		if err != nil {
			return nil // the connection works without the events
		}
		r = &asyncReader{ctx: ctx, file: file, conns: make(map[*C.struct_ibv_qp]*conn)}
		if async.readers == nil {
			async.readers = make(map[*C.struct_ibv_context]*asyncReader)
		}
		async.readers[ctx] = r
		go r.run()
	}
	r.conns[c.res.qp] = c
	return r
}

// stop removes a connection; removing the last one ends the reader.
func (r *asyncReader) stop(c *conn) {
	if r == nil {
		return
	}
	async.Lock()
	defer async.Unlock()
	for qp, x := range r.conns {
		if x == c {
			delete(r.conns, qp)
		}
	}
	if len(r.conns) == 0 && async.readers[r.ctx] == r {
		delete(async.readers, r.ctx)
		r.file.Close() //nolint:errcheck // a descriptor of ours
	}
}

func (r *asyncReader) run() {
	raw, err := r.file.SyscallConn()
	if err != nil {
		return
	}
	for {
		var ev C.struct_rc_async
		var rc C.int
		if raw.Read(func(uintptr) bool {
			rc = C.rc_async_next(r.ctx, &ev)
			return rc != -C.int(syscall.EAGAIN)
		}) != nil {
			return
		}
		if rc != 0 || ev.qp == nil {
			continue
		}
		async.Lock()
		c := r.conns[ev.qp]
		async.Unlock()
		if c == nil {
			continue
		}
		// The peer has violated its access rights, or the device gave up.
		switch ev._type {
		case C.IBV_EVENT_QP_ACCESS_ERR:
			c.broken(&verbs.StatusError{Op: verbs.OpRecv, Status: verbs.StatusRemoteAccess, Detail: "the peer asked for memory that is not open to it"})
		case C.IBV_EVENT_QP_REQ_ERR:
			c.broken(&verbs.StatusError{Op: verbs.OpRecv, Status: verbs.StatusRemoteInvalid, Detail: "the peer sent an invalid request"})
		case C.IBV_EVENT_QP_FATAL:
			c.broken(&verbs.StatusError{Op: verbs.OpRecv, Status: verbs.StatusGeneral, Detail: "the queue pair has failed"})
		}
	}
}

// broken ends a connection after an event of its device.
func (c *conn) broken(err *verbs.StatusError) {
	c.look()
	c.fail(err)
	c.disconnect()
}
