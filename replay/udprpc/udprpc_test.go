package udprpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/transport"
)

func call(procedure uint32, args []byte) *transport.Call {
	h := oncrpc.Call{RPCVersion: 2, Program: 100021, Version: 4, Procedure: procedure}
	c := &transport.Call{Timeout: time.Minute}
	c.Stream = append(h.Append(nil), args...)
	return c
}

// echo answers with the arguments; procedure 1 drops the first call, 2 calls back.
type echo struct {
	t       *testing.T
	dropped atomic.Int32
}

func (e *echo) ServeRPC(x transport.Exchange) {
	var h oncrpc.Call
	b := x.Call().Stream
	if err := h.Decode(b, len(b)); err != nil {
		x.Drop()
		return
	}
	answer := func() {
		r := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}
		x.Reply(&transport.Message{Stream: append(r.Append(nil), b[h.Size():]...)})
		x.Reply(&transport.Message{Stream: []byte("not twice")})
	}
	switch {
	case h.Procedure == 1 && e.dropped.Add(1) == 1:
		x.Drop()
	case h.Procedure == 2:
		go func() {
			if err := x.Backward().Do(context.Background(), call(9, []byte("back"))); err != nil {
				e.t.Error(err)
			}
			answer()
		}()
	default:
		answer()
	}
}

func pair(t *testing.T, opt Options) (*Requester, *Server, *echo) {
	t.Helper()
	e := &echo{t: t}
	s, err := Listen(t.Context(), "127.0.0.1:0", e, opt)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Dial(t.Context(), s.Addr().String(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(r.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return r, s, e
}

func reply(c *transport.Call) []byte {
	var h oncrpc.Reply
	if h.Decode(c.Reply.Stream, len(c.Reply.Stream)) != nil {
		return nil
	}
	return c.Reply.Stream[h.Size():]
}

func TestCalls(t *testing.T) {
	const again = 20 * time.Millisecond
	r, s, e := pair(t, Options{Again: again})
	long := bytes.Repeat([]byte("abcd"), 1500)
	for _, args := range [][]byte{nil, []byte("four"), long} {
		c := call(0, args)
		if err := r.Do(t.Context(), c); err != nil || !bytes.Equal(reply(c), args) {
			t.Errorf("%d bytes: %v, %d bytes", len(args), err, len(reply(c)))
		}
	}
	c := call(1, []byte("once"))
	begun := time.Now()
	err := r.Do(t.Context(), c)
	n := e.dropped.Load()
	// On a busy machine the reply to the second one may be late, too. Each time it waits twice as long.
	if least := again * (1<<(n-1) - 1); err != nil || n < 2 || time.Since(begun) < least {
		t.Errorf("a lost call: %v, sent %d times in %v", err, n, time.Since(begun))
	}
	if st := s.Stats(); st.Calls < 5 {
		t.Errorf("%+v", st)
	}
	r, s, _ = pair(t, Options{Again: time.Hour}) // no call is sent twice
	var backs atomic.Int32
	r.Serve(transport.HandlerFunc(func(x transport.Exchange) {
		backs.Add(1)
		b := x.Call().Stream
		x.Reply(&transport.Message{Stream: (&oncrpc.Reply{XID: binary.BigEndian.Uint32(b), Stat: oncrpc.Accepted}).Append(nil)})
	}))
	if err := r.Do(t.Context(), call(2, nil)); err != nil || backs.Load() != 1 {
		t.Errorf("calling back: %v, %d", err, backs.Load())
	}
	if err := r.Do(t.Context(), call(0, make([]byte, MaxMessage))); !errors.Is(err, transport.ErrTooLong) {
		t.Error(err)
	}
	same := call(0, nil)
	same.XID = 7
	if err := r.Do(t.Context(), same); err != nil || binary.BigEndian.Uint32(same.Reply.Stream) != 7 {
		t.Error(err)
	}
	if st := s.Stats(); st.Calls < 2 || r.Peer().Transport != "udp" {
		t.Errorf("%+v", st)
	}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Add(1)
		c := call(0, binary.BigEndian.AppendUint32(nil, uint32(i)))
		c.Done = func(c *transport.Call) {
			defer wg.Done()
			if c.Err != nil || binary.BigEndian.Uint32(reply(c)) != uint32(i) {
				t.Errorf("call %d: %v", i, c.Err)
			}
		}
		r.Start(c)
	}
	wg.Wait()
}

// TestEnds: calls end when their time is up, when they are cancelled, and when the socket is
// closed.
func TestEnds(t *testing.T) {
	silent, err := Listen(t.Context(), "127.0.0.1:0", transport.HandlerFunc(func(x transport.Exchange) { x.Drop() }), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	r, err := Dial(t.Context(), silent.Addr().String(), Options{Again: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c := call(0, nil)
	c.Timeout = 20 * time.Millisecond
	if err := r.Do(t.Context(), c); !errors.Is(err, transport.ErrTimeout) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(10*time.Millisecond, cancel)
	if err := r.Do(ctx, call(0, nil)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	done := make(chan error, 1)
	c = call(0, nil)
	c.Done = func(c *transport.Call) { done <- c.Err }
	r.Start(c)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, transport.ErrClosed) {
		t.Error(err)
	}
}

// TestStrangers: replies count only from whom the call went to.
func TestStrangers(t *testing.T) {
	r, _, _ := pair(t, Options{})
	stranger, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(r.s.at))
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	for xid := range uint32(64) {
		_, _ = stranger.Write((&oncrpc.Reply{XID: xid, Stat: oncrpc.Accepted}).Append(nil))
		c := call(0, []byte("mine"))
		c.XID = xid + 1
		if err := r.Do(t.Context(), c); err != nil || string(reply(c)) != "mine" {
			t.Fatalf("%v, %q", err, reply(c))
		}
	}
}

// FuzzDatagrams takes what strangers send to a server.
func FuzzDatagrams(f *testing.F) {
	f.Add(call(0, []byte("args")).Stream)
	f.Add((&oncrpc.Reply{XID: 1, Stat: oncrpc.Accepted}).Append(nil))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > MaxMessage {
			return
		}
		pc, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
		if err != nil {
			t.Fatal(err)
		}
		s := &socket{pc: pc, opt: Options{}.withDefaults(), waiting: map[callKey]chan []byte{}, closed: make(chan struct{})}
		defer pc.Close()
		from := netip.MustParseAddrPort("127.0.0.1:9")
		m, ok := oncrpc.Peek(b)
		switch {
		case !ok:
		case m.Type == oncrpc.TypeReply:
			s.answered(callKey{from, m.XID}, b)
		default:
			var h transport.Handler = &echo{t: t}
			s.handler.Store(&h)
			if m.Procedure != 2 {
				s.serve(from, b)
			}
			if n := s.serving.Load(); n != 0 {
				t.Errorf("%d calls are still under way", n)
			}
		}
	})
}
