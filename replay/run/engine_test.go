package run_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// steady is a workload of n GETATTRs of the base, so many apart.
func steady(n int, apart time.Duration) *workload.Workload {
	w := &workload.Workload{}
	w.Tables = plan.Tables{
		Header:      plan.Header{Format: plan.Format, Sources: []string{"made up"}, Payload: plan.Pattern, Duration: int64(n) * int64(apart)},
		Servers:     []plan.Server{{ID: 1, Addr: "192.0.2.1"}},
		Connections: []plan.Connection{{ID: 1, Fabric: "rocev2", Client: "192.0.2.2:1", Server: 1, Address: "192.0.2.1:20049", Ops: n, MaxInFlight: 8}},
		Credentials: []plan.Credential{{ID: 1, Flavor: "sys", Machine: "m"}},
		Objects:     []plan.Object{{ID: 1, Server: 1, Type: "dir", Origin: plan.Before, Base: true}},
	}
	for i := range n {
		w.Ops = append(w.Ops, &plan.Op{ID: i + 1, XID: uint32(1000 + i), Connection: 1, Credential: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_GETATTR,
			What: "GETATTR", Role: plan.Workload, Class: plan.Exact, Time: int64(i) * int64(apart), Latency: int64(apart) / 2, Service: -1,
			Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: 1}}, Expect: &plan.Expect{}})
	}
	return w
}

// change is an op of NFSv3 that changes something.
func change(w *workload.Workload, procedure uint32, args ...plan.Field) *plan.Op {
	o := &plan.Op{ID: len(w.Ops) + 1, XID: uint32(2000 + len(w.Ops)), Connection: 1, Credential: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: procedure,
		What: fmt.Sprintf("procedure %d", procedure), Role: plan.Workload, Class: plan.Exact, Modifies: true, Latency: 1, Service: -1, Args: args, Expect: &plan.Expect{}}
	w.Ops = append(w.Ops, o)
	return o
}

// within bounds a hang.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestTimings runs the same workload with each timing; benchmarks measure how late or early calls
// are.
func TestTimings(t *testing.T) {
	for _, timing := range []run.Timing{run.AsCaptured, run.Think, run.Fast, run.FixedRate} {
		for _, clones := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", timing, clones), func(t *testing.T) {
				const n = 200
				w := steady(n, time.Millisecond)
				for i, o := range w.Ops {
					if o.After = i; i > 0 {
						o.Think = int64(500 * time.Microsecond)
					}
				}
				o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
				o.Timing, o.Clones, o.Rate, o.Speed = timing, clones, 2000, 2
				o.Connections = 2
				early := 0
				o.Observe = func(x *report.Outcome) {
					if x.Queued.Before(x.Due) {
						early++
					}
				}
				r, err := run.Run(within(t), w, o)
				if err != nil {
					t.Fatal(err)
				}
				if r.Sent != n*clones || !r.Explained() || early > 0 {
					t.Errorf("%d sent, %d too early, %v", r.Sent, early, r.Totals)
				}
				if timing == run.AsCaptured && r.Took < (n-1)*time.Millisecond/2 {
					t.Errorf("took only %s", r.Took)
				}
				if timing == run.FixedRate && r.Took < time.Duration(n*clones-1)*500*time.Microsecond {
					t.Errorf("took only %s", r.Took)
				}
				if r.Setup.Connections != 2*clones {
					t.Errorf("%d connections", r.Setup.Connections)
				}
			})
		}
	}
}

// TestCaps ends runs by each of the limits.
func TestCaps(t *testing.T) {
	for name, set := range map[string]func(*run.Options){
		"ops":  func(o *run.Options) { o.MaxOps = 10 },
		"time": func(o *run.Options) { o.MaxDuration = 50 * time.Millisecond },
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
			o.Timing = run.AsCaptured
			set(&o)
			r, err := run.Run(within(t), steady(5000, 10*time.Millisecond), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Stopped == "" || r.NotDone == 0 || r.Explained() {
				t.Errorf("stopped %q, %d not done", r.Stopped, r.NotDone)
			}
		})
	}
	t.Run("rate", func(t *testing.T) {
		o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
		o.Timing, o.MaxRate = run.Fast, 1000
		r, err := run.Run(within(t), steady(100, 0), o)
		if err != nil || r.Took < 99*time.Millisecond {
			t.Errorf("100 calls at 1000/s took %s, %v", r.Took, err)
		}
	})
}

// TestInterrupted cancels a run in its middle.
func TestInterrupted(t *testing.T) {
	o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	o.Observe = func(*report.Outcome) {
		if n++; n == 20 {
			cancel()
		}
	}
	r, err := run.Run(ctx, steady(100000, time.Millisecond), o)
	if err != nil || r.Stopped != "interrupted" || r.NotDone == 0 {
		t.Errorf("%+v, %v", r.Totals, err)
	}
}

// liar serves the first calls, which find the directory, and then misbehaves.
type liar struct {
	transport.Handler
	calls atomic.Int64
	then  func(x transport.Exchange)
}

func (l *liar) ServeRPC(x transport.Exchange) {
	m := x.Call()
	var h oncrpc.Call
	if h.Decode(m.Stream, len(m.Stream)) == nil && h.Program == nfs3.NFS_PROGRAM && h.Procedure == nfs3.NFSPROC3_GETATTR {
		l.calls.Add(1)
		l.then(x)
		return
	}
	l.Handler.ServeRPC(x)
}

func reply(x transport.Exchange, body []byte) {
	var h oncrpc.Call
	m := x.Call()
	_ = h.Decode(m.Stream, len(m.Stream))
	r := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted}
	x.Reply(&transport.Message{Stream: append(r.Append(nil), body...)})
}

// TestBadServers meets servers that do not answer, lie, hang up, or refuse.
func TestBadServers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	cases := map[string]struct {
		then func(x transport.Exchange)
		want verdict.Verdict
		stop bool
	}{
		"silent":     {func(x transport.Exchange) { x.Drop() }, verdict.Lost, true},
		"hangs up":   {func(x transport.Exchange) { x.Disconnect(); x.Drop() }, verdict.Lost, true},
		"short":      {func(x transport.Exchange) { reply(x, []byte{0, 0}) }, verdict.Different, false},
		"error":      {func(x transport.Exchange) { reply(x, (&nfs3.GETATTR3res{Status: nfs3.NFS3ERR_IO}).Append(nil)) }, verdict.Worse, false},
		"no program": {func(x transport.Exchange) { refuse(x) }, verdict.Worse, false},
		"garbage": {func(x transport.Exchange) {
			b := make([]byte, 4*rnd.IntN(40))
			for i := range b {
				b[i] = byte(rnd.Uint32())
			}
			b = append([]byte{0, 0, 0, 1}, b...)
			reply(x, b)
		}, verdict.Worse, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := providers.NewServer(emptyStore(), providers.ServerOptions{})
			l := &liar{Handler: s, then: c.then}
			srv, err := tcprpc.Listen(t.Context(), "127.0.0.1:0", l, tcprpc.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = errors.Join(srv.Close(), s.Close()) }()
			dial := func(ctx context.Context) (transport.Requester, error) {
				return tcprpc.Dial(ctx, srv.Addr().String(), tcprpc.Options{})
			}
			timeout := time.Minute // bounds a hang
			if name == "silent" {
				timeout = 20 * time.Millisecond
			}
			o := run.Options{Directory: "/", Timing: run.Fast, Slots: 64, Timeout: timeout,
				Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) { return dial(ctx) },
				Access: func(ctx context.Context) (*run.Access, error) {
					r, err := dial(ctx)
					return &run.Access{NFS: r, Version: "3"}, err
				}}
			r, err := run.Run(within(t), steady(300, 0), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Totals[c.want.String()] == 0 || r.Explained() || (r.Stopped != "") != c.stop {
				t.Errorf("%v, stopped %q", r.Totals, r.Stopped)
			}
			var text strings.Builder
			if err := r.Text(&text); err != nil || !strings.Contains(text.String(), c.want.String()) {
				t.Errorf("report: %v\n%s", err, text.String())
			}
		})
	}
	t.Run("refuses", func(t *testing.T) {
		o := run.Options{Directory: "/", Access: func(context.Context) (*run.Access, error) { return nil, errors.New("refused") }}
		if r, err := run.Run(within(t), steady(1, 0), o); err == nil || r != nil {
			t.Errorf("%v, %v", r, err)
		}
	})
}

func refuse(x transport.Exchange) {
	var h oncrpc.Call
	m := x.Call()
	_ = h.Decode(m.Stream, len(m.Stream))
	r := oncrpc.Reply{XID: h.XID, Stat: oncrpc.Accepted, Accept: oncrpc.ProgUnavail}
	x.Reply(&transport.Message{Stream: r.Append(nil)})
}

// TestSafety sends ops that must not reach the server.
func TestSafety(t *testing.T) {
	name := func(n string) plan.Field { return plan.Field{N: "name", Kind: plan.FieldName, Text: n} }
	handle := func(id int) plan.Field { return plan.Field{N: "dir", Kind: plan.FieldHandle, Ref: id} }
	build := func() *workload.Workload {
		w := steady(1, 0)
		w.Tables.Objects = append(w.Tables.Objects,
			plan.Object{ID: 2, Server: 1, Type: "dir", Origin: plan.Above, Path: "/"},
			plan.Object{ID: 3, Server: 1, Type: "dir", Origin: plan.Before, Parent: 2, Name: "beside"})
		return w
	}
	cases := map[string]struct {
		op    func(w *workload.Workload)
		write bool
	}{
		"not allowed":      {func(w *workload.Workload) { change(w, nfs3.NFSPROC3_REMOVE, handle(1), name("x")) }, false},
		"above":            {func(w *workload.Workload) { change(w, nfs3.NFSPROC3_REMOVE, handle(2), name("x")) }, true},
		"beside":           {func(w *workload.Workload) { change(w, nfs3.NFSPROC3_RMDIR, handle(3), name("x")) }, true},
		"dots":             {func(w *workload.Workload) { change(w, nfs3.NFSPROC3_RMDIR, handle(1), name("..")) }, true},
		"slash":            {func(w *workload.Workload) { change(w, nfs3.NFSPROC3_REMOVE, handle(1), name("../x")) }, true},
		"says it does not": {func(w *workload.Workload) { change(w, nfs3.NFSPROC3_REMOVE, handle(1), name("x")).Modifies = false }, false},
		"rename to outside": {func(w *workload.Workload) {
			change(w, nfs3.NFSPROC3_RENAME, handle(1), name("x"), handle(2), name("y"))
		}, true},
	}
	for title, c := range cases {
		t.Run(title, func(t *testing.T) {
			w := build()
			c.op(w)
			o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
			o.Timing, o.Write = run.Fast, true
			if !c.write {
				// The directory has to exist.
				o.PrepareOnly = true
				if _, err := run.Run(within(t), w, o); err != nil {
					t.Fatal(err)
				}
				o.PrepareOnly, o.Write, o.Prepare = false, false, false
			}
			r, err := run.Run(within(t), w, o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Totals[verdict.NotSent.String()] != 1 || r.Sent != 1 {
				t.Errorf("%d sent, %v, %v", r.Sent, r.Totals, r.Reasons)
			}
		})
	}
}

// TestStateWithoutCompound: a plan may ask for a state id where there is no COMPOUND.
func TestStateWithoutCompound(t *testing.T) {
	w := steady(2, 0)
	w.Tables.States = []plan.State{{ID: 1, Kind: plan.DelegationState, DefinedBy: 2}}
	w.Ops[0].Args = append(w.Ops[0].Args, plan.Field{N: "stateid", Kind: plan.FieldState, Ref: 1})
	o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
	o.Timing = run.Fast
	r, err := run.Run(within(t), w, o)
	if err != nil || r.Totals[verdict.NotSent.String()] != 1 || r.Totals[verdict.Same.String()] != 1 {
		t.Errorf("%v, %v", err, r.Totals)
	}
}

// TestDirectories: only plain directories are accepted.
func TestDirectories(t *testing.T) {
	for _, d := range []string{"", "x", "/a/../b", "/..", "/a\x00b"} {
		if p, err := run.CleanDirectory(d); err == nil {
			t.Errorf("%q became %q", d, p)
		}
	}
	if p, err := run.CleanDirectory("//a/./b/"); err != nil || p != "/a/b" {
		t.Errorf("%q, %v", p, err)
	}
	for _, version := range []string{"3", "4.1"} {
		o, _ := rig(t, providers.Options{Name: "tcp"}, version)
		fs := look(t, o)
		ctx := within(t)
		root, err := fs.Root(ctx, "/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Mkdir(ctx, root, "real", client.Mode(0o755)); err != nil {
			t.Fatal(err)
		}
		if _, err := fs.Symlink(ctx, root, "link", "real", client.SetAttr{}); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{"/link", "/none/deep", "/link/x"} {
			o.Directory = d
			if _, err := run.Run(ctx, steady(1, 0), o); err == nil {
				t.Errorf("version %s: %s was taken", version, d)
			}
		}
		if version == "3" {
			o.Directory = "/real"
			if _, err := run.Run(ctx, steady(1, 0), o); err != nil {
				t.Error(err)
			}
			real, _, err := fs.Lookup(ctx, root, "real")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fs.Mkdir(ctx, real, "someone's", client.Mode(0o755)); err != nil {
				t.Fatal(err)
			}
			if _, err := run.Run(ctx, steady(1, 0), o); err == nil {
				t.Error("a directory that is not empty was taken")
			}
			o.Reuse = true
			if _, err := run.Run(ctx, steady(1, 0), o); err != nil {
				t.Error(err)
			}
		}
	}
}

// BenchmarkSlip measures how late calls are sent at 2000 calls a second, with the garbage
// collector settings of the command.
func BenchmarkSlip(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	o, _ := rig(b, providers.Options{Name: "iwarp"}, "3")
	o.Timing, o.Reuse = run.AsCaptured, true
	for b.Loop() {
		r, err := run.Run(b.Context(), steady(2000, 500*time.Microsecond), o)
		if err != nil || !r.Explained() {
			b.Fatal(err, r.Totals)
		}
		b.ReportMetric(float64(r.Slip.P50)/1e3, "µs-p50")
		b.ReportMetric(float64(r.Slip.P99)/1e3, "µs-p99")
		b.ReportMetric(float64(r.Slip.Max)/1e3, "µs-max")
	}
}

// BenchmarkFast measures how many calls a second an engine sends when nothing holds it back.
func BenchmarkFast(b *testing.B) {
	for _, fabric := range []string{"iwarp", "rocev2", "tcp"} {
		b.Run(fabric, func(b *testing.B) {
			o, _ := rig(b, providers.Options{Name: fabric}, "3")
			o.Timing, o.Reuse, o.Relaxed, o.Slots = run.Fast, true, true, 64
			w := steady(20000, 0)
			for b.Loop() {
				r, err := run.Run(b.Context(), w, o)
				if err != nil || !r.Explained() {
					b.Fatal(err)
				}
				b.ReportMetric(float64(r.Sent)/r.Took.Seconds(), "calls/s")
			}
		})
	}
}

// TestSeveralBases replays a plan of two mounted directories. Each gets its own directory below
// the given one, so that files of the same name do not collide.
func TestSeveralBases(t *testing.T) {
	w := steady(2, time.Millisecond)
	w.Tables.Objects = []plan.Object{
		{ID: 1, Server: 1, Type: "dir", Origin: plan.Before, Base: true, Name: "base-1"},
		{ID: 2, Server: 1, Type: "dir", Origin: plan.Before, Base: true, Name: "base-2"},
		{ID: 3, Server: 1, Type: "file", Origin: plan.Before, Parent: 1, Name: "f", Size: 10, SizeClass: plan.Exact},
		{ID: 4, Server: 1, Type: "file", Origin: plan.Before, Parent: 2, Name: "f", Size: 20, SizeClass: plan.Exact},
	}
	w.Ops[1].Args[0].Ref = 4
	o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
	r, err := run.Run(within(t), w, o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Sent != 2 || !r.Explained() {
		t.Errorf("%d sent, %v, %+v", r.Sent, r.Totals, r.Mismatches)
	}
	a, err := o.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fs := client.NewV3(client.RPC{Requester: a.NFS, Cred: a.Cred})
	if a.Mount != nil {
		fs.Mount = &client.RPC{Requester: a.Mount, Cred: a.Cred}
	}
	defer fs.Shutdown(t.Context())
	for name, size := range map[string]uint64{"/replay/base-1": 10, "/replay/base-2": 20} {
		dir, err := fs.Root(t.Context(), name)
		if err != nil {
			t.Fatal(name, err)
		}
		if _, a, err := fs.Lookup(t.Context(), dir, "f"); err != nil || a.Size != size {
			t.Errorf("%s: %d bytes, %v", name, a.Size, err)
		}
	}
}
