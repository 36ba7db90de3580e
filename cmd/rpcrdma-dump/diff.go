package main

import (
	"errors"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/html"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const diffLong = `Compare two captures: counts, percentiles, phases, errors and bytes of each
operation (or of what --by names) in A and in B, and which operations only one
of them has. The captures need nothing in common: RDMA and TCP, before and
after, one client and another. A phase that a fabric does not have is 0.

The verdict comes from a Mann-Whitney rank test of the latencies: slower or
faster if chance would produce so large a difference in less than one case in a
hundred, otherwise noise; few if one side has fewer than ten values. A
percentile is marked ~ if the 95 % confidence intervals of the two sides
overlap. Both methods assume that transactions are independent. Transactions
that queue behind each other are not, so look at the size of the change before
you trust a verdict that rests on thousands of them. One capture of each side
does not show how much runs vary.`

// diffOptions are the flags of the command diff.
type diffOptions struct {
	inputOptions
	analysisOptions
	format string
	html   string
}

func newDiffCommand(s *cli.Streams) *cobra.Command {
	o := &diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff [flags] A B",
		Short: "Compare the latencies of two captures",
		Long:  diffLong,
		Example: `  rpcrdma-dump diff before.pcap after.pcap
  rpcrdma-dump diff --by size -Y 'op == READ' tcp.pcap rdma.pcap
  rpcrdma-dump diff --html diff.html before.pcap after.pcap`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json")
	o.analysisOptions.flags(cmd)
	f.StringVar(&o.html, "html", "", "write a page for browsers to this `file`; - is standard output")
	o.fileFlags(f)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	names := append(slices.Clone(o.read), args...)
	if err := o.check(cmd, names); err != nil {
		return err
	}
	opt, match, err := o.recorder()
	if err != nil {
		return err
	}
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	var page *cli.Output
	if o.html != "" && o.html != "-" {
		if page, err = cli.Create(files, o.html, nil); err != nil {
			return err
		}
	}
	defer func() { page.Discard() }()
	stop, err := cli.Profile(files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	o.read = nil
	o.need(o.html)
	var reports [2]*latency.Report
	damaged := false
	for i, name := range names {
		j, err := start(cmd, s, &o.inputOptions, []string{name})
		if err != nil {
			return err
		}
		st, err := analyse(j, s, &o.inputOptions, opt, match, o.filter, nil, nil, nil, false)
		if page != nil && err == nil {
			err = j.whole(o.html)
		}
		if err = j.finish(err, nil); err != nil && !errors.Is(err, cli.ErrDamaged) {
			return err
		}
		damaged = damaged || err != nil
		reports[i] = st.Report()
	}
	d := latency.Compare(reports[0], reports[1])
	if page != nil {
		if err := writeDiff(page, d); err != nil {
			return err
		}
		if err := page.Commit(); err != nil {
			return err
		}
	}
	out := newOutput(s, false, false)
	err = o.print(out, d, s.Columns, cmd.Flags().Changed("format"))
	if err = errors.Join(err, out.close()); err != nil {
		return err
	}
	if damaged {
		return cli.ErrDamaged
	}
	return nil
}

// check checks the flags and how many captures there are.
func (o *diffOptions) check(cmd *cobra.Command, names []string) error {
	switch {
	case o.format != "text" && o.format != "json":
		return cli.Usagef("-T is text or json, not %q", o.format)
	case cli.ToStdout(o.html) && cmd.Flags().Changed("format"):
		return cli.Usagef("--html - and -T write to the same place")
	case len(names) != 2:
		return cli.Usagef("diff takes two captures, not %d", len(names))
	case names[0] == "-" && names[1] == "-":
		return cli.Usagef("only one of the two can be standard input")
	}
	return nil
}

// print writes a comparison to standard output. If a page is written and no format was asked for, nothing is.
func (o *diffOptions) print(w io.Writer, d *latency.Diff, width int, format bool) error {
	switch {
	case o.html == "-":
		return writeDiff(w, d)
	case o.html != "" && !format:
		return nil
	case o.format == "json":
		return printable.Indented(w, d)
	}
	return results.Diff(w, d, width)
}

// writeDiff writes a comparison as a page.
func writeDiff(w io.Writer, d *latency.Diff) error {
	var tables []html.Table
	for _, t := range results.DiffTables(d) {
		tables = append(tables, html.Table(t))
	}
	return html.WriteDiff(w, d, tables, programVersion())
}
