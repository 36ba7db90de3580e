package verbstest

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// samePrivate compares private data. InfiniBand's messages have a fixed size
// and fill up with zeros.
func samePrivate(got, want []byte) bool {
	return len(got) >= len(want) && string(got[:len(want)]) == string(want) && changed(got[len(want):], 0) < 0
}

// The sizes are those that InfiniBand's REQ (56 bytes, IBTA A11) and every MPA
// implementation can carry.
func testPrivateData(t *testing.T, p *pair) {
	for _, n := range []int{0, 1, 8, 56} {
		toServer, toClient := make([]byte, n), make([]byte, n)
		fill(toServer, n)
		fill(toClient, n+1)
		done := make(chan error, 1)
		var offered []byte
		var server verbs.Conn
		go func() {
			r, err := p.listener.Accept(p.ctx)
			if err != nil {
				done <- err
				return
			}
			offered = append(offered, r.PrivateData()...)
			server, err = r.Accept(p.ctx, verbs.Params{PrivateData: toClient})
			if err == nil && !r.RemoteAddr().IsValid() {
				err = errors.New("the request has no remote address")
			}
			done <- err
		}()
		client, err := p.client.Dial(p.ctx, p.listener.Addr(), verbs.Params{PrivateData: toServer})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if !samePrivate(offered, toServer) || !samePrivate(server.Info().PrivateData, toServer) {
			t.Errorf("%d bytes to the server arrived as %x, %x", n, offered, server.Info().PrivateData)
		}
		if !samePrivate(client.Info().PrivateData, toClient) {
			t.Errorf("%d bytes to the client arrived as %x", n, client.Info().PrivateData)
		}
		if client.State() != verbs.StateRTS || server.State() != verbs.StateRTS {
			t.Errorf("states %v, %v", client.State(), server.State())
		}
		if client.Err() != nil || server.Err() != nil {
			t.Errorf("errors %v, %v", client.Err(), server.Err())
		}
		if a, b := client.Info().Local.Addr(), server.Info().Remote.Addr(); a != b {
			t.Errorf("the client's address is %v, and %v to the server", a, b)
		}
		if client.Info().Fabric == "" || client.Info().MTU <= 0 {
			t.Errorf("info %+v", client.Info())
		}
		client.Close()
		server.Close()
		client.Close()
		server.Close()
	}
}

func testReject(t *testing.T, p *pair) {
	for _, n := range []int{0, 10, 56} {
		why := make([]byte, n)
		fill(why, n)
		done := make(chan error, 1)
		go func() {
			r, err := p.listener.Accept(p.ctx)
			if err == nil {
				err = r.Reject(why)
			}
			done <- err
		}()
		_, err := p.client.Dial(p.ctx, p.listener.Addr(), verbs.Params{PrivateData: []byte("please")})
		var reject *verbs.RejectError
		if !errors.As(err, &reject) || !errors.Is(err, verbs.ErrRejected) {
			t.Fatalf("Dial: %v, want a RejectError", err)
		}
		if !samePrivate(reject.PrivateData, why) {
			t.Errorf("private data %x, want %x", reject.PrivateData, why)
		}
		if err := <-done; err != nil {
			t.Errorf("Reject: %v", err)
		}
	}
	// The listener is still there.
	c, s := p.connect(t, verbs.Params{})
	c.Close()
	s.Close()
}

func testDialNobody(t *testing.T, p *pair) {
	addr := p.listener.Addr()
	if err := p.listener.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.o.Hang/2)
	defer cancel()
	if c, err := p.client.Dial(ctx, addr, verbs.Params{}); err == nil {
		c.Close()
		t.Error("connected to nobody")
	}
}

func testDialGivesUp(t *testing.T, p *pair) {
	ctx, cancel := context.WithCancel(p.ctx)
	go func() {
		r, err := p.listener.Accept(p.ctx) // but gives no answer
		cancel()
		if err == nil {
			<-ctx.Done()
			r.Reject(nil) //nolint:errcheck // the peer is gone, or not yet
		}
	}()
	start := time.Now()
	if _, err := p.client.Dial(ctx, p.listener.Addr(), verbs.Params{}); !errors.Is(err, context.Canceled) {
		// The rejection may have come first.
		var reject *verbs.RejectError
		if !errors.As(err, &reject) || !errors.Is(err, verbs.ErrRejected) {
			t.Errorf("Dial: %v, want %v", err, context.Canceled)
		}
	}
	if d := time.Since(start); d > p.o.Hang/2 {
		t.Errorf("Dial took %v to give up", d)
	}
	// A request that nobody waits for any more must not disturb the next.
	c, s := p.connect(t, verbs.Params{})
	c.Close()
	s.Close()
}

func testAcceptGivesUp(t *testing.T, p *pair) {
	ctx, cancel := context.WithCancel(p.ctx)
	cancel()
	if _, err := p.listener.Accept(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Accept: %v, want %v", err, context.Canceled)
	}
	done := make(chan error, 1)
	go func() {
		_, err := p.listener.Accept(p.ctx)
		done <- err
	}()
	if p.listener.Addr() == (netip.AddrPort{}) {
		t.Error("the listener has no address")
	}
	p.listener.Close()
	if err := <-done; err == nil {
		t.Error("Accept of a closed listener succeeded")
	}
}

func testDepths(t *testing.T, p *pair) {
	c, s := p.connectWith(t,
		verbs.Params{ResponderResources: 4, InitiatorDepth: 8},
		verbs.Params{ResponderResources: 2, InitiatorDepth: 16})
	ci, si := c.Info(), s.Info()
	if p.o.Foreign {
		if ci.InitiatorDepth == 0 || si.InitiatorDepth == 0 {
			t.Errorf("client %+v, server %+v", ci, si)
		}
		return
	}
	if ci.InitiatorDepth > 2 || ci.InitiatorDepth == 0 {
		t.Errorf("the client starts %d Reads, of which the server answers 2", ci.InitiatorDepth)
	}
	if si.InitiatorDepth > 4 || si.InitiatorDepth == 0 {
		t.Errorf("the server starts %d Reads, of which the client answers 4", si.InitiatorDepth)
	}
	if ci.ResponderResources < si.InitiatorDepth || si.ResponderResources < ci.InitiatorDepth {
		t.Errorf("client %d/%d, server %d/%d: more Reads are started than answered",
			ci.ResponderResources, ci.InitiatorDepth, si.ResponderResources, si.InitiatorDepth)
	}
}
