package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/internal/units"
)

const cancelLong = `Set aside the units of a job that are not done. Workers finish those that they
have begun, and skip the others. submit --retry and run --retry take them up
again.`

func newCancelCommand(s *cli.Streams) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "cancel --job ID STORE",
		Short:   "Cancel a job",
		Long:    cancelLong,
		Example: `  rpcrdma-fleet cancel --job b3864eb638f9d8b2d9c0e4803dd3e905 s3://results`,
		Args:    cli.Exactly(1, "the store of the results"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if id == "" {
				return cli.Usagef("--job names the job")
			}
			ctx, stop := cli.Context(cmd.Context())
			defer stop()
			st, err := existingStore(ctx, args[0], cli.NewProblems("rpcrdma-fleet", s.Err))
			if err != nil {
				return err
			}
			defer st.Close()
			n, err := cancelJob(ctx, st, id)
			if err == nil || n > 0 {
				fmt.Fprintf(s.Out, "%s set aside\n", units.Plural(n, "unit"))
			}
			return interrupted(ctx, err)
		},
	}
	cmd.Flags().StringVar(&id, "job", "", "the job with this `ID`")
	return cmd
}

func cancelJob(ctx context.Context, st *store.Store, id string) (n int, err error) {
	j, err := job.Read(ctx, st, id)
	if err != nil {
		return 0, err
	}
	list, err := job.LookAll(ctx, st, j.Units)
	if err != nil {
		return 0, err
	}
	for _, u := range list {
		if u.State.Complete() || u.State == job.IsAside {
			continue
		}
		if err := job.SetAside(ctx, st, u.Unit, u.Failures, "the job was cancelled"); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
