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
			return run(args, &cli.Streams{In: stdin, Out: stdout, Err: stderr})
		},
		Files: map[string]string{
			"trace.pcap": "../../samples/rocev2-nfs3-basic.pcap.zst", "before.pcap": recall, "tcp.pcap": recall, "big.pcapng": recall, "cap-00017.pcap": recall,
			"after.pcap": "../../samples/rocev2-nfs3-longcall.pcap", "rdma.pcap": "../../samples/rocev2-nfs3-longcall.pcap",
			"trace.pcapng.zst": "../../samples/rocev2-nfs3-loss.both.pcapng.zst",
			"trace.client":     "../../samples/rocev2-nfs41-recall.trace.client", "trace.server": "../../samples/rocev2-nfs41-recall.trace.server",
			"site.key": "../../samples/kerberos/rocev2-nfs3-krb5i.keytab", "tap1.pcap": recall,
			"mountstats": "../../samples/rocev2-nfs41-recall.mountstats",
		},
		Elsewhere: regexp.MustCompile(`^(tcpdump|ssh|sudo|duckdb) | -i |/usr/local/| /data/`),
	}
	e.Check(t)
}
