package iwarp

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/internal/backlog"
	"github.com/rpcrdma/toolkit/replay/internal/halfopen"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

type listener struct {
	p    *Provider
	l    net.Listener
	addr netip.AddrPort
	reqs chan *request
	stop chan struct{}
	once sync.Once

	mu sync.Mutex
	// half holds the peers between their first packet and our answer. Nobody has to
	// wait for a place: when there are too many, one is evicted.
	half *halfopen.Table[*request]
}

// Listen implements verbs.Provider.
func (p *Provider) Listen(ctx context.Context, local netip.AddrPort) (verbs.Listener, error) {
	var lc net.ListenConfig
	nl, err := lc.Listen(ctx, "tcp", local.String())
	if err != nil {
		return nil, err
	}
	l := &listener{
		p: p, l: nl, addr: addrPort(nl.Addr()),
		reqs: make(chan *request), stop: make(chan struct{}), half: halfopen.New[*request](p.o.HalfOpen),
	}
	if !p.enter(l, 1) {
		nl.Close()
		return nil, verbs.ErrClosed
	}
	go l.run()
	return l, nil
}

func (l *listener) run() {
	defer l.p.wg.Done()
	for delay := time.Millisecond; ; {
		nc, err := l.l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			// For instance, there is no free descriptor. That passes, sooner if a peer
			// that was not answered yet is evicted.
			if l.evict() {
				delay = time.Millisecond
			}
			t := time.NewTimer(delay)
			select {
			case <-t.C:
			case <-l.stop:
				t.Stop()
				return
			}
			delay = min(2*delay, time.Second)
			continue
		}
		delay = time.Millisecond
		s := &socket{Conn: nc, p: l.p}
		s.wrap()
		r := &request{setup: setup{s}, l: l, s: s, gone: make(chan struct{})}
		if !l.p.enter(r, 1) {
			s.Close()
			return
		}
		l.mu.Lock()
		var old *halfopen.Entry[*request]
		r.entry, old = l.half.Add(s.remote().Addr(), r, time.Now())
		l.mu.Unlock()
		if old != nil {
			l.p.stats.evicted.Add(1)
			old.Value.abort()
		}
		go r.run()
	}
}

// evict disconnects one peer that has not been answered. It reports false if there is
// none.
func (l *listener) evict() bool {
	l.mu.Lock()
	old := l.half.Evict()
	l.mu.Unlock()
	if old != nil {
		l.p.stats.evicted.Add(1)
		old.Value.abort()
	}
	return old != nil
}

// Accept implements verbs.Listener.
func (l *listener) Accept(ctx context.Context) (verbs.Request, error) {
	r, err := backlog.Next(ctx, l.reqs, l.stop)
	if err != nil {
		return nil, err // not a nil *request in an interface
	}
	return r, nil
}

// Addr implements verbs.Listener.
func (l *listener) Addr() netip.AddrPort { return l.addr }

// Close implements verbs.Listener.
func (l *listener) Close() error {
	l.once.Do(func() {
		close(l.stop)
		l.l.Close()
		l.p.leave(l)
	})
	return nil
}

func (l *listener) abort() { l.Close() }

// request is a peer that has connected. It is half-open until it has been answered.
type request struct {
	setup
	l     *listener
	s     *socket
	frame iwarp.MPAFrame
	entry *halfopen.Entry[*request]
	once  sync.Once
	// gone is closed when the request has been evicted.
	gone    chan struct{}
	evicted sync.Once
}

// abort ends a request that was not answered. The goroutine of the request does the
// rest.
func (r *request) abort() {
	r.s.Close()
	r.evicted.Do(func() { close(r.gone) })
}

// run reads the MPA Request.
func (r *request) run() {
	defer r.l.p.wg.Done()
	r.s.SetDeadline(time.Now().Add(r.l.p.o.Setup)) //nolint:errcheck // a socket has deadlines
	err := receive(r.s, &r.frame)
	if err == nil && (r.frame.Reply || r.frame.Revision > maxRevision) {
		err = errors.New("iwarp: not an MPA Request that we know")
	}
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			r.l.p.stats.expired.Add(1)
		}
		r.drop()
		return
	}
	select {
	case r.l.reqs <- r:
	case <-r.l.stop:
		r.drop()
	case <-r.gone:
		r.drop()
	}
}

// answered takes the request out of those that are half-open. It reports true once.
func (r *request) answered() (first bool) {
	r.once.Do(func() {
		first = true
		r.l.mu.Lock()
		r.l.half.Remove(r.entry)
		r.l.mu.Unlock()
		r.l.p.leave(r)
	})
	return first
}

func (r *request) drop() {
	r.s.Close()
	r.answered()
}

// PrivateData implements verbs.Request.
func (r *request) PrivateData() []byte { return r.frame.Private }

// RemoteAddr implements verbs.Request.
func (r *request) RemoteAddr() netip.AddrPort { return r.s.remote() }

// LocalAddr implements verbs.Request.
func (r *request) LocalAddr() netip.AddrPort { return r.s.local() }

// ResponderResources implements verbs.Request.
func (r *request) ResponderResources() uint8 { return offered(&r.frame, r.frame.IRD) }

// InitiatorDepth implements verbs.Request.
func (r *request) InitiatorDepth() uint8 { return offered(&r.frame, r.frame.ORD) }

func offered(f *iwarp.MPAFrame, n uint16) uint8 {
	if !f.Enhanced {
		return maxReads // not said
	}
	return uint8(min(n, maxReads))
}

// Accept implements verbs.Request.
func (r *request) Accept(ctx context.Context, params verbs.Params) (verbs.Conn, error) {
	if !r.answered() {
		return nil, verbs.ErrClosed
	}
	stop := context.AfterFunc(ctx, func() { r.s.SetDeadline(past) }) //nolint:errcheck // a socket has deadlines
	r.s.SetDeadline(time.Now().Add(r.l.p.o.Setup))                   //nolint:errcheck // a socket has deadlines
	a, err := r.l.p.reply(r.s, &r.frame, &params)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		r.s.Close()
		return nil, err
	}
	c, err := r.l.p.start(r.s, &params, a)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Reject implements verbs.Request.
func (r *request) Reject(private []byte) error {
	if !r.answered() {
		return verbs.ErrClosed
	}
	defer r.s.Close()
	f := iwarp.MPAFrame{
		Reply: true, Reject: true, Revision: r.frame.Revision, CRC: r.frame.CRC,
		Enhanced: r.frame.Enhanced, IRD: r.frame.ORD, ORD: r.frame.IRD, Private: private,
	}
	r.s.SetDeadline(time.Now().Add(r.l.p.o.Setup)) //nolint:errcheck // a socket has deadlines
	return send(r.s, &f)
}
