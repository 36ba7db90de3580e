package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const diffLong = `Compare two captures: counts, percentiles, phases, errors and bytes of each
operation (or of what --by names) in A and in B, and which operations only one of
them has. The captures need nothing in common: RDMA and TCP, before and after, one
client and another. A phase that a fabric does not have is 0.

The verdict comes from a Mann-Whitney rank test of the latencies: slower or faster
if chance would produce so large a difference in less than one case in a hundred,
otherwise noise; few if one side has fewer than ten values. A percentile is marked
~ if the 95 % confidence intervals of the two sides overlap. Both methods assume
that transactions are independent. Transactions that queue behind each other are
not, so look at the size of the change before you trust a verdict that rests on
thousands of them. One capture of each side does not show how much runs vary.`

// diffOptions are the flags of the command diff.
type diffOptions struct {
	inputOptions
	analysisOptions
	format string
}

func newDiffCommand(s *cli.Streams) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Compare the latencies of two captures",
		Long:  diffLong,
		Example: `  rpcrdma-dump diff before.pcap after.pcap
  rpcrdma-dump diff --by size -Y 'op == READ' tcp.pcap rdma.pcap`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json")
	o.analysisOptions.flags(cmd)
	o.fileFlags(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "json" {
		return cli.Usagef("-T is text or json, not %q", o.format)
	}
	names := append(slices.Clone(o.read), args...)
	if len(names) != 2 {
		return cli.Usagef("diff takes two captures, not %d", len(names))
	}
	if names[0] == "-" && names[1] == "-" {
		return cli.Usagef("only one of the two can be standard input")
	}
	opt, match, err := o.recorder()
	if err != nil {
		return err
	}
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	stop, err := cli.Profile(files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	o.read = nil
	var reports [2]*latency.Report
	damaged := false
	for i, name := range names {
		j, err := start(cmd, s, &o.inputOptions, []string{name})
		if err != nil {
			return err
		}
		rep, err := analyse(j, s, &o.inputOptions, opt, match, o.filter, nil, nil)
		if err = j.finish(err, nil); err != nil && !errors.Is(err, cli.ErrDamaged) {
			return err
		}
		damaged = damaged || err != nil
		reports[i] = rep
	}
	d := latency.Compare(reports[0], reports[1])
	out := newOutput(s.Out, false, false)
	if o.format == "json" {
		err = printable.Indented(out, d)
	} else {
		err = results.Diff(out, d)
	}
	if err = errors.Join(err, out.close()); err != nil {
		return err
	}
	if damaged {
		return cli.ErrDamaged
	}
	return nil
}
