//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// event is an event of the connection manager about an identifier.
type event struct {
	kind, status                       int
	param                              bool // the rest was given
	responderResources, initiatorDepth uint8
	privateData                        []byte
}

// cmID is an identifier of the connection manager: a listener, or a connection
// in the making or made.
type cmID struct {
	p        *provider
	token    uint64
	id       *C.struct_rdma_cm_id
	steps    chan event // while there is no conn
	conn     atomic.Pointer[conn]
	listener *listener // set before the identifier listens
	request  *request  // not answered yet, or answered
	once     sync.Once
}

// free destroys the identifier; its queue pair is gone by then.
func (x *cmID) free() {
	x.once.Do(func() {
		x.p.mu.Lock()
		delete(x.p.ids, x.token)
		x.p.mu.Unlock()
		C.rc_id_free(x.id)
		x.p.live.Done()
	})
}

func ptr(s *sockaddr) unsafe.Pointer { return unsafe.Pointer(s) }

func (x *cmID) addr(peer C.int) netip.AddrPort {
	var s sockaddr
	C.rc_addr(x.id, peer, ptr(&s))
	return fromSockaddr(&s)
}

// patience is the timeout of the connection manager for one step of a setup whose context
// has no deadline.
const patience = 10 * time.Second

func milliseconds(ctx context.Context) C.int {
	d := patience
	if t, ok := ctx.Deadline(); ok {
		d = max(min(time.Until(t), time.Hour), time.Millisecond)
	}
	return C.int(d / time.Millisecond)
}

// wait returns the next event.
func (x *cmID) wait(ctx context.Context, from <-chan event) (event, error) {
	select {
	case e := <-from:
		return e, nil
	case <-ctx.Done():
		return event{}, ctx.Err()
	case <-x.p.closing:
		return event{}, verbs.ErrClosed
	}
}

func (x *cmID) expect(ctx context.Context, kind int, what string) error {
	e, err := x.wait(ctx, x.steps)
	if err != nil {
		return err
	}
	if e.kind != kind {
		return fmt.Errorf("rdma: %s: %w", what, failure(e))
	}
	return nil
}

// failure returns the error of an event. Most statuses are negative errnos, except for
// rejections.
func failure(e event) error {
	if e.status < 0 {
		return syscall.Errno(-e.status)
	}
	return fmt.Errorf("event %d, status %d", e.kind, e.status)
}

// rejection is the error of an event that ends a setup.
func rejection(e event) error {
	switch e.kind {
	case C.RDMA_CM_EVENT_REJECTED:
		why := fmt.Sprintf("reason %d", e.status)
		switch {
		case e.status == 28 || e.status == -int(syscall.ECONNREFUSED):
			why = "by its user, or nobody listens"
		case e.status == 8:
			why = "nobody listens"
		case e.status == 10:
			why = "stale connection"
		case e.status < 0:
			why = syscall.Errno(-e.status).Error()
		}
		return &verbs.RejectError{Reason: why, PrivateData: e.privateData}
	case C.RDMA_CM_EVENT_UNREACHABLE:
		return fmt.Errorf("rdma: no answer from the peer: %w", failure(e))
	case C.RDMA_CM_EVENT_DISCONNECTED:
		return verbs.ErrDisconnected
	}
	return fmt.Errorf("rdma: connecting: %w", failure(e))
}

// dial makes the connection. The conn is not nil if its resources have to be
// closed.
func (x *cmID) dial(ctx context.Context, remote netip.AddrPort, params verbs.Params) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := toSockaddr(remote)
	if err := errno(fmt.Sprintf("address %v", remote.Addr()), C.rc_resolve_addr(x.id, ptr(&s), milliseconds(ctx))); err != nil {
		return nil, err
	}
	if err := x.expect(ctx, C.RDMA_CM_EVENT_ADDR_RESOLVED, fmt.Sprintf("address %v", remote.Addr())); err != nil {
		if errors.Is(err, syscall.ENODEV) {
			err = fmt.Errorf("%w (no RDMA device on the way to it)", err)
		}
		return nil, err
	}
	if err := errno("route", C.rc_resolve_route(x.id, milliseconds(ctx))); err != nil {
		return nil, err
	}
	if err := x.expect(ctx, C.RDMA_CM_EVENT_ROUTE_RESOLVED, "route"); err != nil {
		return nil, err
	}
	c, err := newConn(x, params)
	if err != nil {
		return c, err
	}
	c.offer(params.ResponderResources, params.InitiatorDepth)
	if err := c.start(params, false); err != nil {
		return c, err
	}
	e, err := x.wait(ctx, c.setup)
	if err != nil {
		return c, err
	}
	if e.kind != C.RDMA_CM_EVENT_ESTABLISHED {
		return c, rejection(e)
	}
	c.established(e)
	return c, nil
}
