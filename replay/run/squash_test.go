package run_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verdict"
)

// TestRootSquashed: a server that squashes root explains owners, and what root may not do, by that.
func TestRootSquashed(t *testing.T) {
	for _, c := range []struct{ sample, version string }{{"rocev2-nfs3-meta", "3"}, {"rocev2-nfs42-basic", "4.2"}} {
		o, _ := rigWith(t, providers.Options{Name: "tcp"}, c.version, providers.ServerOptions{RPC: nfsserver.Options{Squash: nfsserver.RootSquash}}, func(h transport.Handler) transport.Handler { return h })
		o.Timing, o.Mismatches = run.Fast, 2000
		r, err := run.Run(within(t), load(t, sample(t, c.sample), planner.Options{}), o)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, x := range r.Reasons {
			if x.Code == verdict.Squashed {
				n += x.Count
			}
		}
		if !r.Explained() || n < 50 {
			t.Errorf("%s: %v, %d because of squashed root", c.sample, r.Totals, n)
		}
		for i := range r.Mismatches {
			if m := &r.Mismatches[i]; !m.Verdict.Fine() {
				t.Errorf("%s: op %d, %s: %s %q", c.sample, m.Op, m.What, m.Verdict, m.Reasons)
			}
		}
	}
}
