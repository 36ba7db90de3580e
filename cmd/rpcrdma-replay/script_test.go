package main

import (
	"bufio"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rpcrdma-replay": main})
}

const samples = "../../samples"

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
			e.Setenv("SOURCE_DATE_EPOCH", "0")
			return nil
		},
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"start": start},
		RequireExplicitExec: true,
	})
}

// start starts a server and puts the address at which it serves a fabric into
// ADDR: start FABRIC ARGS... The server ends with its standard input.
func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start FABRIC ARGS...")
	}
	bin := ""
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(filepath.ListSeparator)) {
		if p, err := exec.LookPath(filepath.Join(dir, "rpcrdma-replay")); err == nil {
			bin = p
			break
		}
	}
	cmd := exec.Command(bin, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	in, err := cmd.StdinPipe()
	ts.Check(err)
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	var problems strings.Builder
	cmd.Stderr = &problems
	ts.Check(cmd.Start())
	rest := make(chan struct{})
	ts.Defer(func() {
		_ = in.Close()
		<-rest
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), args[0]+": "); ok {
			ts.Setenv("ADDR", addr)
			go func() {
				defer close(rest)
				_, _ = io.Copy(io.Discard, out)
			}()
			return
		}
	}
	close(rest)
	ts.Fatalf("no server: %s", problems.String())
}
