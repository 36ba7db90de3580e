package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/duplicates"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
)

// planOptions are the flags of the command plan.
type planOptions struct {
	out         string
	format      string
	payload     string
	noResults   bool
	objects     int
	memory      cli.Size
	dot         string
	ops         string
	noICRC      bool
	keytab      string
	same        []string
	separate    bool
	span        cli.Span
	openCalls   int
	connections int
	limit       cli.Memory
}

const planLong = `Turn a capture into a plan: the files that have to exist, the clients, and each
call with the calls that it depends on. A plan is a text file with one JSON
object per line, and may be edited; see docs/plan.md.

The command prints what the plan contains, and how much of it was

  exact        seen in the capture
  inferred     concluded from what was seen
  synthesised  made up, since the capture does not show it
  impossible   left out, since it cannot be replayed

with the reasons. Without -o it writes nothing. If the file is already a plan,
the command prints its summary.

Data that was written, and data that was read before anyone wrote it, goes to
PLAN.data. --payload pattern invents the data instead: PLAN.data is not needed,
and no file content leaves the capture. Names and link targets are kept.`

func newPlanCommand(s *cli.Streams) *cobra.Command {
	o := &planOptions{}
	cmd := &cobra.Command{
		Use:   "plan [flags] [-o PLAN] CAPTURE...",
		Short: "Turn a capture into a plan that can be replayed",
		Long:  planLong,
		Example: "  rpcrdma-replay plan trace.pcap -o trace.plan\n" +
			"  rpcrdma-replay plan --payload pattern trace.pcap.zst -o trace.json\n" +
			"  rpcrdma-replay plan -T json trace.plan | jq .reasons\n" +
			"  rpcrdma-replay plan --dot - --ops 100-160 trace.plan | dot -Tsvg > graph.svg",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := noPlanFlags(args[0], cmd.Flags().Changed); err != nil {
					return err
				}
			}
			return o.run(cmd.Context(), s, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.out, "output", "o", "", "write the plan to this `file`, compressed with zstd; .json leaves it as text")
	f.StringVarP(&o.format, "format", "T", "text", "print the summary as `format`: text or json")
	f.StringVar(&o.payload, "payload", string(plan.Captured), "`what` is written and read: captured, pattern or sparse (zeros)")
	f.BoolVar(&o.noResults, "no-results", false, "leave the captured results out: only statuses and data are compared then")
	f.StringVar(&o.dot, "dot", "", "write the graph of dependencies to this `file`, for Graphviz; - is standard output")
	f.StringVar(&o.ops, "ops", "", "only the operations of this `range` in the graph, for example 100-160")
	cli.PositiveVar(f, &o.objects, "limit-objects", "follow at most `n` objects and names (default 1048576)")
	f.Var(&o.memory, "limit-tables", "memory for objects, names, states and clients (default 80M)")
	sameFlags(f, &o.same, &o.separate)
	o.span.Flags(f)
	cli.KeytabFlag(f, &o.keytab)
	f.BoolVar(&o.noICRC, "no-icrc", false, "do not verify the invariant CRC of RoCE packets")
	cli.PositiveVar(f, &o.openCalls, "limit-calls", "remember at most `n` calls without a reply (default 16384)")
	cli.PositiveVar(f, &o.connections, "limit-connections", "follow at most `n` connections at once (default 8192)")
	o.limit.Flag(f)
	_ = cmd.RegisterFlagCompletionFunc("payload", cobra.FixedCompletions([]string{"captured", "pattern", "sparse"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *planOptions) run(ctx context.Context, s *cli.Streams, args []string) error {
	first, last, err := o.check(args)
	if err != nil {
		return err
	}
	o.limit.Decoder()
	if !o.limit.Given() {
		cli.GrantMemory(int(o.memory))
	}
	if n := o.limit.Note(); n != "" {
		cli.Tell(s.Err, "rpcrdma-replay", "note: %s", n)
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	if isPlan(args[0]) && (len(args) > 1 || o.out != "") {
		return cli.Usagef("%s is a plan already: it is shown alone, and without -o", args[0])
	}
	files, err := claim(s, args...)
	if err != nil {
		return err
	}
	cli.ClaimKeytab(files, o.keytab)
	out := outputs{files: files}
	defer out.discard()
	dot, err := out.create(s, o.dot)
	if err != nil {
		return err
	}
	name, damaged := args[0], error(nil)
	given := isPlan(name)
	if !given {
		name = o.out
		if name == "" {
			dir, remove, err := outfile.TempDir("rpcrdma-plan")
			if err != nil {
				return err
			}
			defer func() { _ = remove() }()
			name = filepath.Join(dir, "plan")
		}
		if damaged, err = o.build(ctx, s, files, name, args); err != nil {
			return err
		}
	}
	if !given && o.dot == "" {
		h, err := plan.ReadHeader(name)
		if err != nil {
			return err
		}
		if err := o.print(s, h); err != nil {
			return err
		}
		return damaged
	}
	r, err := plan.Open(name, int64(o.limit.Scale(maxTables))+2*int64(o.memory))
	if err != nil {
		return err
	}
	r.Stream()
	defer r.Close()
	if err := o.print(s, &r.Tables.Header); err != nil {
		return err
	}
	if dot != nil {
		if err := errors.Join(plan.Dot(dot, r, first, last), ctx.Err()); err != nil {
			return err
		}
		if err := dot.Commit(); err != nil {
			return err
		}
	}
	if given { // it may have been edited, or cut
		if err := readRest(ctx, r); err != nil {
			return err
		}
	}
	return damaged
}

// readRest reads a plan to its end.
func readRest(ctx context.Context, r *plan.Reader) error {
	for n := 1; ; n++ {
		switch _, _, err := r.Next(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case n%4096 == 0 && ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

func (o *planOptions) check(args []string) (first, last int, err error) {
	switch {
	case len(args) == 0:
		return 0, 0, cli.Usagef("name a capture file, - for standard input, or a plan")
	case o.format != "text" && o.format != "json":
		return 0, 0, cli.Usagef("-T is text or json, not %q", o.format)
	case o.out == "-":
		return 0, 0, cli.Usagef("-o -: a plan has a second file for its data, so it needs a name")
	}
	switch plan.PayloadMode(o.payload) {
	case plan.Captured, plan.Pattern, plan.Sparse:
	default:
		return 0, 0, cli.Usagef("--payload is captured, pattern or sparse, not %q", o.payload)
	}
	if err := o.span.Check(false, args); err != nil {
		return 0, 0, err
	}
	if o.ops == "" {
		return 1, 0, nil
	}
	a, b, ranged := strings.Cut(o.ops, "-")
	first, err = strconv.Atoi(a)
	if last = first; ranged && err == nil {
		last, err = strconv.Atoi(b)
	}
	if err != nil || first < 1 || last < first {
		return 0, 0, cli.Usagef("--ops is a number or a range such as 100-160, not %q", o.ops)
	}
	return first, last, nil
}

// maxTables bounds the bytes of tables that are read from a plan. --limit-tables allows more, as when the
// plan is made.
const maxTables = 96 << 20

// noPlanFlags refuses flags that say how a plan is made, if there is one already.
func noPlanFlags(name string, given func(flag string) bool) error {
	for _, flag := range []string{"payload", "no-results", "same-server", "separate-servers", "limit-objects", "since", "until", "last", "no-icrc", "limit-calls", "limit-connections"} {
		if given(flag) && isPlan(name) {
			return cli.Usagef("--%s says how a plan is made of a capture, and %s is a plan already", flag, name)
		}
	}
	return nil
}

// isPlan reports whether a file is already a plan.
func isPlan(name string) bool {
	if name == "-" {
		return false
	}
	if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
		return false
	}
	return plan.Is(name)
}

// build writes the plan. The first error is cli.ErrDamaged or nil.
func (o *planOptions) build(ctx context.Context, s *cli.Streams, files *outfile.Files, name string, args []string) (damaged, err error) {
	keys, err := cli.LoadKeys(o.keytab)
	if err != nil {
		return nil, err
	}
	dopt := decode.Options{
		SkipICRC:     o.noICRC,
		Memory:       o.limit.Decoder(),
		Transactions: transaction.Options{Open: o.openCalls},
		RoCE:         roce.Limits{Connections: o.connections},
		TCP:          decode.TCPLimits{Connections: o.connections},
	}
	tables := int(o.memory)
	if tables == 0 && o.limit.Given() {
		tables = o.limit.Scale(planner.DefaultMemory)
	}
	opt := planner.Options{
		Payload: plan.PayloadMode(o.payload), NoResults: o.noResults, Objects: o.objects, Memory: tables, Sources: args, Tool: "rpcrdma-replay", Files: files,
		Unwrap: keys.Contexts, Separate: o.separate,
	}
	opt.Retry = !slices.ContainsFunc(args, func(n string) bool {
		st, err := os.Stat(n)
		return err != nil || !st.Mode().IsRegular() // a pipe can be read only once
	})
	for _, pair := range o.same {
		same, err := planner.ParseSame(pair)
		if err != nil {
			return nil, cli.Usagef("--same-server: %v", err)
		}
		opt.Same = append(opt.Same, same)
	}
	if !opt.Retry {
		// Nobody can end the wait for the writer of a pipe: a signal ends the program, and nothing stays behind.
		defer cli.OnSignal(func(int) bool { return false })()
		if ctx.Err() != nil { // one that came before
			return nil, errInterrupted
		}
	}
	in, sum, problems, err := o.once(ctx, s, name, args, dopt, opt)
	var late *planner.LateError
	for again := 1; opt.Retry && errors.As(err, &late); again++ {
		opt.Same, opt.Answered, opt.Retry = append(opt.Same, late.Same...), append(opt.Answered, late.Answered...), again < maxAgain
		_ = in.Close()
		in, sum, problems, err = o.once(ctx, s, name, args, dopt, opt)
	}
	if in == nil {
		return nil, err
	}
	defer in.Close()
	if sum != nil && errors.As(err, &late) {
		cli.Tell(s.Err, "rpcrdma-replay", "note: %v; --same-server %s,%s plans them together", late, late.Same[0].Addr, late.Same[0].As)
		err = late.Rest
	}
	if sum == nil {
		if errors.Is(err, context.Canceled) {
			return nil, errInterrupted
		}
		return nil, err
	}
	keys.Notes(func(format string, args ...any) { cli.Tell(s.Err, "rpcrdma-replay", format, args...) })
	problems.Release()
	if err != nil {
		cli.Tell(s.Err, "rpcrdma-replay", "%v; the plan holds what came before", err)
	}
	if err != nil || problems.Damaged() {
		damaged = cli.ErrDamaged
	}
	return damaged, nil
}

var errInterrupted = errors.New("interrupted: no plan was written")

// maxAgain is how often a plan is made again because servers turned out to be one, or calls to have been sent again.
const maxAgain = 4

// once makes the plan. The reader is nil if the capture cannot be opened. The problems of the capture wait for their release.
func (o *planOptions) once(ctx context.Context, s *cli.Streams, name string, args []string, dopt decode.Options, opt planner.Options) (capture.Reader, *plan.Summary, *cli.Problems, error) {
	if err := cli.Distinct("", args); err != nil {
		return nil, nil, nil, err
	}
	from := capture.Options{BatchSize: o.limit.Batch()}
	span, err := o.span.Open(args, from)
	if err != nil {
		return nil, nil, nil, err
	}
	from.Stdin = s.In
	in, err := duplicates.Open(args, from)
	if format, ok := errors.AsType[*capture.FormatError](err); ok && len(args) == 1 {
		format.Other = "a plan"
	}
	if err != nil {
		return nil, nil, nil, err
	}
	problems := cli.NewProblems("rpcrdma-replay", s.Err)
	problems.Hold()
	opt.Decoded = problems.Message
	opt.Ended = func(d *decode.Decoder) {
		st, orphans := d.Stats(), d.Orphans()
		list, total := in.Problems()
		problems.Files(list, total, &st)
		problems.Headers(&orphans.Malformed)
		problems.Selected(span)
		problems.CapturedTwice(in)
		problems.Backwards(&st)
		problems.Packets(&st, total)
		if a := d.Account(); a.Packets > 0 && a.Transactions == 0 {
			problems.Printf("note: no transactions: %s", text.Account(nil, &a, 12))
		}
		problems.GivenUp(orphans.Evicted, &st, cli.LimitFlags)
	}
	sum, err := planner.Build(ctx, span.Reader(in), name, dopt, opt)
	return in, sum, problems, err
}

// sameFlags adds the flags about servers with several addresses.
func sameFlags(f *pflag.FlagSet, same *[]string, separate *bool) {
	f.StringArrayVar(same, "same-server", nil, "two `addresses` of one server, with a comma between them; may be repeated")
	f.BoolVar(separate, "separate-servers", false, "each address is a separate server, whatever the capture shows")
}

func (o *planOptions) print(s *cli.Streams, h *plan.Header) error {
	out := s.Out
	if cli.ToStdout(o.dot) {
		out = s.Err
	}
	if o.format == "text" {
		return h.Text(out)
	}
	return writeJSON(out, h.Summary)
}
