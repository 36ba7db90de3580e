package iwarp

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Silent connections do not keep others out, whether they come from elsewhere or
// from the peer's own address, and they end in time.
func TestSilentFlood(t *testing.T) {
	p := provider(t, Options{HalfOpen: 16, Setup: 200 * time.Millisecond})
	l, err := p.Listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			r, err := l.Accept(context.Background())
			if err != nil {
				return
			}
			_, _ = r.Accept(context.Background(), verbs.Params{})
		}
	}()
	silent := make([]net.Conn, 300)
	for i := range silent {
		if silent[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		defer silent[i].Close()
	}
	client := provider(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 10 {
		c, err := client.Dial(ctx, l.Addr(), verbs.Params{})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for _, c := range silent {
		c.SetReadDeadline(time.Now().Add(time.Minute)) //nolint:errcheck // the read will tell
		if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Fatalf("a silent connection goes on: %v", err)
		}
	}
	s := p.Stats()
	if s.Evicted+s.Expired < 300 || s.Evicted < 250 {
		t.Errorf("%+v", s)
	}
	l.Close()
	<-done
	ll := l.(*listener)
	for range 60000 {
		ll.mu.Lock()
		n := ll.half.Len()
		ll.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("peers are half-open still")
}

func isTimeout(err error) bool {
	e, ok := err.(net.Error)
	return ok && e.Timeout()
}

// A request that the consumer does not take makes room, too.
func TestEvictedRequest(t *testing.T) {
	p := provider(t, Options{HalfOpen: 2})
	l, err := p.Listen(t.Context(), netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Write(append([]byte("MPA ID Req Frame"), 0, 1, 0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	deadline := time.Now().Add(time.Minute)
	for p.Stats().Evicted < 18 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	p.mu.Lock()
	n := len(p.open)
	p.mu.Unlock()
	for ; n > 3 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		p.mu.Lock()
		n = len(p.open)
		p.mu.Unlock()
	}
	if n > 3 { // the listener and two
		t.Errorf("%d are open", n)
	}
}

// STags do not follow from those before, and none comes again.
func TestTags(t *testing.T) {
	p := provider(t, Options{})
	seen := map[uint32]bool{}
	var last uint32
	near := 0
	for range 5000 {
		n := p.newTag()
		if seen[n] {
			t.Fatalf("%#x comes again", n)
		}
		seen[n] = true
		if d := int32(n - last); d > -512 && d < 512 {
			near++
		}
		last = n
	}
	if near > 10 {
		t.Errorf("%d of 5000 lie beside the one before", near)
	}
}
