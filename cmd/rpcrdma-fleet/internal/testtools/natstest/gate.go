package natstest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Gate is a way to a server that may be shut. Its address stays: a port that a server gave up could be another's when the
// server comes back.
type Gate struct {
	Address string // 127.0.0.1:PORT

	mu    sync.Mutex
	to    string // "": shut
	conns map[net.Conn]bool
}

// NewGate makes one that is shut.
func NewGate(t *testing.T) *Gate {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{Address: l.Addr().String(), conns: make(map[net.Conn]bool)}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { g.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		g.Shut()
		all.Wait()
	})
	return g
}

// Open has connections go to an address.
func (g *Gate) Open(to string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = to
}

// Shut ends all connections, and lets no other through.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = ""
	for c := range g.conns {
		c.Close()
	}
}

// pass passes on what both sides say, until one of them ends.
func (g *Gate) pass(c net.Conn) {
	defer c.Close()
	g.mu.Lock()
	to := g.to
	g.conns[c] = true
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.conns, c)
	}()
	if to == "" {
		return
	}
	s, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer s.Close()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(c, s)
		c.Close()
	})
	_, _ = io.Copy(s, c)
	s.Close()
	back.Wait()
}
