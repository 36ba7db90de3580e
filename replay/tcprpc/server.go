package tcprpc

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

// Server answers calls on TCP connections.
type Server struct {
	l       net.Listener
	opts    Options
	handler transport.Handler
	count   counters
	group   *budget.Group

	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
	wg     sync.WaitGroup
}

// Listen starts a server at an address such as "127.0.0.1:0".
func Listen(ctx context.Context, address string, h transport.Handler, opts Options) (*Server, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return Serve(l, h, opts), nil
}

// Serve starts a server on the connections of l. Server.Close closes l.
func Serve(l net.Listener, h transport.Handler, opts Options) *Server {
	s := &Server{l: l, opts: opts.withDefaults(), handler: h, conns: make(map[*conn]struct{})}
	if s.opts.Budget == nil {
		s.opts.Budget = budget.New(budget.Options{})
	}
	s.group = s.opts.Budget.Join(budget.GroupOptions{
		Name: "tcp", Connections: s.opts.MaxConnections, Newcomers: s.opts.Newcomers, NewcomerTime: s.opts.NewcomerTime,
		Tick: min(s.opts.NewcomerTime, s.opts.RecordTimeout) / 8,
	})
	s.wg.Add(1)
	go s.accept()
	return s
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return addrPort(s.l.Addr()) }

// Budget is what the connections of the server share.
func (s *Server) Budget() *budget.Budget { return s.opts.Budget }

// Stats returns counts of all connections, including those that have ended.
func (s *Server) Stats() transport.Stats { return s.count.stats() }

// Close ends the server and its connections, and waits for its goroutines. It does not
// wait for handlers that still work on a call.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		c.close()
	}
	s.mu.Unlock()
	err := s.l.Close()
	s.wg.Wait()
	s.group.Leave()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

func (s *Server) accept() {
	defer s.wg.Done()
	for {
		nc, err := s.l.Accept()
		if err != nil {
			s.mu.Lock()
			closed := s.closed
			s.mu.Unlock()
			if closed || errors.Is(err, net.ErrClosed) {
				return
			}
			// For instance, there is no free descriptor. That passes, sooner if a
			// connection without a first message is evicted.
			wait := 10 * time.Millisecond
			if s.group.Reclaim() {
				wait = time.Millisecond
			}
			time.Sleep(wait)
			continue
		}
		s.start(nc)
	}
}

func (s *Server) start(nc net.Conn) {
	c := newConn(nc, &s.opts, &s.count)
	c.wrap(false)
	c.handler.Store(&s.handler)
	c.calls = newRequester(&s.opts, &counters{})
	c.calls.conn, c.calls.peer = c, c.peer
	var ok bool
	if c.acct, ok = s.group.Open(c.peer.Remote, func(error) { c.close() }, c.overdue); !ok {
		c.close()
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		c.close()
		c.acct.Close()
		return
	}
	s.conns[c] = struct{}{}
	s.wg.Add(1)
	s.mu.Unlock()
	go func() {
		defer s.wg.Done()
		c.run()
		c.acct.Close()
		c.calls.lost(c)
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
}
