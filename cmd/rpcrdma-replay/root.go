package main

import (
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const rootLong = `rpcrdma-replay replays captured NFS workloads over RDMA or TCP and compares each
reply with the captured one. It has its own NFS server, so the client side of a
capture can be replayed without any other server, and it can compare the speed
of RDMA and TCP. It needs no RDMA adapter and no privilege.`

const rootExit = `Exit status:
  0  success
  1  failure: a file cannot be read, a server cannot be reached; run: replies
     differ from the capture without an explanation, or the run ended early
  2  usage
  3  finished, but the input is truncated or malformed`

const rootExamples = `  rpcrdma-replay plan trace.pcap -o trace.plan
  rpcrdma-replay run trace.plan builtin --yes --write --timing fast
  rpcrdma-replay run trace.plan 192.0.2.1 --dir /export/replay
  rpcrdma-replay serve --listen 192.0.2.1
  rpcrdma-replay bench --job read --size 64K --provider iwarp,tcp
  rpcrdma-replay -D`

func newRootCommand(s *cli.Streams) *cobra.Command {
	var links cli.Interfaces
	cmd := cli.NewRoot(&cobra.Command{
		Use:     "rpcrdma-replay",
		Short:   "Replay captured NFS workloads",
		Long:    rootLong + "\n\n" + rootExit,
		Example: rootExamples,
		Args:    cli.CommandOnly,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if links.Wanted {
				return links.List(s.Out)
			}
			return cmd.Help()
		},
	}, s)
	links.Flag(cmd.Flags())
	cmd.AddCommand(
		newPlanCommand(s),
		newRunCommand(s),
		newCompareCommand(s),
		newServeCommand(s),
		newBenchCommand(s),
		cli.NewManCommand("rpcrdma-replay", s.Err),
	)
	return cmd
}
