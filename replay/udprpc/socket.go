package udprpc

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// MaxMessage is the size in bytes of the longest message that is sent or taken. NLM's
// longest, with four opaques of 1 KiB and a credential, is shorter.
const MaxMessage = 8 << 10

// Options of a Requester and of a Server. The zero Options are ready for use.
type Options struct {
	// Timeout applies to calls that have none of their own. Default 15 s.
	Timeout time.Duration
	// Again is the time until a call without a reply is sent again; it doubles each time.
	// Default 1 s.
	Again time.Duration
	// MaxCalls is how many calls of peers the handler may work on at a time; what comes
	// beyond that is dropped, and comes again. Default 64.
	MaxCalls int
	// Tap receives what is sent and received as UDP packets.
	Tap verbs.Tap
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 15 * time.Second
	}
	if o.Again <= 0 {
		o.Again = time.Second
	}
	if o.MaxCalls <= 0 {
		o.MaxCalls = 64
	}
	return o
}

// socket is a UDP socket that sends and answers calls.
type socket struct {
	pc   *net.UDPConn
	opt  Options
	id   uint64
	at   netip.AddrPort
	peer netip.AddrPort // of a Requester: nobody else is heard

	handler atomic.Pointer[transport.Handler]
	serving atomic.Int32
	count   struct{ calls, replies, errors, sends, receives, again atomic.Uint64 }
	ident   atomic.Uint32 // of packets, for the Tap

	mu      sync.Mutex
	waiting map[callKey]chan []byte
	xid     uint32
	closed  chan struct{}
	once    sync.Once
	wg      sync.WaitGroup
}

type callKey struct {
	peer netip.AddrPort
	xid  uint32
}

func newSocket(pc *net.UDPConn, peer netip.AddrPort, opt Options) *socket {
	s := &socket{pc: pc, opt: opt.withDefaults(), id: transport.NextID(), peer: peer, waiting: map[callKey]chan []byte{}, xid: rand.Uint32(), closed: make(chan struct{})}
	s.at = plain(pc.LocalAddr().(*net.UDPAddr).AddrPort())
	s.wg.Go(s.read)
	return s
}

func plain(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

func (s *socket) close() error {
	var err error
	s.once.Do(func() {
		close(s.closed)
		err = s.pc.Close()
	})
	s.wg.Wait()
	return err
}

// read takes what comes until the socket is closed.
func (s *socket) read() {
	buf := make([]byte, MaxMessage+1)
	for {
		n, from, err := s.pc.ReadFromUDPAddrPort(buf)
		if err != nil {
			// A connected socket reports that nobody listens at the peer's port: calls are
			// sent again until their time is up.
			select {
			case <-s.closed:
				return
			case <-time.After(time.Millisecond):
				continue
			}
		}
		from = plain(from)
		if n > MaxMessage || s.peer.IsValid() && from != s.peer {
			continue
		}
		s.count.receives.Add(1)
		s.show(from, s.at, buf[:n])
		m, ok := oncrpc.Peek(buf[:n])
		switch {
		case !ok:
		case m.Type == oncrpc.TypeReply:
			s.answered(callKey{from, m.XID}, buf[:n])
		default:
			s.serve(from, buf[:n])
		}
	}
}

func (s *socket) answered(k callKey, b []byte) {
	s.mu.Lock()
	reply := s.waiting[k]
	delete(s.waiting, k) // a second reply has nobody who waits
	s.mu.Unlock()
	if reply != nil {
		reply <- append([]byte(nil), b...)
	}
}

func (s *socket) serve(from netip.AddrPort, b []byte) {
	s.count.calls.Add(1)
	h := s.handler.Load()
	x := &exchange{s: s, from: from, call: transport.Message{Stream: append([]byte(nil), b...)}}
	if s.serving.Add(1) > int32(s.opt.MaxCalls) {
		x.Drop()
		return
	}
	if h == nil {
		r := oncrpc.Reply{XID: binary.BigEndian.Uint32(b), Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
		x.Reply(&transport.Message{Stream: r.Append(nil)})
		return
	}
	(*h).ServeRPC(x)
}

func (s *socket) send(to netip.AddrPort, b []byte) error {
	s.count.sends.Add(1)
	s.show(s.at, to, b)
	var err error
	if s.peer.IsValid() {
		_, err = s.pc.Write(b)
	} else {
		_, err = s.pc.WriteToUDPAddrPort(b, to)
	}
	return err
}

func (s *socket) show(from, to netip.AddrPort, b []byte) {
	if s.opt.Tap == nil {
		return
	}
	if from.Addr().IsUnspecified() {
		from = netip.AddrPortFrom(to.Addr(), from.Port())
	}
	if to.Addr().IsUnspecified() {
		to = netip.AddrPortFrom(from.Addr(), to.Port())
	}
	s.opt.Tap.Packet(time.Now(), tap.AppendUDP(nil, from, to, uint16(s.ident.Add(1)), true, b))
}

// do makes a call.
func (s *socket) do(ctx context.Context, to netip.AddrPort, c *transport.Call) error {
	c.Times = transport.Times{Queued: time.Now()}
	c.Reply, c.Err = transport.Message{}, nil
	b := c.AppendWhole(nil)
	switch {
	case len(b) < 8:
		return transport.ErrMessage
	case len(b) > MaxMessage:
		return transport.ErrTooLong
	}
	reply := make(chan []byte, 1)
	k := callKey{to, c.XID}
	s.mu.Lock()
	for k.xid == 0 || s.waiting[k] != nil && c.XID == 0 {
		s.xid++
		k.xid = s.xid
	}
	if s.waiting[k] != nil {
		s.mu.Unlock()
		return transport.ErrXID
	}
	s.waiting[k] = reply
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		if s.waiting[k] == reply {
			delete(s.waiting, k)
		}
		s.mu.Unlock()
	}()
	c.XID = k.xid
	binary.BigEndian.PutUint32(b, k.xid)
	binary.BigEndian.PutUint32(c.Stream, k.xid)
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = s.opt.Timeout
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	wait := s.opt.Again
	c.Times.Sent = time.Now()
	for {
		// An error of the network may pass: the datagram counts as lost.
		if err := s.send(to, b); errors.Is(err, net.ErrClosed) {
			return transport.ErrClosed
		}
		again := time.NewTimer(wait)
		select {
		case r := <-reply:
			again.Stop()
			c.Reply = transport.Message{Stream: r}
			c.Times.Replied = time.Now()
			s.count.replies.Add(1)
			return nil
		case <-again.C:
			s.count.again.Add(1)
			wait *= 2
			continue
		case <-end.C:
			again.Stop()
			return transport.ErrTimeout
		case <-ctx.Done():
			again.Stop()
			return ctx.Err()
		case <-s.closed:
			again.Stop()
			return transport.ErrClosed
		}
	}
}

func (s *socket) stats() transport.Stats {
	return transport.Stats{Calls: s.count.calls.Load(), Replies: s.count.replies.Load(), Errors: s.count.errors.Load(), Sends: s.count.sends.Load(), Receives: s.count.receives.Load()}
}
