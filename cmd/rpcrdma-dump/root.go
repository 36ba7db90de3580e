package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const rootLong = `rpcrdma-dump shows the RPC transactions in packet captures of RoCEv2, RoCEv1,
InfiniBand and iWARP - NFS over RDMA above all - and those over TCP and UDP
beside them. Each transaction is one line: the call, what its chunks moved, and
the reply. It reads pcap and pcapng, also compressed with gzip or zstd. Several
files are merged by time; "-" is standard input.

Transactions come in the order of their calls' first packets, as far as memory
allows to wait for those without a reply; --sort completion gives them as they
end.`

const rootExit = `Exit status:
  0  all is well
  1  failure: a file cannot be read, output cannot be written
  2  usage
  3  finished, but the input is truncated or malformed; all that could be
     decoded has been printed, and the places are named on standard error.
     Packets that the capture cut to its snapshot length are not malformed.`

const rootExamples = `  rpcrdma-dump trace.pcap
  rpcrdma-dump -v -c 10 trace.pcapng.zst
  rpcrdma-dump -Y 'op == WRITE && latency > 1ms' -T ndjson trace.pcap | jq .latency_ns.total
  tcpdump -i eth0 -w - udp port 4791 | rpcrdma-dump -`

func newRootCommand(s *streams) *cobra.Command {
	o := &dumpOptions{}
	cmd := &cobra.Command{
		Use:           "rpcrdma-dump [flags] FILE...",
		Short:         "Show the RPC transactions in captures of RDMA networks",
		Long:          rootLong + "\n\n" + strings.TrimSpace(text.Legend) + "\n\n" + rootExit,
		Example:       rootExamples,
		Version:       cli.Version(),
		Args:          cobra.ArbitraryArgs,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.SetVersionTemplate("rpcrdma-dump {{.Version}}\n")
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &cli.UsageError{Err: err} })
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := o.run(cmd, s, args)
		if err != nil && len(args) > 0 && len(o.read) == 0 {
			// A file that does not exist may be a misspelt command.
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 && isNotExist(err) {
				return fmt.Errorf("%w; did you mean the command %s?", err, near[0])
			}
		}
		return err
	}
	o.flags(cmd)
	cmd.AddCommand(
		newPacketsCommand(s),
		newConnectionsCommand(s),
		newOperationsCommand(s),
		newShowCommand(s),
		newReportCommand(s),
		newDiffCommand(s),
		newCheckCommand(s),
		newKernelCommand(s),
		newExportCommand(s),
		newAnnotateCommand(s),
		newSplitCommand(s),
		newCaptureCommand(s),
		cli.NewManCommand("rpcrdma-dump", s.err),
	)
	return cmd
}
