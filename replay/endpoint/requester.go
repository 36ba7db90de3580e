package endpoint

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Requester sends calls on one connection, or on a sequence of connections if it
// reconnects. Make it with Dial.
type Requester struct {
	p       verbs.Provider
	addr    netip.AddrPort
	o       Options
	mem     *memory
	ctr     counters
	calls   *caller
	handler atomic.Pointer[transport.Handler]
	ctx     context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex
	link   *link
	peer   transport.Peer
	closed bool
	// replies is the number of replies when the connection began. tries counts
	// the connections since the last one that carried a reply.
	replies uint64
	tries   int
	wg      sync.WaitGroup
}

// Dial connects to a Responder. It returns the provider's error if there is no
// connection within Options.DialTimeout or the life of ctx; ctx has no effect later.
func Dial(ctx context.Context, p verbs.Provider, addr netip.AddrPort, o Options) (*Requester, error) {
	r := &Requester{p: p, addr: addr, o: o.withDefaults(false)}
	r.mem = newMemory(p, &r.o)
	r.calls = newCaller(&r.o, &r.ctr)
	r.calls.again = r.o.Reconnect
	r.calls.lostLink = r.lost
	r.ctx, r.cancel = context.WithCancel(context.Background())
	l, err := r.connect(ctx)
	if err != nil {
		r.cancel()
		r.mem.release()
		return nil, err
	}
	r.run(l)
	return r, nil
}

func (r *Requester) connect(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, r.o.DialTimeout)
	defer cancel()
	l := newLink(&r.o, r.mem, &r.ctr, true)
	params, err := l.params()
	if err != nil {
		l.unref()
		return nil, err
	}
	vc, err := r.p.Dial(ctx, r.addr, params)
	if err != nil {
		l.unref()
		return nil, err
	}
	l.calls = r.calls
	l.serve = &server{o: &r.o, backward: true, handler: &r.handler}
	l.established(vc)
	return l, nil
}

// run makes l the connection.
func (r *Requester) run(l *link) {
	r.mu.Lock()
	r.link, r.peer, r.replies = l, l.peer, r.ctr.replies.Load()
	closed := r.closed
	r.wg.Add(1)
	r.mu.Unlock()
	if closed {
		l.close()
	}
	r.calls.attach(l)
	go func() {
		defer r.wg.Done()
		l.run()
	}()
}

// lost is called on the goroutine of a connection that has ended.
func (r *Requester) lost(l *link) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.link = nil
	if !r.closed && r.o.Reconnect {
		r.wg.Add(1)
		// A connection that has carried no reply counts as a failed attempt.
		r.tries++
		if r.ctr.replies.Load() != r.replies {
			r.tries = 0
		}
		go r.reconnect(r.tries)
	}
}

func (r *Requester) reconnect(tries int) {
	defer r.wg.Done()
	pause := tries > 0
	wait := min(r.o.BackoffMin<<min(tries, 20), r.o.BackoffMax)
	for {
		if !pause {
			pause = true
		} else if !r.sleep(&wait) {
			return
		}
		l, err := r.connect(r.ctx)
		if err == nil {
			r.ctr.reconnects.Add(1)
			r.run(l)
			return
		}
	}
}

// sleep waits before the next attempt to connect; false if there is to be none.
func (r *Requester) sleep(wait *time.Duration) bool {
	t := time.NewTimer(*wait)
	defer t.Stop()
	*wait = min(2**wait, r.o.BackoffMax)
	select {
	case <-r.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Start implements transport.Requester.
func (r *Requester) Start(c *transport.Call) { r.calls.startCall(c) }

// Do implements transport.Requester.
func (r *Requester) Do(ctx context.Context, c *transport.Call) error { return r.calls.do(ctx, c) }

// Alloc returns memory for Items and Results that the provider can use without a
// copy.
func (r *Requester) Alloc(n int) ([]byte, error) { return r.mem.alloc(n) }

// Free releases memory from Alloc. No call may use it any more.
func (r *Requester) Free(b []byte) {
	if a := r.mem.forget(b); a != nil {
		r.mu.Lock()
		if r.link != nil {
			r.link.forget(a)
		}
		r.mu.Unlock()
	}
	r.p.Free(b)
}

// Peer describes the current connection, or the last one.
func (r *Requester) Peer() transport.Peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peer
}

// Serve sets the handler for calls in the backward direction. Without one they
// are answered with PROG_UNAVAIL.
func (r *Requester) Serve(h transport.Handler) { r.handler.Store(&h) }

// Stats counts since Dial.
func (r *Requester) Stats() transport.Stats { return r.calls.stats() }

// Disconnect drops the present connection, as a failure of the network would.
func (r *Requester) Disconnect() {
	r.mu.Lock()
	l := r.link
	r.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// Close ends the connection; outstanding calls fail with transport.ErrClosed.
func (r *Requester) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.wg.Wait()
		return nil
	}
	r.closed = true
	r.cancel()
	l := r.link
	r.mu.Unlock()
	r.calls.end(transport.ErrClosed)
	if l != nil {
		l.shut()
	}
	r.wg.Wait()
	r.mem.release()
	return nil
}
