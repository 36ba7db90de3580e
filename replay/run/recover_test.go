package run_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/site"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// kept is a store that outlives its servers.
type kept struct{ store.Store }

func (kept) Close() error { return nil }

// restarting replays against a server that is ended and started again, with the same files,
// after so many outcomes each.
func restarting(t *testing.T, w *workload.Workload, grace time.Duration, relaxed bool, after ...int) *report.Report {
	t.Helper()
	ctx := within(t, time.Minute)
	o := site.Options{Name: "tcp", TCP: tcprpc.Options{Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond}}
	clients, err := site.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	files := emptyStore()
	t.Cleanup(func() { _ = files.Close() })
	at := netip.MustParseAddrPort("127.0.0.1:0")
	stop := func() {}
	serve := func(grace time.Duration) {
		f, err := site.Open(o)
		if err != nil {
			t.Error(err)
			return
		}
		s := site.NewServer(kept{files}, site.ServerOptions{V4: nfs4.Options{Grace: grace}})
		var l site.Listener
		for l == nil && ctx.Err() == nil { // the port may be taken for a moment
			l, err = f.Listen(ctx, at, s)
		}
		if l == nil {
			t.Error(err)
			return
		}
		at = l.Addr()
		stop = sync.OnceFunc(func() { _ = errors.Join(f.Close(), s.Close()) })
	}
	serve(0)
	dial := func(ctx context.Context) (transport.Requester, error) { return clients.Dial(ctx, at, nil) }
	n := 0
	opt := run.Options{Directory: "/replay", Write: true, Prepare: true, Timing: run.Fast, Relaxed: relaxed, Timeout: 20 * time.Second, CallbackWait: time.Millisecond,
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) { return dial(ctx) },
		Access: func(ctx context.Context) (*run.Access, error) {
			r, err := dial(ctx)
			return &run.Access{NFS: r, Version: w.Version(), Cred: client.Sys("replay", 0, 0)}, err
		},
		Observe: func(*report.Outcome) {
			n++
			for _, x := range after {
				if n == x {
					stop()
					serve(grace)
				}
			}
		}}
	r, err := run.Run(ctx, w, opt)
	stop()
	_ = clients.Close()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRecovery: the server restarts in the middle of a run. Clients, sessions, opens and
// locks are made anew, and all replies are as captured.
func TestRecovery(t *testing.T) {
	for _, name := range []string{"rocev2-nfs41-mixed-load.pcap.zst", "rocev2-nfs42-basic.pcap.zst", "iwarp-nfs40-basic.pcap.zst"} {
		t.Run(name, func(t *testing.T) {
			w := load(t, "../../samples/"+name, planner.Options{})
			for _, grace := range []time.Duration{200 * time.Millisecond, 0} {
				r := restarting(t, w, grace, false, len(w.Ops)/5, len(w.Ops)/2, len(w.Ops)*4/5)
				var text strings.Builder
				_ = r.Text(&text)
				t.Logf("grace %s\n%s", grace, text.String())
				if !r.Explained() || len(r.Recoveries) < 2 {
					t.Errorf("grace %s: %v", grace, r.Totals)
				}
			}
		})
	}
}
