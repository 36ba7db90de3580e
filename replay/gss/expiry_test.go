package gss_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rpcrdma/toolkit/decode/krb5"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/internal/testtools/krbtest"
	"github.com/rpcrdma/toolkit/internal/testtools/loop"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/gss"
	"github.com/rpcrdma/toolkit/replay/gss/accept"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/providers"
)

// TestExpiry uses tickets that are valid for a moment only: of a clock that stands still
// while there is something to do, however slow the machine is.
func TestExpiry(t *testing.T) {
	realm := krbtest.New(t, krb5.AES256SHA1)
	synctest.Test(t, func(t *testing.T) {
		users, err := accept.ParseList(strings.NewReader("root@" + krbtest.Name + " 0 0\n"))
		if err != nil {
			t.Fatal(err)
		}
		server := providers.NewServer(memory.New(memory.Options{}), providers.ServerOptions{Kerberos: accept.Options{Keytab: realm.Keytab(), Users: users}})
		defer server.Close()
		p := loop.New(loop.Options{Async: true})
		defer p.Close()
		s, err := endpoint.Listen(t.Context(), p, netip.MustParseAddrPort("127.0.0.1:0"), server, endpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := func(tickets func(context.Context) (*krb5.Ticket, error)) (*gss.Requester, error) {
			inner, err := endpoint.Dial(t.Context(), p, s.Addr(), endpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = inner.Close() })
			return gss.New(t.Context(), inner, gss.Options{Service: oncrpc.ServicePrivacy, Tickets: tickets, Program: 100003, Version: 3})
		}
		const valid = 20 * time.Second
		asked := 0
		r, err := start(func(context.Context) (*krb5.Ticket, error) {
			asked++
			return realm.Ticket("root", time.Now(), valid), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		rpc := client.RPC{Requester: r}
		for _, step := range []struct {
			wait  time.Duration
			asked int
		}{{0, 1}, {valid / 2, 1}, {valid/2 - 1, 2}, {valid / 2, 2}, {2 * valid, 3}} {
			time.Sleep(step.wait)
			if err := rpc.Null(t.Context(), 3); err != nil || asked != step.asked {
				t.Errorf("after another %s: %v, %d tickets, want %d", step.wait, err, asked, step.asked)
			}
		}
		if _, err := start(func(context.Context) (*krb5.Ticket, error) {
			return realm.Ticket("root", time.Now().Add(-time.Hour), time.Minute), nil
		}); err == nil || !strings.Contains(err.Error(), "kinit") {
			t.Errorf("an expired ticket: %v", err)
		}
	})
}
