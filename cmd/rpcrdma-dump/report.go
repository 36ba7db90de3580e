package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/html"
	"github.com/rpcrdma/toolkit/analyze/kernel"
	"github.com/rpcrdma/toolkit/analyze/ladder"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const reportLong = `Show where the time of the transactions in a capture went: counts, rates and
percentiles by operation, or by what --by names; the share of each phase; the
slowest transactions; chunks offered and used; calls in flight and credits
granted; the cost of losses and congestion; and how the connections were set up.

Phases of a transaction, which sum to its latency:

  call     first packet of the call's Send to its last
  pull     to the last Read Response of the call's chunks; of it, "wait" is the
           time before the first Read Request
  server   to the first RDMA Write, or the reply's first packet
  push     RDMA Writes of the reply's chunks
  reply    to the last packet of the reply

"ack" is the time from the reply to its acknowledgement; it is not part of the
latency. Percentiles use the nearest rank: exact up to 256 values, beyond that
at most 1/1024 too high. P99 of fewer than 100 values is the greatest of them.
Only transactions with a captured call and reply have a latency; the column
TIMED counts them if there are others.

With --save-state, what the report is made from is saved. The command reads
saved states in place of captures and merges those of several taps; of a
connection that several of them saw, the view of the tap nearest the responder
counts.`

// reportOptions are the flags of the command report.
type reportOptions struct {
	inputOptions
	analysisOptions
	kernelFlags
	fabricFlags
	stateOption
	view     string
	format   string
	interval time.Duration
	top      int
	inline   string
	width    int
	html     string
	verbose  bool
}

// analysisOptions are the flags that report and diff share.
type analysisOptions struct {
	by     string
	filter string
	cpu    string
}

func (o *analysisOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.by, "by", "operation", "group by these `keys`, separated by commas: "+strings.Join(latency.KeyNames(), ", ")+", or none")
	f.StringVarP(&o.filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	f.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	_ = f.MarkHidden("cpuprofile")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(append(latency.KeyNames(), "none"), cobra.ShellCompDirectiveNoFileComp))
}

func newReportCommand(s *cli.Streams) *cobra.Command {
	o := &reportOptions{}
	cmd := &cobra.Command{
		Use:   "report [flags] FILE...",
		Short: "Show where the time went: percentiles, phases, chunks, credits",
		Long:  reportLong + reportFabricLong,
		Example: `  rpcrdma-dump report trace.pcap
  rpcrdma-dump report --by client,operation --top 3 trace.pcap
  rpcrdma-dump report -Y 'op == READ' --by size --interval 1s trace.pcap
  rpcrdma-dump report --ftrace trace.client --mountstats mountstats trace.pcap
  rpcrdma-dump report --html report.html trace.pcap
  rpcrdma-dump report --save-state tap7.state trace.pcap
  rpcrdma-dump report --view fabric trace.pcap`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json")
	f.StringVar(&o.view, "view", views[0], "`what` is reported: "+strings.Join(views, " or "))
	o.fabricFlags.register(f)
	o.analysisOptions.flags(cmd)
	cli.DurationVarP(f, &o.interval, "interval", "d", 0, "`length` of the intervals of the table over time, in seconds or such as 100ms")
	f.IntVar(&o.top, "top", 10, "show the `n` slowest transactions, or longest recoveries")
	f.StringVar(&o.inline, "inline", "1024,4096,16384,65536", "inline thresholds to try, in `bytes`, separated by commas")
	f.IntVar(&o.width, "width", 0, "`columns` of a line of text (default: those of the terminal, else 100)")
	f.StringVar(&o.html, "html", "", "write a page for browsers to this `file`; - is standard output")
	o.kernelFlags.register(f)
	o.stateOption.register(f)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show phases and histograms of all groups")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	_ = cmd.RegisterFlagCompletionFunc("view", cobra.FixedCompletions(views, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// thresholds reads a list of sizes.
func thresholds(s string) ([]uint32, error) {
	if s == "" || s == "none" {
		return []uint32{}, nil
	}
	var out []uint32
	for _, word := range strings.Split(s, ",") {
		var n size
		if err := n.Set(strings.TrimSpace(word)); err != nil {
			return nil, cli.Usagef("--inline: %v", err)
		}
		if n > 1<<24 {
			return nil, cli.Usagef("--inline: %s is more than a Send holds", word)
		}
		out = append(out, uint32(n))
	}
	if len(out) > 8 {
		return nil, cli.Usagef("--inline takes at most 8 thresholds")
	}
	return out, nil
}

// recorder checks the flags that report and diff share.
func (o *analysisOptions) recorder() (opt latency.Options, match *filter.Filter, err error) {
	if opt.By, err = latency.ParseKeys(o.by); err != nil {
		return opt, nil, cli.Usagef("--by: %v", err)
	}
	if match, err = cli.Filter(o.filter); err != nil {
		return opt, nil, err
	}
	return opt, match, nil
}

// check checks the flags.
func (o *reportOptions) check(cmd *cobra.Command) (opt latency.Options, match *filter.Filter, err error) {
	if o.format != "text" && o.format != "json" {
		return opt, nil, cli.Usagef("-T is text or json, not %q", o.format)
	}
	if cli.ToStdout(o.html) && cmd.Flags().Changed("format") {
		return opt, nil, cli.Usagef("--html - and -T write to the same place")
	}
	if !slices.Contains(views, o.view) {
		return opt, nil, cli.Usagef("--view is %s, not %q", strings.Join(views, " or "), o.view)
	}
	if err := checkWidth(o.width); err != nil {
		return opt, nil, err
	}
	if o.top < 0 {
		return opt, nil, cli.Usagef("--top is a number of transactions")
	}
	if o.interval < 0 || cmd.Flags().Changed("interval") && o.interval < time.Microsecond {
		return opt, nil, cli.Usagef("--interval is at least 1µs")
	}
	if opt, match, err = o.recorder(); err != nil {
		return opt, nil, err
	}
	if opt.Inline, err = thresholds(o.inline); err != nil {
		return opt, nil, err
	}
	opt.Interval, opt.Top = o.interval, o.top
	return opt, match, nil
}

func (o *reportOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	opt, match, err := o.check(cmd)
	if err != nil {
		return err
	}
	if columns, ok := cli.Terminal(s.Out); o.width == 0 && ok {
		o.width = max(columns, text.LeastWidth)
	}
	if saved, err := areStates(append(slices.Clone(o.inputOptions.read), args...)); err != nil {
		return err
	} else if saved {
		return o.runStates(cmd, s, args)
	}
	if o.view == "fabric" {
		return o.runFabric(cmd, s, args)
	}
	if err := o.together(); err != nil {
		return err
	}
	files, err := o.claim(s, args, o.kernelFlags.names()...)
	if err != nil {
		return err
	}
	// A live capture makes the page, or the state, as the user that it becomes.
	var made *cli.Output
	defer func() { made.Discard() }()
	if len(o.ifaces) == 0 {
		if made, err = o.output(files); err != nil {
			return err
		}
	}
	stop, err := cli.Profile(files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	join, err := o.load()
	if err != nil {
		return err
	}
	o.need(o.html)
	o.need(o.save)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	if len(o.ifaces) > 0 {
		if made, err = o.output(files); err != nil {
			return err
		}
	}
	if o.html != "" {
		opt.Ran = true
		opt.Draw = drawing()
	}
	sessions := session.New(nil)
	sessions.Limit(o.memory.Scale(session.DefaultMemory / 2))
	why := diagnosis.New(whyOf(j))
	st, err := analyse(j, s, &o.inputOptions, opt, match, o.filter, join, sessions, why, o.save != "")
	var sections []state.Section
	if o.save != "" {
		sections = append(sections, st.Section())
	}
	rep := &wholeReport{Report: st.Report(), Diagnosis: why.Report()}
	if join != nil {
		rep.Kernel = join.Result()
		j.noteStrange(rep.Kernel)
	}
	seen := sessions.Report(rep.Inputs)
	if seen.Spread() {
		rep.Sessions = seen
	}
	if o.save != "" {
		x, sectionErr := rep.Diagnosis.Section(rep.Inputs)
		sections, err = append(sections, x), errors.Join(err, sectionErr)
		if x, ok := why.Calls(); ok {
			sections = append(sections, x)
		}
		if !seen.Empty() {
			x, sectionErr := seen.Section()
			sections, err = append(sections, x), errors.Join(err, sectionErr)
		}
		out := newOutput(s, false, false)
		outErr := o.print(out, rep, cmd.Flags().Changed("interval"))
		return j.commitState(made, o.save, j.finish(err, errors.Join(outErr, out.close())), sections...)
	}
	return j.finish(err, o.show(cmd, s, j, made, rep, err))
}

// together checks which flags go with each other, without --view fabric.
func (o *reportOptions) together() error {
	kernel := len(o.kernelFlags.names()) > 0
	switch {
	case len(o.decodeAs) > 0:
		return cli.Usagef("--decode-as goes with --view fabric")
	case o.save != "" && (o.html != "" || kernel):
		return cli.Usagef("--save-state goes neither with --html nor with records of a kernel")
	case o.scrub != "" && kernel:
		return cli.Usagef("--scrub does not replace the names and addresses in --ftrace and --mountstats: leave it or them out")
	}
	return nil
}

// show writes the report, to the page if there is one; err is the error of the run.
func (o *reportOptions) show(cmd *cobra.Command, s *cli.Streams, j *job, page *cli.Output, rep *wholeReport, err error) error {
	out := newOutput(s, false, false)
	var outErr error
	if page != nil {
		outErr = commitPage(j, page, o.html, rep, err)
	}
	switch {
	case o.html == "-":
		outErr = html.Write(out, rep.Report, rep.Sessions, rep.Diagnosis, programVersion())
	case o.html == "" || cmd.Flags().Changed("format"): // otherwise the page is what was asked for
		outErr = errors.Join(outErr, o.print(out, rep, cmd.Flags().Changed("interval")))
	}
	return errors.Join(outErr, out.close())
}

// output creates the file of --html or --save-state; nil if there is none.
func (o *reportOptions) output(files *outfile.Files) (*cli.Output, error) {
	if o.html != "" && o.html != "-" {
		return cli.Create(files, o.html, nil)
	}
	return o.stateOption.create(files)
}

// runStates makes the report of saved states.
func (o *reportOptions) runStates(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if err := onlyWith(cmd, "read", "format", "top", "verbose", "width", "save-state", "limit-memory"); err != nil {
		return err
	}
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	saved, err := o.stateOption.create(files)
	if err != nil {
		return err
	}
	defer func() { saved.Discard() }()
	all, err := readStates(append(slices.Clone(o.inputOptions.read), args...), int64(o.memory.Scale(stateBytes)))
	if err != nil {
		return err
	}
	st, err := latency.FromUnits(all)
	if err != nil {
		return err
	}
	if cmd.Flags().Changed("top") && !st.Top(o.top) {
		return cli.Usagef("--top %d: the saved state has fewer slow transactions", o.top)
	}
	sessions := &session.Merger{}
	st.Renumbered = sessions.Add
	why, err := diagnosis.Merger{}.Report(all)
	if err != nil {
		return err
	}
	_, series := st.Interval()
	rep, err := st.Report(all)
	if err != nil {
		return err
	}
	if why == nil {
		cli.NewProblems("rpcrdma-dump", s.Err).Printf("note: states that were saved by an older version do not say why it is slow; 'rpcrdma-dump why CAPTURE...' does")
	}
	out := newOutput(s, false, false)
	// Saved words are whatever their author wrote.
	err = errors.Join(o.print(printable.TextWriter(out), &wholeReport{Report: rep, Diagnosis: why, Sessions: sessions.Report()}, series), out.close())
	if err = errors.Join(err, writeState(saved, all)); err != nil {
		return err
	}
	return damagedStates(s, all)
}

// commitPage writes an HTML page, unless the report is incomplete.
func commitPage(j *job, page *cli.Output, name string, rep *wholeReport, err error) error {
	if err != nil {
		return err
	}
	if err := j.whole(name); err != nil {
		return err
	}
	if err := html.Write(page, rep.Report, rep.Sessions, rep.Diagnosis, programVersion()); err != nil {
		return err
	}
	return page.Commit()
}

// print writes the report as text or JSON.
func (o *reportOptions) print(w io.Writer, rep *wholeReport, series bool) error {
	if o.format == "json" {
		return printable.Indented(w, rep)
	}
	err := results.Report(w, rep.Report, results.ReportOptions{Verbose: o.verbose, Series: series, Width: o.width, Diagnosis: rep.Diagnosis, Sessions: rep.Sessions})
	if rep.Kernel != nil {
		fmt.Fprint(w, "\nWhat the kernels recorded (rpcrdma-dump kernel --help explains the columns)\n\n")
		results.Kernel(w, rep.Kernel)
	}
	return err
}

// wholeReport is a report with why it is slow, unless it is made of several saved states; with the records of the kernels, if requested; and with
// sessions, if they tell more than connections do.
type wholeReport struct {
	*latency.Report
	Diagnosis *diagnosis.Report `json:"diagnosis,omitempty"`
	Kernel    *kernel.Result    `json:"kernel,omitempty"`
	Sessions  *session.Report   `json:"sessions,omitempty"`
}

// Bounds of the drawing of a transaction on a page.
const (
	drawnPackets = 200
	drawnBytes   = 24 << 10
)

// drawing draws transactions for a page, packet by packet.
func drawing() func([]byte, *rpc.View) []byte {
	d := &ladder.Drawer{}
	return func(b []byte, v *rpc.View) []byte {
		start := len(b)
		b = d.Append(b, v)
		if len(b)-start > drawnBytes {
			b = b[:start+bytes.LastIndexByte(b[start:start+drawnBytes], '\n')+1]
			b = append(b, "… the rest is not shown: see rpcrdma-dump show\n"...)
		}
		return bytes.Clone(b[start:])
	}
}

// programVersion is what a page says that it was made by.
func programVersion() string { return "rpcrdma-dump " + cli.Version() }
