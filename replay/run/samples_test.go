package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/mountd"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/nfsserver/v3"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
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

// rig is a built-in server on TCP.
func rig(t testing.TB, version string) run.Options {
	t.Helper()
	st := memory.New(memory.Options{})
	n4 := nfs4.New(st, nfs4.Options{})
	s := nfsserver.New(nfsserver.Options{})
	s.Register(v3.New(st, v3.Options{}))
	s.Register(mountd.New(st, mountd.Options{}))
	s.Register(n4.Program())
	l, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", s, tcprpc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Close()
		s.Close()
		n4.Close()
		_ = st.Close()
	})
	dial := func(ctx context.Context) (transport.Requester, error) {
		return tcprpc.Dial(ctx, l.Addr().String(), tcprpc.Options{})
	}
	return run.Options{
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) { return dial(ctx) },
		FS: func(ctx context.Context) (client.FS, error) {
			r, err := dial(ctx)
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
	for _, f := range files {
		if want := os.Getenv("SAMPLE"); want != "" && !strings.Contains(f, want) {
			continue
		}
		t.Run(filepath.Base(f), func(t *testing.T) {
			w := load(t, f, plan.Options{})
			o := rig(t, w.Version())
			o.Timing = run.Fast
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := run.Run(ctx, w, o)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(filepath.Base(f), r.Totals, r.Stopped, r.NotDone, r.Took, r.Setup.Prepared)
			for _, x := range r.Reasons {
				fmt.Println("   ", x.Verdict, x.Count, x.Reason)
			}
			for _, m := range r.Mismatches {
				if m.Verdict > run.Better {
					fmt.Printf("   op %d %s: %s %q\n", m.Op, m.What, m.Verdict, m.Reasons)
				}
			}
			for _, n := range r.Notes {
				fmt.Println("   note", n)
			}
		})
	}
}
