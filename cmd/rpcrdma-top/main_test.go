package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "rpcrdma-top" { // not as a command of a script, which has its own
		os.Setenv("XDG_CONFIG_HOME", "/nonexistent") // nor the configuration of who runs the tests
	}
	testscript.Main(m, map[string]func(){"rpcrdma-top": main})
}

func TestScripts(t *testing.T) {
	dir, err := filepath.Abs(samples)
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SAMPLES", dir)
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", os.Getenv("GORACE")) // how long a program built with the race detector waits at its end
			e.Setenv("LANG", "C.UTF-8")
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"code": exitCodeIs, "wrap": clitest.Wrap, "damage": clitest.Damage, "snap": clitest.Snap, "setback": clitest.SetBack},
		RequireExplicitExec: true,
	})
}

// exitCodeIs runs the command and demands an exit code: code N ARGS...
func exitCodeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: code N ARGS...")
	}
	err := ts.Exec("rpcrdma-top", args[1:]...)
	got := "0"
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = number(uint64(exit.ExitCode()))
	} else {
		ts.Check(err)
	}
	if got != args[0] {
		ts.Fatalf("exit code %s, want %s", got, args[0])
	}
}

// reportOf is what rpcrdma-dump report says of a sample.
func reportOf(t *testing.T, file string) *latency.Report {
	t.Helper()
	in, err := capture.Open([]string{file}, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	r := latency.New(latency.Options{})
	var v rpc.View
	d := decode.New(decode.Options{Observers: []decode.Observer{r.Observer()}}, func(tx *transaction.Transaction) {
		v.Set(tx)
		r.Add(&v)
	})
	if err := d.Run(in); err != nil {
		t.Fatal(err)
	}
	s := d.Stats()
	return r.Report(latency.Source{Packets: s.Packets, Bytes: s.Bytes})
}

// TestReport compares the totals at the end of each sample with what
// rpcrdma-dump report says of it.
func TestReport(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samples, "*.pcap*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no samples")
	}
	for i, file := range files {
		if testing.Short() && i%4 > 0 {
			continue
		}
		name := filepath.Base(file)
		want := reportOf(t, file)
		s := newScript(t, name, monitor.Options{})
		s.run(1 << 40)
		got := s.snap
		if got.Decoder.Packets != want.Packets || got.Decoder.Bytes != want.Bytes || len(got.Ops) != len(want.Groups) {
			t.Errorf("%s: %d packets, %d operations; want %d, %d", name, got.Decoder.Packets, len(got.Ops), want.Packets, len(want.Groups))
		}
		same(t, name, got.Total, want.All)
		for _, g := range want.Groups {
			found := false
			for i := range got.Ops {
				if o := &got.Ops[i]; o.Name == g.Key[0] {
					found = true
					same(t, name+" "+o.Name, o.Total, g)
				}
			}
			if !found {
				t.Errorf("%s: no %s", name, g.Key[0])
			}
		}
	}
}

// same compares what a live view shows of a group.
func same(t *testing.T, name string, a, b *latency.Group) {
	t.Helper()
	if a.Count != b.Count || a.Errors != b.Errors || a.CallBytes != b.CallBytes || a.ReplyBytes != b.ReplyBytes ||
		a.ReadBytes != b.ReadBytes || a.WriteBytes != b.WriteBytes || a.Retransmits != b.Retransmits {
		t.Errorf("%s: %d transactions, %d+%d bytes; want %d, %d+%d", name, a.Count, a.CallBytes, a.ReplyBytes, b.Count, b.CallBytes, b.ReplyBytes)
	}
	x, y := a.Latency, b.Latency
	if x.Count != y.Count || x.Sum != y.Sum || x.P50 != y.P50 || x.P90 != y.P90 || x.P99 != y.P99 || x.P999 != y.P999 || x.Max != y.Max {
		t.Errorf("%s: p50 %d, p99 %d, max %d; want %d, %d, %d", name, x.P50, x.P99, x.Max, y.P50, y.P99, y.Max)
	}
	for p := range transaction.Parts() {
		if a.Phase(p).Sum != b.Phases[p.String()].Sum {
			t.Errorf("%s: %v: %d, want %d", name, p, a.Phase(p).Sum, b.Phases[p.String()].Sum)
		}
	}
}
