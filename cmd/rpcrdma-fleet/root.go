package main

import (
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

const long = `Decode the captures of many taps, on one machine or on many, and report over all
of them. Captures are read from and results written to an object store (file://,
s3://, gs://); work is handed out by NATS JetStream, embedded or a cluster.

Exit status:
  0  success
  1  failure
  2  usage
  3  finished, but inputs were truncated or malformed, or units are missing`

func newRootCommand(s *cli.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rpcrdma-fleet COMMAND",
		Short: "Decode and report the captures of many taps",
		Long:  long,
		Args:  cli.CommandOnly,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cli.NewRoot(cmd, s)
	cmd.AddCommand(
		newRunCommand(s),
		newSubmitCommand(s),
		newWorkerCommand(s),
		newStatusCommand(s),
		newCancelCommand(s),
		newPruneCommand(s),
		newReportCommand(s),
		newCheckCommand(s),
		newConnectionsCommand(s),
		newPacketsCommand(s),
		newUnitCommand(s),
		newAgentCommand(s),
		newTopCommand(s),
		cli.NewManCommand("rpcrdma-fleet", s.Err),
	)
	return cmd
}
