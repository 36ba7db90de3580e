package main

import (
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	as "github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/merge"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const reportLong = `Show where the time of the transactions of all taps went: the report of
rpcrdma-dump, over all units of a job, and first why calls are slow. Of a
connection that several taps saw, what the tap nearest the responder saw counts.
Groups, intervals and thresholds were chosen when the units were decoded.`

type reportOptions struct {
	mergedOptions
	top     int
	verbose bool
}

func newReportCommand(s *cli.Streams) *cobra.Command {
	o := &reportOptions{}
	cmd := &cobra.Command{
		Use:   "report [flags] STORE",
		Short: "Show where the time went, over all taps",
		Long:  reportLong + mergedLong,
		Example: `  rpcrdma-fleet report s3://results
  rpcrdma-fleet report -T json --top 3 results`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd, s, args) },
	}
	f := o.register(cmd, "text", "json")
	f.IntVar(&o.top, "top", 10, "show the `n` slowest transactions")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show phases and histograms of all groups")
	return cmd
}

// fleetReport is a report, and what it was made from.
type fleetReport struct {
	Units     *merge.Units      `json:"units"`
	Diagnosis *diagnosis.Report `json:"diagnosis,omitempty"`
	Sessions  *session.Report   `json:"sessions,omitempty"`
	*latency.Report
}

func (o *reportOptions) show(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.top < 0 {
		return cli.Usagef("--top is a number of transactions")
	}
	all, sessions := latency.NewMerger(), &session.Merger{}
	all.Renumbered = sessions.Add
	return o.run(cmd, s, args, func(m *merged) error {
		if cmd.Flags().Changed("top") && !all.Top(o.top) {
			return cli.Usagef("--top %d: fewer slow transactions were kept", o.top)
		}
		_, series := all.Interval()
		rep, err := all.Report(m.set)
		if err != nil {
			return err
		}
		why, err := diagnosis.Merger{}.Report(m.set)
		if err != nil {
			return err
		}
		if o.format == "json" {
			return printable.Indented(m.out, fleetReport{&m.set.Units, why, sessions.Report(), rep})
		}
		return as.Report(m.text, rep, as.ReportOptions{Verbose: o.verbose, Series: series, Diagnosis: why, Sessions: sessions.Report()})
	}, all, diagnosis.Merger{})
}
