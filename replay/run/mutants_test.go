package run_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/internal/testtools/mutantstore"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/nfsserver/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// wrong is what is wrong with a server; both may be nil.
type wrong struct {
	store *mutantstore.Kind
	wire  *wireKind
}

// against replays a workload over TCP to a server that misbehaves once the files are prepared,
// and returns how often it did.
func against(t testing.TB, w *workload.Workload, what wrong, change func(*run.Options)) (r *report.Report, strikes int) {
	t.Helper()
	st := emptyStore()
	var spoilt *mutantstore.Store
	if what.store != nil {
		spoilt = what.store.Wrap(st)
		st = spoilt
	}
	// A recall takes time, of which there would be hundreds.
	s := providers.NewServer(st, providers.ServerOptions{V4: nfs4.Options{NoDelegations: true}})
	f, c, at, err := providers.Pair(providers.Options{Name: "tcp"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var h transport.Handler = s
	p := &proxy{to: s, kind: what.wire, kept: map[string][]byte{}}
	if what.wire != nil {
		h = p
	}
	l, err := f.Listen(t.Context(), at, h)
	if err != nil {
		t.Fatal(err)
	}
	defer sync.OnceFunc(func() {
		if err := errors.Join(c.Close(), f.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})()
	o := run.Options{
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) {
			p.armed.Store(true) // the preparation is over
			if spoilt != nil {
				spoilt.Arm()
			}
			return c.Dial(ctx, l.Addr(), nil)
		},
		Access: func(ctx context.Context) (*run.Access, error) {
			r, err := c.Dial(ctx, l.Addr(), nil)
			return &run.Access{NFS: r, Version: w.Version(), Cred: client.Sys("replay", 0, 0)}, err
		},
		Directory: "/replay", Write: true, Prepare: true, Timing: run.Fast, CallbackWait: time.Millisecond, VerifyFiles: true, Tick: -1,
		Retries: 2, Timeout: time.Minute,
	}
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err = run.Run(ctx, w, o)
	if err != nil {
		t.Fatal(err)
	}
	strikes = int(p.strikes.Load())
	if spoilt != nil {
		strikes += spoilt.Strikes()
	}
	return r, strikes
}

// found counts the reasons of what a report lists as mismatches.
func found(r *report.Report) map[string]int {
	n := map[string]int{}
	for _, m := range r.Mismatches {
		for _, code := range m.Codes {
			n[m.Verdict.String()+"/"+code.String()]++
		}
	}
	return n
}

// sample is the path of a sample, whatever its compression.
func sample(t testing.TB, name string) string {
	t.Helper()
	list, _ := filepath.Glob("../../samples/" + name + ".pcap*")
	if len(list) != 1 {
		t.Fatalf("sample %s: %v", name, list)
	}
	return list[0]
}

// TestUnspoilt: a correct server causes no findings in plans with made-up data. TestSamples does
// the same with captured data.
func TestUnspoilt(t *testing.T) {
	files, _ := filepath.Glob("../../samples/*.pcap*")
	for i, f := range files {
		if testing.Short() && i%4 != 0 {
			continue
		}
		name, _, _ := strings.Cut(filepath.Base(f), ".pcap")
		t.Run(name, func(t *testing.T) {
			w := load(t, f, planner.Options{Payload: plan.Pattern})
			r, _ := against(t, w, wrong{}, nil)
			if !r.Explained() || r.NotDone != 0 {
				t.Errorf("%v, %d not done", r.Totals, r.NotDone)
			}
			for _, m := range r.Mismatches {
				if !m.Verdict.Fine() {
					t.Errorf("op %d %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
				}
			}
			for _, f := range r.ReadBack.Wrong {
				t.Errorf("read back: %s: %s", f.Path, f.Reason)
			}
			t.Logf("%+v %+v", r.Written, *r.ReadBack)
		})
	}
}

// TestSpoiltStore: a store's mistakes are found and reported with the right reasons.
func TestSpoiltStore(t *testing.T) {
	for i, c := range []struct {
		kind, sample string
		payload      plan.PayloadMode
		want         verdict.Code
	}{
		{"lost-write", "rocev2-nfs3-basic", plan.Pattern, verdict.WrittenLost},
		{"lost-write", "iwarp-nfs40-basic", plan.Pattern, verdict.WrittenLost},
		{"lost-write", "rocev2-nfs42-basic", plan.Pattern, verdict.WrittenLost},
		{"lost-write", "rocev2-nfs42-basic", plan.Captured, verdict.WrittenLost},
		{"spoilt-read", "rocev2-nfs3-basic", plan.Pattern, verdict.PatternDiffers},
		{"name-twice", "rocev2-nfs3-meta", plan.Captured, verdict.NameTwice},
		{"name-twice", "rocev2-nfs42-basic", plan.Captured, verdict.NameTwice},
		{"found-name", "rocev2-nfs3-meta", plan.Captured, verdict.SucceedsWrongly},
		{"found-name", "rocev2-nfs42-basic", plan.Captured, verdict.SucceedsWrongly},
	} {
		if testing.Short() && i%4 != 0 {
			continue // the race detector has nothing to find in the others
		}
		t.Run(c.kind+"/"+c.sample+"/"+string(c.payload), func(t *testing.T) {
			k := mutantstore.Find(c.kind)
			if k == nil {
				t.Fatal("no such mutant")
			}
			r, _ := against(t, load(t, sample(t, c.sample), planner.Options{Payload: c.payload}), wrong{store: k}, nil)
			if n := found(r); n["different/"+c.want.String()] == 0 || r.Explained() {
				t.Errorf("%s: %v, want %s", k.What, n, c.want)
			}
		})
	}
}

// TestSpoiltBehindCut: a call that was captured only in part does not explain bytes that the
// replay itself wrote, nor anything that the call could not have touched.
func TestSpoiltBehindCut(t *testing.T) {
	elsewhere := []plan.Touch{{Object: 1, Named: true, Name: "elsewhere"}}
	for i, c := range []struct {
		kind, sample string
		payload      plan.PayloadMode
		touches      []plan.Touch
		want         verdict.Code
	}{
		{"lost-write", "rocev2-nfs42-basic", plan.Captured, nil, verdict.WrittenLost},
		{"lost-write", "rocev2-nfs42-basic", plan.Pattern, nil, verdict.WrittenLost},
		{"spoilt-read", "rocev2-nfs42-basic", plan.Captured, nil, verdict.WrittenDiffers},
		{"spoilt-read", "rocev2-nfs3-basic", plan.Captured, elsewhere, verdict.WrittenDiffers},
		{"spoilt-read", "rocev2-nfs3-basic", plan.Pattern, nil, verdict.PatternDiffers},
		{"wrong-mode", "rocev2-nfs3-basic", plan.Captured, elsewhere, verdict.FieldDiffers},
		{"wrong-size", "rocev2-nfs3-basic", plan.Captured, elsewhere, verdict.FieldDiffers},
		{"lost-name", "rocev2-nfs3-meta", plan.Captured, elsewhere, verdict.NamesMissing},
	} {
		if testing.Short() && i%4 != 0 {
			continue // the race detector has nothing to find in the others
		}
		t.Run(c.kind+"/"+c.sample+"/"+string(c.payload), func(t *testing.T) {
			w := load(t, sample(t, c.sample), planner.Options{Payload: c.payload})
			w.Skips = append(w.Skips, &plan.Skip{Class: plan.Impossible, Code: plan.SkipCut, Reason: plan.ReasonCut, Touches: c.touches})
			r, _ := against(t, w, wrong{store: mutantstore.Find(c.kind)}, nil)
			if n := found(r); n["different/"+c.want.String()] == 0 || r.Explained() {
				t.Errorf("%v, want %s", n, c.want)
			}
		})
	}
}
