package run

import (
	"context"
	"sync"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/internal/world"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// line is a live connection.
type line struct {
	req    transport.Requester
	pool   *pool
	limit  int // calls under way; 0 is no limit
	flying int
	wait   []*schedule.Entry // for room
	plain  bool              // TCP: there are no chunks
}

// room reports whether another call may be under way.
func (l *line) room() bool { return l.limit == 0 || l.flying < l.limit }

// lines are the connections of a run.
type lines struct {
	all      []*line
	captured []map[int]*line // by world, by captured connection
	round    [][]*line       // by world: those that calls go round on; nil: as captured
	turn     int
}

// of is the connection that a call goes out on.
func (l *lines) of(n *schedule.Entry) *line {
	if r := l.round[n.World]; r != nil {
		l.turn++
		return r[l.turn%len(r)]
	}
	return l.captured[n.World][n.Op.Connection]
}

// dialAll makes the connections of a world.
func (e *engine) dialAll(ctx context.Context, w *world.World) error {
	used := map[int]bool{}
	for _, o := range e.load.Ops {
		used[o.Connection] = true
	}
	captured := map[int]*line{}
	e.lines.captured = append(e.lines.captured, captured)
	var made []*line
	for i := range e.load.Tables.Connections {
		c := &e.load.Tables.Connections[i]
		if !used[c.ID] {
			continue
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
	// More connections than captured: calls go round.
	for e.opt.Connections > len(made) && len(made) > 0 {
		l, err := e.dial(ctx, w, &e.load.Tables.Connections[0])
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

// dial makes a connection that is behind the guard.
func (e *engine) dial(ctx context.Context, w *world.World, c *plan.Connection) (*line, error) {
	req, err := e.opt.Dial(ctx, w.Number, c)
	if err != nil {
		return nil, err
	}
	req.Serve(e.callbacks())
	req = e.guard.Requester(req)
	l := &line{req: req, pool: &pool{req: req, free: map[int][][]byte{}}, plain: req.Peer().Transport == "tcp"}
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

// credentials are those of the plan, ready for use.
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

// pool keeps memory of a connection for data: of a size that is a power of two.
type pool struct {
	req  transport.Requester
	mu   sync.Mutex
	free map[int][][]byte
	all  [][]byte
}

// smallest is the size in bytes of the smallest block of a pool.
const smallest = 4096

func (p *pool) get(n int) ([]byte, error) {
	size := smallest
	for size < n {
		size *= 2
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l := p.free[size]; len(l) > 0 {
		b := l[len(l)-1]
		p.free[size] = l[:len(l)-1]
		return b[:n], nil
	}
	b, err := p.req.Alloc(size)
	if err != nil {
		return nil, err
	}
	p.all = append(p.all, b)
	return b[:n], nil
}

func (p *pool) put(b []byte) {
	b = b[:cap(b)]
	size := smallest
	for size*2 <= len(b) {
		size *= 2
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free == nil {
		p.free = map[int][][]byte{}
	}
	p.free[size] = append(p.free[size], b[:size])
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.all {
		p.req.Free(b)
	}
	p.all, p.free = nil, nil
}
