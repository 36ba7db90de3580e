package run_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// outcomes runs a plan, interrupted after as many calls as interrupt says each time, until it is at
// its end, and returns what became of each call, and the last report.
func outcomes(t *testing.T, w *workload.Workload, server providers.ServerOptions, interrupt func() int, change func(*run.Options)) (map[string]string, *report.Report, int) {
	t.Helper()
	o, _ := rigWith(t, providers.Options{Name: "tcp"}, w.Version(), server, func(h transport.Handler) transport.Handler { return h })
	o.Timing, o.Slots, o.CallbackWait, o.VerifyFiles, o.Tick = run.Fast, 1, time.Millisecond, true, -1
	if change != nil {
		change(&o)
	}
	all := map[string]string{}
	o.Observe = func(x *report.Outcome) {
		k := fmt.Sprintf("%d/%d", x.Op.ID, x.Clone)
		if all[k] != "" {
			t.Errorf("op %s has two outcomes", k)
		}
		all[k] = x.Verdict.String()
		for i := range x.Reasons {
			all[k] += " " + x.Reasons[i].Code.String()
		}
	}
	if interrupt == nil {
		r, err := run.Run(within(t), w, o)
		if err != nil {
			t.Fatal(err)
		}
		return all, r, 0
	}
	for times := 0; ; times++ {
		if times > 1000 {
			t.Fatal("it does not come to an end")
		}
		var kept *run.Snapshot
		o.Keep = func(s *run.Snapshot) error {
			// Another process gets it as text.
			b, err := json.Marshal(s)
			kept = &run.Snapshot{}
			if err == nil {
				err = json.Unmarshal(b, kept)
			}
			return err
		}
		o.MaxOps = interrupt()
		r, err := run.Run(within(t), w, o)
		if err != nil {
			t.Fatal(err)
		}
		if kept == nil {
			if slices.ContainsFunc(r.Notes, func(n string) bool { return strings.Contains(n, "cannot be resumed") }) {
				t.Fatal(r.Notes)
			}
			return all, r, times
		}
		o.Resume = kept
	}
}

// TestResume: a run that was interrupted again and again has the verdicts of one that was not, and
// its report counts all of it.
func TestResume(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 16))
	samples := []string{"rocev2-nfs3-basic", "rocev2-nfs3-meta", "rocev2-nfs42-basic", "iwarp-nfs40-basic", "rocev2-nfs41-midstream", "rocev2-nfs41-mixed-load", "rocev2-nfs3-snaplen256"}
	if testing.Short() {
		samples = samples[:2]
	}
	for i, name := range samples {
		for _, streamed := range []bool{true, false} {
			if streamed != (i%2 == 0) && testing.Short() {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", name, streamed), func(t *testing.T) {
				file := planOf(t, sample(t, name), planner.Options{Payload: []plan.PayloadMode{plan.Captured, plan.Pattern}[i%2]})
				w := open(t, file)
				if !streamed {
					w = loaded(t, file)
				}
				change := func(o *run.Options) {
					if i == 0 {
						o.Clones = 2
					}
					o.Window = 64
				}
				at := func() int { return 1 + rnd.IntN(1+w.Planned()/3) }
				// To whom a server gives delegations is not the same twice.
				server := providers.ServerOptions{V4: nfs4.Options{NoDelegations: true}}
				want, whole, _ := outcomes(t, w, server, nil, change)
				got, parts, times := outcomes(t, w, server, at, change)
				if times < 1 {
					t.Error("it was never interrupted")
				}
				for k, v := range want {
					if got[k] != v {
						t.Errorf("op %s: %s, and %s without an interruption", k, got[k], v)
					}
				}
				if len(got) != len(want) || parts.NotDone != 0 || parts.Planned != whole.Planned {
					t.Errorf("%d outcomes, want %d; %d of %d not done", len(got), len(want), parts.NotDone, parts.Planned)
				}
				if fmt.Sprint(parts.Totals) != fmt.Sprint(whole.Totals) || len(parts.Mismatches) != len(whole.Mismatches) {
					t.Errorf("%v, want %v", parts.Totals, whole.Totals)
				}
				if parts.ReadBack == nil || len(parts.ReadBack.Wrong) != len(whole.ReadBack.Wrong) || parts.Written.Bytes != whole.Written.Bytes || parts.Written.Run != whole.Written.Run {
					t.Errorf("read back %+v, want %+v; written %+v, want %+v", parts.ReadBack, whole.ReadBack, parts.Written, whole.Written)
				}
				if w.Version() < "4" {
					return
				}
				_, parts, _ = outcomes(t, w, providers.ServerOptions{}, at, change)
				for _, m := range parts.Mismatches {
					if !m.Verdict.Fine() {
						t.Errorf("with delegations: op %d %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
					}
				}
			})
		}
	}
}

// TestResumeInFlight: runs with many calls in flight are interrupted at any moment. Each call has one
// outcome, and none is lost or worse for it.
func TestResumeInFlight(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 17))
	file := planOf(t, sample(t, "rocev2-nfs41-mixed-load"), planner.Options{Payload: plan.Pattern})
	timings := []run.Timing{run.Fast, run.Think, run.AsCaptured, run.FixedRate}
	if testing.Short() {
		timings = timings[:2]
	}
	for _, timing := range timings {
		t.Run(timing.String(), func(t *testing.T) {
			w := open(t, file)
			o, _ := rig(t, providers.Options{Name: "tcp"}, w.Version())
			o.Timing, o.Speed, o.Rate, o.CallbackWait, o.VerifyFiles, o.Window = timing, 100, 20000, time.Millisecond, true, 128
			all := map[int]int{}
			for times := 0; ; times++ {
				ctx, cancel := context.WithCancel(within(t))
				left := 1 + rnd.IntN(1+w.Planned()/4)
				o.Observe = func(x *report.Outcome) {
					all[x.Op.ID]++
					if left--; left == 0 {
						cancel()
					}
				}
				o.Keep = func(s *run.Snapshot) error { o.Resume = s; return nil }
				r, err := run.Run(ctx, w, o)
				cancel()
				if err != nil || times > 100 {
					t.Fatal(err)
				}
				if r.NotDone > 0 {
					continue
				}
				for id, n := range all {
					if n != 1 {
						t.Errorf("op %d has %d outcomes", id, n)
					}
				}
				for _, m := range r.Mismatches {
					if !m.Verdict.Fine() {
						t.Errorf("op %d %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
					}
				}
				if times == 0 || len(all) != w.Planned() || r.NotDone != 0 || len(r.ReadBack.Wrong) > 0 {
					t.Errorf("interrupted %d times: %d outcomes, %d not done, read back %+v", times, len(all), r.NotDone, r.ReadBack)
				}
				return
			}
		})
	}
}
