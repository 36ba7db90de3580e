package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs/rocev2"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

// from says where an attack comes from.
type from uint8

const (
	same  from = iota // the address of the well-behaved peer
	other             // one other address
	many              // many addresses
)

// source is the i-th address of an attack.
func (f from) source(i int) netip.Addr {
	switch f {
	case same:
		return legitimate
	case other:
		return netip.MustParseAddr("127.0.4.3")
	}
	return netip.AddrFrom4([4]byte{127, 9, byte(i >> 8), byte(i)})
}

func (f from) String() string {
	return [...]string{"the peer's own address", "one other address", "many addresses"}[f]
}

func dialFrom(a netip.Addr) func(ctx context.Context, address string) (net.Conn, error) {
	return func(ctx context.Context, address string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(a, 0))}
		return d.DialContext(ctx, "tcp", address)
	}
}

func none(context.Context, *server) (string, error) { return "nothing", nil }

// flock keeps n connections open. When the server closes one, another takes its
// place a little later.
func (s *server) flock(ctx context.Context, n int, dial func(ctx context.Context, i int) (net.Conn, error)) (made *atomic.Int64, err error) {
	made = new(atomic.Int64)
	var first sync.WaitGroup
	slots := make(chan struct{}, 64)
	for i := range n {
		first.Add(1)
		s.attackers.Add(1)
		go func() {
			defer s.attackers.Done()
			once := sync.OnceFunc(first.Done)
			defer once()
			for ctx.Err() == nil {
				slots <- struct{}{}
				short, cancel := context.WithTimeout(ctx, 2*time.Second)
				c, err := dial(short, i)
				cancel()
				<-slots
				if err == nil {
					made.Add(1)
					once()
					stop := context.AfterFunc(ctx, func() { c.Close() })
					wait(c)
					stop()
					c.Close()
				}
				once()
				select {
				case <-ctx.Done():
				case <-time.After(time.Duration(100+rand.IntN(200)) * time.Millisecond):
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() { first.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
	return made, nil
}

// wait returns when the peer has closed the connection. It reads one byte at
// most.
func wait(c net.Conn) {
	if u, ok := c.(interface{ Ended() <-chan struct{} }); ok {
		<-u.Ended()
		return
	}
	_, _ = c.Read(make([]byte, 1))
}

func silent(f from) func(context.Context, *server) (string, error) {
	return func(ctx context.Context, s *server) (string, error) {
		made, err := s.flock(ctx, *silentN, func(ctx context.Context, i int) (net.Conn, error) {
			return dialFrom(f.source(i))(ctx, s.addr.String())
		})
		return fmt.Sprintf("%d silent connections at a time from %v (%d made at the start)", *silentN, f, made.Load()), err
	}
}

func nullThenSilent(ctx context.Context, s *server) (string, error) {
	made, err := s.flock(ctx, *silentN, func(ctx context.Context, i int) (net.Conn, error) {
		c, err := dialFrom(legitimate)(ctx, s.addr.String())
		if err != nil {
			return nil, err
		}
		if _, err = c.Write(record(appendCall(nil, procNull))); err == nil {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			_, err = c.Read(make([]byte, 100))
			_ = c.SetReadDeadline(time.Time{})
		}
		return c, err
	})
	return fmt.Sprintf("%d connections of one NULL each, then silent (%d made)", *silentN, made.Load()), err
}

// record marks a message as a record of one fragment.
func record(m []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, 1<<31|uint32(len(m))), m...)
}

// deaf is a connection whose peer never reads.
type deaf struct {
	net.Conn
	ended chan struct{}
}

func (d *deaf) Ended() <-chan struct{} { return d.ended }

func (d *deaf) Close() error {
	err := d.Conn.Close()
	return err
}

func unreadTCP(ctx context.Context, s *server) (string, error) {
	made, err := s.flock(ctx, *readers, func(ctx context.Context, i int) (net.Conn, error) {
		c, err := dialFrom(other.source(0))(ctx, s.addr.String())
		if err != nil {
			return nil, err
		}
		d := &deaf{c, make(chan struct{})}
		go func() {
			defer close(d.ended)
			var calls []byte
			for range 64 {
				calls = append(calls, record(appendCall(nil, procRead))...)
			}
			for {
				if _, err := c.Write(calls); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}()
		return d, nil
	})
	time.Sleep(2 * time.Second)
	return fmt.Sprintf("%d connections call for 64 READs of 1 MiB a second and read nothing (%d made)", *readers, made.Load()), err
}

func slowRecords(ctx context.Context, s *server) (string, error) {
	made, err := s.flock(ctx, *silentN, func(ctx context.Context, i int) (net.Conn, error) {
		c, err := dialFrom(other.source(0))(ctx, s.addr.String())
		if err != nil {
			return nil, err
		}
		d := &deaf{c, make(chan struct{})}
		go func() {
			defer close(d.ended)
			_, err := c.Write(binary.BigEndian.AppendUint32(nil, 1<<31|4<<20))
			if err == nil {
				_, err = c.Write(make([]byte, 128<<10))
			}
			for err == nil {
				time.Sleep(500 * time.Millisecond)
				_, err = c.Write([]byte{0})
			}
		}()
		return d, nil
	})
	time.Sleep(2 * time.Second)
	return fmt.Sprintf("%d records of 4 MiB, 128 KiB sent and then two bytes a second (%d made)", *silentN, made.Load()), err
}

// setupThenSilent completes the MPA setup and sends nothing more.
func setupThenSilent(ctx context.Context, s *server) (string, error) {
	made, err := s.flock(ctx, *silentN, func(ctx context.Context, i int) (net.Conn, error) {
		c, err := dialFrom(other.source(0))(ctx, s.addr.String())
		if err != nil {
			return nil, err
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		b := append([]byte("MPA ID Req Frame"), 0, 1, 0, 0)
		if _, err = c.Write(b); err == nil {
			_, err = c.Read(b)
		}
		_ = c.SetDeadline(time.Time{})
		return c, err
	})
	return fmt.Sprintf("%d connections with a complete MPA setup, then silent (%d made)", *silentN, made.Load()), err
}

// unreadRDMA sends calls for large READs as an endpoint does, and ignores the replies.
func unreadRDMA(ctx context.Context, s *server) (string, error) {
	sink := make([]byte, readSize)
	var made atomic.Int64
	slots := make(chan struct{}, 16)
	var first sync.WaitGroup
	first.Add(*readers)
	for i := range *readers {
		s.attackers.Add(1)
		go func() {
			defer s.attackers.Done()
			once := sync.OnceFunc(first.Done)
			defer once()
			for ctx.Err() == nil {
				slots <- struct{}{}
				release := sync.OnceFunc(func() { <-slots })
				_ = s.unread(ctx, i, sink, func() { made.Add(1); once(); release() })
				release()
				once()
				select {
				case <-ctx.Done():
				case <-time.After(200 * time.Millisecond):
				}
			}
		}()
	}
	done := make(chan struct{})
	go func() { first.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
	time.Sleep(time.Second)
	return fmt.Sprintf("%d connections call for up to 64 READs of 1 MiB each and take nothing (%d made)", *readers, made.Load()), nil
}

// shut is whether the attackers' side of the network is cut.
type shut struct{ off atomic.Bool }

// stuck is a TCP connection that stops reading.
type stuck struct {
	net.Conn
	s *shut
}

func (c *stuck) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	for err == nil && c.s.off.Load() {
		time.Sleep(50 * time.Millisecond)
		if _, werr := c.Conn.Write(nil); werr != nil {
			return 0, werr
		}
	}
	return n, err
}

// unread is one connection, until the server ends it. made is called when its
// calls are out.
func (s *server) unread(ctx context.Context, i int, sink []byte, made func()) error {
	var cut shut
	var r *endpoint.Requester
	dialing, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if s.fabric == "iwarp" {
		p, err := iwarp.New(iwarp.Options{Wrap: func(c net.Conn) net.Conn { return &stuck{c, &cut} }})
		if err != nil {
			return err
		}
		defer p.Close()
		defer cut.off.Store(false)
		if r, err = endpoint.Dial(dialing, p, s.addr, endpoint.Options{}); err != nil {
			return err
		}
	} else {
		p, err := rocev2.New(rocev2.Options{Local: many.source(i), Buffer: 64 << 10, Incoming: func(b []byte, pass func([]byte)) {
			if !cut.off.Load() {
				pass(b)
			}
		}})
		if err != nil {
			return err
		}
		defer p.Close()
		if r, err = endpoint.Dial(dialing, p, s.addr, endpoint.Options{}); err != nil {
			return err
		}
	}
	defer func() { go r.Close() }()
	null := transport.Call{Message: transport.Message{Stream: appendCall(nil, procNull)}, MaxReply: 64}
	if err := r.Do(dialing, &null); err != nil {
		return err
	}
	cut.off.Store(true)
	ended := make(chan struct{}, 64)
	for range 64 {
		r.Start(&transport.Call{
			Message: transport.Message{Stream: appendCall(nil, procRead)}, MaxReply: 64, Results: [][]byte{sink},
			Timeout: time.Hour, Done: func(*transport.Call) { ended <- struct{}{} },
		})
	}
	made()
	select {
	case <-ctx.Done():
	case <-ended:
	}
	return nil
}

// requests sends connection requests that are never completed: n at once, or without end.
func requests(f from, n int) func(context.Context, *server) (string, error) {
	return func(ctx context.Context, s *server) (string, error) {
		sources := 1
		if f == many {
			sources = 500
		}
		var socks []*net.UDPConn
		for i := range sources {
			// Port 4791 of an address is its owner's; any other will do.
			c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(f.source(i), 0)))
			if err != nil {
				return "", err
			}
			socks = append(socks, c)
		}
		var sent atomic.Int64
		start := time.Now()
		send := func() {
			c := socks[rand.IntN(len(socks))]
			src := c.LocalAddr().(*net.UDPAddr).AddrPort()
			to := netip.AddrPortFrom(s.addr.Addr(), 4791)
			if _, err := c.WriteToUDPAddrPort(request(src, to, s.addr.Port()), to); err == nil {
				sent.Add(1)
			}
		}
		if n > 0 {
			for range n {
				send()
			}
			for _, c := range socks {
				c.Close()
			}
			return fmt.Sprintf("%d connection requests at once from %v", n, f), nil
		}
		s.attackers.Add(1)
		go func() {
			defer s.attackers.Done()
			for ctx.Err() == nil {
				due := int64(time.Since(start).Seconds() * float64(*rate))
				for sent.Load() < due && ctx.Err() == nil {
					send()
				}
				time.Sleep(time.Millisecond)
			}
			for _, c := range socks {
				c.Close()
			}
		}()
		time.Sleep(2 * time.Second)
		return fmt.Sprintf("%.0f connection requests a second from %v", float64(sent.Load())/time.Since(start).Seconds(), f), nil
	}
}

// request is a connection request with an adapter, a queue pair and a
// communication id of its own.
func request(src, to netip.AddrPort, port uint16) []byte {
	h := roce.Packet{Opcode: roce.UDSendOnly, PKey: roce.DefaultPKey, DestQP: 1, DETH: roce.DETHFields{QKey: roce.GSIQKey, SrcQP: 1}}
	b, mad := ibcm.Append(h.AppendHeaders(nil), ibcm.AttributeREQ, rand.Uint64())
	q := ibcm.REQ(mad.Data())
	q.SetLocalID(rand.Uint32())
	q.SetServiceID(ibcm.IPServiceID(6, port))
	q.SetLocalCAGUID(rand.Uint64())
	q.SetLocalQPN(rand.Uint32() & 0xffffff)
	q.SetResponderResources(16)
	q.SetInitiatorDepth(16)
	q.SetTransport(ibcm.TransportRC)
	q.SetPathMTU(3)
	q.SetPKey(roce.DefaultPKey)
	q.SetStartingPSN(rand.Uint32() & 0xffffff)
	q.Primary().SetGIDs(src.Addr(), to.Addr())
	q.Primary().SetAckTimeout(14)
	q.SetIP(netip.AddrPortFrom(src.Addr(), 1000), to.Addr(), nil)
	packet := append(b, 0, 0, 0, 0)
	ip := tap.AppendUDP(nil, src, to, 0, true, packet)
	n := len(ip) - len(packet)
	sum, _ := roce.ICRC(link.UDP, ip[:n-8], ip[n-8:n], b)
	binary.LittleEndian.PutUint32(packet[len(b):], sum)
	return packet
}
