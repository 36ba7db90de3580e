package iwarp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/internal/unguessable"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Options of a Provider. The zero value interoperates with all peers that we know.
type Options struct {
	// Revision is the MPA revision that Dial uses: 1, or 2, which negotiates the
	// depths of Reads (RFC 6581). 0 means 2, with a second attempt in revision 1 if
	// the peer answers with that.
	Revision uint8
	// CRC says whether this side asks for CRCs. They are used if either side asks
	// for them (RFC 5044, section 7.1).
	CRC CRC
	// Markers asks the peer to send markers. We send them whenever the peer asks.
	Markers bool
	// MaxULPDU is the size in bytes of the largest payload of the FPDUs that we
	// send: at most 65535; 0 is DefaultULPDU. FPDUs of the peer may have any size.
	MaxULPDU int
	// NoPeerToPeer makes Dial not ask for the peer-to-peer model of RFC 6581. The
	// accepting side then has to wait for the first message of the dialing side,
	// and this package does wait.
	NoPeerToPeer bool
	// RTR is the set of ready-to-receive messages that we offer and accept. 0 means
	// RTRWrite|RTRRead, like Linux.
	RTR RTR
	// Stall is how long a peer may fail to read what we send, or to continue an FPDU or Send that it
	// has begun, before the connection is closed; 0 means 30 seconds. For an FPDU or Send, it may take twice as long.
	Stall time.Duration
	// Setup is how long a peer that connects may take for its MPA Request; 0 means
	// 5 seconds.
	Setup time.Duration
	// HalfOpen bounds the number of peers of a listener that have connected and were
	// not answered yet. Each costs a descriptor and a goroutine. Beyond it, the
	// oldest one of the address that has the most is disconnected. 0 means 4096.
	HalfOpen int
	// Dial, if set, makes the connections of Provider.Dial in the place of net.Dialer.
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Tap, if set, receives all packets, as if they had been captured.
	Tap verbs.Tap
	// Link is a model of a network, applied to what is sent.
	Link verbs.Link
	// Wrap, if set, may wrap the socket of a connection, to inject faults. Such
	// connections are slower.
	Wrap func(net.Conn) net.Conn
}

// CRC says whether to ask for CRCs.
type CRC uint8

// Choices.
const (
	CRCDefault CRC = iota // CRCOff
	CRCOff                // like Linux: off unless the peer asks
	CRCOn                 // asks for them
)

// RTR is a set of ready-to-receive messages (RFC 6581 9.1).
type RTR uint8

// Ready-to-receive messages.
const (
	RTRWrite RTR = 1 << iota // an RDMA Write of zero bytes
	RTRRead                  // an RDMA Read of zero bytes
	RTRSend                  // a Send of zero bytes, which takes no receive
)

// DefaultULPDU is the default of Options.MaxULPDU. It makes tagged segments of 63 KiB: each is a system call of the
// receiver, and 64 KiB with their header are too long for an FPDU.
// The siw driver of Linux accepts any size.
const DefaultULPDU = iwarp.TaggedLen + 63<<10

// ULPDU returns the MaxULPDU of FPDUs that have at most n bytes of data; 0 for 0.
func ULPDU(data int) int {
	if data == 0 {
		return 0
	}
	return iwarp.UntaggedLen + data
}

// Limits.
const (
	maxSGE      = 16
	maxMessage  = 1<<31 - 1
	maxReads    = 128 // as in siw
	defaultRead = 32
	minULPDU    = 128
	maxRevision = 2
)

// Provider is a soft iWARP provider.
type Provider struct {
	o     Options
	wg    sync.WaitGroup
	stags *unguessable.Sequence
	stats struct{ evicted, expired atomic.Uint64 }

	mu     sync.Mutex
	closed bool
	open   map[closer]struct{} // listeners, connections, setups under way
}

type closer interface{ abort() }

// New returns a Provider. It fails if the options violate the protocol.
func New(o Options) (*Provider, error) {
	if o.Revision > maxRevision {
		return nil, fmt.Errorf("iwarp: no MPA revision %d", o.Revision)
	}
	if o.MaxULPDU == 0 {
		o.MaxULPDU = DefaultULPDU
	}
	if o.MaxULPDU < minULPDU || o.MaxULPDU > iwarp.MaxULPDU {
		return nil, fmt.Errorf("iwarp: ULPDUs of %d bytes: %d to %d are possible", o.MaxULPDU, minULPDU, iwarp.MaxULPDU)
	}
	if o.RTR == 0 {
		o.RTR = RTRWrite | RTRRead
	}
	if o.Stall == 0 {
		o.Stall = 30 * time.Second
	}
	if o.Setup == 0 {
		o.Setup = 5 * time.Second
	}
	if o.HalfOpen <= 0 {
		o.HalfOpen = 4096
	}
	p := &Provider{o: o, open: make(map[closer]struct{}), stags: unguessable.NewSequence(32)}
	return p, nil
}

// Stats counts peers that connected to listeners and were not answered: Evicted were
// replaced by others, Expired sent no MPA Request in time.
type Stats struct{ Evicted, Expired uint64 }

// Stats returns counts since the start.
func (p *Provider) Stats() Stats {
	return Stats{Evicted: p.stats.evicted.Load(), Expired: p.stats.expired.Load()}
}

// Name implements verbs.Provider.
func (p *Provider) Name() string { return "iwarp" }

// Caps implements verbs.Provider.
func (p *Provider) Caps() verbs.Caps {
	return verbs.Caps{
		AnyMemory: true, MemoryWindows: true, SendInvalidate: true,
		MaxSGE: maxSGE, MaxMessage: maxMessage, MaxReads: maxReads,
		Buffers: txHeaders + 32<<10,
	}
}

// Alloc implements verbs.Provider.
func (p *Provider) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, errors.New("iwarp: negative size")
	}
	return make([]byte, n), nil
}

// Free implements verbs.Provider.
func (p *Provider) Free([]byte) {}

// Close implements verbs.Provider.
func (p *Provider) Close() error {
	p.mu.Lock()
	p.closed = true
	all := make([]closer, 0, len(p.open))
	for c := range p.open {
		all = append(all, c)
	}
	p.mu.Unlock()
	for _, c := range all {
		c.abort()
	}
	p.wg.Wait()
	return nil
}

// enter registers something that Close has to end. It reports false after Close. Its
// goroutines, of that number, have to call p.wg.Done.
func (p *Provider) enter(c closer, goroutines int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.open[c] = struct{}{}
	p.wg.Add(goroutines)
	return true
}

func (p *Provider) leave(c closer) {
	p.mu.Lock()
	delete(p.open, c)
	p.mu.Unlock()
}

// setup is a socket whose MPA setup is not complete.
type setup struct{ net.Conn }

func (s *setup) abort() { s.Conn.Close() }

// Dial implements verbs.Provider.
func (p *Provider) Dial(ctx context.Context, remote netip.AddrPort, params verbs.Params) (verbs.Conn, error) {
	revision := p.o.Revision
	if revision == 0 {
		revision = maxRevision
	}
	c, err := p.dial(ctx, remote, &params, revision)
	if errors.Is(err, errRevision1) && p.o.Revision == 0 {
		c, err = p.dial(ctx, remote, &params, 1)
	}
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	return c, nil
}

func (p *Provider) dial(ctx context.Context, remote netip.AddrPort, params *verbs.Params, revision uint8) (*conn, error) {
	connect := p.o.Dial
	if connect == nil {
		connect = func(ctx context.Context, address string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", address)
		}
	}
	nc, err := connect(ctx, remote.String())
	if err != nil {
		return nil, err
	}
	s := &socket{Conn: nc, p: p, dialed: true}
	s.wrap()
	su := &setup{s}
	if !p.enter(su, 0) {
		s.Close()
		return nil, verbs.ErrClosed
	}
	defer p.leave(su)
	stop := context.AfterFunc(ctx, func() { s.SetDeadline(time.Unix(1, 0)) }) //nolint:errcheck // a socket has deadlines
	agreed, err := p.request(s, params, revision)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return p.start(s, params, agreed)
}
