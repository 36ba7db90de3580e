package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

const unitLong = `Decode the captures of one tap, in their order, and write what reports are made
from, and Parquet files of transactions, to a store. There is no engine: for a
Kubernetes Job, an array of Slurm, or a shell loop.

IN is a file, a pattern, or a folder with a slash at its end: a path, file://,
s3:// or gs://. OUT is a folder of a store. A run that was interrupted goes on
after the last Parquet file when it is started again with the same arguments; a
unit that is done is not decoded again.`

// unitFlags are the flags of what changes the result of a unit.
type unitFlags struct {
	tap      string
	by       string
	interval time.Duration
	inline   string
	memory   cli.Size
	message  cli.Size
	part     cli.Size
	opt      layout.Options
}

func (o *unitFlags) register(f *pflag.FlagSet) {
	o.opt = layout.DefaultOptions()
	o.memory, o.part = cli.Size(o.opt.Memory), cli.Size(o.opt.PartBytes)
	f.StringVar(&o.tap, "tap", "", "`name` of the tap that all files are of (default: the folder of each file)")
	f.StringVar(&o.by, "by", "operation", "report: group by these `keys`, separated by commas: "+strings.Join(latency.KeyNames(), ", ")+", or none")
	cli.DurationVarP(f, &o.interval, "interval", "d", 0, "report: `length` of the intervals of the table over time (default: one that suits)")
	f.IntVar(&o.opt.Top, "top", o.opt.Top, "report: keep the `n` slowest transactions")
	f.StringVar(&o.inline, "inline", "1024,4096,16384,65536", "report: inline thresholds to try, in `bytes`, separated by commas")
	f.StringVar(&o.opt.Profile, "profile", o.opt.Profile, "check: the rules of `name`: "+strings.Join(check.Profiles[:], ", "))
	f.StringVar(&o.opt.Rules, "rules", "", "check: only the rules of this `list`")
	f.StringVarP(&o.opt.Filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	f.BoolVar(&o.opt.NoICRC, "no-icrc", false, "do not verify the invariant CRC of RoCE packets")
	f.IntVar(&o.opt.OpenCalls, "limit-calls", 0, "remember at most `n` calls without a reply (default 16384)")
	f.IntVar(&o.opt.Connections, "limit-connections", 0, "follow at most `n` connections at once (default 8192)")
	f.Var(&o.message, "limit-message", "longest message to assemble from chunks (default 4M)")
	f.Var(&o.memory, "limit-memory", "resident memory of a worker, at least 40M")
	f.Var(&o.part, "part", "end a Parquet file after the capture with which this many `bytes` have been read")
	f.Lookup("limit-memory").DefValue, f.Lookup("part").DefValue = "200M", "512M" // not in bytes
}

// options checks the flags.
func (o *unitFlags) options() (layout.Options, error) {
	x := o.opt
	keys, err := latency.ParseKeys(o.by)
	if err != nil {
		return x, cli.Usagef("--by: %v", err)
	}
	x.By = []string{}
	if len(keys) > 0 {
		x.By = strings.Split(o.by, ",")
	}
	x.Inline = []uint32{}
	if o.inline != "" && o.inline != "none" {
		for word := range strings.SplitSeq(o.inline, ",") {
			var n cli.Size
			if err := n.Set(strings.TrimSpace(word)); err != nil || n > 1<<24 {
				return x, cli.Usagef("--inline: %q is not a threshold", word)
			}
			x.Inline = append(x.Inline, uint32(n))
		}
	}
	if _, err := cli.Filter(x.Filter); err != nil {
		return x, err
	}
	if x.Rules != "" {
		if _, err := check.Select(x.Rules); err != nil {
			return x, &cli.UsageError{Err: err}
		}
	}
	switch _, ok := check.ParseProfile(x.Profile); {
	case !ok:
		return x, cli.Usagef("--profile is %s, not %q", strings.Join(check.Profiles[:], ", "), x.Profile)
	case x.Top < 0 || x.Top > 1000:
		return x, cli.Usagef("--top is a number of transactions")
	case o.interval < 0:
		return x, cli.Usagef("--interval is a length of time")
	case o.memory < cli.LeastMemory || o.memory > 64<<30:
		return x, cli.Usagef("--limit-memory is at least %dM, and at most 64G", cli.LeastMemory>>20)
	case o.part < 1:
		return x, cli.Usagef("--part is a number of bytes")
	case o.tap != "" && layout.CheckTap(o.tap) != nil:
		return x, cli.Usagef("--tap: %v", layout.CheckTap(o.tap))
	}
	x.Interval, x.Memory, x.PartBytes, x.Message = int64(o.interval), int64(o.memory), int64(o.part), int(o.message)
	return x, nil
}

type unitOptions struct {
	unitFlags
	out   string
	key   string
	again bool
}

func newUnitCommand(s *cli.Streams) *cobra.Command {
	o := &unitOptions{}
	cmd := &cobra.Command{
		Use:   "unit [flags] IN... -w OUT",
		Short: "Decode the captures of one tap, without any engine",
		Long:  unitLong,
		Example: `  rpcrdma-fleet unit 'captures/nfs-7/*.pcap*' -w results
  rpcrdma-fleet unit 's3://caps/nfs-7/*.pcap.zst' -w s3://results
  rpcrdma-fleet unit --tap nfs-7 a.pcap b.pcap -w /data/results`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, s, args) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.out, "write", "w", "", "`store` for the results: a folder, file:///folder, s3://bucket/folder or gs://bucket/folder")
	o.unitFlags.register(f)
	f.StringVar(&o.key, "resume-key", "", "sign what is kept for resuming with what is in this `file`, and use only what is signed by it")
	f.BoolVar(&o.again, "again", false, "decode the unit even if it is done")
	return cmd
}

// readKey reads the file that a flag names: a key.
func readKey(flag, name string) ([]byte, error) {
	if name == "" {
		return nil, nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if len(b) < 16 {
		return nil, cli.Usagef("%s: %s has %d bytes: a key has at least 16", flag, name, len(b))
	}
	return b, nil
}

func (o *unitOptions) run(cmd *cobra.Command, s *cli.Streams, args []string) error {
	opt, err := o.options()
	switch {
	case err != nil:
		return err
	case len(args) == 0:
		return cli.Usagef("no input: name captures, or a pattern")
	case o.out == "":
		return cli.Usagef("no output: name a store with -w")
	}
	key, err := readKey("--resume-key", o.key)
	if err != nil {
		return err
	}
	ctx, stop := cli.Context(cmd.Context())
	defer stop()
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	io := store.Options{Log: notes.Printf}
	in := store.NewInputs(io)
	defer in.Close()
	units, err := unit.Plan(ctx, in, args, o.tap, opt)
	if err != nil {
		return err
	}
	if len(units) > 1 {
		return cli.Usagef("the files are of %d taps, such as %q and %q: a unit is one tap; name it with --tap, or use run", len(units), units[0].Tap, units[1].Tap)
	}
	out, err := store.Open(ctx, o.out, io)
	if err != nil {
		return err
	}
	defer out.Close()
	if units, err = unit.Follow(ctx, in, out, units, notes.Printf); err != nil {
		return err
	}
	u := units[0]
	cli.LimitProcess(int(opt.Memory))
	if err := job.Put(ctx, out, u); err != nil {
		return err
	}
	d, err := unit.Run(ctx, u, in, out, unit.Options{Key: key, Log: notes.Printf, Again: o.again, Progress: progress(s, u)})
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%w: run it again to go on", cli.ErrInterrupted)
		}
		return err
	}
	return told(s, notes, d)
}

// told says what became of a unit.
func told(s *cli.Streams, notes *cli.Problems, d *layout.Done) error {
	for i := range d.Problems {
		notes.Printf("%s", d.Problems[i].String())
	}
	if n := d.Damage - uint64(len(d.Problems)); n > 0 && len(d.Problems) > 0 {
		notes.Printf("%d more problems", n)
	}
	for _, n := range d.Notes {
		notes.Printf("note: %s", n)
	}
	_, err := fmt.Fprintf(s.Out, "unit %s: tap %s, %s, %s, %s, %s of Parquet\n", d.Unit, printable.Line(d.Tap), units.Plural(d.Counts.Files, "file"),
		units.Plural(d.Counts.Packets, "packet"), units.Plural(d.Counts.Transactions, "transaction"), units.Plural(len(d.Results), "file"))
	if err != nil {
		return err
	}
	if d.Status != 0 {
		return cli.ErrDamaged
	}
	return nil
}

// progress shows how far a unit is, if somebody looks at it.
func progress(s *cli.Streams, u *layout.Unit) func(unit.Progress) {
	if _, tty := cli.Terminal(s.Err); !tty {
		return nil
	}
	total, last := u.Bytes(), time.Now()
	return func(p unit.Progress) {
		if now := time.Now(); now.Sub(last) >= 2*time.Second {
			last = now
			fmt.Fprintf(s.Err, "rpcrdma-fleet: %d of %d files, %d of %d MB, %d packets\n", p.Files, len(u.Files), p.Stored>>20, total>>20, p.Packets)
		}
	}
}
