package run

import (
	"context"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/callback"
)

// callbacks answers calls of the server.
func (e *engine) callbacks() callback.Handler {
	return callback.Handler{Recalled: e.inbox.recall, Cached: e.inbox.cached}
}

// listen answers callbacks of NFSv4.0 for the captures in which they made a
// difference.
func (e *engine) listen(ctx context.Context) {
	if len(e.lines.all) == 0 || !e.load.Delegates40() {
		return
	}
	at := e.lines.all[0].req.Peer().Local.Addr().Unmap()
	if !at.IsValid() {
		return
	}
	h := e.callbacks()
	h.Null = e.inbox.null
	l, err := callback.Listen(ctx, at, h)
	if err != nil {
		e.record.Note("no delegations of NFSv4.0: %v", err)
		return
	}
	e.probe.listener, e.codec.callback = l, l
	e.guard.Callback(l.Universal())
}

// awaitProbe holds a call back until the server has tried our address or a timeout has passed.
// After a timeout it does not wait for this server again.
func (e *engine) awaitProbe(c *call) {
	p := &e.probe
	p.confirmed++
	if tried, _ := e.inbox.probed(); tried >= p.confirmed {
		e.end(c)
		return
	}
	p.waiting = append(p.waiting, c)
	n := p.confirmed
	time.AfterFunc(e.opt.CallbackWait, func() { e.inbox.overdue(n) })
}

// probed ends the calls that have waited for CB_NULL.
func (e *engine) probed() {
	p := &e.probe
	if len(p.waiting) == 0 {
		return
	}
	tried, late := e.inbox.probed()
	p.silent = p.silent || late
	for len(p.waiting) > 0 && (e.stopping != "" || tried > p.confirmed-len(p.waiting)) {
		c := p.waiting[0]
		p.waiting = p.waiting[1:]
		e.end(c)
	}
}
