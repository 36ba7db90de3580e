package main

import (
	"io"
	"regexp"
	"testing"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/testtools/clitest"
)

// TestExamples runs the examples of the help for which files suffice.
func TestExamples(t *testing.T) {
	const recall = "../../samples/rocev2-nfs41-recall.pcap"
	e := &clitest.Examples{
		Root: newRootCommand(&cli.Streams{Out: io.Discard, Err: io.Discard}),
		Run: func(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
			return execute(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		Files: map[string]string{
			"trace.pcap": recall, "trace.pcap.zst": "../../samples/rocev2-nfs3-basic.pcap.zst",
		},
		Elsewhere: regexp.MustCompile(`192\.0\.2\.1|/usr/local/| bench | compare `),
	}
	e.Check(t)
}
