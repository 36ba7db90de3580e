package iwarp

import (
	"net"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// linkConn delays what is written, as a link would.
type linkConn struct {
	net.Conn
	link verbs.Link

	mu      sync.Mutex
	change  sync.Cond
	queue   []parcel
	bytes   int
	free    time.Time // when the link has sent all that it was given
	closing bool      // nothing more is written; close the direction after the rest
	broken  error
	stop    chan struct{}
	once    sync.Once
}

type parcel struct {
	b   []byte
	due time.Time
}

// linkQueue bounds the bytes in transit.
const linkQueue = 16 << 20

func newLinkConn(c net.Conn, link verbs.Link) *linkConn {
	l := &linkConn{Conn: c, link: link, stop: make(chan struct{})}
	l.change.L = &l.mu
	go l.run()
	return l
}

func (l *linkConn) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.bytes > linkQueue && l.broken == nil {
		l.change.Wait()
	}
	if l.broken != nil {
		return 0, l.broken
	}
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	if l.link.Bandwidth > 0 {
		l.free = l.free.Add(time.Duration(float64(len(b)) * 8 / float64(l.link.Bandwidth) * float64(time.Second)))
	}
	l.queue = append(l.queue, parcel{append([]byte(nil), b...), l.free.Add(l.link.Delay)})
	l.bytes += len(b)
	l.change.Broadcast()
	return len(b), nil
}

// CloseWrite ends the direction when everything has been sent.
func (l *linkConn) CloseWrite() error {
	l.mu.Lock()
	l.closing = true
	l.mu.Unlock()
	l.change.Broadcast()
	return nil
}

// Close drops what has not been sent.
func (l *linkConn) Close() error {
	l.mu.Lock()
	if l.broken == nil {
		l.broken = net.ErrClosed
	}
	l.mu.Unlock()
	l.change.Broadcast()
	l.once.Do(func() { close(l.stop) })
	return l.Conn.Close()
}

func (l *linkConn) run() {
	t := time.NewTimer(0)
	defer t.Stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		for len(l.queue) == 0 && !l.closing && l.broken == nil {
			l.change.Wait()
		}
		if l.broken != nil {
			return
		}
		if len(l.queue) == 0 {
			if c, ok := l.Conn.(interface{ CloseWrite() error }); ok {
				c.CloseWrite() //nolint:errcheck // the reader notices
			}
			return
		}
		p := l.queue[0]
		l.mu.Unlock()
		var err error
		if d := time.Until(p.due); d > 0 {
			t.Reset(d)
			select {
			case <-t.C:
			case <-l.stop:
				err = net.ErrClosed
			}
		}
		if err == nil {
			_, err = l.Conn.Write(p.b)
		}
		l.mu.Lock()
		l.queue[0].b = nil
		l.queue = l.queue[1:]
		l.bytes -= len(p.b)
		if err != nil && l.broken == nil {
			l.broken = err
		}
		l.change.Broadcast()
	}
}
