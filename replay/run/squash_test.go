package run_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/nfsserver"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/dir"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
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

// TestReadOnlyServer: a server that is read-only explains that calls change nothing, if nothing was changed before.
func TestReadOnlyServer(t *testing.T) {
	root := t.TempDir()
	err := os.Mkdir(filepath.Join(root, "replay"), 0o755)
	if err != nil {
		t.Fatal(err)
	}
	st, err := dir.Open(root, dir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := providers.NewServer(st, providers.ServerOptions{})
	t.Cleanup(func() { _ = s.Close() })
	o, _ := rigOf(t, providers.Options{Name: "tcp"}, "3", func(transport.Handler) transport.Handler { return s })
	o.Timing, o.Mismatches, o.Prepare = run.Fast, 2000, false
	r, err := run.Run(within(t), load(t, sample(t, "rocev2-nfs3-meta"), planner.Options{}), o)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range r.Mismatches {
		m := &r.Mismatches[i]
		refused := slices.ContainsFunc(m.Reasons, func(why string) bool { return strings.Contains(why, "ROFS") }) && m.Verdict != verdict.NotSent
		if refused && (m.Verdict != verdict.Explained || !slices.Contains(m.Codes, verdict.ReadOnly)) {
			t.Errorf("op %d, %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
		}
		if refused {
			n++
		}
	}
	if n == 0 {
		t.Errorf("%v", r.Totals)
	}
}
