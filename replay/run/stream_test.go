package run_test

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// planOf makes a plan of a capture, in a file.
func planOf(t testing.TB, name string, opt planner.Options) string {
	t.Helper()
	r, err := capture.Open([]string{name}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := filepath.Join(t.TempDir(), "plan")
	opt.Sources = []string{filepath.Base(name)}
	if _, err := planner.Build(context.Background(), r, out, decode.Options{}, opt); err != nil {
		t.Fatal(err)
	}
	return out
}

// open is load for a plan whose ops stay in the file.
func open(t testing.TB, plan string) *workload.Workload {
	t.Helper()
	w, err := workload.Open(plan, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// TestFacts: what the header of a plan says of its ops is what reading all of them shows.
func TestFacts(t *testing.T) {
	files, _ := filepath.Glob("../../samples/*.pcap*")
	for _, f := range append(files, "../planner/testdata/two-addresses.pcap.zst") {
		name := planOf(t, f, planner.Options{Payload: plan.Pattern, Same: []plan.SameServer{{Addr: "192.0.2.1", As: "fd00::1"}}})
		whole, err := workload.Load(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		w := open(t, name)
		if w.Tables.Header.Facts == nil || !w.Streams() || w.Ops != nil {
			t.Fatalf("%s: %d ops in memory", f, len(w.Ops))
		}
		same := func(what string, got, want any) {
			t.Helper()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s: %v, want %v", filepath.Base(f), what, got, want)
			}
		}
		same("version", w.Version(), whole.Version())
		same("ops", w.Planned(), whole.Planned())
		same("connections", w.Used(), whole.Used())
		same("needs what is above", w.NeedsAbove(), whole.NeedsAbove())
		same("replayable", w.Replayable(), whole.Replayable())
		sorted := func(list []plan.Reason) []plan.Reason {
			slices.SortFunc(list, func(a, b plan.Reason) int {
				if a.Reason < b.Reason {
					return -1
				}
				return 1
			})
			return list
		}
		same("impossible", sorted(w.Impossible()), sorted(whole.Impossible()))
		for c := range len(w.Tables.Clients) + 1 {
			a, b := w.Example(c), whole.Example(c)
			if (a == nil) != (b == nil) {
				t.Errorf("%s: client %d: %v, want %v", f, c, a, b)
				continue
			}
			if a != nil {
				same("example", [5]int{a.Connection, a.Credential, int(a.Program), int(a.Version), int(a.Procedure)},
					[5]int{b.Connection, b.Credential, int(b.Program), int(b.Version), int(b.Procedure)})
			}
		}
		for i := range w.Tables.Objects {
			if !w.Tables.Objects[i].Base {
				continue
			}
			for at := i + 1; at > 0; at = whole.Parents()[at] {
				same("parent", w.Parents()[at], whole.Parents()[at])
			}
		}
		_ = whole.Close()
	}
}
