package run

import (
	"context"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// flight is a call on its way. It is used again for another one.
type flight struct {
	client.Call
	e     *engine
	node  *node
	op    *plan.Op
	world *world
	conn  *conn

	session, slot int // slot is -1 outside sessions
	note          string
	status        string // of the reply
	rewrote       bool   // PUTROOTFH has become a PUTFH
	newest        bool   // state ids as they are now, and not as far behind as captured
	relaid        bool   // the captured layout does not fit
	tries         int
	behind        *flight   // whose node is over with this call
	resume        bool      // it is sent when the call before it is over
	due           time.Time // when it should have been sent
	lent          [][]byte  // memory of the connection's pool

	// Copies of what the transport gave, which is gone when Done returns.
	stream      []byte
	replied     []byte
	items       []transport.Item
	spare       [][]byte
	itemLengths []uint32
	hashes      []string // of items
}

// conn is a live connection.
type conn struct {
	req    transport.Requester
	pool   *pool
	number int
	limit  int // calls under way; 0 is no limit
	flying int
	wait   []*node
	plain  bool // TCP: there are no chunks
}

// landed is the transport's Done: it keeps what is needed of the reply.
func landed(c *transport.Call) {
	f := c.User.(*flight)
	if c.Err != nil {
		f.e.land(f)
		return
	}
	f.keep()
	if f.e.opt.Verify != VerifyAll || f.e.load.Tables.Header.Payload != plan.Captured || len(f.items) == 0 {
		f.e.land(f)
		return
	}
	// To hash a megabyte takes as long as a hundred small calls: neither the
	// transport nor the engine waits for it.
	go func() {
		for i := range f.items {
			f.hashes = append(f.hashes, plan.HashData(f.items[i].Data))
		}
		f.e.land(f)
	}()
}

// hash is that of data of the reply.
func (f *flight) hash(d xdr.Data, b []byte) string {
	if d.Chunk > 0 && d.Chunk <= len(f.hashes) {
		return f.hashes[d.Chunk-1]
	}
	return plan.HashData(b)
}

// OpOf is the number of the op that a call of a run is for; 0 if it is the run's
// own.
func OpOf(c *transport.Call) int {
	if f, ok := c.User.(*flight); ok && f.op != nil && f.node != nil {
		return f.op.ID
	}
	return 0
}

// keep copies the reply out of the transport's memory, but for data that are
// in ours already.
func (f *flight) keep() {
	f.replied = append(f.replied[:0], f.Reply.Stream...)
	f.items, f.itemLengths, f.hashes = f.items[:0], f.itemLengths[:0], f.hashes[:0]
	for i, it := range f.Reply.Items {
		f.itemLengths = append(f.itemLengths, uint32(len(it.Data)))
		if !f.ours(it.Data) {
			for len(f.spare) <= i {
				f.spare = append(f.spare, nil)
			}
			f.spare[i] = append(f.spare[i][:0], it.Data...)
			it.Data = f.spare[i]
		}
		f.items = append(f.items, it)
	}
	f.Reply = transport.Message{Stream: f.replied, Items: f.items}
}

func (f *flight) ours(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	for _, r := range f.Results {
		if len(r) > 0 && &r[0] == &b[0] {
			return true
		}
	}
	return false
}

// bytes is the content of data of the reply.
func (f *flight) bytes(d xdr.Data) []byte { return f.Reply.Bytes(d) }

// release gives back memory that the call has borrowed.
func (f *flight) release() {
	for _, b := range f.lent {
		f.conn.pool.put(b)
	}
	f.lent, f.Results, f.Layout = f.lent[:0], nil, nil
}

// pool keeps memory for data: of a size that is a power of two.
type pool struct {
	req  transport.Requester
	mu   sync.Mutex
	free map[int][][]byte
	all  [][]byte
}

func (p *pool) get(n int) ([]byte, error) {
	size := 4096
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
	size := 4096
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

// backward answers calls of the server.
type backward struct{ e *engine }

var _ transport.Handler = backward{}

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

// dial makes a connection that is behind the guard.
func (e *engine) dial(ctx context.Context, w *world, c *plan.Connection) (transport.Requester, error) {
	req, err := e.opt.Dial(ctx, w.number, c)
	if err != nil {
		return nil, err
	}
	req.Serve(backward{e})
	return e.guard.Requester(req), nil
}

// dialAll makes the connections of a clone.
func (e *engine) dialAll(ctx context.Context, w *world) error {
	used := map[int]bool{}
	for _, o := range e.load.Ops {
		used[o.Connection] = true
	}
	e.conns[w.number] = map[int]*conn{}
	var made []*conn
	for i := range e.load.Tables.Connections {
		c := &e.load.Tables.Connections[i]
		if !used[c.ID] {
			continue
		}
		if e.opt.Connections > 0 && len(made) >= e.opt.Connections {
			e.conns[w.number][c.ID] = made[len(e.conns[w.number])%len(made)]
			continue
		}
		req, err := e.dial(ctx, w, c)
		if err != nil {
			return err
		}
		l := &conn{req: req, pool: &pool{req: req, free: map[int][][]byte{}}, number: len(e.all), limit: e.opt.Slots, plain: req.Peer().Transport == "tcp"}
		if l.limit == 0 && (e.opt.Timing == Fast || e.opt.Timing == FixedRate) {
			l.limit = max(1, c.MaxInFlight)
		}
		made = append(made, l)
		e.all = append(e.all, l)
		e.conns[w.number][c.ID] = l
	}
	// More connections than captured: calls go round.
	for e.opt.Connections > len(made) && len(made) > 0 {
		c := &e.load.Tables.Connections[0]
		req, err := e.dial(ctx, w, c)
		if err != nil {
			return err
		}
		l := &conn{req: req, pool: &pool{req: req, free: map[int][][]byte{}}, number: len(e.all), limit: made[0].limit, plain: made[0].plain}
		made = append(made, l)
		e.all = append(e.all, l)
	}
	if e.opt.Connections > len(used) {
		e.round = append(e.round, made)
	} else {
		e.round = append(e.round, nil)
	}
	return nil
}
