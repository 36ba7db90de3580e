package main

import (
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/helppage"
)

// TestReference compares docs/reference/rpcrdma-top.md with the help.
func TestReference(t *testing.T) {
	p := &helppage.Page{
		Root: newRootCommand(&cli.Streams{Out: io.Discard, Err: io.Discard}),
		Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return run(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		File:  "../../docs/reference/rpcrdma-top.md",
		About: "The guide is [rpcrdma-top](../rpcrdma-top.md).",
	}
	p.Check(t, *update)
}
