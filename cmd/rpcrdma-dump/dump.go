package main

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/extract"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

// dumpOptions are the flags of the command itself, which lists transactions.
type dumpOptions struct {
	inputOptions
	verbose int
	hex     bool
	format  string
	fields  []string
	layout  []string
	filter  string
	count   uint64
	numeric bool
	resolve bool
	time    timeFlag
	color   string
	sort    string
	quiet   bool
	extract string
	holes   size
	width   int
	lines   bool
	cpu     string
	socket  string // of the journal
	listing bool   // --list-fields
	links   cli.Interfaces
	resume  resumeOptions
}

func (o *dumpOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text, ndjson, json, fields, or journal (entries of the systemd journal)")
	f.CountVarP(&o.verbose, "verbose", "v", "show headers, chunks, operations and NFS fields as a tree; -vv: all of them")
	f.BoolVarP(&o.hex, "hex", "x", false, "also show the bytes of the messages")
	f.StringVarP(&o.filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	f.StringArrayVarP(&o.fields, "field", "e", nil, "with -T fields: print this `field` (repeatable), durations in nanoseconds; with -T journal: add it")
	f.StringArrayVarP(&o.layout, "layout", "E", nil, "with -T fields: `option`=value: header=y|n, separator=/t|/s|character, quote=d|s|n, occurrence=f|l|a, aggregator=,|/s|character")
	f.StringVar(&o.socket, "journal", journalSocket, "with -T journal: the `socket` of the journal")
	f.BoolVar(&o.listing, "list-fields", false, "list the fields for -e and -Y, and exit")
	f.Uint64VarP(&o.count, "count", "c", 0, "stop after printing `n` transactions; 0 prints all")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no listing, only a summary at the end")
	o.time.register(f)
	f.BoolVarP(&o.numeric, "numeric", "n", false, "do not look up names of hosts; this is the default")
	f.BoolVar(&o.resolve, "resolve", false, "look up names of hosts (text only)")
	f.StringVar(&o.color, "color", "auto", "`when` to use colors: auto, always or never")
	f.StringVar(&o.sort, "sort", "call", "`order` of the output: call (first packet of the call) or completion (end); with -i and --follow the default is completion")
	f.IntVar(&o.width, "width", 0, "`columns` of a line; -1 never shortens names (default: those of the terminal, else 120)")
	f.BoolVarP(&o.lines, "line-buffered", "l", false, "write each line at once")
	f.StringVar(&o.extract, "extract-data", "", "write the data of READ and WRITE to files below this `directory`")
	f.Var(&o.holes, "limit-holes", "with --extract-data: how many zeros may fill gaps in files, for example 1G "+
		"(default: as much as the capture holds)")
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	o.trackersFlag(f)
	o.resume.flags(cmd)
	o.links.Flag(f)
	f.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	_ = f.MarkHidden("cpuprofile")
	for flag, values := range map[string][]string{
		"format": {"text", "ndjson", "json", "fields", "journal"},
		"color":  {"auto", "always", "never"},
		"sort":   {"call", "completion"},
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("field", completeField)
}

func completeField(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, f := range filter.Fields() {
		if strings.HasPrefix(f.Name, prefix) {
			out = append(out, f.Name+"\t"+f.Description)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// printer writes transactions in one of the formats.
type printer interface {
	// begin and finish write what precedes the first and follows the last transaction.
	begin(b []byte) []byte
	print(b []byte, v *rpc.View) []byte
	finish(b []byte) []byte
}

func (o *dumpOptions) check() error {
	if o.sort != "call" && o.sort != "completion" {
		return cli.Usagef("--sort is call or completion, not %q", o.sort)
	}
	journal := o.format == "journal"
	if o.format != "fields" && (len(o.fields) > 0 && !journal || len(o.layout) > 0) {
		return cli.Usagef("-e and -E go with -T fields, -e also with -T journal")
	}
	if o.format != "text" && (o.verbose > 0 && !journal || o.hex || o.quiet) {
		return cli.Usagef("-v, -x and -q go with -T text, -v also with -T journal")
	}
	if !journal && o.socket != journalSocket {
		return cli.Usagef("--journal goes with -T journal")
	}
	if journal && o.resolve {
		return cli.Usagef("--resolve goes with -T text")
	}
	if o.numeric && o.resolve {
		return cli.Usagef("-n and --resolve exclude each other")
	}
	if err := o.checkTrackers(); err != nil {
		return err
	}
	if o.width != -1 {
		if err := checkWidth(o.width); err != nil {
			return cli.Usagef("%w, or -1", err)
		}
	}
	if o.holes > 0 && o.extract == "" {
		return cli.Usagef("--limit-holes goes with --extract-data")
	}
	return o.resume.check(&o.inputOptions, o.withoutResume()...)
}

// maxWidth is how many columns a line may have. Lines are filled with spaces, each as far as the first columns
// may grow.
const maxWidth = 10000

// checkWidth checks the columns of a line; 0 stands for those of the terminal.
func checkWidth(n int) error {
	if n != 0 && (n < text.LeastWidth || n > maxWidth) {
		return cli.Usagef("--width is %d to %d columns", text.LeastWidth, maxWidth)
	}
	return nil
}

// withoutResume are the options in use that do not go with --resume-state.
func (o *dumpOptions) withoutResume() (list []string) {
	for name, used := range map[string]bool{
		"-c": o.count > 0, "-q": o.quiet, "--extract-data": o.extract != "", "-T json (take ndjson)": o.format == "json",
	} {
		if used {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

func (o *dumpOptions) printer(s *cli.Streams) (printer, error) {
	switch o.format {
	case "text":
		color, err := cli.Color(o.color, s.Out)
		if err != nil {
			return nil, err
		}
		width := o.width
		if columns, ok := cli.Terminal(s.Out); width == 0 && ok && columns > 0 {
			width = max(columns, text.LeastWidth)
		}
		var name func(netip.Addr) string
		if o.resolve {
			name = cli.NewResolver(len(o.ifaces) > 0).Name
		}
		p := &textPrinter{list: text.Lister{Clock: text.Clock{Format: o.time.format}, Width: width, Color: color, Name: name}}
		if o.verbose > 0 || o.hex {
			p.tree = &text.Tree{Level: o.verbose, Hex: o.hex, Width: width, Color: color}
		}
		return p, nil
	case "ndjson":
		return &ndjsonPrinter{}, nil
	case "json":
		return &jsonPrinter{}, nil
	case "fields":
		return newFieldsPrinter(o.fields, o.layout)
	case "journal":
		return o.journal()
	}
	if o.format == "csv" {
		return nil, cli.Usagef("-T is text, ndjson, json, fields or journal: for CSV, -T fields -E header=y,separator=,,quote=d and -e for each column")
	}
	return nil, cli.Usagef("-T is text, ndjson, json, fields or journal, not %q", o.format)
}

func (o *dumpOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.links.Wanted {
		return o.links.List(s.Out)
	}
	if o.listing {
		return listFields(s.Out, s.Columns)
	}
	if err := o.check(); err != nil {
		return err
	}
	p, err := o.printer(s)
	if err != nil {
		return err
	}
	match, err := cli.Filter(o.filter)
	if err != nil {
		return err
	}
	o.confine()
	resumed, err := o.resume.open(s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	stop, err := cli.Profile(j.files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	if p, ok := p.(*journalPrinter); ok {
		p.notes = j.notes
		defer p.close()
	}
	opt := o.decoder()
	if (len(o.ifaces) > 0 || o.follow) && !cmd.Flags().Changed("sort") {
		o.sort = "completion" // live output
	}
	opt.Transactions.OnCompletion = o.sort == "completion"
	var saved []decode.StatePart
	if match.Blame() || o.format == "ndjson" || o.format == "json" || o.verbose > 0 || blames(p) {
		saved = o.blame(&opt)
	}
	// File data is too much to let some wait, and to sum up takes less time than to hand over.
	opt.Concurrent = o.extract == "" && !o.quiet
	var x *extract.Extractor
	if o.extract != "" {
		opt.Transactions.KeepData = true
		if x, err = extract.New(o.extract, extract.Options{Holes: int64(o.holes), Files: j.files}); err != nil {
			return extractError(err)
		}
		defer x.Discard()
	}
	d := &dump{
		job: j, out: newOutput(s, j.in.live, o.lines), view: rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts},
		printer: p, match: match, extract: x, count: o.count,
	}
	d.journal, _ = p.(*journalPrinter)
	if o.quiet {
		d.summarize(&opt)
	}
	d.prints = d.onlyPrints()
	j.d = decode.New(opt, d.transaction)
	j.noteTrackers(o.trackers)
	if err := resumed.begin(j, o.format, append(saved, d.resumable(resumed)...)); err != nil {
		return err
	}
	return d.run(o, s)
}

// onlyPrints reports whether a transaction is printed and nothing else is done with it.
func (d *dump) onlyPrints() bool {
	return d.printer != nil && d.extract == nil && d.summary == nil && d.journal == nil && d.count == 0
}

// confine says what the command needs once it is confined.
func (o *dumpOptions) confine() {
	if o.extract != "" {
		o.needs.Trees = []string{o.extract}
	}
	o.need(o.cpu)
	o.needs.Names = o.resolve
	o.needs.Datagrams = o.format == "journal"
}

// summarize has a summary instead of lines.
func (d *dump) summarize(opt *decode.Options) {
	d.printer, d.summary = nil, newSummary()
	opt.Observe(decode.Observer{Closed: d.summary.closed})
	if d.match != nil || d.extract != nil {
		return
	}
	d.view.Names = nil // names are not needed
	if d.count == 0 {
		d.parts = make(parts)
		opt.Group = d.parts.group
	}
}

// dump takes transactions and prints them.
type dump struct {
	*job
	out     *output
	view    rpc.View
	printer printer         // nil: none
	journal *journalPrinter // printer, if it is one
	match   *filter.Filter
	extract *extract.Extractor
	summary *summary
	prints  bool   // transactions are printed, and nothing else
	parts   parts  // of the summary, by group of hosts
	count   uint64 // transactions still to be printed; 0 is no limit
	failed  error  // of the extractor
}

// resumable is what a state has besides the decoder, and Transaction.Blame. It does not repeat a header.
func (d *dump) resumable(r *resume) (parts []decode.StatePart) {
	if d.view.Names != nil {
		parts = append(parts, d.view.Names)
	}
	switch p := d.printer.(type) {
	case *textPrinter:
		parts = append(parts, &p.list)
	case *fieldsPrinter:
		p.header = p.header && !r.resumed()
	}
	return parts
}

func (d *dump) run(o *dumpOptions, s *cli.Streams) error {
	if d.printer != nil {
		d.out.end(d.printer.begin(d.out.begin()))
	}
	captured := uint64(0) // bytes of packets
	if d.extract != nil {
		d.in.shown = func(b *capture.Batch) {
			for i := range b.Packets {
				captured += uint64(len(b.Packets[i].Data))
			}
		}
	}
	_, outTTY := cli.Terminal(s.Out)
	_, errTTY := cli.Terminal(s.Err)
	err := d.job.run(errTTY && (!outTTY || o.quiet))
	d.noteMissed(o.filter)
	if d.printer != nil {
		d.out.end(d.printer.finish(d.out.begin()))
	}
	if d.summary != nil {
		d.parts.merge(d.summary)
		d.summary.print(d.out, d.d)
	}
	outErr := d.out.close()
	if p := d.journal; p != nil {
		outErr = errors.Join(outErr, p.result())
	}
	if d.extract != nil && err == nil && d.failed == nil {
		if d.failed = d.whole(o.extract); d.failed == nil {
			d.extract.Carried(captured)
			n, e := d.extract.Close(d.view.Names)
			d.failed = e
			d.notes.Printf("%s extracted to %s", units.Plural(n, "file"), o.extract)
			if n := d.extract.Packed(); n > 0 {
				d.notes.Printf("note: %s would be longer than the capture with the parts that were not seen: packed, see manifest.ndjson and --limit-holes",
					units.Plural(n, "file"))
			}
		}
	}
	if err == nil && outErr == nil {
		err = d.resume.save(d.job)
	}
	return d.finish(errors.Join(err, d.failed), outErr)
}

func (d *dump) transaction(tx *transaction.Transaction) {
	if d.stopped {
		return
	}
	v := &d.view
	v.Set(tx)
	if v.Undecoded() {
		d.notes.Message(v)
	}
	switch {
	case d.match != nil && !d.matches(d.match.Match(v)):
	case !d.prints:
		d.show(v)
	default:
		if !d.out.end(d.printer.print(d.out.begin(), v)) {
			d.stop()
		}
	}
	v.Learn()
}

func (d *dump) show(v *rpc.View) {
	if d.extract != nil {
		if err := d.extract.Add(v); err != nil && d.failed == nil {
			d.failed = err
			d.stop()
		}
	}
	if d.summary != nil {
		d.summary.add(v)
	}
	if d.printer != nil && !d.out.end(d.printer.print(d.out.begin(), v)) {
		d.stop()
	}
	if d.journal != nil && d.journal.failed != nil {
		d.stop()
	}
	if d.count > 0 {
		if d.count--; d.count == 0 {
			d.stop()
		}
	}
}

// extractError reports a directory that holds something else as a usage error.
func extractError(err error) error {
	if errors.Is(err, extract.ErrForeign) {
		return &cli.UsageError{Err: err}
	}
	return err
}
