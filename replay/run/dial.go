package run

import (
	"context"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// dialAll makes the connections of a clone.
func (e *engine) dialAll(ctx context.Context, w *bindings.Clone) error {
	used := e.load.Used()
	captured := map[int]*line{}
	e.lines.captured = append(e.lines.captured, captured)
	var made []*line
	for i := range e.load.Tables.Connections {
		c := &e.load.Tables.Connections[i]
		if !used[c.ID] {
			continue
		}
		if c.Program == lockProgram {
			continue // they have a port of their own, and come last
		}
		if e.opt.Connections > 0 && len(made) >= e.opt.Connections {
			captured[c.ID] = made[len(captured)%len(made)]
			continue
		}
		l, err := e.dial(ctx, w, c)
		if err != nil {
			return err
		}
		if l.limit = e.opt.Slots; l.limit == 0 && !e.opt.Timing.Paced() {
			l.limit = max(1, c.MaxInFlight)
		}
		made = append(made, l)
		captured[c.ID] = l
	}
	for i := range e.load.Tables.Connections {
		c := &e.load.Tables.Connections[i]
		if c.Program != lockProgram || !used[c.ID] {
			continue
		}
		delete(used, c.ID)
		l, err := e.dial(ctx, w, c)
		if err != nil {
			// The server may have none, or nobody may use it: the rest goes on.
			e.record.Note("locks of NFSv3 are not replayed: %v", err)
			l = nil
		}
		captured[c.ID] = l
	}
	// More connections than captured: calls are spread round robin.
	for e.opt.Connections > len(made) && len(made) > 0 {
		l, err := e.dial(ctx, w, e.anyConnection())
		if err != nil {
			return err
		}
		l.limit = made[0].limit
		made = append(made, l)
	}
	if e.opt.Connections <= len(used) {
		made = nil
	}
	e.lines.round = append(e.lines.round, made)
	return nil
}

// anyConnection is a captured connection of NFS.
func (e *engine) anyConnection() *plan.Connection {
	for i := range e.load.Tables.Connections {
		if c := &e.load.Tables.Connections[i]; c.Program != lockProgram {
			return c
		}
	}
	return &e.load.Tables.Connections[0]
}

// dial makes a connection that is behind the guard.
func (e *engine) dial(ctx context.Context, w *bindings.Clone, c *plan.Connection) (*line, error) {
	req, err := e.opt.Dial(ctx, w.Number, c)
	if err != nil {
		return nil, err
	}
	if c.Program == lockProgram {
		req.Serve(&e.locks.grants)
	} else {
		req.Serve(e.callbacks())
	}
	whole := false // data have no chunks of their own
	if r, ok := req.(interface{ Reduces() bool }); ok {
		whole = !r.Reduces()
	}
	req = e.guard.Requester(req)
	l := &line{req: req, pool: &pool{req: req, free: map[int][][]byte{}}, plain: whole || req.Peer().Transport == "tcp" || req.Peer().Transport == "udp"}
	e.lines.all = append(e.lines.all, l)
	return l, nil
}

// hangUp closes all connections.
func (e *engine) hangUp() {
	for _, l := range e.lines.all {
		_ = l.req.Close()
	}
	for _, l := range e.lines.all {
		if e.count.flying == 0 {
			l.pool.close()
		}
	}
}

// credentials returns the plan's credentials, ready for use.
func credentials(t *plan.Tables) []oncrpc.Auth {
	out := make([]oncrpc.Auth, len(t.Credentials)+1)
	for i := range t.Credentials {
		c := &t.Credentials[i]
		if c.Flavor == "none" {
			continue
		}
		out[i+1] = client.Sys(c.Machine, c.UID, c.GID, c.GIDs...)
	}
	return out
}
