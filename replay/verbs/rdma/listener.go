//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rpcrdma/toolkit/internal/backlog"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// maxQueued is how many requests may wait for Accept.
const maxQueued = 128

type listener struct {
	id       *cmID
	addr     netip.AddrPort
	requests chan *request
	closed   chan struct{}
	once     sync.Once
	mu       sync.Mutex // add against Close
	done     bool
}

// bind starts listening. Close, which frees the identifier, waits for it.
func (l *listener) bind(local netip.AddrPort) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return verbs.ErrClosed
	}
	s := toSockaddr(local)
	if err := errno(fmt.Sprintf("listening at %v", local), C.rc_bind(l.id.id, ptr(&s), maxQueued)); err != nil {
		return err
	}
	l.addr = netip.AddrPortFrom(local.Addr(), uint16(C.rc_port(l.id.id)))
	return nil
}

// add queues a request. It reports false if the request has to be rejected.
func (l *listener) add(r *request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done {
		return false
	}
	select {
	case l.requests <- r:
		return true
	default:
		return false
	}
}

func (l *listener) Accept(ctx context.Context) (verbs.Request, error) {
	r, err := backlog.Next(ctx, l.requests, l.closed)
	if err != nil {
		return nil, err // not a nil *request in an interface
	}
	return r, nil
}

func (l *listener) Addr() netip.AddrPort { return l.addr }

func (l *listener) Close() error {
	l.once.Do(func() {
		l.mu.Lock()
		l.done = true
		l.mu.Unlock()
		close(l.closed)
		l.id.free()
		for {
			select {
			case r := <-l.requests:
				r.Reject(nil) //nolint:errcheck // the peer may be gone
				continue
			default:
			}
			break
		}
	})
	return nil
}

// request is a peer's connection request.
type request struct {
	id       *cmID
	offer    event
	local    netip.AddrPort
	remote   netip.AddrPort
	answered atomic.Bool
}

func (r *request) PrivateData() []byte        { return r.offer.privateData }
func (r *request) RemoteAddr() netip.AddrPort { return r.remote }
func (r *request) LocalAddr() netip.AddrPort  { return r.local }

// The kernel reports the depths from the point of view of the accepting side: what it
// may start, and what it has to answer.
func (r *request) ResponderResources() uint8 { return r.offer.initiatorDepth }
func (r *request) InitiatorDepth() uint8     { return r.offer.responderResources }

func (r *request) Accept(ctx context.Context, params verbs.Params) (verbs.Conn, error) {
	if !r.answered.CompareAndSwap(false, true) {
		return nil, verbs.ErrClosed
	}
	c, err := r.accept(ctx, params)
	if err == nil {
		return c, nil
	}
	if c != nil {
		c.Close() //nolint:errcheck // the first error counts
	} else {
		r.id.free()
	}
	return nil, err
}

func (r *request) accept(ctx context.Context, params verbs.Params) (*conn, error) {
	c, err := newConn(r.id, params)
	if err != nil {
		r.reject(nil) //nolint:errcheck // the first error counts
		return c, err
	}
	c.offer(params.ResponderResources, params.InitiatorDepth)
	c.responderResources = min(c.responderResources, r.offer.responderResources)
	c.initiatorDepth = min(c.initiatorDepth, r.offer.initiatorDepth)
	if c.dev.vendor == vendorSIW {
		c.responderResources = r.offer.responderResources // whatever we say
	}
	if err := c.start(params, true); err != nil {
		return c, err
	}
	e, err := r.id.wait(ctx, c.setup)
	if err != nil {
		return c, err
	}
	if e.kind != C.RDMA_CM_EVENT_ESTABLISHED {
		return c, rejection(e)
	}
	e.privateData = r.offer.privateData
	e.param = false
	c.established(e)
	return c, nil
}

func (r *request) Reject(privateData []byte) error {
	if !r.answered.CompareAndSwap(false, true) {
		return verbs.ErrClosed
	}
	err := r.reject(privateData)
	r.id.free()
	return err
}

func (r *request) reject(privateData []byte) error {
	if len(privateData) > 255 {
		privateData = privateData[:255]
	}
	return errno("rejecting", C.rc_reject(r.id.id, unsafe.Pointer(unsafe.SliceData(privateData)), C.int(len(privateData))))
}
