package rocev2

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/internal/backlog"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// listener hands out connection requests for one service.
type listener struct {
	m       *cm
	addr    netip.AddrPort
	pending int // requests not answered; m.mu
	queue   chan *request
	// answers are the terms on which the listener answers requests itself; nil if
	// the consumer does. m.mu
	answers *verbs.Params
	once    sync.Once
	closed  chan struct{}
}

func (m *cm) listen(addr netip.AddrPort) (*listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, verbs.ErrClosed
	}
	for chosen := addr.Port() != 0; ; {
		if !chosen {
			addr = netip.AddrPortFrom(addr.Addr(), uint16(20000+rand.IntN(40000)))
		}
		if m.listeners[addr] == nil {
			break
		}
		if chosen {
			return nil, fmt.Errorf("rocev2: %v: service is in use", addr)
		}
	}
	// Dead requests occupy the queue until Accept skips them.
	l := &listener{m: m, addr: addr, queue: make(chan *request, 2*m.p.opt.Backlog), closed: make(chan struct{})}
	m.listeners[addr] = l
	return l, nil
}

// push queues a request. mu is held.
func (l *listener) push(r *request) {
	for {
		select {
		case l.queue <- r:
			return
		default:
		}
		// The queue is full of dead requests.
		select {
		case old := <-l.queue:
			switch old.id.state {
			case cmReqRcvd:
				l.m.remove(old.id)
			case cmReady:
				l.m.endReady(old.id)
			}
		default:
		}
	}
}

func (l *listener) end() { l.once.Do(func() { close(l.closed) }) }

// Addr implements verbs.Listener.
func (l *listener) Addr() netip.AddrPort { return l.addr }

// Accept implements verbs.Listener.
func (l *listener) Accept(ctx context.Context) (verbs.Request, error) {
	for {
		r, err := backlog.Next(ctx, l.queue, l.closed)
		if err != nil {
			return nil, err
		}
		if r.alive() {
			return r, nil
		}
	}
}

// Close implements verbs.Listener.
func (l *listener) Close() error {
	l.end()
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if l.m.listeners[l.addr] == l {
		delete(l.m.listeners, l.addr)
	}
	// Requests that nobody has accepted.
	for {
		select {
		case r := <-l.queue:
			switch r.id.state {
			case cmReqRcvd:
				l.m.reject(r.id.s, r.id.peer, r.tid, r.id.local, r.id.remote, ibcm.RejectedREQ, ibcm.ReasonInvalidServiceID, nil)
				l.m.remove(r.id)
			case cmReady:
				l.m.endReady(r.id)
			}
		default:
			return nil
		}
	}
}

// Answer implements verbs.Answerer.
func (l *listener) Answer(p verbs.Params) error {
	if len(p.PrivateData) > repPrivateMax {
		return fmt.Errorf("rocev2: private data of %d bytes: a reply has room for %d", len(p.PrivateData), repPrivateMax)
	}
	p.PrivateData, p.Recvs = append([]byte(nil), p.PrivateData...), nil
	l.m.mu.Lock()
	l.answers = &p
	l.m.mu.Unlock()
	return nil
}

// request is a REQ that waits for its answer.
type request struct {
	id               *cmID
	m                *cm
	listener         *listener
	tid              uint64
	local, remote    netip.AddrPort
	private          []byte
	resources, depth uint8
	psn              uint32
	mtu              int
	ackTimeout       uint8
	// For a request that the listener has answered: the answer, and packets that
	// have arrived for the queue pair since. Protected by m.mu.
	answered *embryo
	early    [][]byte
}

func (r *request) alive() bool {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.id.state == cmReqRcvd || r.id.state == cmReady
}

// PrivateData implements verbs.Request.
func (r *request) PrivateData() []byte { return r.private }

// RemoteAddr implements verbs.Request.
func (r *request) RemoteAddr() netip.AddrPort { return r.remote }

// LocalAddr implements verbs.Request.
func (r *request) LocalAddr() netip.AddrPort { return r.local }

// ResponderResources implements verbs.Request.
func (r *request) ResponderResources() uint8 { return r.resources }

// InitiatorDepth implements verbs.Request.
func (r *request) InitiatorDepth() uint8 { return r.depth }

// Accept implements verbs.Request. It returns when the peer has confirmed.
func (r *request) Accept(ctx context.Context, p verbs.Params) (verbs.Conn, error) {
	c, err := r.m.accept(ctx, r, &p)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Reject implements verbs.Request.
func (r *request) Reject(private []byte) error {
	if len(private) > rejPrivateMax {
		return fmt.Errorf("rocev2: private data of %d bytes: a rejection has room for %d", len(private), rejPrivateMax)
	}
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.id.state == cmReady {
		r.m.endReady(r.id) // the REP has been sent, so this has to disconnect
		return nil
	}
	if r.id.state != cmReqRcvd {
		return verbs.ErrDisconnected
	}
	r.id.rejection = r.m.reject(r.id.s, r.id.peer, r.tid, r.id.local, r.id.remote, ibcm.RejectedREQ, ibcm.ReasonConsumerDefined, private)
	r.m.remove(r.id)
	return nil
}
