package tcprpc

import (
	"net"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// wrap puts the Tap and the model of a network around the socket.
func (c *conn) wrap(dialed bool) {
	if c.opts.Tap != nil {
		t := newTapped(c.nc, c.opts, dialed)
		c.nc, c.w = t, t
	}
	if c.opts.Link != (verbs.Link{}) {
		l := &slowLink{nc: c.nc, link: c.opts.Link}
		l.Conn, l.cond.L = l.nc, &l.mu
		c.nc, c.w = l, l
	}
}

// slowLink writes with the delay and the bandwidth of a verbs.Link. It copies the
// bytes that are in transit, so a write may return before they have been sent.
type slowLink struct {
	net.Conn
	nc   net.Conn
	link verbs.Link

	mu      sync.Mutex
	cond    sync.Cond
	way     []onTheWay
	bytes   int
	free    time.Time // when the link is free for the next byte
	started bool
	closed  bool
	err     error
}

type onTheWay struct {
	due time.Time
	b   []byte
}

// maxOnTheWay bounds the bytes in transit. Beyond it a writer waits, as it would for
// a full socket.
const maxOnTheWay = 8 << 20

func (l *slowLink) Write(b []byte) (int, error) {
	const piece = 64 << 10
	for at := 0; at < len(b); at += piece {
		if err := l.add(b[at:min(at+piece, len(b))]); err != nil {
			return at, err
		}
	}
	return len(b), nil
}

func (l *slowLink) add(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes+len(b) > maxOnTheWay && l.err == nil && !l.closed {
		l.cond.Wait()
	}
	if l.closed {
		return net.ErrClosed
	}
	if l.err != nil {
		return l.err
	}
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	if l.link.Bandwidth > 0 {
		l.free = l.free.Add(time.Duration(float64(len(b)) * 8 / float64(l.link.Bandwidth) * 1e9))
	}
	l.way = append(l.way, onTheWay{due: l.free.Add(l.link.Delay), b: append([]byte(nil), b...)})
	l.bytes += len(b)
	if !l.started {
		l.started = true
		go l.deliver()
	}
	l.cond.Broadcast()
	return nil
}

func (l *slowLink) deliver() {
	for {
		l.mu.Lock()
		for len(l.way) == 0 && !l.closed {
			l.cond.Wait()
		}
		if l.closed {
			l.mu.Unlock()
			return
		}
		next := l.way[0]
		l.mu.Unlock()
		if d := time.Until(next.due); d > 0 {
			time.Sleep(d)
		}
		_, err := l.nc.Write(next.b)
		l.mu.Lock()
		l.way = l.way[1:]
		l.bytes -= len(next.b)
		l.err = err
		l.cond.Broadcast()
		l.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (l *slowLink) writeBuffers(b *net.Buffers) error {
	for _, piece := range *b {
		if _, err := l.Write(piece); err != nil {
			return err
		}
	}
	return nil
}

func (l *slowLink) Close() error {
	l.mu.Lock()
	l.closed = true
	l.cond.Broadcast()
	l.mu.Unlock()
	return l.nc.Close()
}
