package tcprpc

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/deadline"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// Requester sends calls on one TCP connection, or on a sequence of connections if it
// reconnects. Make it with Dial.
type Requester struct {
	opts    *Options
	address string // empty: backward direction, bound to one connection
	count   *counters
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	conn    *conn
	tries   int // connections since the last one that carried a reply
	peer    transport.Peer
	handler transport.Handler
	calls   map[uint32]*pending
	nextXID uint32
	seq     uint64
	closed  bool
	timer   *deadline.Timer
}

// pending is the transport's part of a transport.Call.
type pending struct {
	r    *Requester
	call *transport.Call
	conn *conn // which the call was sent on
	seq  uint64
	due  time.Time
	at   place
	rec  *record // of the reply
	err  error
	// deferred: the call has ended, but the writer still uses its memory.
	deferred bool
	do       bool
	done     chan struct{} // for Do
}

var pendings = sync.Pool{New: func() any { return &pending{done: make(chan struct{}, 1)} }}

func newRequester(opts *Options, count *counters) *Requester {
	r := &Requester{opts: opts, count: count, calls: make(map[uint32]*pending), nextXID: rand.Uint32()}
	r.timer = deadline.New(r.expire)
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Dial connects to a server. It returns the error of the dialer if there is no
// connection within Options.DialTimeout or the life of ctx; ctx has no effect later.
func Dial(ctx context.Context, address string, opts Options) (*Requester, error) {
	opts = opts.withDefaults()
	r := newRequester(&opts, &counters{})
	r.address = address
	nc, err := r.connect(ctx)
	if err != nil {
		r.cancel()
		return nil, err
	}
	r.mu.Lock()
	r.attach(nc)
	r.mu.Unlock()
	return r, nil
}

func (r *Requester) connect(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, r.opts.DialTimeout)
	defer cancel()
	return r.opts.Dial(ctx, r.address)
}

// attach makes nc the connection of r, and sends all outstanding calls on it. r.mu is
// held.
func (r *Requester) attach(nc net.Conn) {
	c := newConn(nc, r.opts, r.count)
	c.wrap(true)
	c.calls = r
	if r.handler != nil {
		c.handler.Store(&r.handler)
	}
	r.conn, r.peer = c, c.peer
	again := make([]*pending, 0, len(r.calls))
	for _, p := range r.calls {
		again = append(again, p)
	}
	slices.SortFunc(again, func(a, b *pending) int { return cmp.Compare(a.seq, b.seq) })
	for _, p := range again {
		if p.call.Again != nil && p.conn != nil {
			p.call.Again(p.call)
		}
		p.conn = c
		c.send(p)
	}
	r.wg.Go(func() {
		c.run()
		r.lost(c)
	})
}

// lost is called when a connection and its goroutines have ended.
func (r *Requester) lost(c *conn) {
	r.mu.Lock()
	if r.conn == c {
		r.conn = nil
	}
	if !r.closed && r.address != "" && r.opts.Reconnect {
		pause := time.Duration(0)
		if r.tries++; c.carried {
			r.tries = 0
		} else {
			pause = min(r.opts.BackoffMin<<min(r.tries, 20), r.opts.BackoffMax, emptyPause)
		}
		r.wg.Add(1)
		go r.reconnect(pause)
		r.mu.Unlock()
		return
	}
	failed := r.takeAll()
	r.timer.Stop()
	r.mu.Unlock()
	for _, p := range failed {
		p.finish(nil, transport.ErrDisconnected)
	}
}

// takeAll empties the table. r.mu is held.
func (r *Requester) takeAll() []*pending {
	all := make([]*pending, 0, len(r.calls))
	for _, p := range r.calls {
		all = append(all, p)
	}
	clear(r.calls)
	return all
}

// emptyPause is the longest pause after a connection that has carried no reply. The server is there, and may execute calls
// before it ends a connection, so it gets another one before the calls time out.
const emptyPause = time.Second

// reconnect connects again after a pause, and after longer and longer ones while that fails.
func (r *Requester) reconnect(pause time.Duration) {
	defer r.wg.Done()
	for wait := r.opts.BackoffMin; r.sleep(pause); wait = min(2*wait, r.opts.BackoffMax) {
		pause = wait
		nc, err := r.connect(r.ctx)
		if err == nil {
			r.mu.Lock()
			if r.closed {
				r.mu.Unlock()
				_ = nc.Close()
				return
			}
			r.count.reconnects.Add(1)
			r.attach(nc)
			r.mu.Unlock()
			return
		}
	}
}

// sleep waits before the next attempt to connect; false if there is to be none.
func (r *Requester) sleep(pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-r.ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// Start implements transport.Requester.
func (r *Requester) Start(c *transport.Call) {
	p := pendings.Get().(*pending)
	p.do = false
	r.start(c, p)
}

func (r *Requester) start(c *transport.Call, p *pending) {
	c.Err, c.Reply, c.Times = nil, transport.Message{}, transport.Times{Queued: time.Now()}
	c.Private = p
	p.r, p.call, p.conn, p.at, p.rec, p.err, p.deferred = r, c, nil, idle, nil, nil, false
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = r.opts.Timeout
	}
	p.due = c.Times.Queued.Add(timeout)
	r.count.calls.Add(1)
	if err := r.enter(p); err != nil {
		p.finish(nil, err)
	}
}

// enter puts a call into the table and hands it to the connection.
func (r *Requester) enter(p *pending) error {
	c := p.call
	if len(c.Stream) < 8 {
		return transport.ErrMessage
	}
	if c.Size() > lastFragment-1 {
		return transport.ErrTooLong
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return transport.ErrClosed
	}
	if r.conn == nil && (r.address == "" || !r.opts.Reconnect) {
		return transport.ErrDisconnected
	}
	xid := c.XID
	if xid == 0 {
		for taken := true; taken || xid == 0; _, taken = r.calls[xid] {
			r.nextXID++
			xid = r.nextXID
		}
	} else if r.calls[xid] != nil {
		return fmt.Errorf("%w: %#08x", transport.ErrXID, xid)
	}
	c.XID = xid
	binary.BigEndian.PutUint32(c.Stream, xid)
	r.seq++
	p.seq = r.seq
	r.calls[xid] = p
	r.timer.Arm(p.due)
	if r.conn != nil {
		p.conn = r.conn
		r.conn.send(p) // if it fails, lost finds p in the table
	}
	return nil
}

// Do implements transport.Requester.
func (r *Requester) Do(ctx context.Context, c *transport.Call) error {
	p, _ := c.Private.(*pending)
	if p == nil {
		p = pendings.Get().(*pending)
	} else {
		p.rec.free() // of the previous use
		p.rec = nil
	}
	p.do = true
	r.start(c, p)
	select {
	case <-p.done:
	case <-ctx.Done():
		if r.take(p) {
			p.finish(nil, ctx.Err())
		}
		<-p.done
	}
	return c.Err
}

// take removes p from the table. It reports false if p was not in it.
func (r *Requester) take(p *pending) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.calls[p.call.XID] != p {
		return false
	}
	delete(r.calls, p.call.XID)
	return true
}

// reply handles a record that the peer has sent as a reply.
func (r *Requester) reply(c *conn, rec *record) {
	xid := binary.BigEndian.Uint32(rec.b)
	r.mu.Lock()
	p := r.calls[xid]
	if p == nil || p.conn != c {
		r.mu.Unlock()
		rec.free() // no call has this XID, or it was given up
		return
	}
	delete(r.calls, xid)
	c.carried = true
	r.mu.Unlock()
	p.finish(rec, nil)
}

// finish ends a call that has left the table: at once, or when the writer has
// released its memory.
func (p *pending) finish(rec *record, err error) {
	p.call.Times.Replied = time.Now()
	if c := p.conn; c != nil {
		c.mu.Lock()
		if p.at == writing {
			p.rec, p.err, p.deferred = rec, err, true
			if rec == nil && c.patience == nil {
				c.patience = time.AfterFunc(writerPatience, c.close)
			}
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		c.withdraw(p)
	}
	p.complete(rec, err)
}

func (p *pending) message() *transport.Message { return &p.call.Message }
func (p *pending) place() *place               { return &p.at }

func (p *pending) begun(at time.Time) { p.call.Times.Sent = at }
func (p *pending) landed() bool       { return p.deferred }
func (p *pending) weight() int        { return 0 }

// written completes a call that ended while the writer used its memory.
func (p *pending) written(bool) { p.complete(p.rec, p.err) }

func (p *pending) complete(rec *record, err error) {
	c, r := p.call, p.r
	c.Err = err
	if c.Times.Sent.After(c.Times.Replied) { // the peer guessed the XID
		c.Times.Sent = c.Times.Replied
	}
	if rec != nil {
		c.Reply = transport.Message{Stream: rec.b}
		r.count.replies.Add(1)
	} else {
		r.count.errors.Add(1)
	}
	if c.Release != nil {
		c.Release()
	}
	if p.do {
		p.rec = rec
		if c.Done != nil {
			c.Done(c)
		}
		p.done <- struct{}{}
		return
	}
	c.Private = nil
	p.call, p.conn, p.rec = nil, nil, nil
	pendings.Put(p)
	if c.Done != nil {
		c.Done(c)
	}
	rec.free()
}

// expire ends the calls that are due.
func (r *Requester) expire() {
	var late []*pending
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return
	}
	due := func(p *pending) time.Time { return p.due }
	deadline.Sweep(r.timer, r.calls, time.Now(), due, func(xid uint32, p *pending) {
		late = append(late, p)
		delete(r.calls, xid)
	})
	r.mu.Unlock()
	for _, p := range late {
		p.finish(nil, transport.ErrTimeout)
	}
}

// Alloc returns memory. Over TCP any memory will do.
func (r *Requester) Alloc(n int) ([]byte, error) {
	if n < 0 {
		return nil, errors.New("tcprpc: negative size")
	}
	return make([]byte, n), nil
}

// Free does nothing: memory is garbage collected.
func (r *Requester) Free([]byte) {}

// Peer describes the current connection, or the last one.
func (r *Requester) Peer() transport.Peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.peer
}

// Serve sets the handler for calls of the peer. Without one they are answered with
// PROG_UNAVAIL.
func (r *Requester) Serve(h transport.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handler = h
	if r.conn != nil {
		r.conn.handler.Store(&h)
	}
}

// Stats counts since Dial.
func (r *Requester) Stats() transport.Stats { return r.count.stats() }

// Close ends the connection; outstanding calls fail with transport.ErrClosed.
func (r *Requester) Close() error {
	r.mu.Lock()
	r.closed = true
	r.cancel()
	r.timer.Stop()
	failed, c := r.takeAll(), r.conn
	r.mu.Unlock()
	for _, p := range failed {
		p.finish(nil, transport.ErrClosed)
	}
	if c != nil && r.address != "" {
		c.close()
	}
	r.wg.Wait()
	return nil
}
