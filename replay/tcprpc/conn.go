package tcprpc

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/onclose"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

const (
	// What a long record has beyond the buffer of the reader is read to its place.
	readerSize   = 8 << 10
	strangerSize = 512 // of a connection of a Server that has not completed a record yet
	writerSize   = 64 << 10
	// Smaller pieces are copied into the buffer of the writer, which is cheaper
	// than another entry of writev.
	copyLimit = 4 << 10
	maxPieces = 512     // of one writev; the kernel accepts 1024
	maxBytes  = 4 << 20 // of one writev
	// writerPatience is how long a call that was given up waits for the writer that
	// still uses its memory. A peer that takes nothing would hold it longer; then the
	// connection is closed, since no record can follow an incomplete one.
	writerPatience = time.Second
)

// outgoing is a message that waits to be written: a call or a reply.
type outgoing interface {
	message() *transport.Message
	place() *place
	// begun is called by the writer, with conn.mu held, before it uses the message.
	begun(at time.Time)
	// landed is called by the writer, with conn.mu held, when it no longer needs
	// the message. If landed returns true, written is called next, without the
	// lock; otherwise the writer does not use the outgoing any more.
	landed() bool
	written(ok bool)
	// weight returns how many bytes count against Options.MaxQueued.
	weight() int
}

// place says where an outgoing is; conn.mu protects it.
type place uint8

const (
	idle place = iota
	queued
	writing
	done
)

// conn is one connection: a goroutine that reads and one that writes.
type conn struct {
	nc   net.Conn
	w    io.Writer
	opts *Options
	peer transport.Peer
	// calls sends our calls, handler answers those of the peer.
	calls   *Requester
	carried bool // a reply; calls.mu protects it
	handler atomic.Pointer[transport.Handler]
	count   *counters
	// acct is the account of a Server's connection; nil on a Requester's. It must
	// not be used with mu held, since it may end connections.
	acct      *budget.Account
	recording budget.Clock

	mu       sync.Mutex
	wake     sync.Cond // writer: something is queued, or closed
	room     sync.Cond // reader: the peer has read replies, calls were answered
	out      []outgoing
	outBytes int
	serving  int
	closed   bool
	// patience, if not nil, closes the connection unless the writer ends its batch.
	patience *time.Timer

	hooks      onclose.Hooks
	writerDone chan struct{}
}

type counters struct {
	calls, replies, errors, sends, receives, reconnects atomic.Uint64
}

func (c *counters) stats() transport.Stats {
	return transport.Stats{
		Calls: c.calls.Load(), Replies: c.replies.Load(), Errors: c.errors.Load(),
		Sends: c.sends.Load(), Receives: c.receives.Load(), Reconnects: c.reconnects.Load(),
	}
}

func newConn(nc net.Conn, opts *Options, count *counters) *conn {
	c := &conn{nc: nc, w: nc, opts: opts, count: count, writerDone: make(chan struct{})}
	c.wake.L, c.room.L = &c.mu, &c.mu
	c.peer = transport.Peer{
		Transport: "tcp", Local: addrPort(nc.LocalAddr()), Remote: addrPort(nc.RemoteAddr()),
		ID: transport.NextID(),
	}
	return c
}

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		p := t.AddrPort()
		return netip.AddrPortFrom(p.Addr().Unmap(), p.Port())
	}
	return netip.AddrPort{}
}

// run serves the connection until it ends.
func (c *conn) run() {
	go c.writeLoop()
	c.readLoop()
	c.close()
	<-c.writerDone
	c.hooks.Run()
}

// close ends the connection; run does the rest.
func (c *conn) close() {
	c.mu.Lock()
	c.closed = true
	c.wake.Broadcast()
	c.room.Broadcast()
	c.mu.Unlock()
	_ = c.nc.Close()
}

// overdue checks for the budget whether a record takes too long.
func (c *conn) overdue(now time.Time) error {
	if c.recording.Overdue(now, c.opts.RecordTimeout) {
		return budget.ErrRecord
	}
	return nil
}

// admitted waits until there is memory for n bytes, or for another call if n is 0.
func (c *conn) admitted(n int) {
	const step = 20 * time.Millisecond
	for waited := time.Duration(0); !c.acct.Admit(int64(n), waited); waited += step {
		c.mu.Lock()
		over := c.closed || c.serving > 0 || c.outBytes > 0
		c.mu.Unlock()
		if over {
			return
		}
		time.Sleep(step)
	}
}

func (c *conn) readLoop() {
	stranger := c.acct != nil
	size := readerSize
	if stranger {
		size = strangerSize
	}
	br := bufio.NewReaderSize(c.nc, size)
	wait := c.admitted
	c.acct.Add(int64(size))
	defer func() { c.acct.Add(-int64(size)) }()
	for {
		c.mu.Lock()
		// A connection waits here only while work of its own is outstanding; the
		// end of that work wakes it.
		for !c.closed && (c.serving >= c.opts.MaxCalls || c.outBytes > c.opts.MaxQueued ||
			(c.serving > 0 || c.outBytes > 0) && !c.acct.Room()) {
			c.room.Wait()
		}
		closed, owes := c.closed, c.outBytes > 0
		c.mu.Unlock()
		if closed {
			return
		}
		c.admitted(0)
		rec, err := readRecord(br, c.opts.MaxRecord, c.acct, &c.recording, wait)
		if err != nil {
			return
		}
		if !owes {
			c.acct.Progress() // otherwise progress is that the peer takes replies
		}
		if stranger {
			stranger = false
			c.acct.Proven()
			left, _ := br.Peek(br.Buffered())
			br = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(bytes.Clone(left)), c.nc), readerSize)
			c.acct.Add(int64(readerSize - size))
			size = readerSize
		}
		c.count.receives.Add(1)
		if len(rec.b) < 8 {
			rec.free()
			return // too short for an XID and a direction
		}
		switch binary.BigEndian.Uint32(rec.b[4:]) {
		case uint32(oncrpc.TypeCall):
			c.serve(rec)
		case uint32(oncrpc.TypeReply):
			c.calls.reply(c, rec)
		default:
			rec.free()
			return
		}
	}
}

// send queues a message. It reports false if the connection has ended.
func (c *conn) send(o outgoing) bool {
	n := o.weight()
	c.acct.Add(int64(n))
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.acct.Add(-int64(n))
		return false
	}
	*o.place() = queued
	c.out = append(c.out, o)
	c.outBytes += n
	c.wake.Signal()
	c.mu.Unlock()
	return true
}

// withdraw takes an outgoing out of the queue. It returns where the outgoing was; if
// that is writing, written will be called.
func (c *conn) withdraw(o outgoing) place {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := *o.place()
	if was == queued { // it is a call: replies are never withdrawn
		for i := range c.out {
			if c.out[i] == o {
				c.out = append(c.out[:i], c.out[i+1:]...)
				break
			}
		}
		c.outBytes -= o.weight()
		*o.place() = idle
	}
	return was
}

func (c *conn) writeLoop() {
	defer close(c.writerDone)
	var (
		g     = gather{nc: c.nc, timeout: c.opts.Timeout, acct: c.acct}
		batch []outgoing
		ok    = true
	)
	if c.acct != nil {
		g.timeout = c.opts.ReplyTimeout
	}
	defer func() { c.acct.Add(-int64(cap(g.buf))) }()
	for {
		c.mu.Lock()
		for ok && len(c.out) == 0 && !c.closed {
			c.wake.Wait()
		}
		if c.closed {
			ok = false
		}
		batch = append(batch[:0], c.out...)
		total, now := 0, time.Now()
		for _, o := range batch {
			*o.place() = writing
			if ok {
				o.begun(now)
			}
			total += o.weight()
		}
		clear(c.out)
		c.out = c.out[:0]
		c.mu.Unlock()
		if ok {
			if g.buf == nil {
				g.grow(copyLimit)
			}
			for _, o := range batch {
				if ok = g.message(c.w, o.message()); !ok {
					break
				}
			}
			ok = ok && g.flush(c.w)
		}
		if ok {
			c.count.sends.Add(uint64(len(batch)))
			c.acct.Progress()
		}
		c.acct.Add(-int64(total))
		c.mu.Lock()
		c.outBytes -= total
		for i, o := range batch {
			*o.place() = done
			if !o.landed() {
				batch[i] = nil
			}
		}
		if c.patience != nil {
			c.patience.Stop()
			c.patience = nil
		}
		c.room.Signal()
		c.mu.Unlock()
		for i, o := range batch {
			if o != nil {
				o.written(ok)
				batch[i] = nil
			}
		}
		if !ok {
			c.close()
			c.mu.Lock()
			empty := len(c.out) == 0
			c.mu.Unlock()
			if empty {
				return
			}
		}
	}
}

// gather collects the pieces of messages for one writev.
type gather struct {
	buf    []byte   // copies and record marks
	start  int      // buf[start:] is not in pieces yet
	pieces [][]byte // in order
	size   int      // of pieces in bytes
	iov    net.Buffers

	nc      net.Conn
	timeout time.Duration // after which a peer that reads nothing is given up
	acct    *budget.Account
}

// grow replaces the buffer, which has to be empty, by a longer one.
func (g *gather) grow(n int) {
	g.acct.Add(int64(n - cap(g.buf)))
	g.buf = make([]byte, 0, n)
}

func (g *gather) message(w io.Writer, m *transport.Message) bool {
	if !g.reserve(w, markSize) {
		return false
	}
	g.buf = binary.BigEndian.AppendUint32(g.buf, lastFragment|uint32(m.Size()))
	at, moved := 0, 0
	for i := range m.Items {
		it := &m.Items[i]
		cut := min(max(int(it.Position)-moved, at), len(m.Stream))
		if !g.bytes(w, m.Stream[at:cut]) || !g.bytes(w, it.Data) {
			return false
		}
		at = cut
		pad := -len(it.Data) & 3
		if pad > 0 && !g.bytes(w, zeros[:pad]) {
			return false
		}
		moved += len(it.Data) + pad
	}
	return g.bytes(w, m.Stream[at:])
}

var zeros [4]byte

func (g *gather) bytes(w io.Writer, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	if len(b) <= copyLimit {
		if !g.reserve(w, len(b)) {
			return false
		}
		g.buf = append(g.buf, b...)
		return true
	}
	g.cut()
	g.pieces = append(g.pieces, b)
	g.size += len(b)
	return len(g.pieces) < maxPieces && g.size < maxBytes || g.flush(w)
}

// reserve makes room for a copy of n bytes.
func (g *gather) reserve(w io.Writer, n int) bool {
	if len(g.buf)+n <= cap(g.buf) {
		return true
	}
	if !g.flush(w) {
		return false
	}
	if cap(g.buf) < writerSize {
		g.grow(writerSize)
	}
	return true
}

// cut makes a piece of what was copied since the last piece.
func (g *gather) cut() {
	if g.start < len(g.buf) {
		g.pieces = append(g.pieces, g.buf[g.start:])
		g.start = len(g.buf)
	}
}

func (g *gather) flush(w io.Writer) bool {
	g.cut()
	g.size = 0
	err := g.nc.SetWriteDeadline(time.Now().Add(g.timeout))
	if err != nil {
		return false
	}
	switch len(g.pieces) {
	case 0:
	case 1:
		_, err = w.Write(g.pieces[0])
	default:
		g.iov = append(g.iov[:0], g.pieces...)
		iov := g.iov
		if bw, ok := w.(buffersWriter); ok {
			err = bw.writeBuffers(&iov)
		} else {
			_, err = iov.WriteTo(w)
		}
	}
	clear(g.pieces)
	g.buf, g.start, g.pieces = g.buf[:0], 0, g.pieces[:0]
	return err == nil
}

// buffersWriter is a writer that can take all pieces at once.
type buffersWriter interface {
	writeBuffers(b *net.Buffers) error
}
