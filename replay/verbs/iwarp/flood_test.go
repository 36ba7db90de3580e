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
	const silent, room = 300, 16
	// A peer that is to be heard has all the time it needs: a machine with other work to do may stand still for a while.
	p, l, _ := flood(t, Options{HalfOpen: room, Setup: time.Hour}, silent)
	client := provider(t, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for range 10 {
		c, err := client.Dial(ctx, l.Addr(), verbs.Params{})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	for range 60000 {
		if p.Stats().Evicted >= silent-room {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if s := p.Stats(); s.Evicted < silent-room || s.Expired != 0 {
		t.Errorf("%+v", s)
	}

	p, l, all := flood(t, Options{HalfOpen: room, Setup: time.Millisecond}, silent)
	for _, c := range all {
		c.SetReadDeadline(time.Now().Add(5 * time.Minute)) //nolint:errcheck // the read will tell
		if _, err := c.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Fatalf("a silent connection goes on: %v", err)
		}
	}
	if s := p.Stats(); s.Evicted+s.Expired < silent || s.Expired == 0 {
		t.Errorf("%+v", s)
	}
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

// flood connects the given number of times to a listener that takes all who speak, and says nothing.
func flood(t *testing.T, o Options, silent int) (*Provider, verbs.Listener, []net.Conn) {
	t.Helper()
	p := provider(t, o)
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
	t.Cleanup(func() { l.Close(); <-done })
	all := make([]net.Conn, silent)
	for i := range all {
		if all[i], err = net.Dial("tcp", l.Addr().String()); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { all[i].Close() })
	}
	return p, l, all
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
	deadline := time.Now().Add(5 * time.Minute)
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
