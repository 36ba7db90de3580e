package run_test

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/internal/testtools/sampled"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// load makes a plan of a sample.
func load(t testing.TB, name string, opt planner.Options) *workload.Workload {
	t.Helper()
	return loaded(t, planOf(t, name, opt))
}

// loaded is a plan in memory.
func loaded(t testing.TB, out string) *workload.Workload {
	t.Helper()
	w, err := workload.Load(out, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

func emptyStore() store.Store { return memory.New(memory.Options{}) }

// rig is a built-in server on a fabric. The function closes all of it.
func rig(t testing.TB, o providers.Options, version string) (run.Options, func()) {
	t.Helper()
	return rigOf(t, o, version, func(h transport.Handler) transport.Handler { return h })
}

// rigOf is rig with a handler between the transport and the server.
func rigOf(t testing.TB, o providers.Options, version string, wrap func(transport.Handler) transport.Handler) (run.Options, func()) {
	t.Helper()
	return rigWith(t, o, version, providers.ServerOptions{}, wrap)
}

// rigWith is rigOf with options of the server.
func rigWith(t testing.TB, o providers.Options, version string, server providers.ServerOptions, wrap func(transport.Handler) transport.Handler) (run.Options, func()) {
	t.Helper()
	s := providers.NewServer(emptyStore(), server)
	f, c, at, err := providers.Pair(o, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := f.Listen(t.Context(), at, wrap(s))
	if err != nil {
		t.Fatal(err)
	}
	hangUp := sync.OnceFunc(func() {
		if err := errors.Join(c.Close(), f.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(hangUp)
	return run.Options{
		Dial: func(ctx context.Context, _ int, _ *plan.Connection) (transport.Requester, error) {
			return c.Dial(ctx, l.Addr(), nil)
		},
		Access: func(ctx context.Context) (*run.Access, error) {
			r, err := c.Dial(ctx, l.Addr(), nil)
			return &run.Access{NFS: r, Version: version, Cred: client.Sys("replay", 0, 0)}, err
		},
		Directory: "/replay", Write: true, Prepare: true,
	}, hangUp
}

// look is a client apart from the run, without a guard.
func look(t testing.TB, o run.Options) client.FS {
	t.Helper()
	a, err := o.Access(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rpc := client.RPC{Requester: a.NFS, Cred: a.Cred}
	if a.Version == "3" {
		return client.NewV3(rpc)
	}
	fs, err := client.NewV4(t.Context(), rpc, client.V4Options{Minor: uint32(a.Version[2] - '0'), Owner: []byte("somebody else")})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

// TestSamples replays every sample against the built-in server: over RoCEv2
// with the endpoint's own chunks, over iWARP with the captured ones, and over
// TCP, where the plan stays in its file. Nothing may be left unexplained, and the dissector must find in the packets of the replay
// what the replay reports as sent. The data moved are as many bytes on each, whether in chunks or not.
func TestSamples(t *testing.T) {
	files := sampled.Captures(t, "*")
	fabrics := []string{"rocev2", "iwarp", "tcp"}
	for i, f := range files {
		name := planOf(t, f, planner.Options{})
		w, streamed := loaded(t, name), open(t, name)
		tried := fabrics
		if testing.Short() {
			tried = fabrics[i%3:][:1]
		}
		moved := make(map[uint64][]string)
		for _, fabric := range tried {
			t.Run(fabric+"/"+filepath.Base(f), func(t *testing.T) {
				what := w
				if fabric == "tcp" {
					what = streamed
				}
				n := replay(t, what, fabric)
				moved[n] = append(moved[n], fabric)
			})
		}
		if len(moved) > 1 {
			t.Errorf("%s: bytes of data moved: %v", f, moved)
		}
	}
}

// TestTwoAddresses replays a Linux client that used one server by two addresses and with two
// versions: files that one mount creates are not prepared for another.
func TestTwoAddresses(t *testing.T) {
	w := load(t, "../planner/testdata/two-addresses.pcap.zst", planner.Options{Same: []plan.SameServer{{Addr: "192.0.2.1", As: "fd00::1"}}})
	replay(t, w, "tcp")
}

// TestNewerLinux replays captures of Linux 7.3.4: delegations in the place of opens, with time stamps, and recalled while data are
// written; layouts; access control lists.
func TestNewerLinux(t *testing.T) {
	for _, name := range []string{"deleg-cur", "deleg-times", "acl"} {
		t.Run(name, func(t *testing.T) {
			replay(t, load(t, "testdata/"+name+".pcap.zst", planner.Options{}), "tcp")
		})
	}
}

// replay returns how many bytes of data were moved.
func replay(t *testing.T, w *workload.Workload, fabric string) uint64 {
	var packets bytes.Buffer
	out := tap.NewWriter(capture.NewWriter(&packets, capture.WriterOptions{Format: capture.Pcapng, Link: capture.LinkRaw}))
	o, hangUp := rig(t, providers.Options{Name: fabric, Tap: out}, w.Version())
	o.Timing, o.Layout = run.Fast, fabric == "iwarp"
	if w.Streams() {
		o.Window = 64
	}
	o.CallbackWait = time.Millisecond // this server has no callbacks of NFSv4.0
	witness := report.NewWitness()
	o.Observe = witness.Observe
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := run.Run(ctx, w, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Explained() {
		t.Errorf("not all is explained: %v %s", r.Totals, r.Stopped)
	}
	for _, m := range r.Mismatches {
		if !m.Verdict.Fine() {
			t.Errorf("op %d %s: %s %q", m.Op, m.What, m.Verdict, m.Reasons)
		}
	}
	sum := 0
	for _, n := range r.Totals {
		sum += n
	}
	if sum != w.Planned() || r.NotDone != 0 {
		t.Errorf("%d outcomes of %d ops, %d not done", sum, w.Planned(), r.NotDone)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Error(err)
	}
	hangUp()
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	in, err := capture.NewReader(&packets, "self", capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := witness.Check(in, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !s.OK() {
		t.Errorf("self-check: %+v", s)
	}
	if s.Calls > 0 && s.Same < s.Calls {
		t.Errorf("self-check: %d of %d calls", s.Same, s.Calls)
	}
	return r.Bytes
}
