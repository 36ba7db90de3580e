package endpoint

import (
	"context"
	"encoding/binary"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/leak"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/iwarp"
	"github.com/rpcrdma/toolkit/replay/verbs/rocev2"
)

// big answers calls of procedure 1 with an item of n bytes, NULL with none.
func big(n int) transport.Handler {
	return transport.HandlerFunc(func(x transport.Exchange) {
		s := x.Call().Stream
		m := transport.Message{Stream: append(append([]byte(nil), s[:4]...), make([]byte, 24)...)}
		m.Stream[7] = 1
		if binary.BigEndian.Uint32(s[20:]) != 0 {
			m.Items = []transport.Item{{Position: 28, Data: make([]byte, n)}}
			binary.BigEndian.PutUint32(m.Stream[24:], uint32(n))
		}
		x.Reply(&m)
	})
}

// mute is a TCP connection that stops reading while it is off.
type mute struct {
	net.Conn
	off *atomic.Bool
}

func (m *mute) Read(b []byte) (int, error) {
	for m.off.Load() {
		time.Sleep(time.Millisecond)
	}
	return m.Conn.Read(b)
}

// Peers that call for much and take nothing: over sockets that nobody reads, and
// with packets that nobody acknowledges. They cost no more than the budget, a
// peer that reads is served meanwhile, and in the end they are disconnected.
func TestUnread(t *testing.T) {
	const limit, size, attackers = 24 << 20, 256 << 10, 16
	for name, provider := range map[string]func(t *testing.T, local netip.Addr, off *atomic.Bool) verbs.Provider{
		"iwarp": func(t *testing.T, _ netip.Addr, off *atomic.Bool) verbs.Provider {
			o := iwarp.Options{}
			if off != nil {
				o.Wrap = func(c net.Conn) net.Conn {
					c.(*net.TCPConn).SetReadBuffer(8 << 10) //nolint:errcheck // the kernel may hold more
					return &mute{c, off}
				}
			}
			return must(iwarp.New(o))
		},
		"rocev2": func(t *testing.T, local netip.Addr, off *atomic.Bool) verbs.Provider {
			o := rocev2.Options{Local: local, Buffer: 256 << 10}
			if off != nil {
				o.Incoming = func(b []byte, pass func([]byte)) {
					if !off.Load() {
						pass(b)
					}
				}
			}
			return must(rocev2.New(o))
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := netip.MustParseAddr("127.0.0.1")
			next := func() netip.Addr { return netip.Addr{} }
			if name == "rocev2" {
				next = func() netip.Addr { return address(t) }
				at = next()
			}
			sp := provider(t, at, nil)
			defer sp.Close()
			b := budget.New(budget.Options{Bytes: limit})
			s, err := Listen(t.Context(), sp, netip.AddrPortFrom(at, 0), big(size), Options{Budget: b, PeerTimeout: time.Second, RetryCount: 7})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var off atomic.Bool
			ended := make(chan struct{}, 64*attackers)
			var bad []*Requester
			for range attackers {
				p := provider(t, next(), &off)
				defer p.Close()
				for {
					r, err := Dial(ctx, p, s.Addr(), Options{})
					if err != nil {
						t.Fatal(err)
					}
					defer r.Close()
					err = r.Do(ctx, null())
					if err == nil {
						bad = append(bad, r)
						break
					}
					// A machine that stands still for a second makes it seem that this one reads nothing.
					if ctx.Err() != nil {
						t.Fatal(err)
					}
				}
			}
			off.Store(true)
			defer off.Store(false) // before those above are closed
			for _, r := range bad {
				sink := make([]byte, size)
				for range 32 {
					c := null()
					binary.BigEndian.PutUint32(c.Stream[20:], 1)
					c.Results, c.Timeout, c.Done = [][]byte{sink}, time.Hour, func(*transport.Call) { ended <- struct{}{} }
					r.Start(c)
				}
			}
			p := provider(t, next(), nil)
			defer p.Close()
			// While all are new, nobody can tell who will stop: a connection that is
			// ended by mistake comes back.
			good, err := Dial(ctx, p, s.Addr(), Options{Reconnect: true, BackoffMin: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer good.Close()
			mine := make([]byte, size)
			for range 20 {
				c := null()
				binary.BigEndian.PutUint32(c.Stream[20:], 1)
				c.Results = [][]byte{mine}
				if err := good.Do(ctx, c); err != nil {
					t.Fatal(err)
				}
			}
			if st := b.Stats(); st.Peak > limit+limit/4 {
				t.Errorf("%+v", st)
			}
			// The deadline ends those that are left.
			for {
				s.mu.Lock()
				n := len(s.links)
				s.mu.Unlock()
				if n <= 1 {
					break
				}
				if ctx.Err() != nil {
					t.Fatalf("%d connections are left: %+v", n, b.Stats())
				}
				time.Sleep(10 * time.Millisecond)
			}
			if err := good.Do(ctx, null()); err != nil {
				t.Error(err)
			}
			off.Store(false)
			_ = good.Close()
			_ = s.Close()
			if n := b.Stats().Bytes; n != 0 {
				t.Errorf("%d bytes are held by nobody", n)
			}
		})
	}
}

// A peer that connects and says nothing has few receives, makes room for others,
// and goes in time.
func TestStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a busy machine does not keep the one that speaks from doing so in time
		p := newLoop(t, loop.Options{Async: true})
		ended := leak.Goroutines(t)
		s, err := Listen(t.Context(), p, anywhere, &rpctest.Handler{}, Options{Newcomers: 5, NewcomerTime: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		var all []*raw
		for range 20 {
			all = append(all, dialRaw(t, p, s.Addr()))
		}
		r, err := Dial(t.Context(), p, s.Addr(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Do(t.Context(), null()); err != nil {
			t.Fatal(err)
		}
		for _, x := range all {
			if x.receive() != nil {
				t.Error("a stranger got a message")
			}
		}
		if err := r.Do(t.Context(), null()); err != nil {
			t.Error(err)
		}
		st := s.Budget().Stats()
		if st.Newcomers == 0 || st.Newcomers+st.Silent != 20 {
			t.Errorf("%+v", st)
		}
		_ = r.Close()
		_ = s.Close()
		if n := s.Budget().Stats().Bytes; n != 0 {
			t.Errorf("%d bytes are held by nobody", n)
		}
		ended()
	})
}
