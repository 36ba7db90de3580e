package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func newManCommand(s *streams) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIRECTORY",
		Short: "Write the manual pages to a directory",
		Long: "Write the manual pages of rpcrdma-dump and its commands to a directory, which is\n" +
			"made if it does not exist. SOURCE_DATE_EPOCH sets their date.",
		Example: "  rpcrdma-dump man /usr/local/share/man/man1",
		Args:    exactly(1, "a directory"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			cmd.Root().DisableAutoGenTag = true
			h := &doc.GenManHeader{Section: "1", Source: "RPC-over-RDMA toolkit", Manual: "User Commands"}
			if os.Getenv("SOURCE_DATE_EPOCH") == "" {
				now := time.Now()
				h.Date = &now
			}
			if err := doc.GenManTree(cmd.Root(), h, args[0]); err != nil {
				return err
			}
			_, err := fmt.Fprintf(s.err, "rpcrdma-dump: manual pages written to %s\n", args[0])
			return err
		},
	}
}

// exactly demands n arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("name %s", what)
		}
		return nil
	}
}
