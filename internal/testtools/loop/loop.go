// Package loop is a provider whose connections stay within the process: the verbs of
// package verbs with all their checks, and no network. Tests of packages above verbs use
// it, also to inject faults (Options.Fault).
package loop

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/internal/backlog"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Limits of every loop provider.
const (
	maxSGE     = 32
	maxMessage = 16 << 20
	maxReads   = 128
	maxWindows = 1 << 16 // of a connection
	maxQueued  = 128
	depth      = 256 // of queues, unless Params say otherwise
	reads      = 16  // depth of RDMA Reads, unless Params say otherwise
)

// Network joins providers: an address listened to by one can be dialed by the
// others. The zero Network is ready for use.
type Network struct {
	mu        sync.Mutex
	listeners map[netip.AddrPort]*listener
	port      uint16
	handle    atomic.Uint32
	qp        atomic.Uint32
}

// Options of a provider.
type Options struct {
	// Network is the network of the provider; nil is one of its own.
	Network *Network
	// Async executes work requests on a goroutine of the connection, as a network
	// would, not on the goroutine that posts them.
	Async bool
	// OwnMemory takes the capability AnyMemory away: then memory that is not
	// from Alloc is refused with StatusLocalProtection.
	OwnMemory bool
	// NoOffsets makes Register refuse every offset but OffsetAny, NoWindows and
	// NoInvalidate take those capabilities away.
	NoOffsets, NoWindows, NoInvalidate bool
	// MaxSGE reduces the capability MaxSGE, if it is not zero.
	MaxSGE int
	// Fault returns the fault for each work request, in the order in which a
	// connection executes them. Nil is no faults.
	Fault func(e Event) Fault
}

// Event is a work request that is about to be executed.
type Event struct {
	Info   verbs.Info // of the connection
	Dialed bool       // the connection's side: the one that dialed
	Op     verbs.Op
	Length int    // bytes
	Number uint64 // of the request on this connection and side, from 0
}

// Fault is what happens to a work request. The zero Fault has no effect.
type Fault struct {
	Status     verbs.Status  // if not zero, the request fails with it, and the connection too
	Disconnect bool          // the connection ends before it
	Delay      time.Duration // of this request and of those after it
}

// Provider is a verbs.Provider. Make it with New.
type Provider struct {
	opts Options
	net  *Network

	mu        sync.Mutex
	closed    bool
	conns     map[*conn]struct{}
	listeners map[*listener]struct{}
	memory    map[*byte]int // from Alloc, if OwnMemory
}

// New returns a provider.
func New(opts Options) *Provider {
	if opts.Network == nil {
		opts.Network = new(Network)
	}
	if opts.MaxSGE <= 0 || opts.MaxSGE > maxSGE {
		opts.MaxSGE = maxSGE
	}
	return &Provider{
		opts: opts, net: opts.Network, conns: make(map[*conn]struct{}),
		listeners: make(map[*listener]struct{}), memory: make(map[*byte]int),
	}
}

// Name returns "loop".
func (p *Provider) Name() string { return "loop" }

// Caps returns all capabilities that Options do not take away.
func (p *Provider) Caps() verbs.Caps {
	return verbs.Caps{
		AnyMemory: !p.opts.OwnMemory, MemoryWindows: !p.opts.NoWindows, SendInvalidate: !p.opts.NoInvalidate,
		MaxSGE: p.opts.MaxSGE, MaxMessage: maxMessage, MaxReads: maxReads,
	}
}

// Alloc returns memory.
func (p *Provider) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, errors.New("loop: negative size")
	}
	b := make([]byte, n, max(n, 1))
	if p.opts.OwnMemory {
		p.mu.Lock()
		p.memory[&b[:1][0]] = n
		p.mu.Unlock()
	}
	return b, nil
}

// Free gives memory back.
func (p *Provider) Free(b []byte) {
	if p.opts.OwnMemory && cap(b) > 0 {
		p.mu.Lock()
		delete(p.memory, &b[:1][0])
		p.mu.Unlock()
	}
}

// owns reports whether b lies in memory from Alloc.
func (p *Provider) owns(b []byte) bool {
	if !p.opts.OwnMemory || len(b) == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for base, n := range p.memory {
		if within(b, base, n) {
			return true
		}
	}
	return false
}

// Close ends all connections and listeners.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	conns := make([]*conn, 0, len(p.conns))
	for c := range p.conns {
		conns = append(conns, c)
	}
	listeners := make([]*listener, 0, len(p.listeners))
	for l := range p.listeners {
		listeners = append(listeners, l)
	}
	p.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range conns {
		_ = c.Close()
	}
	return nil
}

type listener struct {
	p     *Provider
	addr  netip.AddrPort
	queue chan *request
	done  chan struct{}
	once  sync.Once
}

// Listen accepts connections at an address.
func (p *Provider) Listen(ctx context.Context, local netip.AddrPort) (verbs.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !local.IsValid() {
		local = netip.MustParseAddrPort("127.0.0.1:0")
	}
	l := &listener{p: p, queue: make(chan *request, maxQueued), done: make(chan struct{})}
	n := p.net
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = make(map[netip.AddrPort]*listener)
	}
	if local.Port() == 0 {
		for tries := 0; ; tries++ {
			if tries > 0xffff {
				return nil, errors.New("loop: no free port")
			}
			n.port++
			local = netip.AddrPortFrom(local.Addr(), n.port|0x8000)
			if n.listeners[local] == nil {
				break
			}
		}
	} else if n.listeners[local] != nil {
		return nil, errors.New("loop: address in use")
	}
	l.addr = local
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, verbs.ErrClosed
	}
	p.listeners[l] = struct{}{}
	n.listeners[local] = l
	return l, nil
}

func (l *listener) Addr() netip.AddrPort { return l.addr }

func (l *listener) Accept(ctx context.Context) (verbs.Request, error) {
	r, err := backlog.Next(ctx, l.queue, l.done)
	if err != nil {
		return nil, err // not a nil *request in an interface
	}
	return r, nil
}

func (l *listener) Close() error {
	l.once.Do(func() {
		l.p.net.mu.Lock()
		delete(l.p.net.listeners, l.addr)
		l.p.net.mu.Unlock()
		l.p.mu.Lock()
		delete(l.p.listeners, l)
		l.p.mu.Unlock()
		close(l.done)
		for {
			select {
			case r := <-l.queue:
				_ = r.Reject(nil)
			default:
				return
			}
		}
	})
	return nil
}

// request is a connection request. It is accepted or rejected once.
type request struct {
	l      *listener
	dialer *Provider
	from   netip.AddrPort
	params verbs.Params
	answer chan answer
	state  atomic.Bool // decided, or given up
}

type answer struct {
	c   *conn
	err error
}

// Dial connects to a listener of the same network.
func (p *Provider) Dial(ctx context.Context, remote netip.AddrPort, params verbs.Params) (verbs.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p.net.mu.Lock()
	l := p.net.listeners[remote]
	p.net.port++
	port := p.net.port | 0x8000
	p.net.mu.Unlock()
	if l == nil {
		return nil, &verbs.RejectError{Reason: "nobody listens at " + remote.String()}
	}
	r := &request{l: l, dialer: p, params: params, from: netip.AddrPortFrom(remote.Addr(), port), answer: make(chan answer, 1)}
	r.params.PrivateData = append([]byte(nil), params.PrivateData...)
	select {
	case l.queue <- r:
	default:
		return nil, &verbs.RejectError{Reason: "the listener's queue is full"}
	}
	select {
	case a := <-r.answer:
		if a.err != nil {
			return nil, a.err
		}
		return a.c, nil
	case <-l.done:
		if r.state.CompareAndSwap(false, true) {
			return nil, &verbs.RejectError{Reason: "the listener has closed"}
		}
	case <-ctx.Done():
		if r.state.CompareAndSwap(false, true) {
			return nil, ctx.Err()
		}
	}
	a := <-r.answer // it was decided in the same moment
	if a.err != nil {
		return nil, a.err
	}
	return a.c, nil
}

func (r *request) PrivateData() []byte        { return r.params.PrivateData }
func (r *request) RemoteAddr() netip.AddrPort { return r.from }
func (r *request) LocalAddr() netip.AddrPort  { return r.l.addr }
func (r *request) ResponderResources() uint8  { return orDefault(r.params.ResponderResources) }
func (r *request) InitiatorDepth() uint8      { return orDefault(r.params.InitiatorDepth) }

func orDefault(n uint8) uint8 {
	if n == 0 {
		return reads
	}
	return min(n, maxReads)
}

func (r *request) Reject(privateData []byte) error {
	if !r.state.CompareAndSwap(false, true) {
		return verbs.ErrDisconnected
	}
	r.answer <- answer{err: &verbs.RejectError{Reason: "rejected", PrivateData: append([]byte(nil), privateData...)}}
	return nil
}

func (r *request) Accept(ctx context.Context, params verbs.Params) (verbs.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !r.state.CompareAndSwap(false, true) {
		return nil, verbs.ErrDisconnected
	}
	active := newConn(r.dialer, r.params, true)
	passive := newConn(r.l.p, params, false)
	active.peer, passive.peer = passive, active
	describe := func(c, peer *conn, local, remote netip.AddrPort) {
		c.info = verbs.Info{
			Fabric: "loop", Local: local, Remote: remote, LocalQP: c.qp, RemoteQP: peer.qp, MTU: 4096,
			ResponderResources: min(orDefault(c.params.ResponderResources), orDefault(peer.params.InitiatorDepth)),
			InitiatorDepth:     min(orDefault(c.params.InitiatorDepth), orDefault(peer.params.ResponderResources)),
			PrivateData:        append([]byte(nil), peer.params.PrivateData...),
		}
	}
	describe(active, passive, r.from, r.l.addr)
	describe(passive, active, r.l.addr, r.from)
	var err error
	for _, c := range []*conn{active, passive} {
		if err == nil {
			err = c.PostRecv(c.params.Recvs...)
		}
		if err == nil {
			err = c.p.add(c)
		}
		c.params.Recvs = nil
	}
	if err != nil {
		_ = active.Close()
		_ = passive.Close()
		r.answer <- answer{err: err}
		return nil, err
	}
	for _, c := range []*conn{active, passive} {
		if c.p.opts.Async {
			go c.work()
		}
	}
	r.answer <- answer{c: active}
	return passive, nil
}

func (p *Provider) add(c *conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return verbs.ErrClosed
	}
	p.conns[c] = struct{}{}
	return nil
}
