package rocev2

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/unguessable"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// linger bounds how long Close waits for peers to confirm disconnection.
const linger = 300 * time.Millisecond

// Stats counts problems.
type Stats struct {
	Malformed uint64 // packets dropped: malformed, or of an unknown kind
	BadICRC   uint64 // packets dropped
	NoQP      uint64 // packets dropped: for no queue pair of ours, or not from its peer
	Gaps      uint64 // losses that a NAK of the peer or a gap in the PSNs showed
	Timeouts  uint64 // retransmissions because there was no answer
	// HalfOpen is how many connection requests are answered but not confirmed at
	// present. Evicted counts earlier ones that were replaced by others, Expired
	// those that were dropped after Options.HalfOpenTime.
	HalfOpen, Evicted, Expired uint64
}

// Provider implements verbs.Provider.
type Provider struct {
	opt  Options
	cm   cm
	guid uint64

	stats struct{ Malformed, BadICRC, NoQP, Gaps, Timeouts, Evicted, Expired atomic.Uint64 }

	mu      sync.Mutex
	sockets map[netip.Addr]*socket
	conns   map[uint32]*Conn
	qpns    *unguessable.Sequence // of 24 bits
	closed  bool

	handles *unguessable.Sequence // of 32 bits, of the memory of all connections
}

// New returns a provider. It opens sockets when they are needed.
func New(opt Options) (*Provider, error) {
	if err := opt.setDefaults(); err != nil {
		return nil, err
	}
	p := &Provider{opt: opt, sockets: make(map[netip.Addr]*socket), conns: make(map[uint32]*Conn)}
	// A GUID of its own, so that peers never take new queue pairs for those of
	// an earlier run. The bit says that it is not assigned by a vendor.
	p.guid = unguessable.Uint64() | 0x0200000000000000
	p.qpns = unguessable.NewSequence(24)
	p.handles = unguessable.NewSequence(32)
	p.cm.init(p)
	return p, nil
}

// Name implements verbs.Provider.
func (p *Provider) Name() string { return "rocev2" }

// Caps implements verbs.Provider.
func (p *Provider) Caps() verbs.Caps {
	return verbs.Caps{
		AnyMemory: true, MemoryWindows: true, SendInvalidate: true,
		MaxSGE: maxSGE, MaxMessage: maxMessage, MaxReads: maxDepth,
		Buffers: 32 << 10,
	}
}

// Stats returns counts since the start.
func (p *Provider) Stats() Stats {
	s := &p.stats
	p.cm.mu.Lock()
	half := p.cm.half.table.Len()
	p.cm.mu.Unlock()
	return Stats{
		HalfOpen: uint64(half), Evicted: s.Evicted.Load(), Expired: s.Expired.Load(),
		Malformed: s.Malformed.Load(), BadICRC: s.BadICRC.Load(), NoQP: s.NoQP.Load(),
		Gaps: s.Gaps.Load(), Timeouts: s.Timeouts.Load(),
	}
}

func (p *Provider) count(n *atomic.Uint64) { n.Add(1) }

// Alloc implements verbs.Provider.
func (p *Provider) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("rocev2: memory of %d bytes", n)
	}
	return make([]byte, n), nil
}

// Free implements verbs.Provider. The garbage collector does it.
func (p *Provider) Free([]byte) {}

// socket returns the socket of a local address, and opens one if there is none.
func (p *Provider) socket(addr netip.Addr) (*socket, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, verbs.ErrClosed
	}
	if s := p.sockets[addr]; s != nil {
		return s, nil
	}
	s, err := newSocket(p, addr)
	if err != nil {
		return nil, err
	}
	p.sockets[addr] = s
	return s, nil
}

// route returns the local address from which remote is reached.
func (p *Provider) route(remote netip.Addr) (netip.Addr, error) {
	if l := p.opt.Local; l.IsValid() {
		if l.Unmap().Is4() != remote.Is4() {
			return l, fmt.Errorf("rocev2: no way from %v to %v", l, remote)
		}
		return l.Unmap(), nil
	}
	c, err := net.Dial("udp", netip.AddrPortFrom(remote, p.opt.PeerPort).String())
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// newQPN returns the number of a new queue pair. No number is reused before all others
// have been used.
func (p *Provider) newQPN() uint32 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.newQPNLocked()
}

func (p *Provider) newQPNLocked() uint32 {
	for {
		if n := p.qpns.Next(); n > 16 && n != psnMask && p.conns[n] == nil {
			return n
		}
	}
}

var errQPN = errors.New("rocev2: the number of the queue pair is in use")

// addConn assigns a number to a queue pair, unless it has one, and makes it known to its
// socket.
func (p *Provider) addConn(s *socket, c *Conn) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return verbs.ErrClosed
	}
	if c.qpn == 0 {
		c.qpn = p.newQPNLocked()
	} else if p.conns[c.qpn] != nil {
		return errQPN
	}
	p.conns[c.qpn] = c
	s.mu.Lock()
	s.conns[c.qpn] = c
	s.mu.Unlock()
	return nil
}

func (p *Provider) removeConn(c *Conn) {
	p.mu.Lock()
	if p.conns[c.qpn] == c {
		delete(p.conns, c.qpn)
	}
	p.mu.Unlock()
	c.s.mu.Lock()
	if c.s.conns[c.qpn] == c {
		delete(c.s.conns, c.qpn)
	}
	c.s.mu.Unlock()
}

// Dial implements verbs.Provider. The port of remote names the service
// (20049 is NFS); the UDP port is Options.PeerPort.
func (p *Provider) Dial(ctx context.Context, remote netip.AddrPort, params verbs.Params) (verbs.Conn, error) {
	remote = netip.AddrPortFrom(remote.Addr().Unmap(), remote.Port())
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(params.PrivateData) > reqPrivateMax {
		return nil, fmt.Errorf("rocev2: private data of %d bytes: a request has room for %d", len(params.PrivateData), reqPrivateMax)
	}
	local, err := p.route(remote.Addr())
	if err != nil {
		return nil, err
	}
	s, err := p.socket(local)
	if err != nil {
		return nil, err
	}
	c, err := newConn(s, &params)
	if err != nil {
		return nil, err
	}
	if err := p.cm.dial(ctx, c, remote, &params); err != nil {
		c.Close() //nolint:errcheck // it never was
		return nil, err
	}
	return c, nil
}

// Listen implements verbs.Provider. The port of local names the service;
// the UDP port is Options.Port. An unspecified address stands for all addresses
// that the machine has now.
func (p *Provider) Listen(ctx context.Context, local netip.AddrPort) (verbs.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	addr := local.Addr().Unmap()
	if !addr.IsValid() {
		return nil, errors.New("rocev2: Listen needs an address")
	}
	addrs := []netip.Addr{addr}
	if addr.IsUnspecified() {
		addrs = addrs[:0]
		list, err := net.InterfaceAddrs()
		if err != nil {
			return nil, err
		}
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok {
				ip, _ := netip.AddrFromSlice(n.IP)
				if ip = ip.Unmap(); (ip.Is4() || addr.Is6()) && !ip.IsLinkLocalUnicast() {
					addrs = append(addrs, ip)
				}
			}
		}
	}
	for _, a := range addrs {
		if _, err := p.socket(a); err != nil {
			return nil, err
		}
	}
	return p.cm.listen(netip.AddrPortFrom(addr, local.Port()))
}

// Close implements verbs.Provider.
func (p *Provider) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	conns := make([]*Conn, 0, len(p.conns))
	for _, c := range p.conns {
		conns = append(conns, c)
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.Close() //nolint:errcheck // never fails
	}
	p.cm.close()
	for _, s := range p.sockets {
		s.close()
	}
	return nil
}
