package fault

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"sync"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Provider puts the faults between an endpoint and its provider: those that
// change transport headers (RFC 8166, section 4.1) or receives.
func (p *Plan) Provider(v verbs.Provider) verbs.Provider {
	if !p.Wants(Credits, ErrChunk, RNR) {
		return v
	}
	return &provider{v, p}
}

type provider struct {
	verbs.Provider
	plan *Plan
}

func (p *provider) Dial(ctx context.Context, remote netip.AddrPort, q verbs.Params) (verbs.Conn, error) {
	held := p.plan.hold(&q)
	c, err := p.Provider.Dial(ctx, remote, q)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, plan: p.plan, held: held}, nil
}

func (p *provider) Listen(ctx context.Context, local netip.AddrPort) (verbs.Listener, error) {
	l, err := p.Provider.Listen(ctx, local)
	if err != nil {
		return nil, err
	}
	return &listener{l, p.plan}, nil
}

type listener struct {
	verbs.Listener
	plan *Plan
}

func (l *listener) Accept(ctx context.Context) (verbs.Request, error) {
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &request{r, l.plan}, nil
}

type request struct {
	verbs.Request
	plan *Plan
}

func (r *request) Accept(ctx context.Context, q verbs.Params) (verbs.Conn, error) {
	held := r.plan.hold(&q)
	c, err := r.Request.Accept(ctx, q)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, plan: r.plan, held: held}, nil
}

// hold holds receives back that must not be posted.
func (p *Plan) hold(q *verbs.Params) []verbs.RecvRequest {
	n := p.receives()
	if n == 0 || len(q.Recvs) <= n {
		return nil
	}
	held := slices.Clone(q.Recvs[n:])
	q.Recvs = q.Recvs[:n]
	p.count(RNR)
	return held
}

// conn changes what an endpoint sends. Receives that are held back replace those that
// the endpoint posts later, so that the number of receives posted does not grow.
type conn struct {
	verbs.Conn
	plan *Plan
	mu   sync.Mutex
	held []verbs.RecvRequest
}

func (c *conn) PostRecv(wrs ...verbs.RecvRequest) error {
	c.mu.Lock()
	if len(c.held) > 0 {
		// First in, first out, so that all buffers are used in turn.
		c.held = append(c.held, wrs...)
		wrs = slices.Clone(c.held[:len(wrs)])
		c.held = c.held[len(wrs):]
	}
	c.mu.Unlock()
	return c.Conn.PostRecv(wrs...)
}

// Offsets in the transport header.
const (
	creditsAt = 8
	typeAt    = 12
	errorAt   = 16
	errorEnd  = 20
	typeError = 4
	errChunk  = 2
)

func (c *conn) Post(wrs ...verbs.WorkRequest) error {
	changed := false
	for i := range wrs {
		w := &wrs[i]
		if w.Op != verbs.OpSend && w.Op != verbs.OpSendInvalidate || len(w.Local) == 0 || len(w.Local[0]) < errorEnd {
			continue
		}
		header := w.Local[0]
		for _, s := range c.plan.take(binary.BigEndian.Uint32(header)) {
			switch s.Action {
			case Credits:
				binary.BigEndian.PutUint32(header[creditsAt:], uint32(s.Number))
				c.plan.count(Credits)
			case ErrChunk:
				if !changed {
					wrs, changed = slices.Clone(wrs), true
					w = &wrs[i]
				}
				binary.BigEndian.PutUint32(header[typeAt:], typeError)
				binary.BigEndian.PutUint32(header[errorAt:], errChunk)
				w.Op, w.Handle, w.Local = verbs.OpSend, 0, [][]byte{header[:errorEnd]}
				c.plan.count(ErrChunk)
			}
		}
	}
	return c.Conn.Post(wrs...)
}
