package udprpc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// Requester sends calls to one peer, and answers its calls on the same socket.
type Requester struct {
	s      *socket
	to     netip.AddrPort
	shared bool // the socket is a Server's
	count  struct{ calls, replies, errors atomic.Uint64 }
}

var _ transport.Requester = (*Requester)(nil)

// Dial makes a Requester. It does not find out whether anybody is there.
func Dial(ctx context.Context, address string, opt Options) (*Requester, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	pc := nc.(*net.UDPConn)
	to := plain(pc.RemoteAddr().(*net.UDPAddr).AddrPort())
	return &Requester{s: newSocket(pc, to, opt), to: to}, nil
}

// Start implements transport.Requester.
func (r *Requester) Start(c *transport.Call) {
	go func() { _ = r.Do(context.Background(), c) }()
}

// Do implements transport.Requester.
func (r *Requester) Do(ctx context.Context, c *transport.Call) error {
	r.count.calls.Add(1)
	c.Err = r.s.do(ctx, r.to, c)
	if c.Err != nil {
		r.count.errors.Add(1)
		c.Times.Replied = time.Now()
	} else {
		r.count.replies.Add(1)
	}
	if c.Release != nil {
		c.Release()
	}
	if c.Done != nil {
		err := c.Err
		c.Done(c)
		return err
	}
	return c.Err
}

// Alloc returns memory. Any will do.
func (r *Requester) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, errors.New("udprpc: negative size")
	}
	return make([]byte, n), nil
}

// Free does nothing: memory is garbage collected.
func (r *Requester) Free([]byte) {}

// Peer implements transport.Requester.
func (r *Requester) Peer() transport.Peer {
	return transport.Peer{Transport: "udp", Local: r.s.at, Remote: r.to, ID: r.s.id}
}

// Serve sets the handler for calls of the peer. That of a Server's socket stays.
func (r *Requester) Serve(h transport.Handler) {
	if !r.shared {
		r.s.handler.Store(&h)
	}
}

// Stats counts since Dial.
func (r *Requester) Stats() transport.Stats {
	return transport.Stats{Calls: r.count.calls.Load(), Replies: r.count.replies.Load(), Errors: r.count.errors.Load(), Sends: r.s.count.sends.Load(), Receives: r.s.count.receives.Load()}
}

// Close ends calls under way with transport.ErrClosed.
func (r *Requester) Close() error {
	if r.shared {
		return nil
	}
	return r.s.close()
}
