package main

import (
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const rootLong = `rpcrdma-replay replays captured NFS workloads over RDMA or TCP and compares each
reply with the captured one. It has an NFS server of its own, so the client side of
a capture can be replayed without any other server, and it can compare the speed of
RDMA and TCP. It needs no RDMA adapter and no privilege.`

const rootExit = `Exit status:
  0  success
  1  failure: a file cannot be read, a server cannot be reached; run: replies
     differ from the capture without an explanation, or the run ended early
  2  usage
  3  finished, but the input is truncated or malformed`

func newRootCommand(s *cli.Streams) *cobra.Command {
	cmd := cli.NewRoot(&cobra.Command{
		Use:   "rpcrdma-replay",
		Short: "Replay captured NFS workloads",
		Long:  rootLong + "\n\n" + rootExit,
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}, s)
	cmd.AddCommand(
		newPlanCommand(s),
		newRunCommand(s),
		newServeCommand(s),
		newBenchCommand(s),
		cli.NewManCommand("rpcrdma-replay", s.Err),
	)
	return cmd
}
