package udprpc

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/rpcrdma/toolkit/replay/transport"
)

// Server answers calls on a UDP socket.
type Server struct{ s *socket }

// Listen starts a server at an address such as "127.0.0.1:0".
func Listen(ctx context.Context, address string, h transport.Handler, opt Options) (*Server, error) {
	var lc net.ListenConfig
	pc, err := lc.ListenPacket(ctx, "udp", address)
	if err != nil {
		return nil, err
	}
	s := newSocket(pc.(*net.UDPConn), netip.AddrPort{}, opt)
	s.handler.Store(&h)
	return &Server{s}, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.s.at }

// Stats counts since Listen.
func (s *Server) Stats() transport.Stats {
	st := s.s.stats()
	st.Replies = st.Calls - s.s.count.errors.Load()
	return st
}

// Close ends the server. It does not wait for handlers that still work on a call.
func (s *Server) Close() error { return s.s.close() }

// exchange is a call of a peer.
type exchange struct {
	s        *socket
	from     netip.AddrPort
	call     transport.Message
	answered atomic.Bool
}

func (x *exchange) Call() *transport.Message { return &x.call }
func (x *exchange) MaxResult(int) uint32     { return 0 }
func (x *exchange) Disconnect()              {}

func (x *exchange) Peer() transport.Peer {
	return transport.Peer{Transport: "udp", Local: x.s.at, Remote: x.from, ID: x.s.id}
}

// Backward calls the peer at the port that the call came from.
func (x *exchange) Backward() transport.Requester {
	return &Requester{s: x.s, to: x.from, shared: true}
}

// OnClose does nothing: there are no connections.
func (x *exchange) OnClose(any, func()) {}

func (x *exchange) Reply(m *transport.Message) {
	if !x.answered.CompareAndSwap(false, true) {
		return
	}
	if m.Size() <= MaxMessage {
		_ = x.s.send(x.from, m.AppendWhole(nil)) // lost like any datagram
	}
	x.s.serving.Add(-1)
	if m.Release != nil {
		m.Release()
	}
}

func (x *exchange) Drop() {
	if x.answered.CompareAndSwap(false, true) {
		x.s.count.errors.Add(1)
		x.s.serving.Add(-1)
	}
}
