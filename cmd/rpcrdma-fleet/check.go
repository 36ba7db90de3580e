package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/text"
	as "github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/show"
)

const checkLong = `Show which rules of RPC-over-RDMA were broken, at any tap: the check of
rpcrdma-dump, over all units of a job. Of a connection that several taps saw,
what the tap nearest the responder saw counts. Profile and rules were chosen
when the units were decoded. Exit status 1 says that all units are done, and
errors were found.`

// errFindings says that errors were found; they have been printed.
var errFindings = errors.New("errors found")

type checkOptions struct {
	mergedOptions
	severity string
	max      uint64
	quiet    bool
}

func newCheckCommand(s *cli.Streams) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check [flags] STORE",
		Short: "Show violations of the rules of RPC-over-RDMA, over all taps",
		Long:  checkLong + mergedLong,
		Example: `  rpcrdma-fleet check s3://results
  rpcrdma-fleet check -T ndjson --severity note results`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.show(cmd, s, args) },
	}
	f := o.register(cmd, "text", "ndjson", "json")
	f.StringVar(&o.severity, "severity", "warning", "show findings of this severity and above: error, warning or note")
	f.Uint64Var(&o.max, "max", 10, "text: show at most `n` findings of a rule, count the rest; 0 shows all")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "text: only the table at the end")
	_ = cmd.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions([]string{"error", "warning", "note"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *checkOptions) show(cmd *cobra.Command, s *cli.Streams, args []string) error {
	least, ok := check.ParseSeverity(o.severity)
	if !ok {
		return cli.Usagef("--severity is error, warning or note, not %q", o.severity)
	}
	if o.format != "text" && o.quiet {
		return cli.Usagef("-q goes with -T text")
	}
	all := check.NewMerger()
	return o.run(cmd, s, args, func(m *merged) error {
		res, err := all.Result(m.set)
		if err != nil {
			return err
		}
		x := show.Findings{
			Format: o.format, Least: least, Text: as.Findings{Clock: text.Clock{Format: text.TimeFormat{Style: text.TimeDate}}},
			Shown: as.Shown{Findings: make(map[*check.Rule]uint64), Max: o.max, Quiet: o.quiet},
			Write: func(add func([]byte) []byte) { _, _ = m.out.Write(add(nil)) }, // Flush tells of errors
		}
		x.Begin()
		x.Object(&m.set.Units)
		x.Saved(res.Findings)
		x.Summary(m.out, res.Checker)
		for _, n := range res.Notes {
			m.notes.Printf("note: %s", n)
		}
		if res.Checker.Totals()[check.Error] > 0 {
			return errFindings
		}
		return nil
	}, all)
}
