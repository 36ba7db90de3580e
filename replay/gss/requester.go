package gss

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/ring"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Options of a Requester.
type Options struct {
	// Service is the protection of calls: none (krb5), integrity (krb5i), privacy (krb5p).
	Service oncrpc.Service
	// Tickets returns a ticket for the server, and a new one if the previous one is about to
	// expire. It may block.
	Tickets func(ctx context.Context) (*krb5.Ticket, error)
	// Program and Version are those whose NULL procedure creates contexts.
	Program, Version uint32
	// Timeout bounds the creation of a context (30 s).
	Timeout time.Duration
}

// Requester sends protected calls over another one.
type Requester struct {
	inner   transport.Requester
	o       Options
	lastXID atomic.Uint32
	ctx     context.Context // of the creation of contexts in the background
	cancel  context.CancelFunc
	making  sync.WaitGroup

	mu       sync.Mutex
	current  *secContext
	queue    ring.Ring[*pending]
	inFlight uint32
	pumping  bool
	busy     bool          // a context is being created
	change   chan struct{} // closed when that has ended
	failed   error         // why the last creation failed
	failedAt time.Time
	closed   bool
	renewals uint64
}

// Calls are tried with as many contexts, as in Linux.
const maxTries = 3

// After a failure to create a context, calls fail at once for this time.
const pause = time.Second

// New creates a security context over a connection, and returns the Requester that uses
// it. Closing it closes inner; if New fails, inner is not closed.
func New(ctx context.Context, inner transport.Requester, o Options) (*Requester, error) {
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	switch o.Service {
	case oncrpc.ServiceNone, oncrpc.ServiceIntegrity, oncrpc.ServicePrivacy:
	default:
		return nil, errors.New("gss: no such service")
	}
	r := &Requester{inner: inner, o: o}
	r.lastXID.Store(rand.Uint32())
	r.ctx, r.cancel = context.WithCancel(context.Background())
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var err error
	if r.current, err = r.create(limited); err != nil {
		r.cancel()
		return nil, err
	}
	return r, nil
}

// xid is the next transaction id. It is chosen here, since verifiers cover it.
func (r *Requester) xid() uint32 {
	for {
		if x := r.lastXID.Add(1); x != 0 {
			return x
		}
	}
}

// Reduces reports whether data can travel in chunks of their own.
func (r *Requester) Reduces() bool { return r.o.Service == oncrpc.ServiceNone }

// Renewals is how often a context had to be replaced.
func (r *Requester) Renewals() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.renewals
}

// Start implements transport.Requester.
func (r *Requester) Start(c *transport.Call) {
	p, _ := pendings.Get().(*pending)
	if p == nil {
		p = newPending()
	}
	p.begin(r, c)
	r.enqueue(p)
}

func (r *Requester) enqueue(p *pending) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		p.fail(transport.ErrClosed)
		return
	}
	r.queue.Push(p)
	r.mu.Unlock()
	r.pump()
}

// pump sends the waiting calls in order, while there is a context and room in its window. Only
// one goroutine does so at a time, so that sequence numbers are sent in order.
func (r *Requester) pump() {
	r.mu.Lock()
	if r.pumping {
		r.mu.Unlock()
		return
	}
	r.pumping = true
	for r.queue.Len() > 0 {
		g := r.ready()
		if g == nil {
			if r.busy || r.closed {
				break
			}
			err := r.failed
			p := r.queue.Pop()
			r.mu.Unlock()
			p.fail(err)
			r.mu.Lock()
			continue
		}
		if r.inFlight >= g.window {
			break
		}
		p := r.queue.Pop()
		r.inFlight++
		r.mu.Unlock()
		p.counted = true
		p.send(g)
		r.mu.Lock()
	}
	r.pumping = false
	r.mu.Unlock()
}

// ready is the context for the next call. If it is nil, either busy is set, or failed
// says why there is none. r.mu is held.
func (r *Requester) ready() *secContext {
	now := time.Now()
	if g := r.current; g != nil && g.usable(now) {
		return g
	}
	r.current = nil
	if r.busy || r.closed || r.failed != nil && now.Sub(r.failedAt) < pause {
		return nil
	}
	r.busy, r.failed, r.change = true, nil, make(chan struct{})
	r.making.Go(r.renew)
	return nil
}

// renew creates another context.
func (r *Requester) renew() {
	ctx, cancel := context.WithTimeout(r.ctx, r.o.Timeout)
	defer cancel()
	g, err := r.create(ctx)
	r.mu.Lock()
	r.busy = false
	r.current, r.failed, r.failedAt = g, err, time.Now()
	if err == nil {
		r.renewals++
	}
	close(r.change)
	r.mu.Unlock()
	r.pump()
}

// drop ensures that a context unknown to the server is not used again.
func (r *Requester) drop(g *secContext) {
	r.mu.Lock()
	if r.current == g {
		r.current = nil
	}
	r.mu.Unlock()
}

// landed frees the room of a finished call for the next one.
func (r *Requester) landed() {
	r.mu.Lock()
	r.inFlight--
	r.mu.Unlock()
}

// wait returns a context, once there is one.
func (r *Requester) wait(ctx context.Context) (*secContext, error) {
	for {
		r.mu.Lock()
		if r.closed {
			r.mu.Unlock()
			return nil, transport.ErrClosed
		}
		g, busy, change, err := r.ready(), r.busy, r.change, r.failed
		r.mu.Unlock()
		switch {
		case g != nil:
			return g, nil
		case !busy:
			return nil, err
		}
		select {
		case <-change:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Do implements transport.Requester.
func (r *Requester) Do(ctx context.Context, c *transport.Call) error {
	p := newPending()
	p.begin(r, c)
	p.do = true
	for {
		g, err := r.wait(ctx)
		if err != nil {
			p.fail(err)
			return c.Err
		}
		p.tries++
		if err := p.build(g); err != nil {
			p.fail(err)
			return c.Err
		}
		_ = r.inner.Do(ctx, &p.call)
		if p.take() {
			p.end()
			return c.Err
		}
	}
}

// Alloc implements transport.Requester.
func (r *Requester) Alloc(n int) ([]byte, error) { return r.inner.Alloc(n) }

// Free implements transport.Requester.
func (r *Requester) Free(b []byte) { r.inner.Free(b) }

// Peer implements transport.Requester.
func (r *Requester) Peer() transport.Peer { return r.inner.Peer() }

// Serve implements transport.Requester. Calls from the server are not protected: a client asks in
// CREATE_SESSION for AUTH_SYS or AUTH_NONE.
func (r *Requester) Serve(h transport.Handler) { r.inner.Serve(h) }

// Stats implements transport.Requester.
func (r *Requester) Stats() transport.Stats { return r.inner.Stats() }

// Close destroys the context and closes the connection.
func (r *Requester) Close() error {
	r.mu.Lock()
	first := !r.closed
	r.closed = true
	g := r.current
	var waiting []*pending
	for r.queue.Len() > 0 {
		waiting = append(waiting, r.queue.Pop())
	}
	r.mu.Unlock()
	for _, p := range waiting {
		p.fail(transport.ErrClosed)
	}
	r.cancel()
	if first && g != nil {
		r.destroy(g)
	}
	err := r.inner.Close()
	r.making.Wait()
	return err
}
