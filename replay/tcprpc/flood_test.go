package tcprpc

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/leak"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

// pipes is a listener whose connections are pipes, for time that is not real.
type pipes struct {
	conns chan net.Conn
	stop  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.stop:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.stop); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 2049} }

func (p *pipes) dial() net.Conn {
	ours, theirs := net.Pipe()
	p.conns <- theirs
	return ours
}

// large is a handler whose replies have n bytes; NULL has none.
func large(n int) transport.Handler {
	return transport.HandlerFunc(func(x transport.Exchange) {
		s := x.Call().Stream
		m := transport.Message{Stream: append([]byte(nil), s[:4]...)}
		m.Stream = append(m.Stream, make([]byte, 20)...)
		m.Stream[7] = 1
		if binary.BigEndian.Uint32(s[20:]) != 0 {
			m.Items = []transport.Item{{Position: 24, Data: make([]byte, n)}}
		}
		x.Reply(&m)
	})
}

func marked(m []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(m))), m...)
}

// The deadlines of a server, each against a peer that keeps it waiting.
func TestDeadlines(t *testing.T) {
	o := Options{NewcomerTime: 20 * time.Second, RecordTimeout: 5 * time.Second, ReplyTimeout: 8 * time.Second}
	null := marked(rpctest.AppendCall(nil, 0))
	for name, tt := range map[string]struct {
		peer  func(c net.Conn)
		after time.Duration // at least
		count func(s budget.Stats) uint64
	}{
		"silent":             {func(net.Conn) {}, 20 * time.Second, func(s budget.Stats) uint64 { return s.Silent }},
		"one byte of a mark": {func(c net.Conn) { c.Write([]byte{0x80}) }, 5 * time.Second, func(s budget.Stats) uint64 { return s.Records }},
		"a byte a second": {func(c net.Conn) {
			c.Write(binary.BigEndian.AppendUint32(nil, lastFragment|100))
			for {
				if _, err := c.Write([]byte{0}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		}, 5 * time.Second, func(s budget.Stats) uint64 { return s.Records }},
		"a reply unread": {func(c net.Conn) { c.Write(null) }, 8 * time.Second, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newPipes()
				s := Serve(l, large(0), o)
				c := l.dial()
				begun := time.Now()
				done := make(chan struct{})
				go func() { tt.peer(c); close(done) }()
				for s.Stats(); ; time.Sleep(100 * time.Millisecond) {
					s.mu.Lock()
					n := len(s.conns)
					s.mu.Unlock()
					if n == 0 && time.Since(begun) > time.Second || time.Since(begun) > time.Hour {
						break
					}
				}
				if d := time.Since(begun); d < tt.after || d > tt.after+5*time.Second {
					t.Errorf("ended after %v, want %v", d, tt.after)
				}
				if tt.count != nil && tt.count(s.Budget().Stats()) != 1 {
					t.Errorf("%+v", s.Budget().Stats())
				}
				c.Close()
				<-done
				s.Close()
				if n := s.Budget().Stats().Bytes; n != 0 {
					t.Errorf("%d bytes are held by nobody", n)
				}
			})
		})
	}
}

// A peer that works slowly, but works, is not ended.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		s := Serve(l, large(0), Options{})
		c := l.dial()
		null, in := marked(rpctest.AppendCall(nil, 0)), make([]byte, 28)
		for range 5 {
			c.Write(null[:7])
			time.Sleep(20 * time.Second)
			c.Write(null[7:])
			time.Sleep(20 * time.Second)
			if _, err := io.ReadFull(c, in); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Hour) // between calls it may be idle
		}
		c.Close()
		s.Close()
	})
}

// Many that call and never read cost no more than the budget, and a peer that
// reads is served meanwhile.
func TestUnread(t *testing.T) {
	const limit = 8 << 20
	ended := leak.Goroutines(t)
	b := budget.New(budget.Options{Bytes: limit})
	s, err := Listen(t.Context(), "127.0.0.1:0", large(256<<10), Options{Budget: b})
	if err != nil {
		t.Fatal(err)
	}
	one := rpctest.AppendCall(nil, 1)
	var calls []byte
	for range 64 {
		calls = append(calls, marked(one)...)
	}
	for range 40 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.(*net.TCPConn).SetReadBuffer(4096) //nolint:errcheck // the kernel may hold more
		if _, err := c.Write(calls); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Dial(ctx, s.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine, the one that reads may not read for so long that it is taken for one of
	// the others: it calls again.
	again := 0
	for range 50 {
		c := transport.Call{Message: transport.Message{Stream: append([]byte(nil), one...)}}
		err := r.Do(ctx, &c)
		for ; err != nil && again < 3; again++ {
			r.Close()
			if r, err = Dial(ctx, s.Addr().String(), Options{}); err == nil {
				c = transport.Call{Message: transport.Message{Stream: append([]byte(nil), one...)}}
				err = r.Do(ctx, &c)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if n := len(c.Reply.Stream); n != 24+256<<10 {
			t.Fatalf("%d bytes", n)
		}
	}
	// What was held at most: the limit, and what connections hold that are being
	// ended at the moment.
	if st := b.Stats(); st.Peak > 2*limit || st.Peak < limit/4 {
		t.Errorf("%+v", st)
	}
	r.Close()
	s.Close()
	if n := b.Stats().Bytes; n != 0 {
		t.Errorf("%d bytes are held by nobody", n)
	}
	ended()
}

// Silent connections do not keep others out, nor do marks that claim much cost
// memory.
func TestSilentFlood(t *testing.T) {
	s, err := Listen(t.Context(), "127.0.0.1:0", large(0), Options{Newcomers: 20, Budget: budget.New(budget.Options{Bytes: 4 << 20})})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	claim := binary.BigEndian.AppendUint32(nil, lastFragment|8<<20)
	for i := range 200 {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%2 == 0 {
			c.Write(claim) //nolint:errcheck // it may have been ended
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := Dial(ctx, s.Addr().String(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
	if err := r.Do(ctx, &c); err != nil {
		t.Fatal(err)
	}
	if st := s.Budget().Stats(); st.Newcomers < 150 || st.Peak > 4<<20 {
		t.Errorf("%+v", st)
	}
}
