package iwarp

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

func recvs(n, size int) verbs.Params {
	var p verbs.Params
	for i := range n {
		p.Recvs = append(p.Recvs, verbs.RecvRequest{ID: uint64(i + 1), Buffer: make([]byte, size)})
	}
	return p
}

// connect makes a connection between two providers.
func connect(t testing.TB, server, client *Provider, listen string, params verbs.Params) (c, s verbs.Conn) {
	t.Helper()
	l, err := server.Listen(t.Context(), netip.MustParseAddrPort(listen))
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan error, 1)
	go func() {
		r, err := l.Accept(t.Context())
		if err == nil {
			s, err = r.Accept(t.Context(), params)
		}
		accepted <- err
	}()
	c, err = client.Dial(t.Context(), l.Addr(), params)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-accepted; err != nil {
		t.Fatal(err)
	}
	return c, s
}

// do posts a request and waits for its success; receives that complete
// meanwhile are dropped.
func do(t testing.TB, c verbs.Conn, wr verbs.WorkRequest) {
	t.Helper()
	wr.Signaled = true
	if err := c.Post(wr); err != nil {
		t.Fatal(err)
	}
	for {
		var d [1]verbs.Completion
		if c.Poll(d[:]) == 0 {
			if err := c.Wait(); err != nil {
				t.Fatalf("%v: %v", wr.Op, err)
			}
			continue
		}
		if d[0].Op == verbs.OpRecv {
			continue
		}
		if d[0].Status != verbs.StatusSuccess {
			t.Fatalf("%v: %+v, %v", wr.Op, d[0], c.Err())
		}
		return
	}
}
