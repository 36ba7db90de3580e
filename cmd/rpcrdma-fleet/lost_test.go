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
