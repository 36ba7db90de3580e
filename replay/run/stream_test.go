package run_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/testtools/longplan"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
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
	files := sampled.Captures(t, "*")
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

// made writes a plan of longplan to a file. change may spoil its text.
func made(t testing.TB, o longplan.Options, change func(line string) string) string {
	t.Helper()
	var b bytes.Buffer
	if err := longplan.Make(&b, o); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if change != nil {
		var out strings.Builder
		for l := range strings.Lines(text) {
			out.WriteString(change(l))
		}
		text = out.String()
	}
	name := filepath.Join(t.TempDir(), "plan")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// TestLongPlan: what a run holds in memory does not grow with the calls, whatever the header says of
// their number, and whether or not it says what has to be known beforehand.
func TestLongPlan(t *testing.T) {
	calls := 40000
	if testing.Short() {
		calls = 10000
	}
	for _, o := range []longplan.Options{{Calls: calls, Files: 20}, {Calls: calls / 10, Files: 20, Bare: true, Claimed: 1 << 40}, {Calls: calls / 10, Files: 20, Claimed: 3, InFlight: 100}} {
		w := open(t, made(t, o, nil))
		opt, _ := rig(t, providers.Options{Name: "tcp"}, "3")
		opt.Timing, opt.Window, opt.Tick, opt.VerifyFiles = run.Fast, 256, -1, true
		over, most := 0, uint64(0)
		heap := func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		}
		opt.Observe = func(*report.Outcome) {
			if over++; over%(o.Calls/8) == 0 {
				most = max(most, heap())
			}
		}
		before := heap()
		r, err := run.Run(within(t), w, opt)
		if err != nil {
			t.Fatal(err)
		}
		if r.Planned != o.Calls || r.NotDone != 0 || !r.Explained() || r.Totals["same"] != o.Calls {
			t.Errorf("%+v: %d planned, %d not done, %v, read back %+v", o, r.Planned, r.NotDone, r.Totals, r.ReadBack)
			for _, m := range r.Mismatches {
				t.Logf("%+v", m)
			}
		}
		// Window and what is read ahead are some 5,000 calls of 1.5 KB.
		if grew := int64(most) - int64(before); grew > 16<<20 {
			t.Errorf("%d calls take %d MiB", over, grew>>20)
		} else {
			t.Logf("%d calls take %d KiB", over, grew>>10)
		}
	}
}

// TestWindows: how much of a plan is in memory makes no difference to the verdicts.
func TestWindows(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-meta", "rocev2-nfs42-basic"} {
		file := planOf(t, sample(t, name), planner.Options{})
		server := providers.ServerOptions{V4: nfs4.Options{NoDelegations: true}}
		want, _, _ := outcomes(t, loaded(t, file), server, nil, nil)
		for _, window := range []int{1, 7} {
			got, _, _ := outcomes(t, open(t, file), server, nil, func(o *run.Options) { o.Window = window })
			if !maps.Equal(got, want) {
				t.Errorf("%s: a window of %d makes a difference", name, window)
			}
		}
	}
}

// TestHostilePlans: what a plan in a file says of itself is a lie until it was checked. The calls
// before the lie are made and reported.
func TestHostilePlans(t *testing.T) {
	replace := func(old, by string) func(string) string {
		return func(l string) string { return strings.ReplaceAll(l, old, by) }
	}
	at := func(op int, f func(string) string) func(string) string {
		return func(l string) string {
			if strings.HasPrefix(l, fmt.Sprintf(`{"op":{"id":%d,`, op)) {
				return f(l)
			}
			return l
		}
	}
	for i, c := range []struct {
		name   string
		change func(string) string
		opens  string // error of opening it
		want   string // error of the run
	}{
		{"a version that the header does not have", replace(`"nfs4.1":`, `"nfs4.0":`), "", "4.0 is the highest version"},
		{"the root", at(5950, func(string) string {
			return `{"op":{"id":5950,"xid":1,"conn":2,"cred":1,"prog":100003,"vers":4,"proc":1,"what":"","role":"workload","class":"exact","time":1,"latency":1,"service":-1,"compound":{"minor":1,"ops":[{"op":24,"name":"PUTROOTFH"}]}}}` + "\n"
		}), "", "goes to the root"},
		{"a connection without ops", replace(`"ops":5250,`, `"ops":0,`), "", "connection 1, which has no ops"},
		{"an example of a connection without ops", replace(`"ops":750,`, `"ops":0,`), "connection 2, which has none", ""},
		{"facts about nobody", replace(`"examples":[{"conn":2`, `"examples":[{"client":9,"conn":2`), "client 9 refers to nothing", ""},
		{"facts about nothing", replace(`"facts":{`, `"facts":{"above":[{"object":1,"parent":99}],`), "refers to nothing", ""},
		{"cut in the middle", func(l string) string {
			if strings.HasPrefix(l, `{"end"`) {
				return ""
			}
			return l
		}, "", "has been cut"},
		{"a broken line late", at(5990, func(string) string { return "{\n" }), "", "unexpected end of JSON"},
		{"a gap", at(5991, func(string) string { return "" }), "", "op 5992, expected 5991"},
		{"a dependency on a later call", at(5992, replace(`"role":`, `"deps":[{"op":5993,"kind":"create"}],"role":`)), "", "does not come before it"},
	} {
		if testing.Short() && i%3 != 0 {
			continue // the race detector has nothing to find in the others
		}
		t.Run(c.name, func(t *testing.T) {
			name := made(t, longplan.Options{Calls: 6000, Files: 5}, c.change)
			w, err := workload.Open(name, 0)
			if c.opens != "" {
				if err == nil || !strings.Contains(err.Error(), c.opens) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			opt, _ := rig(t, providers.Options{Name: "tcp"}, "3")
			opt.Timing, opt.Window, opt.Tick = run.Fast, 64, -1
			r, err := run.Run(within(t), w, opt)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), name+": ") || r == nil || r.Stopped == "" || r.Explained() {
				t.Errorf("%v, %+v", err, r)
			}
			if late := !strings.Contains(c.want, "header") && !strings.Contains(c.want, "no ops") && !strings.Contains(c.want, "version"); late && r != nil && r.Totals["same"] < 100 {
				t.Errorf("%v of the calls before it", r.Totals)
			}
			var out strings.Builder
			if err := run.Preview(&out, w, opt, "server", true); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("preview: %v", err)
			}
		})
	}
}
