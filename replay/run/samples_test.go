package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/site"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// load makes a plan of a sample.
func load(t testing.TB, name string, opt plan.Options) *run.Workload {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := filepath.Join(t.TempDir(), "plan")
	opt.Sources = []string{filepath.Base(name)}
	if _, err := plan.Build(context.Background(), r, out, decode.Options{}, opt); err != nil {
		t.Fatal(err)
	}
	w, err := run.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// rig is a built-in server on a fabric.
func rig(t testing.TB, o site.Options, version string) run.Options {
	t.Helper()
	s := site.NewServer(memory.New(memory.Options{}), site.ServerOptions{})
	f, c, at, err := site.Pair(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.Listen(t.Context(), at, s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), f.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return run.Options{
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) {
			return c.Dial(ctx, l.Addr(), nil)
		},
		FS: func(ctx context.Context) (client.FS, error) {
			r, err := c.Dial(ctx, l.Addr(), nil)
			if err != nil {
				return nil, err
			}
			rpc := client.RPC{Requester: r, Cred: client.Sys("replay", 0, 0)}
			if version == "3" {
				return client.NewV3(rpc), nil
			}
			return client.NewV4(ctx, rpc, client.V4Options{Minor: uint32(version[2] - '0'), Owner: []byte("preparation")})
		},
		Directory: "/replay", Write: true, Prepare: true,
	}
}

func TestSamples(t *testing.T) {
	files, _ := filepath.Glob("../../samples/*.pcap*")
	if len(files) < 15 {
		t.Fatalf("only %d samples", len(files))
	}
	for _, f := range files {
		w := load(t, f, plan.Options{})
		for _, fabric := range []string{"rocev2", "iwarp", "tcp"} {
			t.Run(fabric+"/"+filepath.Base(f), func(t *testing.T) {
				o := rig(t, site.Options{Name: fabric}, w.Version())
				o.Timing = run.Fast
				o.Layout = os.Getenv("LAYOUT") != ""
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r, err := run.Run(ctx, w, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Log(r.Totals, r.Stopped, r.NotDone, r.Took, r.Setup.Prepared)
				if !r.Explained() {
					t.Errorf("not all is explained: %v", r.Totals)
				}
				for _, m := range r.Mismatches {
					if m.Verdict > run.Explained {
						t.Errorf("op %d %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
					}
				}
			})
		}
	}
}
