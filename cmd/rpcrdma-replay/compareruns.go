package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/replay/report"
)

const compareLong = `Compare two replays of one plan, against two servers or two versions of one, by
their reports in JSON (run --report): the latencies and verdicts of each
operation side by side, and the calls whose verdicts differ.

WRONG counts calls that were worse, different, not sent or lost. The exit status
is 1 if such a call of B has another verdict in A.`

func newCompareCommand(s *cli.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "compare REPORT REPORT",
		Short:   "Compare two replays by their reports",
		Long:    compareLong,
		Example: "  rpcrdma-replay compare old.json new.json",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("name two reports in JSON, as run --report writes them")
			}
			a, err := readReport(args[0])
			if err != nil {
				return err
			}
			b, err := readReport(args[1])
			if err != nil {
				return err
			}
			worse, err := report.CompareText(s.Out, a, b)
			if err == nil && worse > 0 {
				err = errWorse
			}
			return err
		},
	}
}

// errWorse means that calls of the second replay have a worse verdict, which the comparison has shown.
var errWorse = errors.New("the second replay has differences from the capture that the first does not have")
