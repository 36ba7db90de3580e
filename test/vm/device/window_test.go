//go:build verbs && cgo && linux

package device

import (
	"context"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
	"github.com/rpcrdma/toolkit/replay/verbs/rdma"
)

// TestWindowInvalidate: with libibverbs a peer may invalidate windows, and nothing else.
func TestWindowInvalidate(t *testing.T) {
	p := provider(rdma.Options{})(t)
	defer p.Close()
	if !p.Caps().MemoryWindows {
		t.Logf("this device has no windows")
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := p.Listen(ctx, own(t))
	if err != nil {
		t.Fatal(err)
	}
	alloc := func(n int) []byte {
		b, err := p.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	accepted := make(chan verbs.Conn, 1)
	go func() {
		defer close(accepted)
		if r, err := l.Accept(ctx); err != nil {
			t.Error(err)
		} else if c, err := r.Accept(ctx, verbs.Params{}); err != nil {
			t.Error(err)
		} else {
			accepted <- c
		}
	}()
	c, err := p.Dial(ctx, l.Addr(), verbs.Params{Recvs: []verbs.RecvRequest{{ID: 7, Buffer: alloc(100)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := <-accepted
	if s == nil {
		t.FailNow()
	}
	defer s.Close()

	next := func(c verbs.Conn) verbs.Completion {
		t.Helper()
		var d [1]verbs.Completion
		for c.Poll(d[:]) == 0 {
			if err := c.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		return d[0]
	}
	mem, into := alloc(8192), alloc(8192)
	copy(mem[100:], "behind the window")
	r, err := c.Register(mem, verbs.WindowBind, verbs.OffsetAny)
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.AllocWindow()
	if err != nil {
		t.Fatal(err)
	}
	h := w
	for range 3 {
		h = verbs.NextHandle(h)
		if err := c.Post(verbs.WorkRequest{ID: 1, Op: verbs.OpBind, Access: verbs.RemoteRead, Signaled: true, Handle: h, Offset: r.Offset + 100, Local: [][]byte{mem[100:200]}}); err != nil {
			t.Fatal(err)
		}
		if d := next(c); d.ID != 1 || d.Status != verbs.StatusSuccess {
			t.Fatalf("bind: %+v", d)
		}
		if err := s.Post(
			verbs.WorkRequest{ID: 2, Op: verbs.OpRead, Signaled: true, Handle: h, Offset: r.Offset + 100, Local: [][]byte{into[:17]}},
			verbs.WorkRequest{ID: 3, Op: verbs.OpSendInvalidate, Signaled: true, Handle: h, Local: [][]byte{into[:10]}},
		); err != nil {
			t.Fatal(err)
		}
		for id := uint64(2); id <= 3; id++ {
			if d := next(s); d.ID != id || d.Status != verbs.StatusSuccess {
				t.Fatalf("%+v", d)
			}
		}
		if string(into[:17]) != "behind the window" {
			t.Errorf("read %q", into[:17])
		}
		told := p.Caps().Invalidates != verbs.InvalidatesNothing
		if d := next(c); d.ID != 7 || d.Status != verbs.StatusSuccess || told && (!d.Invalidated || d.Handle != h) {
			t.Fatalf("%+v, want handle %#x invalidated", d, h)
		}
		if err := c.PostRecv(verbs.RecvRequest{ID: 7, Buffer: mem[:50]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Post(verbs.WorkRequest{ID: 4, Op: verbs.OpRead, Signaled: true, Handle: h, Offset: r.Offset + 100, Local: [][]byte{into[:17]}}); err != nil {
		t.Fatal(err)
	}
	if d := next(s); d.Status == verbs.StatusSuccess {
		t.Errorf("a window was read that the peer has closed: %+v", d)
	}
	if err := c.Deregister(h); err != nil {
		t.Error(err)
	}
}
