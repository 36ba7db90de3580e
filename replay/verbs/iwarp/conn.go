package iwarp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Default and largest depth of the queues.
const (
	defaultDepth = 256
	maxDepth     = 1 << 20
)

// linger is how long the peer has to read a Terminate, and to close its direction after
// we have closed ours.
const linger = 2 * time.Second

// conn is a connection. Its locks are taken in the order mu, regions.mu,
// completions.mu.
type conn struct {
	p      *Provider
	s      *socket
	info   verbs.Info
	charge func(bytes int) // Params.Charge
	agreement

	sends       sendQueue // under mu
	recvs       recvQueue
	completions completionQueue
	regions     regions
	rx          receiver // used by the reading goroutine

	mu      sync.Mutex
	change  sync.Cond // an attempt ends, nobody waits for that any more, the queue drains
	pausing int       // how many wait for the end of an attempt
	state   verbs.State
	err     error
	flushed bool // the memory of requests belongs to the user again
	finSent bool
	term    []byte // the Terminate to send, without framing
	tx      transmitter
	reads   readQueue
	resps   responseQueue

	wake chan struct{} // tells the writing goroutine to write
	quit chan struct{} // tells it to end
	done chan struct{} // closed when all completions are queued
}

// start begins on a socket whose MPA setup is complete.
func (p *Provider) start(s *socket, params *verbs.Params, a *agreement) (*conn, error) {
	c := &conn{
		p: p, s: s, charge: params.Charge, agreement: *a, state: verbs.StateRTS,
		wake: make(chan struct{}, 1), quit: make(chan struct{}), done: make(chan struct{}),
	}
	c.change.L = &c.mu
	sendDepth, recvDepth := queueDepth(params.SendDepth, 0), queueDepth(params.RecvDepth, len(params.Recvs))
	c.sends.init(sendDepth)
	c.recvs.init(recvDepth)
	c.completions.init(sendDepth + recvDepth)
	c.regions.byTag = make(map[uint32]*region)
	c.regions.windows = make(map[uint32]struct{})
	c.rx.init(c)
	c.tx.init(c)
	c.info = verbs.Info{
		Fabric: "iwarp", Local: s.local(), Remote: s.remote(),
		MTU:                a.maxULPDU - iwarp.UntaggedLen,
		ResponderResources: uint8(min(a.ird, maxReads)), InitiatorDepth: uint8(min(a.ord, maxReads)),
		PrivateData: a.private, Detail: a.String(),
	}
	if err := c.recvs.post(params.Recvs); err != nil {
		s.Close()
		return nil, err
	}
	if s.raw != nil && a.sendMarkers {
		s.raw = nil // markers are put between while the bytes are copied
	}
	if !p.enter(c, 2) {
		s.Close()
		return nil, verbs.ErrClosed
	}
	s.SetDeadline(time.Time{}) //nolint:errcheck // a socket has deadlines
	go c.write()
	go c.read()
	if a.rtr != 0 && a.initiator {
		c.mu.Lock()
		c.kick(true)
		c.mu.Unlock()
	}
	return c, nil
}

func queueDepth(n, least int) int {
	if n <= 0 {
		n = defaultDepth
	}
	return min(max(n, least), maxDepth)
}

func (a *agreement) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "MPA %d, CRC ", a.revision)
	if a.crc {
		b.WriteString("on")
	} else {
		b.WriteString("off")
	}
	if a.markers {
		b.WriteString(", markers received")
	}
	if a.sendMarkers {
		b.WriteString(", markers sent")
	}
	if a.peerToPeer {
		b.WriteString(", peer to peer")
	}
	return b.String()
}

// Info implements verbs.Conn.
func (c *conn) Info() verbs.Info { return c.info }

// State implements verbs.Conn.
func (c *conn) State() verbs.State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Err implements verbs.Conn.
func (c *conn) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Poll implements verbs.Conn.
func (c *conn) Poll(out []verbs.Completion) int {
	n, recvs := c.completions.poll(out)
	if recvs > 0 {
		c.recvs.polled.Add(uint64(recvs))
	}
	if n > recvs {
		c.sends.unpolled.Add(-int64(n - recvs))
	}
	return n
}

// Wait implements verbs.Conn.
func (c *conn) Wait() error {
	if c.completions.wait() {
		return nil
	}
	return c.Err()
}

// PostRecv implements verbs.Conn.
func (c *conn) PostRecv(wrs ...verbs.RecvRequest) error { return c.recvs.post(wrs) }

// Post implements verbs.Conn.
func (c *conn) Post(wrs ...verbs.WorkRequest) error {
	for i := range wrs {
		if err := c.check(&wrs[i]); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != verbs.StateRTS {
		if c.err != nil {
			return c.err
		}
		return verbs.ErrDisconnected
	}
	q := &c.sends
	if q.room() < len(wrs) {
		return verbs.ErrQueueFull
	}
	for i := range wrs {
		wr := &wrs[i]
		e := q.at(q.tail)
		q.tail++
		e.id, e.op, e.access, e.signaled, e.fence = wr.ID, wr.Op, wr.Access, wr.Signaled, wr.Fence
		e.handle, e.offset, e.done, e.status = wr.Handle, wr.Offset, false, verbs.StatusSuccess
		e.sge = e.sge[:0]
		e.length = 0
		for _, b := range wr.Local {
			if len(b) > 0 || wr.Op == verbs.OpBind {
				e.sge = append(e.sge, b)
				e.length += len(b)
			}
		}
	}
	c.kick(false)
	return nil
}

var (
	errSlices = fmt.Errorf("iwarp: more than %d slices in a work request", maxSGE)
	errLong   = fmt.Errorf("iwarp: more than %d bytes in a work request", maxMessage)
	errNoRead = errors.New("iwarp: the peer answers no RDMA Reads")
	errOp     = errors.New("iwarp: not an operation of the send queue")
)

func (c *conn) check(wr *verbs.WorkRequest) error {
	if wr.Op > verbs.OpBind {
		return errOp
	}
	if len(wr.Local) > maxSGE {
		return errSlices
	}
	n := 0
	for _, b := range wr.Local {
		if len(b) > maxMessage-n {
			return errLong
		}
		n += len(b)
	}
	if wr.Op == verbs.OpRead && c.ord == 0 {
		return errNoRead
	}
	return nil
}

// retire completes requests in order; mu is held.
func (c *conn) retire() {
	q := &c.sends
	var batch [16]verbs.Completion
	n := 0
	var now time.Time
	for q.head < q.next {
		e := q.at(q.head)
		if !e.done {
			break
		}
		q.head++
		if e.signaled || e.status != verbs.StatusSuccess {
			if n == 0 {
				now = time.Now()
			}
			batch[n] = verbs.Completion{ID: e.id, Op: e.op, Status: e.status, Time: now}
			n++
			q.unpolled.Add(1)
			if n == len(batch) {
				c.completions.push(batch[:n])
				n = 0
			}
		}
		clear(e.sge)
	}
	c.completions.push(batch[:n])
	if c.state == verbs.StateSQD && q.head == q.tail {
		c.change.Broadcast()
	}
}

// awaitAttempt waits until no attempt to write uses the memory of requests or regions;
// that never takes long. mu is held.
func (c *conn) awaitAttempt() {
	c.pausing++
	for c.tx.attempting {
		c.change.Wait()
	}
	if c.pausing--; c.pausing == 0 {
		c.change.Broadcast()
	}
}

// yield gives way to goroutines that wait for the end of an attempt: a busy writer would
// never release mu between two attempts. mu is held.
func (c *conn) yield() {
	for c.pausing > 0 {
		c.change.Wait()
	}
}

// fail ends the connection; mu is held. Only the first reason counts. term is the
// Terminate for the peer, if there is one. The reading goroutine does the rest.
func (c *conn) fail(err error, term []byte) {
	if c.state == verbs.StateError {
		return
	}
	c.state, c.err = verbs.StateError, err
	if c.finSent {
		term = nil
	}
	c.term = term
	c.change.Broadcast()
	// Closing the socket here would wait for the writer, which may wait for mu. The
	// reader closes it.
	c.s.SetReadDeadline(past) //nolint:errcheck // a socket has deadlines
	if term == nil {
		c.s.SetWriteDeadline(past) //nolint:errcheck // a socket has deadlines
	}
}

// Disconnect implements verbs.Conn.
func (c *conn) Disconnect(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.change.Broadcast()
		c.mu.Unlock()
	})
	defer stop()
	c.mu.Lock()
	if c.state == verbs.StateError {
		defer c.mu.Unlock()
		if errors.Is(c.err, verbs.ErrDisconnected) {
			return nil
		}
		return c.err
	}
	c.state = verbs.StateSQD
	for c.state == verbs.StateSQD && ctx.Err() == nil && (c.sends.head != c.sends.tail || c.resps.head != c.resps.tail || c.tx.owned) {
		c.change.Wait()
	}
	if c.state == verbs.StateSQD && ctx.Err() == nil && !c.finSent {
		c.finSent = true
		c.s.CloseWrite()
	}
	c.mu.Unlock()
	t := time.NewTimer(linger)
	defer t.Stop()
	err := ctx.Err()
	if err == nil {
		select {
		case <-c.done:
		case <-t.C:
		case <-ctx.Done():
		}
	}
	c.end(verbs.ErrDisconnected)
	if err == nil {
		if err = c.Err(); errors.Is(err, verbs.ErrDisconnected) {
			err = nil
		}
	}
	return err
}

// end closes the connection and waits until it has released the user's memory.
func (c *conn) end(why error) {
	c.mu.Lock()
	c.fail(why, nil)
	c.mu.Unlock()
	<-c.done
}

// Close implements verbs.Conn.
func (c *conn) Close() error {
	c.end(verbs.ErrClosed)
	return nil
}

// abort is Close without waiting for a Terminate that is being sent.
func (c *conn) abort() {
	c.end(verbs.ErrClosed)
	c.s.Close()
}

// finish is called by the reading goroutine at its end: it flushes the queues and sends
// the Terminate.
func (c *conn) finish() {
	c.mu.Lock()
	c.awaitAttempt()
	c.flushed = true
	c.tx.trim()
	q := &c.sends
	for i := q.head; i < q.tail; i++ {
		e := q.at(i)
		if !e.done && e.status == verbs.StatusSuccess {
			e.status = verbs.StatusFlushed
		}
		e.done = true
	}
	q.next = q.tail
	c.retire()
	c.resps.clear()
	telling := c.term != nil
	if telling {
		c.kick(true)
	}
	c.mu.Unlock()

	c.rx.flush()
	c.rx.giveBack() // before done is closed: then the connection holds nothing
	c.recvs.close()
	var batch [16]verbs.Completion
	for more := true; more; {
		n := 0
		now := time.Now()
		for ; n < len(batch); n++ {
			var r verbs.RecvRequest
			if r, more = c.recvs.take(); !more {
				break
			}
			batch[n] = verbs.Completion{ID: r.ID, Op: verbs.OpRecv, Status: verbs.StatusFlushed, Time: now}
		}
		c.completions.push(batch[:n])
	}
	c.completions.close()
	c.regions.mu.Lock()
	c.regions.closed = true
	clear(c.regions.byTag)
	c.regions.mu.Unlock()
	close(c.done)

	if telling {
		// A socket that is closed with unread bytes resets the connection,
		// and the Terminate would be lost.
		c.s.SetReadDeadline(time.Now().Add(linger)) //nolint:errcheck // a socket has deadlines
		c.rx.discard()
	}
	c.s.Close()
	close(c.quit)
	c.p.leave(c)
	c.p.wg.Done()
}

// read is the reading goroutine.
func (c *conn) read() {
	f := c.rx.run()
	c.mu.Lock()
	if f != nil {
		c.fail(f.err, f.term)
		if f.read && c.reads.n > 0 {
			c.sends.at(c.reads.oldest().entry).status = f.status
		}
	}
	c.mu.Unlock()
	c.finish()
}

// write is the writing goroutine.
func (c *conn) write() {
	defer c.p.wg.Done()
	for {
		select {
		case <-c.wake:
			c.mu.Lock()
			c.transmit(true)
			c.mu.Unlock()
		case <-c.quit:
			return
		}
	}
}
