package nfsserver

import (
	"sync"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// Conn holds what programs keep for a connection.
type Conn struct {
	Peer transport.Peer

	mu     sync.Mutex
	values map[any]any
	ends   []func()
	closed bool
}

type conns struct {
	mu   sync.Mutex
	byID map[uint64]*Conn
}

// Conn returns the call's connection, the same for all its calls.
func (c *Call) Conn() *Conn {
	s, peer := &c.server.conns, c.x.Peer()
	s.mu.Lock()
	if conn := s.byID[peer.ID]; conn != nil {
		s.mu.Unlock()
		return conn
	}
	conn := &Conn{Peer: peer}
	if s.byID == nil {
		s.byID = make(map[uint64]*Conn)
	}
	s.byID[peer.ID] = conn
	s.mu.Unlock()
	c.x.OnClose(c.server, func() {
		s.mu.Lock()
		delete(s.byID, peer.ID)
		s.mu.Unlock()
		conn.end()
	})
	return conn
}

// Value returns what a program keeps under a key. If there is nothing yet, make makes it.
func (c *Conn) Value(key any, make func() any) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.values[key]
	if !ok && make != nil {
		v = make()
		if c.values == nil {
			c.values = map[any]any{}
		}
		c.values[key] = v
	}
	return v
}

// OnClose adds a function to call when the connection has ended. If it already has, f is
// called at once.
func (c *Conn) OnClose(f func()) {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.ends = append(c.ends, f)
	}
	c.mu.Unlock()
	if closed {
		f()
	}
}

func (c *Conn) end() {
	c.mu.Lock()
	ends := c.ends
	c.ends, c.closed = nil, true
	c.mu.Unlock()
	for _, f := range ends {
		f()
	}
}
