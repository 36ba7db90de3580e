package guard

import (
	"context"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// Requester puts the guard before a connection: calls that it refuses are not sent, and their
// Err is a *Refused. The call must not change after Start or Do has been
// called, as transport.Call demands.
func (g *Guard) Requester(r transport.Requester) transport.Requester { return &requester{r, g} }

type requester struct {
	transport.Requester
	g *Guard
}

// Start implements transport.Requester.
func (r *requester) Start(c *transport.Call) {
	l, refused := r.g.check(&c.Message)
	if refused != nil {
		c.Err, c.Times = refused, transport.Times{Queued: time.Now()}
		if c.Done != nil {
			c.Done(c)
		}
		return
	}
	if !l.none() {
		p := r.g.pupil(l)
		p.next, c.Done = c.Done, p.done
	}
	r.Requester.Start(c)
}

// Do implements transport.Requester.
func (r *requester) Do(ctx context.Context, c *transport.Call) error {
	l, refused := r.g.check(&c.Message)
	if refused != nil {
		c.Err = refused
		return refused
	}
	err := r.Requester.Do(ctx, c)
	if err == nil && !l.none() {
		p := r.g.pupil(l)
		p.learn(&c.Reply)
		r.g.lessons.Put(p)
	}
	return err
}
