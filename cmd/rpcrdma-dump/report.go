package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/html"
	"github.com/rpcrdma/toolkit/analyze/kernel"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/printable"
)

const reportLong = `Tell where the time of the transactions in a capture went: counts, rates and
percentiles by operation, or by what --by names; the share of each phase; the
slowest transactions; chunks offered and used; calls in flight against the
credits granted; what losses and congestion cost; and how the connections were
set up.

Phases of a transaction, which sum to its latency:

  call     first packet of the call's Send to its last
  pull     to the last Read Response of the call's chunks; of it, "wait" is the
           time before the first Read Request
  server   to the first RDMA Write, or the reply's first packet
  push     RDMA Writes of the reply's chunks
  reply    to the last packet of the reply

"ack" is the time from the reply to its acknowledgement, and not part of the
latency. Percentiles are those of the nearest rank: exact up to 256 values, then
at most 1/1024 too high. Only transactions whose call and reply were captured
have a latency; the column TIMED counts those, if there are others.`

// reportOptions are the flags of the command report.
type reportOptions struct {
	inputOptions
	analysisOptions
	kernelFlags
	fabricFlags
	view     string
	format   string
	interval time.Duration
	top      int
	inline   string
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
	f.StringVar(&o.by, "by", "operation", "group by these `keys`, with commas between them: "+strings.Join(latency.KeyNames(), ",\n")+", or none")
	f.StringVarP(&o.filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	f.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	_ = f.MarkHidden("cpuprofile")
	_ = cmd.RegisterFlagCompletionFunc("by", cobra.FixedCompletions(append(latency.KeyNames(), "none"), cobra.ShellCompDirectiveNoFileComp))
}

func newReportCommand(s *streams) *cobra.Command {
	o := &reportOptions{}
	cmd := &cobra.Command{
		Use:   "report [flags] FILE...",
		Short: "Tell where the time went: percentiles, phases, chunks, credits, troubles",
		Long:  reportLong + reportFabricLong,
		Example: `  rpcrdma-dump report trace.pcap
  rpcrdma-dump report --by client,operation --top 3 trace.pcap
  rpcrdma-dump report -Y 'op == READ' --by size --interval 1s trace.pcap
  rpcrdma-dump report --ftrace trace.client --mountstats mountstats trace.pcap
  rpcrdma-dump report --html report.html trace.pcap
  rpcrdma-dump report --view fabric trace.pcap`,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text or json")
	f.StringVar(&o.view, "view", views[0], "`what` is reported: "+strings.Join(views, " or "))
	o.fabricFlags.register(f)
	o.analysisOptions.flags(cmd)
	f.DurationVar(&o.interval, "interval", 0, "`length` of the intervals of the table over time, such as 1s or 100ms")
	f.IntVar(&o.top, "top", 10, "show the `n` slowest transactions, or longest recoveries")
	f.StringVar(&o.inline, "inline", "1024,4096,16384,65536", "inline thresholds to try, in `bytes`, with commas between them")
	f.StringVar(&o.html, "html", "", "write a page for browsers to this `file`; - is standard output")
	o.kernelFlags.register(f)
	f.BoolVarP(&o.verbose, "verbose", "v", false, "show phases and histograms of all groups")
	o.inputOptions.flags(f)
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
	if o.filter != "" {
		if match, err = filter.Compile(o.filter); err != nil {
			return opt, nil, filterError(err)
		}
	}
	return opt, match, nil
}

func (o *reportOptions) run(cmd *cobra.Command, s *streams, args []string) error {
	if o.format != "text" && o.format != "json" {
		return cli.Usagef("-T is text or json, not %q", o.format)
	}
	if o.html == "-" && cmd.Flags().Changed("format") {
		return cli.Usagef("--html - and -T write to the same place")
	}
	if o.top < 0 {
		return cli.Usagef("--top is a number of transactions")
	}
	if o.interval < 0 || cmd.Flags().Changed("interval") && o.interval < time.Microsecond {
		return cli.Usagef("--interval is at least 1µs")
	}
	switch {
	case !slices.Contains(views, o.view):
		return cli.Usagef("--view is %s, not %q", strings.Join(views, " or "), o.view)
	case o.view == "fabric":
		return o.runFabric(cmd, s, args)
	case len(o.decodeAs) > 0:
		return cli.Usagef("--decode-as goes with --view fabric")
	}
	opt, match, err := o.recorder()
	if err != nil {
		return err
	}
	if opt.Inline, err = thresholds(o.inline); err != nil {
		return err
	}
	opt.Interval, opt.Top = o.interval, o.top
	files, err := o.claim(s, args, o.kernelFlags.names()...)
	if err != nil {
		return err
	}
	// A live capture makes the page as the user that it becomes.
	var page *cli.Output
	create := func() (err error) {
		if o.html != "" && o.html != "-" {
			page, err = cli.Create(files, o.html, nil)
		}
		return err
	}
	defer func() { page.Discard() }()
	if len(o.ifaces) == 0 {
		if err := create(); err != nil {
			return err
		}
	}
	stop, err := profile(files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	join, err := o.load()
	if err != nil {
		return err
	}
	o.need(o.html)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	if len(o.ifaces) > 0 {
		if err := create(); err != nil {
			return err
		}
	}
	rep, err := analyse(j, s, &o.inputOptions, opt, match, o.filter, join)
	var recorded *kernel.Result
	if join != nil {
		recorded = join.Result()
	}
	out := newOutput(s.out, false, false)
	var outErr error
	switch {
	case o.html == "-":
		outErr = html.Write(out, rep)
	case o.html != "":
		if outErr = err; outErr == nil {
			outErr = j.whole(o.html)
		}
		if outErr == nil {
			outErr = html.Write(page, rep)
		}
		if outErr == nil {
			outErr = page.Commit()
		}
		if !cmd.Flags().Changed("format") {
			break // the page is what was asked for
		}
		fallthrough
	default:
		if o.format == "json" {
			outErr = errors.Join(outErr, printIndented(out, reportAndKernel{rep, recorded}))
		} else {
			outErr = errors.Join(outErr, printReport(out, rep, reportStyle{verbose: o.verbose, series: cmd.Flags().Changed("interval")}))
			if recorded != nil {
				fmt.Fprint(out, "\nWhat the kernels recorded (rpcrdma-dump kernel --help explains the columns)\n\n")
				printKernel(out, recorded)
			}
		}
	}
	return j.finish(err, errors.Join(outErr, out.close()))
}

// reportAndKernel is a report with what the kernels recorded, if that was asked
// for.
type reportAndKernel struct {
	*latency.Report
	Kernel *kernel.Result `json:"kernel,omitempty"`
}

// analyse decodes the input of a job and makes its report. What passes the
// filter is given to join, too, if there is one.
func analyse(j *job, s *streams, in *inputOptions, opt latency.Options, match *filter.Filter, expression string, join *kernel.Join) (*latency.Report, error) {
	opt.Memory = in.memory.Scale(latency.DefaultMemory)
	r := latency.New(opt)
	view := rpc.View{Names: &rpc.Names{Limit: in.memory.Names()}, Unwrap: j.keys.Contexts}
	dec := in.decoder()
	dec.Concurrent = true
	dec.Closed = r.Closed
	dec.Observer = r.Observer()
	j.d = decode.New(dec, func(tx *transaction.Transaction) {
		v := &view
		v.Set(tx)
		if v.ArgsErr != nil || v.ResultErr != nil || v.CallErr != nil || v.ReplyErr != nil {
			j.notes.message(v)
		}
		if match == nil || match.Match(v) {
			r.Add(v)
			if join != nil {
				join.Add(v)
			}
		}
		v.Learn()
	})
	_, tty := cli.Terminal(s.err)
	err := j.run(tty)
	st := j.d.Stats()
	names := make([]string, len(j.in.names))
	for i, n := range j.in.names {
		names[i] = filepath.Base(n)
	}
	account := j.d.Account()
	return r.Report(latency.Source{
		Account: &account,
		Inputs:  names, Filter: expression, Packets: st.Packets, Bytes: st.Bytes, First: st.First, Last: st.Last,
	}), err
}

func printIndented(w io.Writer, v any) error {
	e := printable.Encoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// percent is a share as a number with one digit behind the point.
func percent(share float64) string {
	if share == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*share, 'f', 1, 64)
}
