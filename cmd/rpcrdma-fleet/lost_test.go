package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// full is a stream that takes nothing.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestOutputLost has a full disk behind standard output.
func TestOutputLost(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"--version"}, {"help", "run"}, {"run", "--help"}, {"report", "--version"}, {"completion", "bash"}} {
		var stderr bytes.Buffer
		if code := run(args, &cli.Streams{Out: full{}, Err: &stderr}); code != 1 || !strings.Contains(stderr.String(), syscall.ENOSPC.Error()) {
			t.Errorf("%q: exit status %d, not 1: %s", args, code, stderr.String())
		}
	}
	s := &cli.Streams{Out: full{}, Err: io.Discard}
	if err := told(s, cli.NewProblems("rpcrdma-fleet", io.Discard), &layout.Done{Status: cli.ExitDamaged}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a unit is done: %v", err)
	}
}

// TestNamesOfFiles names files and folders that could be taken for lines of the output.
func TestNamesOfFiles(t *testing.T) {
	name := t.TempDir() + "/a\nFORGED\x1b[2J"
	for _, args := range [][]string{{"report", name}, {"run", name + "/*.pcap", "-w", name}, {"check", "file://" + name}, {"report", "s4://" + name}, {"status", name}} {
		var out, errs bytes.Buffer
		run(args, &cli.Streams{Out: &out, Err: &errs})
		if s := errs.String() + out.String(); s == "" || strings.Contains(s, "\nFORGED") || strings.Contains(s, "\x1b") {
			t.Errorf("%q: %q", args, s)
		}
	}
}
