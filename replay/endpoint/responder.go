package endpoint

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Responder answers calls on all connections of a listener. Make it with Listen.
type Responder struct {
	p       verbs.Provider
	vl      verbs.Listener
	o       Options
	mem     *memory
	ctr     counters
	handler atomic.Pointer[transport.Handler]
	count   atomic.Int32
	group   *budget.Group
	ctx     context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex
	links  map[*link]struct{}
	closed bool
	wg     sync.WaitGroup
}

// Listen starts a Responder at an address; port 0 lets the provider choose one, which
// Addr tells. h receives the calls of all connections.
func Listen(ctx context.Context, p verbs.Provider, addr netip.AddrPort, h transport.Handler, o Options) (*Responder, error) {
	vl, err := p.Listen(ctx, addr)
	if err != nil {
		return nil, err
	}
	r := &Responder{p: p, vl: vl, o: o.withDefaults(true), links: make(map[*link]struct{})}
	r.mem = newMemory(p, &r.o)
	if a, ok := vl.(verbs.Answerer); ok {
		// All peers get the same answer, so the provider can give it by itself.
		l := newLink(&r.o, r.mem, &r.ctr, false)
		err := a.Answer(l.terms())
		l.unref()
		if err != nil {
			_ = vl.Close()
			return nil, err
		}
	}
	if r.o.Budget == nil {
		r.o.Budget = budget.New(budget.Options{})
	}
	r.group = r.o.Budget.Join(budget.GroupOptions{
		Name: p.Name(), Connections: r.o.MaxConnections, Newcomers: r.o.Newcomers, NewcomerTime: r.o.NewcomerTime,
		Tick: min(r.o.NewcomerTime, r.o.PeerTimeout) / 8,
	})
	r.handler.Store(&h)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Add(1)
	go r.accept()
	return r, nil
}

// Addr is where the Responder listens.
func (r *Responder) Addr() netip.AddrPort { return r.vl.Addr() }

// Alloc returns memory for the items of replies. Providers without the capability
// AnyMemory send it without a copy.
func (r *Responder) Alloc(n int) ([]byte, error) { return r.mem.alloc(n) }

// Free releases memory from Alloc. No reply may use it any more.
func (r *Responder) Free(b []byte) {
	if a := r.mem.forget(b); a != nil {
		r.mu.Lock()
		for l := range r.links {
			l.forget(a)
		}
		r.mu.Unlock()
	}
	r.p.Free(b)
}

// Stats returns counts of all connections, including those that have ended.
func (r *Responder) Stats() transport.Stats {
	s := r.ctr.stats()
	r.mu.Lock()
	defer r.mu.Unlock()
	for l := range r.links {
		s.CreditsAsked += l.serve.asked.Load()
		l.serve.mu.Lock()
		s.CreditsHeld += l.serve.posted
		l.serve.mu.Unlock()
	}
	return s
}

// Close ends the Responder and its connections, and waits for their goroutines. It
// does not wait for handlers that still work on a call.
func (r *Responder) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		r.wg.Wait()
		return nil
	}
	r.closed = true
	r.cancel()
	links := make([]*link, 0, len(r.links))
	for l := range r.links {
		links = append(links, l)
	}
	r.mu.Unlock()
	err := r.vl.Close()
	for _, l := range links {
		l.close()
	}
	r.wg.Wait()
	r.group.Leave()
	r.mem.release()
	return err
}

// Budget is what the connections of the Responder share.
func (r *Responder) Budget() *budget.Budget { return r.o.Budget }

// accepting bounds the number of connections that are being set up.
const accepting = 64

func (r *Responder) accept() {
	defer r.wg.Done()
	slots := make(chan struct{}, accepting)
	for {
		req, err := r.vl.Accept(r.ctx)
		if err != nil {
			if r.ctx.Err() != nil || errors.Is(err, verbs.ErrClosed) {
				return
			}
			t := time.NewTimer(10 * time.Millisecond) // out of descriptors, for instance
			select {
			case <-t.C:
			case <-r.ctx.Done():
				t.Stop()
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-r.ctx.Done():
			_ = req.Reject(nil)
			return
		}
		r.wg.Go(func() {
			l := r.connect(req)
			<-slots
			if l != nil {
				l.run()
				l.acct.Close()
				r.mu.Lock()
				delete(r.links, l)
				r.mu.Unlock()
				r.count.Add(-1)
			}
		})
	}
}

// connect accepts a connection request and returns a connection that is ready to
// run; nil if there is none.
func (r *Responder) connect(req verbs.Request) *link {
	l := newLink(&r.o, r.mem, &r.ctr, false)
	var ok bool
	if l.acct, ok = r.group.Open(req.RemoteAddr(), l.evict, l.overdue); !ok {
		l.unref()
		_ = req.Reject(nil)
		return nil
	}
	r.count.Add(1)
	params, err := l.params()
	if err != nil {
		r.count.Add(-1)
		l.acct.Close()
		l.unref()
		_ = req.Reject(nil)
		return nil
	}
	ctx, cancel := context.WithTimeout(r.ctx, r.o.DialTimeout)
	defer cancel()
	vc, err := req.Accept(ctx, params)
	if err != nil {
		r.count.Add(-1)
		l.acct.Close()
		l.unref()
		return nil
	}
	l.serve = &server{o: &r.o, handler: &r.handler, connections: &r.count, posted: uint32(l.receives() - l.extraReceives())}
	l.stranger = true
	l.calls = newCaller(&r.o, &counters{})
	l.calls.backward = true
	l.established(vc)
	l.calls.attach(l)
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		l.close()
		l.run()
		l.acct.Close()
		r.count.Add(-1)
		return nil
	}
	r.links[l] = struct{}{}
	r.mu.Unlock()
	return l
}

// backward is the Requester for calls to a peer that has dialed.
type backward struct{ l *link }

func (b backward) Start(c *transport.Call) { b.l.calls.startCall(c) }
func (b backward) Do(ctx context.Context, c *transport.Call) error {
	return b.l.calls.do(ctx, c)
}
func (b backward) Alloc(n int) ([]byte, error) { return make([]byte, n), nil }
func (b backward) Free([]byte)                 {}
func (b backward) Peer() transport.Peer        { return b.l.peer }
func (b backward) Serve(transport.Handler)     {}
func (b backward) Stats() transport.Stats      { return b.l.calls.stats() }

// Close does nothing: the Responder owns the connection.
func (b backward) Close() error { return nil }
