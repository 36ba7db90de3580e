package iwarp

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/link"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// socket is the TCP connection of a conn, with the wrappers that the options ask for.
type socket struct {
	net.Conn
	p      *Provider
	dialed bool
	raw    *rawSocket // reads and writes without waiting; nil if the socket is wrapped

	// flow is nil without a tap. order makes sure that the tap gets data before the
	// answer to it.
	order sync.Mutex
	flow  *tap.TCP
}

// wrap adds the wrappers that the options ask for.
func (s *socket) wrap() {
	inner := s.Conn
	if s.p.o.Wrap != nil {
		s.Conn = s.p.o.Wrap(s.Conn)
	}
	if s.p.o.Link.Delay > 0 || s.p.o.Link.Bandwidth > 0 {
		s.Conn = link.NewConn(s.Conn, s.p.o.Link)
	}
	if s.Conn == inner {
		s.raw = newRawSocket(inner)
	}
	if s.p.o.Tap != nil {
		s.flow = tap.NewTCP(s.p.o.Tap, s.local(), s.remote(), s.dialed)
	}
}

func (s *socket) local() netip.AddrPort  { return addrPort(s.LocalAddr()) }
func (s *socket) remote() netip.AddrPort { return addrPort(s.RemoteAddr()) }

func addrPort(a net.Addr) netip.AddrPort {
	if t, ok := a.(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}

// Read shows the tap what was received.
func (s *socket) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	orderRead()
	if s.flow != nil && n > 0 {
		s.order.Lock()
		s.flow.Received(b[:n])
		s.order.Unlock()
	}
	return n, err
}

// Write shows the tap what will be sent.
func (s *socket) Write(b []byte) (int, error) {
	orderWrite()
	if s.flow != nil {
		s.order.Lock()
		s.flow.Sent(b)
		s.order.Unlock()
	}
	return s.Conn.Write(b)
}

// CloseWrite ends our direction.
func (s *socket) CloseWrite() {
	if s.flow != nil {
		s.order.Lock()
		s.flow.SentFIN()
		s.order.Unlock()
	}
	if c, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		if c.CloseWrite() == nil {
			return
		}
	}
	s.Conn.Close()
}

// Close ends both. It may be called more than once.
func (s *socket) Close() error {
	err := s.Conn.Close()
	if s.flow != nil {
		s.order.Lock()
		s.flow.SentFIN()
		s.order.Unlock()
	}
	return err
}

// ended records that the peer has closed its direction.
func (s *socket) ended() {
	if s.flow != nil {
		s.order.Lock()
		s.flow.ReceivedFIN()
		s.order.Unlock()
	}
}

// past is a deadline that ends a wait at once.
var past = time.Unix(1, 0)
