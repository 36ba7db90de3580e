package main

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/analyze/text/results"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/show"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/table"
)

const checkLong = `Check captures against the rules of RPC-over-RDMA: RFC 8166 with RFC 8167, 8267
and 8797, and the fabric rules that these rely on. Each finding names the rule,
the packet, the side that broke it, what was expected, what was seen, and what
the peer did next. A table at the end shows for each rule how often it was
broken, and how often it could not be checked and why.

A rule that cannot be checked gives no finding: the capture lacks the setup of
the connection, packets are missing or cut, or the messages are encrypted.

Profiles:
  rfc8166  RFC 8166 and what belongs to it (default)
  rfc5666  RFC 5666: RDMA_MSGP, RDMA_DONE and the read-read model are allowed
  linux    as rfc8166, but known deviations of Linux and others are notes

Severities:
  error    a requirement is violated: the peer may refuse, misread or lose data
  warning  a recommendation is ignored, or a requirement is violated harmlessly
  note     worth knowing`

const checkExit = `Exit status:
  0  no errors found
  1  errors found (whatever --severity shows), or failure
  2  usage
  3  no errors found, but the input is truncated or malformed`

const checkExamples = `  rpcrdma-dump check trace.pcap
  rpcrdma-dump check --profile linux --severity note trace.pcap
  rpcrdma-dump check --rules 'L9,credits-*,-unused-chunk-emptied' trace.pcap
  rpcrdma-dump check -T ndjson trace.pcap | jq 'select(.severity == "error")'
  rpcrdma-dump check --list-rules`

// errFindings says that errors were found; they have been printed.
var errFindings = errors.New("errors found")

// checkOptions are the flags of the command check.
type checkOptions struct {
	inputOptions
	stateOption
	profile  string
	rules    string
	list     bool
	severity string
	format   string
	filter   string
	blamed   bool // the filter asks what time was lost to
	max      uint64
	time     timeFlag
	color    string
	quiet    bool
	numeric  bool
	resolve  bool
	cpu      string
}

func newCheckCommand(s *cli.Streams) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:     "check [flags] FILE...",
		Short:   "Find violations of the rules of RPC-over-RDMA",
		Long:    checkLong + "\n\n" + checkExit,
		Example: checkExamples,
		RunE:    func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.profile, "profile", "rfc8166", "check against the rules of `name`: rfc8166, rfc5666 or linux")
	f.StringVar(&o.rules, "rules", "", "check only the rules of this `list`: IDs, numbers (L9, L9.1), binding requirements (B4), patterns; -ID excludes one")
	f.BoolVar(&o.list, "list-rules", false, "list the rules, and exit")
	f.StringVar(&o.severity, "severity", "warning", "show findings of this severity and above: error, warning or note")
	f.Uint64Var(&o.max, "max", 10, "text: show at most `n` findings of a rule, count the rest; 0 shows all")
	f.StringVarP(&o.format, "format", "T", "text", "output `format`: text, ndjson or json")
	f.StringVarP(&o.filter, "filter", "Y", "", "only findings about transactions for which the display filter `expression` holds")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "text: only the table at the end")
	o.time.register(f)
	f.BoolVarP(&o.numeric, "numeric", "n", false, "do not look up names of hosts; this is the default")
	f.BoolVar(&o.resolve, "resolve", false, "look up names of hosts (text only)")
	f.StringVar(&o.color, "color", "auto", "`when` to use colors: auto, always or never")
	f.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	_ = f.MarkHidden("cpuprofile")
	o.stateOption.register(f)
	o.inputOptions.flags(f)
	o.scrubFlag(f)
	for flag, values := range map[string][]string{
		"format":   {"text", "ndjson", "json"},
		"color":    {"auto", "always", "never"},
		"severity": {"error", "warning", "note"},
		"profile":  check.Profiles[:],
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	_ = cmd.RegisterFlagCompletionFunc("rules", completeRule)
	return cmd
}

func completeRule(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	at := strings.LastIndexByte(prefix, ',') + 1
	var out []string
	for _, r := range check.Rules() {
		if strings.HasPrefix(r.ID, prefix[at:]) {
			out = append(out, prefix[:at]+r.ID+"\t"+r.Title)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (o *checkOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	if o.format != "text" && o.format != "ndjson" && o.format != "json" {
		return cli.Usagef("-T is text, ndjson or json, not %q", o.format)
	}
	if o.format != "text" && o.quiet {
		return cli.Usagef("-q goes with -T text")
	}
	if o.numeric && o.resolve {
		return cli.Usagef("-n and --resolve exclude each other")
	}
	opt := check.Options{Rules: check.All()}
	var ok bool
	if opt.Profile, ok = check.ParseProfile(o.profile); !ok {
		return cli.Usagef("--profile is rfc8166, rfc5666 or linux, not %q", o.profile)
	}
	least, ok := check.ParseSeverity(o.severity)
	if !ok {
		return cli.Usagef("--severity is error, warning or note, not %q", o.severity)
	}
	var err error
	if o.rules != "" {
		if opt.Rules, err = check.Select(o.rules); err != nil {
			return &cli.UsageError{Err: err}
		}
	}
	if o.list {
		return listRules(table.NewFit(s.Out, s.Columns), &opt, o.format)
	}
	if o.filter != "" {
		match, err := cli.Filter(o.filter)
		if err != nil {
			return err
		}
		opt.Match, o.blamed = match.Match, match.Blame()
	}
	color, err := cli.Color(o.color, s.Out)
	if err != nil {
		return err
	}
	r := &checkRun{show: show.Findings{
		Format: o.format, Least: least,
		Shown: results.Shown{Findings: make(map[*check.Rule]uint64), Max: o.max, Quiet: o.quiet},
		Text:  results.Findings{Clock: text.Clock{Format: o.time.format}, Color: color},
	}}
	r.show.Write = func(add func([]byte) []byte) { r.out.end(add(r.out.begin())) }
	if o.resolve {
		r.show.Text.Name = cli.NewResolver(len(o.ifaces) > 0).Name
	}
	names := append(slices.Clone(o.read), args...)
	if saved, err := areStates(names); err != nil {
		return err
	} else if saved {
		return r.states(cmd, o, s, names)
	}
	return r.capture(cmd, o, &opt, s, args)
}

// capture checks captures.
func (r *checkRun) capture(cmd *cobra.Command, o *checkOptions, opt *check.Options, s *cli.Streams, args []string) error {
	files, err := o.claim(s, args)
	if err != nil {
		return err
	}
	var saved *cli.Output
	defer func() { saved.Discard() }()
	if len(o.ifaces) == 0 {
		if saved, err = o.create(files); err != nil {
			return err
		}
	}
	stop, err := cli.Profile(files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	o.needs.Names = o.resolve
	o.need(o.save)
	j, err := start(cmd, s, &o.inputOptions, args)
	if err != nil {
		return err
	}
	if len(o.ifaces) > 0 {
		if saved, err = o.create(files); err != nil {
			return err
		}
	}
	r.job, r.out = j, newOutput(s, j.in.live, false)
	r.view = rpc.View{Names: &rpc.Names{Limit: o.memory.Names()}, Unwrap: j.keys.Contexts}
	opt.Peek, opt.Apart = j.keys.Peek(), o.save != ""
	return r.run(o, opt, s, saved)
}

// states shows what was saved.
func (r *checkRun) states(cmd *cobra.Command, o *checkOptions, s *cli.Streams, names []string) error {
	if err := onlyWith(cmd, "read", "format", "severity", "max", "quiet", "time", "numeric", "resolve", "color", "save-state", "limit-memory"); err != nil {
		return err
	}
	files, err := o.claim(s, names[len(o.read):])
	if err != nil {
		return err
	}
	saved, err := o.create(files)
	if err != nil {
		return err
	}
	defer func() { saved.Discard() }()
	all, err := readStates(names, int64(o.memory.Scale(stateBytes)))
	if err != nil {
		return err
	}
	res, err := check.FromUnits(all)
	if err != nil {
		return err
	}
	r.out, r.check = newOutput(s, false, false), res.Checker
	r.show.Begin()
	r.show.Saved(res.Findings)
	r.show.Summary(r.out, r.check)
	notes := cli.NewProblems("rpcrdma-dump", s.Err)
	for _, n := range res.Notes {
		notes.Printf("note: %s", n)
	}
	if err := errors.Join(r.out.close(), writeState(saved, all)); err != nil {
		return err
	}
	return r.found(damagedStates(s, all))
}

// checkRun is one run of the command.
type checkRun struct {
	*job
	out   *output
	check *check.Checker
	view  rpc.View
	show  show.Findings
}

func (r *checkRun) run(o *checkOptions, opt *check.Options, s *cli.Streams, saved *cli.Output) error {
	opt.Wanted = r.show.Wanted
	if match := opt.Match; match != nil {
		opt.Match = func(v *rpc.View) bool { return r.matches(match(v)) }
	}
	r.check = check.New(*opt, r.show.Finding)
	if opt.Match == nil && !r.check.Names() {
		r.view.Names = nil
	}
	o.memory.Reserve(8 << 20) // memory that connections have offered, calls that are followed
	d := o.decoder()
	d.Observe(r.check.Observer())
	if o.blamed {
		o.blame(&d)
	}
	r.d = decode.New(d, r.judge)
	r.show.Begin()
	_, outTTY := cli.Terminal(s.Out)
	_, errTTY := cli.Terminal(s.Err)
	err := r.job.run(errTTY && !outTTY)
	r.check.Finish()
	var sections []state.Section
	if o.save != "" {
		sections = append(sections, r.check.Section(o.filter))
		r.check.Sum()
	}
	r.show.Summary(r.out, r.check)
	r.noteMissed(o.filter)
	err = r.finish(err, r.out.close())
	if o.save != "" {
		err = r.commitState(saved, o.save, err, sections...)
	}
	return r.found(err)
}

// found is the error that the command ends with.
func (r *checkRun) found(err error) error {
	if (err == nil || errors.Is(err, cli.ErrDamaged)) && r.check.Totals()[check.Error] > 0 {
		return errFindings
	}
	return err
}

// judge decodes a transaction, and has it judged.
func (r *checkRun) judge(tx *transaction.Transaction) {
	v := &r.view
	v.Set(tx)
	if v.Undecoded() {
		r.notes.Message(v)
	}
	r.check.Transaction(v)
	v.Learn()
}

// listRules prints the rules that are selected.
func listRules(w io.Writer, opt *check.Options, format string) error {
	var list []*check.Rule
	c := check.New(*opt, nil)
	for _, r := range check.Rules() {
		if c.Enabled(r) {
			list = append(list, r)
		}
	}
	if format == "text" {
		return results.Rules(w, list, opt.Profile)
	}
	var b []byte
	if format == "json" {
		b = append(b, '[')
	}
	for i, r := range list {
		if format == "json" {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, '\n')
		}
		b = ndjson.AppendRule(b, r)
		if format == "ndjson" {
			b = append(b, '\n')
		}
	}
	if format == "json" {
		b = append(b, "\n]\n"...)
	}
	_, err := w.Write(b)
	return err
}
