package backchannel

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4/state"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Options of a Manager.
type Options struct {
	// Timeout is how long a client may take for a callback: 9 s, a tenth of a lease.
	Timeout time.Duration
	// Handle appends the bytes of a filehandle as sent to clients.
	Handle func(b []byte, key state.Key) []byte
	// Dial connects to clients of NFSv4.0; nil if callbacks are not sent to these.
	Dial Dial
	// Up is called when callbacks begin to reach a client. It may call the Channel.
	Up func(c *Channel)
}

// Dial connects to a client over TCP. Replies of more than maxReply bytes end the
// connection, and so does a client that takes longer than timeout for anything.
type Dial func(ctx context.Context, at netip.AddrPort, maxReply int, timeout time.Duration) (transport.Requester, error)

// Manager has what the Channels of a server share.
type Manager struct {
	opt     Options
	ctx     context.Context
	cancel  context.CancelFunc
	mu      sync.Mutex
	workers sync.WaitGroup
	running atomic.Int32
	closed  bool
}

// New returns a Manager.
func New(opt Options) *Manager {
	if opt.Timeout <= 0 {
		opt.Timeout = 9 * time.Second
	}
	m := &Manager{opt: opt}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close ends all callbacks and waits for them.
func (m *Manager) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.workers.Wait()
}

// Go runs f on a goroutine that Close waits for. It reports false after Close.
func (m *Manager) Go(f func()) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.running.Add(1)
	m.workers.Go(func() {
		defer m.running.Add(-1)
		f()
	})
	return true
}

// Idle reports whether no callback is in progress.
func (m *Manager) Idle() bool { return m.running.Load() == 0 }

const (
	// A queue holds at most this many callbacks besides recalls, of which there are
	// no more than delegations.
	maxQueued = 64
	// How often a recall is sent, a second apart, that the client does not understand because it
	// has not yet seen the reply to its OPEN.
	maxTries = 5
	// Of the connections of a session, the latest are used.
	maxConns = 8
	// A client may have many sessions; callbacks need few.
	maxSessions = 8
)

// Errors of callbacks.
var (
	ErrClosed = errors.New("backchannel: closed")
	ErrNoPath = errors.New("backchannel: no way to the client")
	ErrFull   = errors.New("backchannel: too many callbacks wait")
	ErrReply  = errors.New("backchannel: the client's reply makes no sense")
)

// Channel calls one client. It implements state.Caller.
type Channel struct {
	m     *Manager
	reach atomic.Int32 // unknown, up, down

	mu       sync.Mutex
	closed   bool
	running  bool
	queue    []*request
	recalls  map[[12]byte]struct{} // those that wait or are in progress, by stateid
	sessions []*session            // the latest last
	minor    uint32
	target   *target // NFSv4.0
}

var _ state.Caller = (*Channel)(nil)

const (
	unknown = iota
	up
	down
)

// request is a callback that waits.
type request struct {
	op     nfs4.Op  // without Body: CB_NULL
	recall [12]byte // the stateid, of CB_RECALL
	tries  int
	done   func(*nfs4.CbCompoundRes, error) // may be nil
}

// session is where callbacks of NFSv4.1 go.
type session struct {
	id     state.SessionID
	params Params
	seq    uint32 // of slot 0, the only one that is used
	conns  []conn
}

type conn struct {
	id uint64
	r  transport.Requester
}

// NewChannel returns a Channel to a client of NFSv4.1 and later. It cannot be used before Bind.
func (m *Manager) NewChannel() *Channel { return &Channel{m: m} }

// Up implements state.Caller.
func (c *Channel) Up() bool { return c.reach.Load() == up }

// Down implements state.Caller.
func (c *Channel) Down() bool { return c.reach.Load() == down }

// Close implements state.Caller.
func (c *Channel) Close() {
	c.mu.Lock()
	c.closed = true
	queue, target := c.queue, c.target
	c.queue, c.sessions, c.target = nil, nil, nil
	c.mu.Unlock()
	for _, r := range queue {
		r.end(nil, ErrClosed)
	}
	if target != nil {
		target.close()
	}
}

// Closed reports whether the client has gone.
func (c *Channel) Closed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// Add adds a session, which has no connections yet.
func (c *Channel) Add(s state.SessionID, minor uint32, p Params) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.session(s) != nil {
		return
	}
	c.minor = minor
	if len(c.sessions) == maxSessions {
		c.sessions = slices.Delete(c.sessions, 0, 1)
	}
	c.sessions = append(c.sessions, &session{id: s, params: p})
}

func (c *Channel) session(id state.SessionID) *session {
	for _, x := range c.sessions {
		if x.id == id {
			return x
		}
	}
	return nil
}

// Bind adds a connection to a session's backchannel, and finds out whether callbacks arrive. The
// id identifies the connection.
func (c *Channel) Bind(s state.SessionID, id uint64, r transport.Requester) {
	c.mu.Lock()
	x := c.session(s)
	if c.closed || x == nil {
		c.mu.Unlock()
		return
	}
	x.conns = slices.DeleteFunc(x.conns, func(o conn) bool { return o.id == id })
	if len(x.conns) == maxConns {
		x.conns = slices.Delete(x.conns, 0, 1)
	}
	x.conns = append(x.conns, conn{id, r})
	c.mu.Unlock()
	c.Probe()
}

// Change changes the parameters of a session's callbacks (BACKCHANNEL_CTL).
func (c *Channel) Change(s state.SessionID, p Params) {
	c.mu.Lock()
	if x := c.session(s); x != nil {
		p.Request = x.params.Request
		x.params = p
	}
	c.mu.Unlock()
	c.Probe()
}

// Unbind implements state.Caller.
func (c *Channel) Unbind(s state.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = slices.DeleteFunc(c.sessions, func(x *session) bool { return x.id == s })
	c.check()
}

// Disconnected removes a connection that has ended.
func (c *Channel) Disconnected(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.sessions {
		x.conns = slices.DeleteFunc(x.conns, func(o conn) bool { return o.id == id })
	}
	c.check()
}

// check notes that there is no connection left. c.mu is held.
func (c *Channel) check() {
	if s, _ := c.path(); s == nil && c.target == nil {
		c.reach.Store(down)
	}
}

// path is the latest connection of the latest session that has one. c.mu is held.
func (c *Channel) path() (*session, transport.Requester) {
	for i := len(c.sessions) - 1; i >= 0; i-- {
		if n := len(c.sessions[i].conns); n > 0 {
			return c.sessions[i], c.sessions[i].conns[n-1].r
		}
	}
	return nil, nil
}

// Probe finds out whether callbacks arrive, by CB_NULL.
func (c *Channel) Probe() { c.submit(&request{}, false) }

// Recall implements state.Caller.
func (c *Channel) Recall(id nfs4.Stateid4, key state.Key) {
	a := &nfs4.CB_RECALL4args{Stateid: id, Fh: c.m.opt.Handle(nil, key)}
	c.mu.Lock()
	_, waits := c.recalls[id.Other]
	if !waits {
		if c.recalls == nil {
			c.recalls = map[[12]byte]struct{}{}
		}
		c.recalls[id.Other] = struct{}{}
	}
	c.mu.Unlock()
	if !waits {
		c.submit(&request{op: nfs4.Op{Number: uint32(nfs4.OP_CB_RECALL), Body: a}, recall: id.Other}, true)
	}
}

// GetAttr asks for the change attribute and the size of a file, which only the client knows, and for its times if the client keeps them.
// done is called once, with an error or the attributes.
func (c *Channel) GetAttr(key state.Key, times bool, done func(attrs nfs4.Attrs, err error)) {
	a := &nfs4.CB_GETATTR4args{Fh: c.m.opt.Handle(nil, key)}
	a.AttrRequest.Bitmap4 = nfs4.NewBitmap4(nfs4.FATTR4_CHANGE, nfs4.FATTR4_SIZE)
	if times {
		a.AttrRequest.Bitmap4 = a.AttrRequest.With(nfs4.FATTR4_TIME_DELEG_ACCESS).With(nfs4.FATTR4_TIME_DELEG_MODIFY)
	}
	c.submit(&request{op: nfs4.Op{Number: uint32(nfs4.OP_CB_GETATTR), Body: a}, done: func(res *nfs4.CbCompoundRes, err error) {
		var attrs nfs4.Attrs
		if err == nil {
			attrs, err = attributes(res)
		}
		done(attrs, err)
	}}, false)
}

func attributes(res *nfs4.CbCompoundRes) (attrs nfs4.Attrs, err error) {
	if len(res.Ops) == 0 || res.Status != nfs4.NFS4_OK {
		return attrs, ErrReply
	}
	got, ok := res.Ops[len(res.Ops)-1].Body.(*nfs4.CB_GETATTR4res)
	if !ok {
		return attrs, ErrReply
	}
	if err = attrs.Decode(&got.Resok4.ObjAttributes); err != nil {
		return attrs, err
	}
	if !attrs.Mask.Has(nfs4.FATTR4_CHANGE) || !attrs.Mask.Has(nfs4.FATTR4_SIZE) {
		return attrs, ErrReply
	}
	return attrs, nil
}

func (r *request) end(res *nfs4.CbCompoundRes, err error) {
	if r.done != nil {
		r.done(res, err)
		r.done = nil
	}
}

// submit queues a callback.
func (c *Channel) submit(r *request, always bool) {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		r.end(nil, ErrClosed)
		return
	case !always && len(c.queue) >= maxQueued:
		c.mu.Unlock()
		r.end(nil, ErrFull)
		return
	}
	c.queue = append(c.queue, r)
	run := !c.running
	c.running = true
	c.mu.Unlock()
	if run && !c.m.Go(c.run) {
		c.Close()
	}
}

// run sends what is in the queue.
func (c *Channel) run() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.queue, c.running = nil, false
			c.mu.Unlock()
			return
		}
		r := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.mu.Unlock()
		c.one(r)
	}
}

// one sends a callback and handles its outcome.
func (c *Channel) one(r *request) {
	res, err := c.attempt(r)
	if err != nil && c.m.ctx.Err() == nil {
		res, err = c.attempt(r) // another connection, or a new one
	}
	before := int32(up)
	if err != nil {
		c.reach.Store(down)
	} else {
		before = c.reach.Swap(up)
	}
	if err == nil && r.op.Number == uint32(nfs4.OP_CB_RECALL) && again(res) {
		if r.tries++; r.tries < maxTries {
			time.AfterFunc(time.Second, func() { c.submit(r, true) })
			return
		}
	}
	c.mu.Lock()
	delete(c.recalls, r.recall)
	c.mu.Unlock()
	r.end(res, err)
	if before != up && c.m.opt.Up != nil {
		c.m.opt.Up(c)
	}
}

// again reports whether a recall arrived before the client knew the delegation.
func again(res *nfs4.CbCompoundRes) bool {
	switch res.Status {
	case nfs4.NFS4ERR_BAD_STATEID, nfs4.NFS4ERR_BADHANDLE, nfs4.NFS4ERR_DELAY:
		return true
	}
	return false
}
