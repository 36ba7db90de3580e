//go:build verbs && cgo && linux

package rdma

// #include "lib.h"
import "C"

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"syscall"

	"github.com/rpcrdma/toolkit/replay/internal/arena"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// vendorSIW is the vendor ID of the kernel's soft iWARP device. Its offsets are always
// addresses, and a peer may read everything that has a handle.
const vendorSIW = 0x626d74

// vendorRXE is the vendor ID of its soft RoCE. It closes windows on demand, but does not
// tell in the completion.
const vendorRXE = 0xffffff

// provider is a connection manager's event channel with its identifiers.
type provider struct {
	opts Options
	caps verbs.Caps
	mem  arena.Pool

	channel *C.struct_rdma_event_channel
	file    *os.File      // of the channel, for waiting
	done    chan struct{} // events has returned
	closing chan struct{} // Close was called

	mu     sync.Mutex
	closed bool
	token  uint64 // of the last identifier
	ids    map[uint64]*cmID
	live   sync.WaitGroup // identifiers that exist
}

// New makes a provider. It fails if the libraries or devices are missing.
func New(o Options) (verbs.Provider, error) {
	if err := load(); err != nil {
		return nil, err
	}
	list, err := devices()
	if err != nil {
		return nil, err
	}
	p := &provider{opts: o, caps: capsOf(list), ids: make(map[uint64]*cmID), done: make(chan struct{}), closing: make(chan struct{})}
	p.mem.Release = p.release
	var fd C.int
	if err := errno("creating an event channel", C.rc_channel(&p.channel, &fd)); err != nil {
		return nil, err
	}
	if p.file, err = dupFile(int(fd), "rdma_cm"); err != nil {
		C.rc_channel_free(p.channel)
		return nil, err
	}
	go p.events()
	return p, nil
}

// dupFile duplicates a descriptor of a library, so that Go can wait for it.
func dupFile(fd int, name string) (*os.File, error) {
	dup, err := syscall.Dup(fd)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	syscall.CloseOnExec(dup)
	return os.NewFile(uintptr(dup), name), nil
}

// capsOf returns what all devices support.
func capsOf(list []Device) verbs.Caps {
	c := verbs.Caps{MemoryWindows: true, SendInvalidate: true, WindowsAtAddress: true, Invalidates: verbs.InvalidatesWindows, MaxSGE: 16, MaxMessage: 1 << 30, MaxReads: 255}
	for i := range list {
		d := &list[i]
		c.MemoryWindows = c.MemoryWindows && d.Windows
		if d.Vendor == vendorRXE {
			c.Invalidates = verbs.InvalidatesNothing
		}
		c.MaxSGE = max(min(c.MaxSGE, d.MaxSGE), 1)
		c.MaxReads = min(c.MaxReads, d.MaxReads)
		if d.MaxMessage > 0 {
			c.MaxMessage = int(min(uint64(c.MaxMessage), d.MaxMessage))
		}
	}
	return c
}

func (p *provider) Name() string     { return "rdma" }
func (p *provider) Caps() verbs.Caps { return p.caps }

func (p *provider) Alloc(n int) ([]byte, error) { return p.mem.Alloc(n) }
func (p *provider) Free(b []byte)               { p.mem.Free(b) }

// release closes what connections have registered of a block.
func (p *provider) release(b *arena.Block) {
	p.mu.Lock()
	var conns []*conn
	for _, x := range p.ids {
		if c := x.conn.Load(); c != nil {
			conns = append(conns, c)
		}
	}
	p.mu.Unlock()
	for _, c := range conns {
		c.forget(b)
	}
}

// newID makes an identifier.
func (p *provider) newID() (*cmID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, verbs.ErrClosed
	}
	p.token++
	x := &cmID{p: p, token: p.token, steps: make(chan event, 4)}
	if err := errno("creating an identifier", C.rc_id(p.channel, C.uint64_t(x.token), &x.id)); err != nil {
		return nil, err
	}
	p.ids[x.token] = x
	p.live.Add(1)
	return x, nil
}

// events reads the channel until it is closed.
func (p *provider) events() {
	defer close(p.done)
	raw, err := p.file.SyscallConn()
	if err != nil {
		return
	}
	var ev C.struct_rc_event
	for {
		var rc C.int
		next := p.nextToken()
		if raw.Read(func(uintptr) bool {
			rc = C.rc_next(p.channel, C.uint64_t(next), &ev)
			return rc != -C.int(syscall.EAGAIN)
		}) != nil {
			return
		}
		if rc == 0 {
			p.dispatch(&ev)
		}
	}
}

func (p *provider) nextToken() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.token++
	return p.token
}

func (p *provider) dispatch(ev *C.struct_rc_event) {
	e := event{
		kind: int(ev._type), status: int(ev.status), param: ev.has_param != 0,
		responderResources: uint8(ev.responder_resources), initiatorDepth: uint8(ev.initiator_depth),
		privateData: bytes(&ev.private_data[0], int(ev.private_len)),
	}
	p.mu.Lock()
	if e.kind == C.RDMA_CM_EVENT_CONNECT_REQUEST {
		x := &cmID{p: p, token: uint64(ev.token), id: ev.id, steps: make(chan event, 4)}
		x.request = &request{id: x, offer: e, local: x.addr(0), remote: x.addr(1)}
		p.ids[x.token] = x
		p.live.Add(1)
		l := p.ids[uint64(ev.listen)]
		p.mu.Unlock()
		if l == nil || l.listener == nil || !l.listener.add(x.request) {
			x.request.Reject(nil) //nolint:errcheck // nobody listens any more
		}
		return
	}
	x := p.ids[uint64(ev.token)]
	p.mu.Unlock()
	if x == nil {
		return
	}
	if c := x.conn.Load(); c != nil {
		c.event(e)
		return
	}
	select {
	case x.steps <- e:
	default: // nobody waits for that many
	}
}

// Dial implements verbs.Provider. The connection manager chooses the local port
// without regard to TCP, so that with the kernel's siw it may choose the port of an earlier
// connection to the same peer. Another attempt then gets another port.
func (p *provider) Dial(ctx context.Context, remote netip.AddrPort, params verbs.Params) (c verbs.Conn, err error) {
	for range 8 {
		if c, err = p.dial(ctx, remote, params); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return c, err
}

func (p *provider) dial(ctx context.Context, remote netip.AddrPort, params verbs.Params) (verbs.Conn, error) {
	x, err := p.newID()
	if err != nil {
		return nil, err
	}
	c, err := x.dial(ctx, remote, params)
	if err != nil {
		if c != nil {
			c.Close() //nolint:errcheck // the first error counts
		} else {
			x.free()
		}
		return nil, err
	}
	return c, nil
}

func (p *provider) Listen(_ context.Context, local netip.AddrPort) (verbs.Listener, error) {
	x, err := p.newID()
	if err != nil {
		return nil, err
	}
	l := &listener{id: x, requests: make(chan *request, maxQueued), closed: make(chan struct{})}
	p.mu.Lock()
	x.listener = l
	p.mu.Unlock()
	if err := l.bind(local); err != nil {
		l.Close() //nolint:errcheck // never fails
		if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EADDRNOTAVAIL) {
			err = fmt.Errorf("%w (no RDMA device has this address)", err)
		}
		return nil, err
	}
	return l, nil
}

func (p *provider) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		<-p.done
		return nil
	}
	p.closed = true
	close(p.closing)
	var conns []*conn
	var listeners []*listener
	var requests []*request
	for _, x := range p.ids {
		if c := x.conn.Load(); c != nil {
			conns = append(conns, c)
		}
		if x.listener != nil {
			listeners = append(listeners, x.listener)
		}
		if x.request != nil {
			requests = append(requests, x.request)
		}
	}
	p.mu.Unlock()
	for _, l := range listeners {
		l.Close() //nolint:errcheck // never fails
	}
	for _, c := range conns {
		c.Close() //nolint:errcheck // there is nobody to tell
	}
	for _, r := range requests {
		r.Reject(nil) //nolint:errcheck // it may have been answered
	}
	// What is being set up ends by itself: each step looks at closing.
	p.live.Wait()
	p.file.Close() //nolint:errcheck // a descriptor of ours
	<-p.done
	C.rc_channel_free(p.channel)
	p.mem.Close()
	return nil
}
