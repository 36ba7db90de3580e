package main

import (
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestOutputLost has a full disk behind standard output.
func TestOutputLost(t *testing.T) {
	p := &clitest.Program{Root: newRootCommand(&cli.Streams{}), Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
		return run(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
	}}
	p.CheckLost(t)
}
