//go:build verbs && cgo && linux

package rdma

// #include <stdlib.h>
// #include "lib.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/internal/arena"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// conn is a queue pair with a protection domain, a completion queue and a
// completion channel of its own.
//
// Locks, in the order of locking: sendMu, recvMu, pollMu, regMu. Each is held while the
// library works on what it guards. Close locks all of them before it destroys the queue
// pair.
type conn struct {
	id   *cmID
	p    *provider
	dev  C.struct_rc_device
	res  *C.struct_rc_conn // in C's memory
	file *os.File          // of the completion channel, for waiting

	readSink                           bool // register the sink of each Read
	readSlices                         int  // slices in one Read
	responderResources, initiatorDepth uint8

	setup  chan event
	info   verbs.Info
	state  atomic.Uint32
	closed atomic.Bool

	errMu sync.Mutex
	err   error
	since time.Time // when the connection left StateRTS

	sendMu      sync.Mutex
	send        ring[sendEntry]
	wrs         []C.struct_rc_wr
	sges        []C.struct_ibv_sge
	depth       int // requests that the device takes
	unsignaled  int // requests since the last that the device reports
	recvMu      sync.Mutex
	recv        ring[uint64]
	recvSGEs    []C.struct_ibv_sge
	recvFailed  bool
	pollMu      sync.Mutex
	wcs         [64]C.struct_ibv_wc
	ready       []verbs.Completion // taken from the device, not given to Poll yet
	readyAt     int
	reports     atomic.Int64 // requests of the send queue that users want to hear of
	idle        atomic.Bool  // Wait may have armed the receive queue alone
	newest      uint32       // of the send queue that has completed
	sendFailed  bool         // a request of the send queue has failed
	partFailed  bool         // one part of a Read has, and the others follow
	dead        bool         // the queue pair is gone
	regMu       sync.RWMutex
	locals      map[*arena.Block]*C.struct_ibv_mr
	regions     map[uint32]region
	windows     map[uint32]*C.struct_ibv_mw // by handle as allocated, without its low byte
	closeOnce   sync.Once
	async       *asyncReader
	disconnects sync.Once
}

// region is memory opened by Register.
type region struct {
	mr     *C.struct_ibv_mr
	mem    []byte
	offset uint64
	access verbs.Access
}

// newConn makes the queue pair and posts the first receives. The identifier is
// bound to a device. The conn is not nil if there is something to close.
func newConn(x *cmID, params verbs.Params) (*conn, error) {
	sendDepth, recvDepth := params.SendDepth, params.RecvDepth
	if sendDepth <= 0 {
		sendDepth = 256
	}
	if recvDepth <= 0 {
		recvDepth = 256
	}
	c := &conn{
		id: x, p: x.p, setup: make(chan event, 4),
		locals: make(map[*arena.Block]*C.struct_ibv_mr), regions: make(map[uint32]region), windows: make(map[uint32]*C.struct_ibv_mw),
	}
	if err := errno("asking the device", C.rc_query(C.rc_context(x.id), &c.dev)); err != nil {
		return nil, err
	}
	c.readSlices = max(min(int(c.dev.max_sge_rd), c.p.caps.MaxSGE), 1)
	c.readSink = c.p.opts.ReadSinkPerRequest || c.dev.transport == C.IBV_TRANSPORT_IWARP
	hw := sendDepth // Reads of many slices take several
	if c.readSlices < c.p.caps.MaxSGE {
		hw += sendDepth
	}
	limit := int(c.dev.max_qp_wr)
	if sendDepth > limit || recvDepth > limit {
		return nil, fmt.Errorf("rdma: %s has queues of at most %d requests", C.GoString(&c.dev.name[0]), limit)
	}
	hw = min(hw, limit)
	if hw = min(hw, int(c.dev.max_cqe)); hw < sendDepth || recvDepth > int(c.dev.max_cqe) {
		return nil, fmt.Errorf("rdma: %s has completion queues of at most %d entries", C.GoString(&c.dev.name[0]), c.dev.max_cqe)
	}
	c.send = newRing[sendEntry](hw)
	c.send.limit, c.depth = uint32(sendDepth), hw
	c.recv = newRing[uint64](recvDepth)
	c.res = (*C.struct_rc_conn)(C.calloc(1, C.sizeof_struct_rc_conn))
	c.res.id = x.id
	if err := errno("making a queue pair", C.rc_create(c.res, C.int(hw), C.int(recvDepth), C.int(c.p.caps.MaxSGE))); err != nil {
		C.free(unsafe.Pointer(c.res))
		return nil, err
	}
	file, err := dupFile(int(c.res.channel.fd), "ib_completion")
	if err != nil {
		C.rc_destroy(c.res)
		C.free(unsafe.Pointer(c.res))
		return nil, err
	}
	c.file = file
	c.async = watch(c)
	x.conn.Store(c)
	return c, c.PostRecv(params.Recvs...)
}

// offer sets the depths to offer to the peer.
func (c *conn) offer(responderResources, initiatorDepth uint8) {
	c.responderResources, c.initiatorDepth = depth(responderResources, c.dev.max_rd_atom), depth(initiatorDepth, c.dev.max_init_rd_atom)
}

// depth returns the requested depth, limited by the device. 255 would leave the choice to
// the library.
func depth(asked uint8, limit C.uint32_t) uint8 {
	if asked == 0 {
		asked = 16
	}
	return uint8(min(uint32(asked), uint32(limit), 254))
}

// start sends the request for a connection, or accepts one.
func (c *conn) start(params verbs.Params, accept bool) error {
	if len(params.PrivateData) > 255 {
		return fmt.Errorf("rdma: %d bytes of private data", len(params.PrivateData))
	}
	retry := params.RetryCount
	if retry == 0 {
		retry = 6
	}
	c.sendMu.Lock() // against Close, which gives back the identifier
	defer c.sendMu.Unlock()
	if c.closed.Load() {
		return verbs.ErrClosed
	}
	what, flag := "connecting", C.int(0)
	if accept {
		what, flag = "accepting", 1
	}
	return errno(what, C.rc_connect(c.id.id, unsafe.Pointer(unsafe.SliceData(params.PrivateData)), C.int(len(params.PrivateData)),
		C.int(c.responderResources), C.int(c.initiatorDepth), C.int(min(retry, 7)), C.int(min(params.RNRRetryCount, 7)), flag))
}

// established fills in what is known once the connection is set up.
func (c *conn) established(e event) {
	c.sendMu.Lock()
	defer c.sendMu.Unlock()
	if c.closed.Load() {
		return
	}
	if e.param {
		// The active side learns here what the peer starts and answers; on
		// iWARP the kernel gives our own depths, the other way round.
		if c.dev.transport == C.IBV_TRANSPORT_IWARP {
			e.responderResources, e.initiatorDepth = e.initiatorDepth, e.responderResources
		}
		c.responderResources = min(c.responderResources, e.responderResources)
		c.initiatorDepth = min(c.initiatorDepth, e.initiatorDepth)
	}
	var num, dest C.uint32_t
	var mtu, gid, rd, maxRD C.int
	c.pollMu.Lock()
	if !c.dead {
		C.rc_qp_info(c.res.qp, &num, &dest, &mtu, &gid, &rd, &maxRD)
	}
	c.pollMu.Unlock()
	if mtu == 0 {
		mtu = c.dev.active_mtu
	}
	c.info = verbs.Info{
		Fabric: fabric(&c.dev, int(gid)), Local: c.id.addr(0), Remote: c.id.addr(1),
		MTU: int(mtu), ResponderResources: c.responderResources, InitiatorDepth: c.initiatorDepth,
		PrivateData: e.privateData,
		Detail:      fmt.Sprintf("rdma-core, device %s", C.GoString(&c.dev.name[0])),
	}
	if c.info.Fabric != "iwarp" {
		c.info.LocalQP, c.info.RemoteQP = uint32(num), uint32(dest)
	}
}

// event is called by the goroutine of the event channel.
func (c *conn) event(e event) {
	switch e.kind {
	case C.RDMA_CM_EVENT_ESTABLISHED:
		c.state.CompareAndSwap(uint32(verbs.StateInit), uint32(verbs.StateRTS))
	case C.RDMA_CM_EVENT_DISCONNECTED:
		// A failed request says more than that the peer has gone.
		c.look()
		c.fail(verbs.ErrDisconnected)
		c.disconnect()
	case C.RDMA_CM_EVENT_DEVICE_REMOVAL:
		c.fail(&verbs.StatusError{Op: verbs.OpSend, Status: verbs.StatusGeneral, Detail: "the device was removed"})
		c.disconnect()
	case C.RDMA_CM_EVENT_TIMEWAIT_EXIT, C.RDMA_CM_EVENT_ADDR_CHANGE:
		return
	}
	select {
	case c.setup <- e:
	default:
	}
}

// disconnect tells the peer, and moves the queue pair to the error state, so that all
// requests are flushed.
func (c *conn) disconnect() {
	c.pollMu.Lock()
	defer c.pollMu.Unlock()
	c.end()
}

// end is disconnect; pollMu is held.
func (c *conn) end() {
	if c.dead {
		return
	}
	c.disconnects.Do(func() { C.rc_disconnect(c.id.id) })
	C.rc_error(c.res.qp)
}

// fail ends the connection. The first error stays, unless a later one is more specific.
func (c *conn) fail(err error) {
	c.errMu.Lock()
	var status *verbs.StatusError
	if c.err == nil {
		c.since = time.Now()
		c.err = err
	} else if (c.err == verbs.ErrDisconnected) && errors.As(err, &status) && c.state.Load() == uint32(verbs.StateError) && !c.closed.Load() {
		c.err = err
	}
	c.state.Store(uint32(verbs.StateError))
	c.errMu.Unlock()
	c.wake()
}

// wake ends a wait for the completion channel; once the connection has failed,
// waits set deadlines of their own.
func (c *conn) wake() { c.file.SetReadDeadline(time.Unix(1, 0)) } //nolint:errcheck // a closed file wakes by itself

func (c *conn) Info() verbs.Info   { return c.info }
func (c *conn) State() verbs.State { return verbs.State(c.state.Load()) }

func (c *conn) Err() error {
	c.errMu.Lock()
	defer c.errMu.Unlock()
	return c.err
}

// Disconnect waits until the device has done all that was posted.
func (c *conn) Disconnect(ctx context.Context) error {
	c.sendMu.Lock()
	if !c.state.CompareAndSwap(uint32(verbs.StateRTS), uint32(verbs.StateSQD)) {
		c.sendMu.Unlock()
		return nil
	}
	c.sendMu.Unlock()
	var err error
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for err == nil && c.State() == verbs.StateSQD && !c.send.empty() {
		c.look()
		select {
		case <-tick.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	c.fail(verbs.ErrDisconnected)
	c.disconnect()
	return err
}

func (c *conn) Close() error {
	c.closeOnce.Do(func() {
		c.sendMu.Lock()
		c.recvMu.Lock()
		live := c.State() == verbs.StateRTS || c.State() == verbs.StateSQD
		if live {
			c.fail(verbs.ErrDisconnected)
		} else {
			c.fail(verbs.ErrClosed)
		}
		c.disconnect()
		c.closed.Store(true)
		// This waits for those who wait for the channel, who look at closed
		// with pollMu.
		c.file.Close() //nolint:errcheck // a descriptor of ours
		c.pollMu.Lock()
		c.regMu.Lock()
		c.async.stop(c)
		c.drop()
		for _, mr := range c.locals {
			C.rc_dereg(mr)
		}
		for _, w := range c.windows {
			C.rc_window_free(w)
		}
		for _, r := range c.regions {
			C.rc_dereg(r.mr)
		}
		c.locals, c.regions, c.windows = nil, nil, nil
		C.rc_destroy(c.res)
		C.free(unsafe.Pointer(c.res))
		c.res = nil
		c.regMu.Unlock()
		c.pollMu.Unlock()
		c.recvMu.Unlock()
		c.sendMu.Unlock()
		c.id.free()
	})
	return nil
}
