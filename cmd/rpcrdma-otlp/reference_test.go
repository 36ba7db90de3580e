package main

import (
	"flag"
	"io"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/helppage"
)

var update = flag.Bool("update", false, "write the reference of docs instead of comparing with it")

// TestReference compares docs/reference/rpcrdma-otlp.md with the help.
func TestReference(t *testing.T) {
	p := &helppage.Page{
		Root: newRootCommand(&cli.Streams{Out: io.Discard, Err: io.Discard}),
		Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return run(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		File:  "../../docs/reference/rpcrdma-otlp.md",
		About: "The guide is [otlp](../otlp.md).",
	}
	p.Check(t, *update)
}
