package tcprpc

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/leak"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
)

var (
	_ transport.Requester = (*Requester)(nil)
	_ transport.Exchange  = (*exchange)(nil)
)

func start(t testing.TB, h transport.Handler, so, co Options) (*Server, *Requester) {
	t.Helper()
	if h == nil {
		h = &rpctest.Handler{}
	}
	s, err := Listen(t.Context(), "127.0.0.1:0", h, so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r, err := Dial(t.Context(), s.Addr().String(), co)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return s, r
}

func TestExchange(t *testing.T) {
	_, r := start(t, nil, Options{}, Options{})
	var c transport.Call
	for _, size := range []int{0, 1, 3, 4, 100, copyLimit, copyLimit + 1, 70001, 1 << 20} {
		for _, n := range []int{0, 1, 3} {
			q := rpctest.Request{Seed: uint32(size), Fill: uint32(size % 5000), Filler: rpctest.Bytes(size%777, 9)}
			for i := range n {
				q.Items = append(q.Items, rpctest.Bytes(size+i, uint32(i)))
				q.Results = append(q.Results, uint32(size+2*i))
			}
			c.XID = 0
			rpctest.Set(&c, &q)
			if err := r.Do(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			if err := rpctest.Check(&c, &q); err != nil {
				t.Fatalf("%d items of %d bytes: %v", n, size, err)
			}
		}
	}
	if st := r.Stats(); st.Calls != st.Replies || st.Errors != 0 {
		t.Errorf("%+v", st)
	}
}

func TestPipelined(t *testing.T) {
	for _, link := range []verbs.Link{{}, {Delay: time.Millisecond, Bandwidth: 1e9}} {
		_, r := start(t, nil, Options{Link: link}, Options{Link: link})
		var wg sync.WaitGroup
		var bad atomic.Int32
		for i := range 300 {
			c := new(transport.Call)
			q := &rpctest.Request{Seed: uint32(i), Results: []uint32{uint32(i * 31)}, Items: [][]byte{rpctest.Bytes(i*17, 1)}}
			rpctest.Set(c, q)
			wg.Add(1)
			c.Done = func(c *transport.Call) {
				if c.Err != nil || rpctest.Check(c, q) != nil {
					bad.Add(1)
				}
				wg.Done()
			}
			r.Start(c)
		}
		wg.Wait()
		if bad.Load() != 0 {
			t.Errorf("%d calls failed", bad.Load())
		}
	}
}

func TestBackward(t *testing.T) {
	result := make(chan error, 1)
	h := &rpctest.Handler{Before: func(x transport.Exchange) bool {
		back := x.Backward()
		go func() {
			var c transport.Call
			q := rpctest.Request{Seed: 5, Items: [][]byte{rpctest.Bytes(1000, 3)}, Results: []uint32{2000}}
			rpctest.Set(&c, &q)
			err := back.Do(context.Background(), &c)
			if err == nil {
				err = rpctest.Check(&c, &q)
			}
			result <- err
		}()
		return false
	}}
	_, r := start(t, h, Options{}, Options{})
	null := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, rpctest.Null)}}
	if err := r.Do(t.Context(), &null); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err == nil {
		t.Error("a call without handler succeeded")
	}
	r.Serve(&rpctest.Handler{})
	null.XID = 0
	if err := r.Do(t.Context(), &null); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestReconnect(t *testing.T) {
	var once atomic.Bool
	xids := make(chan uint32, 10)
	h := &rpctest.Handler{Before: func(x transport.Exchange) bool {
		xids <- binary.BigEndian.Uint32(x.Call().Stream)
		if once.CompareAndSwap(false, true) {
			x.Disconnect()
			x.Drop()
			return true
		}
		return false
	}}
	_, r := start(t, h, Options{}, Options{Reconnect: true, BackoffMin: time.Millisecond})
	q := rpctest.Request{Items: [][]byte{rpctest.Bytes(100000, 1)}, Results: []uint32{100000}}
	var c transport.Call
	rpctest.Set(&c, &q)
	if err := r.Do(t.Context(), &c); err != nil {
		t.Fatal(err)
	}
	if err := rpctest.Check(&c, &q); err != nil {
		t.Fatal(err)
	}
	if a, b := <-xids, <-xids; a != b {
		t.Errorf("XID %#x, then %#x", a, b)
	}
	if r.Stats().Reconnects != 1 {
		t.Errorf("%+v", r.Stats())
	}
}

// TestReconnectSlowly: a server that ends each connection before it has answered a call is asked once a second.
func TestReconnectSlowly(t *testing.T) {
	const calls = 50
	for _, c := range []struct {
		name   string
		answer bool
		want   error
		within time.Duration
		most   int32 // connections
	}{
		{"no answer", false, transport.ErrTimeout, time.Minute, 64},
		{"an answer on each connection", true, nil, 0, calls + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var connections atomic.Int32
				serve := func(nc net.Conn) {
					defer nc.Close()
					mark := make([]byte, 4)
					if _, err := io.ReadFull(nc, mark); err != nil || !c.answer {
						return
					}
					call := make([]byte, binary.BigEndian.Uint32(mark)&^lastFragment)
					if _, err := io.ReadFull(nc, call); err != nil {
						return
					}
					reply := oncrpc.Reply{XID: binary.BigEndian.Uint32(call), Stat: oncrpc.Accepted}
					b := reply.Append(nil)
					_, _ = nc.Write(append(binary.BigEndian.AppendUint32(nil, lastFragment|uint32(len(b))), b...))
				}
				dial := func(context.Context, string) (net.Conn, error) {
					if connections.Add(1) > 1000 {
						return nil, errors.New("too many")
					}
					ours, theirs := net.Pipe()
					go serve(theirs)
					return ours, nil
				}
				r, err := Dial(t.Context(), "anywhere", Options{Reconnect: true, Dial: dial, Timeout: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				begun := time.Now()
				own := &pending{done: make(chan struct{}, 1)} // one of the pool may have a channel from outside the bubble
				for range calls {
					call := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, rpctest.Null)}, Private: own}
					if err = r.Do(t.Context(), &call); err != nil {
						break
					}
					synctest.Wait() // the server has closed the connection
				}
				if !errors.Is(err, c.want) || time.Since(begun) != c.within {
					t.Errorf("%v after %v", err, time.Since(begun))
				}
				if n := connections.Load(); n > c.most {
					t.Errorf("%d connections", n)
				}
			})
		})
	}
}

func TestEnds(t *testing.T) {
	seen, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	hold := &rpctest.Handler{Before: func(x transport.Exchange) bool {
		once.Do(func() {
			x.OnClose("x", func() { close(closed) })
			close(seen)
		})
		return true
	}}
	s, r := start(t, hold, Options{}, Options{})
	c := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}, Timeout: 10 * time.Millisecond}
	if err := r.Do(t.Context(), &c); !errors.Is(err, transport.ErrTimeout) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.XID, c.Timeout = 0, 0
	if err := r.Do(ctx, &c); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ended := make(chan error, 2)
	for range 2 {
		c := &transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
		c.XID = 77
		c.Done = func(c *transport.Call) { ended <- c.Err }
		r.Start(c)
	}
	if err := <-ended; !errors.Is(err, transport.ErrXID) {
		t.Error(err)
	}
	<-seen
	_ = s.Close()
	<-closed
	if err := <-ended; !errors.Is(err, transport.ErrDisconnected) {
		t.Error(err)
	}
	c.XID = 0
	if err := r.Do(t.Context(), &c); !errors.Is(err, transport.ErrDisconnected) {
		t.Error(err)
	}
	_ = r.Close()
	c.XID = 0
	if err := r.Do(t.Context(), &c); !errors.Is(err, transport.ErrClosed) {
		t.Error(err)
	}
}

// TestTimes: a call that was written has a time of sending, after a reconnection the
// newest; a call that was refused has none.
func TestTimes(t *testing.T) {
	var once atomic.Bool
	const pause = 20 * time.Millisecond
	h := &rpctest.Handler{Before: func(x transport.Exchange) bool {
		if once.CompareAndSwap(false, true) {
			x.Disconnect()
			x.Drop()
			return true
		}
		return false
	}}
	_, r := start(t, h, Options{}, Options{Reconnect: true, BackoffMin: pause})
	c := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
	for _, least := range []time.Duration{pause, 0} { // of the wait; the first call is sent again
		c.XID = 0
		if err := r.Do(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
		if x := c.Times; x.Sent.Sub(x.Queued) < least || x.Replied.Before(x.Sent) {
			t.Errorf("queued %v, sent %v, replied %v", x.Queued, x.Sent, x.Replied)
		}
	}
	c.XID, c.Stream = 0, c.Stream[:4]
	if err := r.Do(t.Context(), &c); !errors.Is(err, transport.ErrMessage) || !c.Times.Sent.IsZero() {
		t.Errorf("%v, sent %v", err, c.Times.Sent)
	}
}

// TestGivenUp gives up a call that the writer has begun to send. A peer that takes the
// rest soon gets the next call on the same connection; one that does not is left.
func TestGivenUp(t *testing.T) {
	for name, taken := range map[string]bool{"taken soon": true, "never taken": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				r, err := Dial(t.Context(), "pipe", Options{Dial: func(context.Context, string) (net.Conn, error) { return ours, nil }})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				call := func(ctx context.Context) {
					c := &transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
					c.Private = &pending{done: make(chan struct{}, 1)} // those of the pool have channels of other bubbles
					ended <- r.Do(ctx, c)
				}
				go call(ctx)
				in := make([]byte, len(marked(rpctest.AppendCall(nil, 0))))
				if _, err := io.ReadFull(theirs, in[:6]); err != nil {
					t.Fatal(err)
				}
				cancel()
				synctest.Wait() // a pipe has no buffer: the writer waits for its peer
				begun := time.Now()
				if taken {
					time.Sleep(writerPatience / 2)
					if _, err := io.ReadFull(theirs, in[6:]); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if d := time.Since(begun); d > writerPatience {
					t.Errorf("the call ended after %v", d)
				}
				time.Sleep(2 * writerPatience)
				go call(t.Context())
				if taken {
					if _, err := io.ReadFull(theirs, in); err != nil {
						t.Fatal(err)
					}
					reply := make([]byte, 24)
					copy(reply, in[4:8])
					reply[7] = 1
					if _, err := theirs.Write(marked(reply)); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-ended; taken == errors.Is(err, transport.ErrDisconnected) || taken != (err == nil) {
					t.Error(err)
				}
				_ = r.Close()
				_ = theirs.Close()
			})
		})
	}
}

// TestOnCloseLate sees that a hook that comes when the connection has ended is
// called all the same, and that a hook takes the place of another one.
func TestOnCloseLate(t *testing.T) {
	held := make(chan transport.Exchange, 1)
	closed := make(chan int, 3)
	hold := &rpctest.Handler{Before: func(x transport.Exchange) bool {
		x.OnClose("x", func() { closed <- 0 })
		x.OnClose("x", func() { closed <- 1 })
		held <- x
		return true
	}}
	_, r := start(t, hold, Options{}, Options{})
	c := &transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}, Done: func(*transport.Call) {}}
	r.Start(c)
	x := <-held
	x.Disconnect()
	if n := <-closed; n != 1 {
		t.Errorf("hook %d was called", n)
	}
	// The hooks are called after the end of the connection.
	for i := range 2 {
		x.OnClose("x", func() { closed <- 2 + i })
		if n := <-closed; n != 2+i {
			t.Errorf("hook %d was called", n)
		}
	}
	x.Drop()
}

// TestHostile feeds a server what no client sends, and sees that it ends the
// connection and serves others.
func TestHostile(t *testing.T) {
	s, r := start(t, nil, Options{MaxRecord: 1 << 16}, Options{})
	for name, b := range map[string][]byte{
		"long":      {0xff, 0xff, 0xff, 0xff},
		"long sum":  append(append([]byte{0, 0, 0xff, 0xff}, make([]byte, 0xffff)...), 0, 0, 0xff, 0xff),
		"short":     {0x80, 0, 0, 4, 1, 2, 3, 4},
		"direction": {0x80, 0, 0, 8, 1, 2, 3, 4, 0, 0, 0, 9},
		"fragments": make([]byte, 4*maxFragments+4),
	} {
		nc, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = nc.Write(b)
		_ = nc.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadAll(nc); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: not closed", name)
		}
		_ = nc.Close()
	}
	c := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
	if err := r.Do(t.Context(), &c); err != nil {
		t.Error(err)
	}
}

// TestTap decodes what both ends have moved.
func TestTap(t *testing.T) {
	for _, server := range []bool{false, true} {
		var file bytes.Buffer
		w := tap.NewWriter(capture.NewWriter(&file, capture.WriterOptions{}))
		so, co := Options{}, Options{Tap: w}
		if server {
			so, co = co, so
		}
		s, r := start(t, nil, so, co)
		xids := make(map[uint32]bool)
		for i := range 20 {
			var c transport.Call
			q := rpctest.Request{Items: [][]byte{rpctest.Bytes(i*7001, 1)}, Results: []uint32{uint32(i * 9001)}}
			rpctest.Set(&c, &q)
			if err := r.Do(t.Context(), &c); err != nil {
				t.Fatal(err)
			}
			xids[c.XID] = true
		}
		_, _ = r.Close(), s.Close()
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		reader, err := capture.NewReader(&file, "tap", capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		d := decode.New(decode.Options{}, func(tx *transaction.Transaction) {
			if tx.State == transaction.Complete && tx.Program == rpctest.Program && tx.Procedure == rpctest.Exchange {
				delete(xids, tx.XID)
			}
		})
		if err := d.Run(reader); err != nil {
			t.Fatal(err)
		}
		if len(xids) != 0 {
			t.Errorf("server %v: %d of 20 transactions are missing", server, len(xids))
		}
	}
}

func TestLeaks(t *testing.T) {
	ended := leak.Goroutines(t)
	for range 20 {
		s, err := Listen(t.Context(), "127.0.0.1:0", &rpctest.Handler{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Dial(t.Context(), s.Addr().String(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
		if err := r.Do(t.Context(), &c); err != nil {
			t.Error(err)
		}
		_ = s.Close()
		_ = r.Close()
	}
	ended()
}

func BenchmarkNull(b *testing.B) {
	reply := make([]byte, 24)
	h := transport.HandlerFunc(func(x transport.Exchange) {
		m := transport.Message{Stream: reply}
		_ = m
		x.Reply(&transport.Message{Stream: append(x.Call().Stream[:4:4], reply[4:]...)})
	})
	binary.BigEndian.PutUint32(reply[4:], 1)
	_, r := start(b, h, Options{}, Options{})
	left := atomic.Int64{}
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range min(32, b.N) {
		c := &transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
		wg.Add(1)
		c.Done = func(c *transport.Call) {
			if c.Err != nil {
				b.Error(c.Err)
			}
			if left.Add(-1) < 0 {
				wg.Done()
				return
			}
			c.XID = 0
			r.Start(c)
		}
		r.Start(c)
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rpc/s")
}

func BenchmarkRead1M(b *testing.B) {
	data := rpctest.Bytes(1<<20, 1)
	h := transport.HandlerFunc(func(x transport.Exchange) {
		s := binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(x.Call().Stream))
		s = binary.BigEndian.AppendUint32(s, 1)
		x.Reply(&transport.Message{Stream: s, Items: []transport.Item{{Position: 8, Data: data}}})
	})
	_, r := start(b, h, Options{}, Options{})
	b.SetBytes(1 << 20)
	left := atomic.Int64{}
	left.Store(int64(b.N))
	var wg sync.WaitGroup
	b.ResetTimer()
	for range min(4, b.N) {
		c := &transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, 0)}}
		wg.Add(1)
		c.Done = func(c *transport.Call) {
			if left.Add(-1) < 0 {
				wg.Done()
				return
			}
			c.XID = 0
			r.Start(c)
		}
		r.Start(c)
	}
	wg.Wait()
}
