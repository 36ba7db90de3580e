package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/internal/units"
)

const pruneLong = `Remove from a store what is older than --keep: Parquet files, by their day; what
was kept of units from which later ones have gone on; jobs. It may run while
captures are decoded.

Reports still cover all captures of each tap. A capture that comes late, and is
older than what is kept, counts as if it came last.`

func newPruneCommand(s *cli.Streams) *cobra.Command {
	var keep time.Duration
	var dry bool
	cmd := &cobra.Command{
		Use:     "prune --keep TIME [flags] STORE",
		Short:   "Remove old results",
		Long:    pruneLong,
		Example: `  rpcrdma-fleet prune --keep 720h s3://results`,
		Args:    cli.Exactly(1, "the store of the results"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("keep") || keep < 0 {
				return cli.Usagef("--keep says how old results may be, such as 720h")
			}
			ctx, stop := cli.Context(cmd.Context())
			defer stop()
			st, err := existingStore(ctx, args[0], cli.NewProblems("rpcrdma-fleet", s.Err))
			if err != nil {
				return err
			}
			defer st.Close()
			p, err := unit.Prune(ctx, st, time.Now().Add(-keep), dry)
			does := "removed"
			if dry {
				does = "would be removed"
			}
			if err == nil || p.Objects > 0 {
				fmt.Fprintf(s.Out, "%s of %s %s\n", units.Plural(p.Objects, "object"), units.Bytes(p.Bytes), does)
			}
			return interrupted(ctx, err)
		},
	}
	cli.DurationVar(cmd.Flags(), &keep, "keep", 0, "keep results that are younger than this `time`")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say how much it is")
	return cmd
}
