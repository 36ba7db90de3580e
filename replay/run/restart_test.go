package run_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestRestart ends the server in the middle of a run and starts another one at
// the same address, with no state of the first one: handles are stale, sessions are gone. The run
// goes on to its end and reports that.
func TestRestart(t *testing.T) {
	sample := load(t, "../../samples/rocev2-nfs41-mixed-load.pcap.zst", planner.Options{})
	for _, c := range []struct {
		name, fabric, version string
		load                  *workload.Workload
		timing                run.Timing
		relaxed               bool
		after                 int // replies, before the server goes
	}{
		{"NFSv3 over TCP", "tcp", "3", steady(400, time.Millisecond), run.AsCaptured, false, 100},
		{"NFSv4.1 over iWARP", "iwarp", "4.1", sample, run.AsCaptured, false, 100},
		{"NFSv4.1 over iWARP, before its session", "iwarp", "4.1", sample, run.Fast, true, 3},
		{"NFSv4.1 over iWARP, in any order", "iwarp", "4.1", sample, run.Fast, true, 50},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := within(t)
			o := providers.Options{Name: c.fabric, Endpoint: endpoint.Options{Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond},
				TCP: tcprpc.Options{Reconnect: true, BackoffMin: time.Millisecond, BackoffMax: 10 * time.Millisecond}}
			clients, err := providers.Open(o)
			if err != nil {
				t.Fatal(err)
			}
			at := netip.MustParseAddrPort("127.0.0.1:0")
			var stop func()
			serve := func() {
				f, err := providers.Open(o)
				if err != nil {
					t.Error(err)
					return
				}
				s := providers.NewServer(emptyStore(), providers.ServerOptions{})
				var l providers.Listener
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
			serve()
			dial := func(ctx context.Context) (transport.Requester, error) { return clients.Dial(ctx, at, nil) }
			opt := run.Options{Directory: "/replay", Write: true, Prepare: true, Timing: c.timing, Relaxed: c.relaxed, Speed: 20, Timeout: time.Minute,
				Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) { return dial(ctx) },
				Access: func(ctx context.Context) (*run.Access, error) {
					r, err := dial(ctx)
					return &run.Access{NFS: r, Version: c.version, Cred: client.Sys("replay", 0, 0)}, err
				}}
			if c.version == "3" {
				opt.Slots = 16 // otherwise all calls may be over before a busy machine looks at the first reply
			}
			n := 0
			opt.Observe = func(*report.Outcome) {
				if n++; n == c.after {
					stop()
					serve()
				}
			}
			r, err := run.Run(ctx, c.load, opt)
			stop()
			_ = clients.Close()
			if err != nil {
				t.Fatal(err)
			}
			if r.Explained() || r.Totals[verdict.Worse.String()] == 0 || r.Totals[verdict.Same.String()] == 0 {
				t.Errorf("%v, stopped %q, %d not done", r.Totals, r.Stopped, r.NotDone)
			}
			if r.Stopped == "" && r.NotDone > 0 {
				t.Errorf("%d not done", r.NotDone)
			}
		})
	}
}
