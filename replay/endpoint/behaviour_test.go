package endpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/internal/testtools/leak"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/internal/testtools/rpctest"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

func null() *transport.Call {
	return &transport.Call{Message: transport.Message{Stream: rpctest.AppendCall(nil, rpctest.Null)}}
}

func TestPipelined(t *testing.T) {
	for _, policy := range []Policy{CreditsLinux, CreditsFixed, CreditsDynamic} {
		p := newLoop(t, loop.Options{Async: true})
		_, r := start(t, p, nil, Options{Policy: policy, Credits: 8, MaxCredits: 40, MaxPulled: 100000}, Options{Policy: policy, Credits: 30})
		var wg sync.WaitGroup
		var bad atomic.Int32
		for i := range 500 {
			c := new(transport.Call)
			q := &rpctest.Request{Seed: uint32(i), Results: []uint32{uint32(i * 31)}, Items: [][]byte{rpctest.Bytes(i*117, 1)}}
			rpctest.Set(c, q)
			c.Results = [][]byte{make([]byte, i*31)}
			wg.Add(1)
			c.Done = func(c *transport.Call) {
				if c.Err != nil {
					t.Log(c.Err)
					bad.Add(1)
				} else if err := rpctest.Check(c, q); err != nil {
					t.Log(err)
					bad.Add(1)
				}
				wg.Done()
			}
			r.Start(c)
		}
		wg.Wait()
		if bad.Load() != 0 {
			t.Errorf("policy %d: %d calls failed", policy, bad.Load())
		}
		st := r.Stats()
		if st.CreditWaits == 0 || st.CreditsHeld == 0 || st.CreditsHeld > 40 {
			t.Errorf("policy %d: %+v", policy, st)
		}
		if policy != CreditsDynamic && st.CreditsHeld != 8 {
			t.Errorf("policy %d: %d credits held", policy, st.CreditsHeld)
		}
	}
}

func TestDynamicCredits(t *testing.T) {
	d := Dynamic{Threshold: 8, Minimum: 16, ClientFactor: 2, Buffers: 1000, ServerFactor: 0.5}
	for _, c := range []struct{ granted, inFlight, want uint32 }{
		{64, 10, 16}, {64, 56, 16}, {64, 57, 130}, {1, 1, 18}, {0, 0, 16}, {10, 1000, 200},
	} {
		if got := d.ask(c.granted, c.inFlight, 200); got != c.want {
			t.Errorf("granted %d, in flight %d: asks for %d, want %d", c.granted, c.inFlight, got, c.want)
		}
	}
	for _, c := range []struct{ asked, posted, connections, want uint32 }{
		{10, 32, 4, 32}, {100, 32, 4, 100}, {250, 32, 4, 250}, {450, 32, 4, 350}, {1 << 31, 32, 4, 5000}, {40, 32, 1000, 32},
	} {
		if got := d.grant(c.asked, c.posted, c.connections, 5000); got != c.want {
			t.Errorf("%+v: grants %d", c, got)
		}
	}
}

func TestBackward(t *testing.T) {
	const calls = 50
	results := make(chan error, calls)
	served := false
	h := &rpctest.Handler{Before: func(x transport.Exchange) bool {
		back, served := x.Backward(), served
		go func() {
			var wg sync.WaitGroup
			for i := range calls {
				wg.Add(1)
				go func() {
					defer wg.Done()
					var c transport.Call
					q := rpctest.Request{Seed: uint32(i), Items: [][]byte{rpctest.Bytes(1000, 3)}, Results: []uint32{2000}}
					rpctest.Set(&c, &q)
					err := back.Do(context.Background(), &c)
					if err == nil {
						err = rpctest.Check(&c, &q)
					}
					results <- err
				}()
			}
			wg.Wait()
			var c transport.Call
			rpctest.Set(&c, &rpctest.Request{Filler: make([]byte, 5000)})
			if err := back.Do(context.Background(), &c); !errors.Is(err, transport.ErrTooLong) {
				t.Errorf("a long backward call: %v", err)
			}
			rpctest.Set(&c, &rpctest.Request{Fill: 5000})
			var remote *RemoteError
			if err := back.Do(context.Background(), &c); served && (!errors.As(err, &remote) || remote.Code != rpcrdma.ErrChunk) {
				t.Errorf("a long backward reply: %v", err)
			}
			results <- nil
		}()
		return false
	}}
	p := newLoop(t, loop.Options{Async: true})
	_, r := start(t, p, h, Options{}, Options{})
	c := null()
	if err := r.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for range calls {
		if err := <-results; err == nil {
			t.Error("a call without handler succeeded")
		}
	}
	<-results
	r.Serve(&rpctest.Handler{})
	served = true
	c.XID = 0
	if err := r.Do(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for range calls + 1 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}

func TestReconnect(t *testing.T) {
	for _, reg := range []Registration{PerCall, Pool, Persistent, Windows} {
		// The server's connection breaks at a different request each time.
		var at atomic.Uint64
		p := newLoop(t, loop.Options{Async: true, Fault: func(e loop.Event) loop.Fault {
			return loop.Fault{Disconnect: !e.Dialed && e.Number == at.Load() && at.Load() < 12 && at.Add(1) > 0}
		}})
		seen := make(map[uint32]int)
		var mu sync.Mutex
		h := &rpctest.Handler{Before: func(x transport.Exchange) bool {
			mu.Lock()
			seen[binary.BigEndian.Uint32(x.Call().Stream)]++
			mu.Unlock()
			return false
		}}
		_, r := start(t, p, h, Options{OperationSize: 20000}, Options{Registration: reg, Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond})
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				var c transport.Call
				q := rpctest.Request{Seed: uint32(i), Items: [][]byte{rpctest.Bytes(50000, 1)}, Results: []uint32{60000}}
				if err := try(t, r, &c, &q, i%2 == 0); err != nil {
					t.Errorf("mode %d: %v", reg, err)
				}
			}()
		}
		wg.Wait()
		if n := r.Stats().Reconnects; n == 0 {
			t.Error("no reconnect")
		}
		mu.Lock()
		if len(seen) != 40 {
			t.Errorf("mode %d: %d XIDs, want 40: calls are sent again with the same", reg, len(seen))
		}
		mu.Unlock()
	}
}

// holder keeps calls until it is told to answer them.
type holder struct {
	mu    sync.Mutex
	calls []transport.Exchange
	got   chan struct{}
}

func (h *holder) ServeRPC(x transport.Exchange) {
	h.mu.Lock()
	h.calls = append(h.calls, x)
	h.mu.Unlock()
	h.got <- struct{}{}
}

func (h *holder) answer() {
	h.mu.Lock()
	calls := h.calls
	h.calls = nil
	h.mu.Unlock()
	for _, x := range calls {
		rpctest.Answer(x, nil)
	}
}

func TestGiveUp(t *testing.T) {
	for _, reg := range []Registration{PerCall, Pool, Persistent, Windows} {
		for _, chunks := range []bool{false, true} {
			p := newLoop(t, loop.Options{Async: true})
			h := &holder{got: make(chan struct{}, 100)}
			_, r := start(t, p, h, Options{}, Options{Registration: reg, Reconnect: true, BackoffMin: time.Millisecond})
			// More credits than one.
			first := make(chan error, 1)
			go func() { first <- r.Do(t.Context(), null()) }()
			<-h.got
			h.answer()
			if err := <-first; err != nil {
				t.Fatal(err)
			}
			set := func() *transport.Call {
				c := new(transport.Call)
				q := &rpctest.Request{}
				if chunks {
					q = &rpctest.Request{Items: [][]byte{make([]byte, 9000)}, Results: []uint32{9000}}
					c.Results = [][]byte{must(r.Alloc(9000))}
				}
				rpctest.Set(c, q)
				return c
			}
			c := set()
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-h.got; cancel() }()
			if err := r.Do(ctx, c); !errors.Is(err, context.Canceled) {
				t.Errorf("mode %d: %v", reg, err)
			}
			c = set()
			c.Timeout = 20 * time.Millisecond
			if err := r.Do(t.Context(), c); !errors.Is(err, transport.ErrTimeout) {
				t.Errorf("mode %d: %v", reg, err)
			}
			<-h.got
			// The late replies harm nobody.
			h.answer()
			last := make(chan error, 1)
			go func() {
				var c transport.Call
				q := rpctest.Request{Items: [][]byte{rpctest.Bytes(9000, 5)}, Results: []uint32{9000}}
				last <- try(t, r, &c, &q, false)
			}()
			for done := false; !done; {
				select {
				case <-h.got:
					h.answer()
				case err := <-last:
					if err != nil {
						t.Errorf("mode %d, chunks %v: %v", reg, chunks, err)
					}
					done = true
				}
			}
		}
	}
}

func TestEnds(t *testing.T) {
	p := newLoop(t, loop.Options{Async: true})
	seen, closed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s, r := start(t, p, &rpctest.Handler{Before: func(x transport.Exchange) bool {
		once.Do(func() {
			x.OnClose("x", func() { close(closed) })
			close(seen)
		})
		return true
	}}, Options{}, Options{})
	ended := make(chan error, 3)
	for _, xid := range []uint32{77, 77, 0} {
		c := null()
		c.XID = xid
		c.Done = func(c *transport.Call) { ended <- c.Err }
		r.Start(c)
	}
	if err := <-ended; !errors.Is(err, transport.ErrXID) {
		t.Error(err)
	}
	c := &transport.Call{}
	if err := r.Do(t.Context(), c); !errors.Is(err, transport.ErrMessage) {
		t.Error(err)
	}
	<-seen
	_ = s.Close()
	<-closed
	for range 2 {
		if err := <-ended; !errors.Is(err, transport.ErrDisconnected) {
			t.Error(err)
		}
	}
	if err := r.Do(t.Context(), null()); !errors.Is(err, transport.ErrDisconnected) {
		t.Error(err)
	}
	_ = r.Close()
	if err := r.Do(t.Context(), null()); !errors.Is(err, transport.ErrClosed) {
		t.Error(err)
	}
}

// TestTrace: both ends tell of each call, in the order of time.
func TestTrace(t *testing.T) {
	p := newLoop(t, loop.Options{Async: true})
	traces := make(chan Trace, 2)
	o := Options{Trace: func(x *Trace) { traces <- *x }}
	_, r := start(t, p, nil, o, o)
	var c transport.Call
	q := rpctest.Request{Items: [][]byte{make([]byte, 10000)}, Results: []uint32{20000}}
	if err := try(t, r, &c, &q, false); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		x := <-traces
		order := []time.Time{x.Queued, x.Sent, x.Replied, x.Done}
		if x.Answered {
			order = []time.Time{x.Received, x.Queued, x.Replied, x.Done}
		}
		for i := 1; i < len(order); i++ {
			if order[i].Before(order[i-1]) || order[i-1].IsZero() {
				t.Errorf("time %d of %+v", i, x)
			}
		}
		if x.XID != c.XID || x.ReadBytes != 10000 || x.WriteBytes != 20000 || x.Segments != 2 || x.Err != nil {
			t.Errorf("%+v", x)
		}
	}
}

// TestLimits: a connection too many is refused, and the others stay.
func TestLimits(t *testing.T) {
	p := newLoop(t, loop.Options{})
	s, r := start(t, p, nil, Options{MaxConnections: 1}, Options{})
	if other, err := Dial(t.Context(), p, s.Addr(), Options{}); err == nil {
		_ = other.Close()
		t.Error("a second connection was accepted")
	}
	if err := r.Do(t.Context(), null()); err != nil {
		t.Error(err)
	}
}

// TestCloseBusy closes either side in the middle of work, in all modes.
func TestCloseBusy(t *testing.T) {
	for _, m := range modes() {
		for i := range 4 {
			p := newLoop(t, loop.Options{Async: true})
			so, co := m.so, m.co
			if i >= 2 {
				so.Model, co.Model = ReadRead, ReadRead
			}
			s, r := start(t, p, nil, so, co)
			var wg sync.WaitGroup
			half := make(chan struct{}, 1000)
			for range 20 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					var c transport.Call
					for {
						q := rpctest.Request{Items: [][]byte{rpctest.Bytes(20000, 1)}, Results: []uint32{20000}}
						if m.inline {
							q = rpctest.Request{}
						}
						if err := try(t, r, &c, &q, m.ownAlloc); err != nil {
							if !errors.Is(err, transport.ErrDisconnected) && !errors.Is(err, transport.ErrClosed) {
								t.Errorf("%s: %v", m.name, err)
							}
							return
						}
						select {
						case half <- struct{}{}:
						default:
						}
					}
				}()
			}
			for range 10 {
				<-half
			}
			if i%2 == 0 {
				_ = s.Close()
			} else {
				_ = r.Close()
			}
			wg.Wait()
		}
	}
}

func TestLeaks(t *testing.T) {
	p := newLoop(t, loop.Options{Async: true})
	cycle := func(i int) {
		s, err := Listen(t.Context(), p, anywhere, &rpctest.Handler{}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Dial(t.Context(), p, s.Addr(), Options{Reconnect: i%2 == 0})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Do(t.Context(), null()); err != nil {
			t.Error(err)
		}
		if i%3 == 0 {
			_ = s.Close()
		}
		_ = r.Close()
		_ = s.Close()
	}
	cycle(0)
	ended := leak.Goroutines(t)
	for i := range 50 {
		cycle(i)
	}
	ended()
}

// TestDoneLost: a Responder of ReadRead gives up a reply that nobody reads.
func TestDoneLost(t *testing.T) {
	// The Requester's Reads are held back until the Responder has closed.
	hold := make(chan struct{})
	p := newLoop(t, loop.Options{Async: true, Fault: func(e loop.Event) loop.Fault {
		if e.Dialed && e.Op == verbs.OpRead {
			<-hold
		}
		return loop.Fault{}
	}})
	served := make(chan *exchange, 1)
	h := new(rpctest.Handler)
	_, r := start(t, p, transport.HandlerFunc(func(x transport.Exchange) {
		served <- x.(*exchange)
		h.ServeRPC(x)
	}), Options{Model: ReadRead, DoneTimeout: time.Millisecond}, Options{Model: ReadRead})
	c := new(transport.Call)
	q := &rpctest.Request{Results: []uint32{50000}}
	rpctest.Set(c, q)
	end := make(chan error, 1)
	c.Done = func(c *transport.Call) { end <- c.Err }
	r.Start(c)
	for x := <-served; x.now() != exchangeOver; { // its memory is closed then
		time.Sleep(time.Millisecond)
	}
	close(hold)
	if err := <-end; !errors.Is(err, transport.ErrDisconnected) {
		t.Errorf("a Read of a reply that was given up: %v", err)
	}
}

func TestAllocations(t *testing.T) {
	p := newLoop(t, loop.Options{})
	_, r := start(t, p, newBare(nil), Options{}, Options{})
	c := null()
	call := func() {
		c.XID = 0
		if err := r.Do(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for range 1000 {
		call()
	}
	// With the race detector, pools forget on purpose.
	if n := testing.AllocsPerRun(1000, call); n > 0.1 && !raceDetector {
		t.Errorf("%v allocations for a call", n)
	}
}

// TestReplyRoom sees that a layout without a place for the reply is refused
// before the call is sent.
func TestReplyRoom(t *testing.T) {
	_, r := start(t, newLoop(t, loop.Options{}), nil, Options{}, Options{})
	for _, c := range []struct {
		layout   transport.Layout
		maxReply int
		err      error
	}{
		{transport.Layout{}, 4096 - headerSize, nil},
		{transport.Layout{}, 4096 - headerSize + 1, transport.ErrReplyRoom},
		{transport.Layout{Inline: true}, 5000, nil},
		{transport.Layout{Reply: []uint32{4096, 904}}, 5000, nil},
		{transport.Layout{Reply: []uint32{4096, 903}}, 5000, transport.ErrReplyRoom},
		{transport.Layout{Writes: [][]uint32{{1024, 1024}}}, 4096 - headerSize - 8 - 2*segmentEntrySize, nil},
		{transport.Layout{Writes: [][]uint32{{1024, 1024}}}, 4096 - headerSize - 8 - 2*segmentEntrySize + 1, transport.ErrReplyRoom},
	} {
		var call transport.Call
		q := rpctest.Request{}
		for _, w := range c.layout.Writes {
			q.Results = append(q.Results, uint32(sum(w)))
			call.Results = append(call.Results, make([]byte, sum(w)))
		}
		rpctest.Set(&call, &q)
		call.Layout, call.MaxReply = &c.layout, c.maxReply
		before := r.Stats().Sends
		err := r.Do(t.Context(), &call)
		if !errors.Is(err, c.err) || c.err != nil && (r.Stats().Sends != before || !errors.Is(err, transport.ErrLayout)) {
			t.Errorf("%+v, reply of %d: %v", c.layout, c.maxReply, err)
		}
	}
}
