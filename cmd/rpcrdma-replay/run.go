package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/nearest"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store"
	"github.com/rpcrdma/toolkit/replay/nfsserver/store/memory"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/verbs/tap"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// runFlags are the flags of the command run.
type runFlags struct {
	keytab string
	limit  cli.Size
	memory cli.Memory
	fabricFlags
	login       loginFlags
	provider    string
	local       []string
	dir         string
	dir3        string
	mount       string
	nlm         string
	yes         bool
	write       bool
	force       bool
	reuse       bool
	prepareOnly bool
	incomplete  bool
	noPrepare   bool
	timing      string
	speed       float64
	rate        float64
	relaxed     bool
	clones      int
	shared      bool
	stagger     time.Duration
	loop        string
	findMax     time.Duration
	warmUp      time.Duration
	connections int
	slots       int
	layout      string
	verify      string
	ignore      []string
	verifyFiles bool
	tick        time.Duration
	maxRate     float64
	maxBytes    string
	maxTime     time.Duration
	maxOps      int
	timeout     time.Duration
	patience    time.Duration
	show        int
	format      string
	report      []string
	junit       string
	baseline    string
	capture     string
	selfCheck   bool
	payload     string
	faults      []string
	uid, gid    uint32
	same        []string
	separate    bool
	span        cli.Span
	quiet       bool
	noReconnect bool
	resume      string
}

const runLong = `Replay a plan, or a capture, against an NFS server. SERVER is HOST or HOST:PORT,
or the word builtin for an in-memory server inside this program.

Nothing is sent without --yes: the command then prints what it would do. Nothing
is changed on the server without --write, and nothing outside of --dir with it:
a call that changes something is sent only if each of its handles belongs to an
object at or below that directory. A server whose address occurs in the capture
is refused without --force.

First, the files that the workload expects are created in --dir, which must be
empty (it is created if its parent exists); --prepare-only stops after that,
--no-prepare expects the files to be there. Then each call is sent with the
handles, state ids, sessions and sequence numbers of this server, once it is due
and the replies that it depends on have arrived. --timing decides when it is
due:

  captured  at its captured time, or --speed times as fast
  think     the captured time from reply to next call (divided by --speed)
  fast      as soon as the captured order allows; --relaxed keeps only the order
            that data, names, state and handles require
  rate      at --rate calls per second

Each reply is compared with the captured one:

  same        equal, except for values that each server chooses itself
  equivalent  the difference does not matter to a client; the reason is shown
  omitted     not sent: there was nothing to do on this server
  better      the captured call failed, this one succeeded
  explained   different for a reason known from the plan or the server
  worse       the captured call succeeded, this one did not
  different   anything else
  not sent, lost

Beside that, the server is checked against itself: whether it holds what this
run has written, and whether change attributes, times and handles can be right.
With --verify-files, what the run has written and removed is read back at the
end.

A plan is read as the replay goes on, so that it may have any length. With
--resume, a run that ends early (Ctrl-C, --max-ops, a server that does not
answer) writes a file with which the same command goes on later, while the
server remembers its clients.

The exit status is also 1 if a call was worse, different, not sent or lost, or
if what was read back is not what was written.`

func newRunCommand(s *cli.Streams) *cobra.Command {
	o := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run [flags] PLAN|CAPTURE SERVER",
		Short: "Replay a plan or a capture against a server",
		Long:  runLong,
		Example: "  rpcrdma-replay run trace.plan builtin --yes --write --timing fast\n" +
			"  rpcrdma-replay run trace.pcap 192.0.2.1 --dir /export/replay\n" +
			"  rpcrdma-replay run trace.plan 192.0.2.1 --dir /export/replay --yes --write \\\n" +
			"    --timing fast --capture self.pcapng --self-check",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return cli.Usagef("name a plan or a capture, and a server (or %s)", builtin)
			}
			if args[1] == builtin && !cmd.Flags().Changed("verify-files") {
				o.verifyFiles = true
			}
			if err := o.applies(cmd.Flags().Changed, args); err != nil {
				return err
			}
			return o.run(cmd.Context(), s, args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.yes, "yes", "y", false, "do it; without this, only print what would be done")
	f.BoolVar(&o.write, "write", false, "allow calls that change something, below --dir")
	f.StringVar(&o.dir, "dir", "/", "`directory` on the server that stands for the captured one")
	f.StringVar(&o.dir3, "dir3", "", "path of the same `directory` for NFSv3, where a capture has NFSv3 and NFSv4 and the server has another path for each (default --dir)")
	f.BoolVar(&o.force, "force", false, "allow a server whose address occurs in the capture")
	f.BoolVar(&o.reuse, "reuse", false, "allow a directory that is not empty")
	f.BoolVar(&o.prepareOnly, "prepare-only", false, "make the files and stop")
	f.BoolVar(&o.incomplete, "incomplete", false, "go on if more than half of the files could not be made")
	f.BoolVar(&o.noPrepare, "no-prepare", false, "do not make the files: they are there")
	f.StringVar(&o.mount, "mount", "", "`HOST:PORT` of MOUNT over TCP, for NFSv3 (default: the connection of NFS, else what rpcbind says)")
	f.StringVar(&o.nlm, "nlm", "", "`HOST:PORT` of the lock manager (NLM), for NFSv3 (default what rpcbind of the server says)")
	f.Uint32Var(&o.uid, "uid", 0, "`user` that makes the files")
	f.Uint32Var(&o.gid, "gid", 0, "`group` that makes the files")
	f.StringVar(&o.payload, "payload", string(plan.Captured), "for a CAPTURE: file data as captured, or by pattern, or sparse")

	sameFlags(f, &o.same, &o.separate)
	o.span.Flags(f)
	o.login.flags(f)
	cli.KeytabFlag(f, &o.keytab)
	o.memory.Flag(f)
	f.Var(&o.limit, "limit-plan", "text of a plan's tables (objects, clients, states), which are held in memory and take up to four times as much (default 64M)")
	f.StringVar(&o.timing, "timing", "captured", "`when` calls are sent: captured, think, fast or rate")
	cli.FactorVar(f, &o.speed, "speed", 1, "`times` as fast as captured")
	cli.FactorVar(f, &o.rate, "rate", 0, "`calls` a second, with --timing rate")
	f.BoolVar(&o.relaxed, "relaxed", false, "drop the captured order where only time connects calls (fast, rate)")
	f.IntVar(&o.clones, "clones", 1, "replay `n` copies side by side, each in its own directory")
	f.BoolVar(&o.shared, "shared", false, "all clones use one directory and its files")
	cli.DurationVar(f, &o.stagger, "stagger", 0, "begin each clone this `time` after the one before")
	f.StringVar(&o.loop, "loop", "", "replay the plan as often as `n|time` says, 3 times or for 60s, each time in new directories below --dir, which stay")
	cli.DurationVar(f, &o.findMax, "find-max", 0, "find the highest rate at which the P99 of latencies is this `time` at most; begin with --rate")
	cli.DurationVar(f, &o.warmUp, "warm-up", 0, "leave the calls of this `time` at the start out of latencies and throughput")
	cli.NumberVar(f, &o.connections, "connections", 0, math.MaxInt, "give each clone `n` connections (default as captured)")
	cli.NumberVar(f, &o.slots, "slots", 0, math.MaxInt, "at most `n` calls in flight on a connection (default as captured with fast and rate, otherwise no limit)")
	cli.FactorOrZeroVar(f, &o.maxRate, "max-rate", 0, "never more than `n` calls a second")
	f.StringVar(&o.maxBytes, "max-bytes", "", "stop after this many `bytes` of data (K, M, G)")
	cli.DurationVar(f, &o.maxTime, "max-duration", 0, "stop after this `time`")
	cli.NumberVar(f, &o.maxOps, "max-ops", 0, math.MaxInt, "stop after `n` calls")
	f.StringVar(&o.resume, "resume", "", "go on where the run that wrote this `file` has ended; write it if this one ends early")
	cli.DurationVar(f, &o.timeout, "timeout", time.Minute, "`time` after which a call without a reply is lost")
	cli.DurationVar(f, &o.patience, "patience", 2*time.Minute, "`time` that the server may put off one call (JUKEBOX, DELAY, GRACE); the run ends when three calls exceed it")
	f.BoolVar(&o.noReconnect, "no-reconnect", false, "do not connect again when a connection is lost: its calls are lost, too")

	f.StringVar(&o.verify, "verify", "all", "compare `all` of a reply, its status, or none")
	f.StringSliceVar(&o.ignore, "ignore", nil, "`fields` that are not compared, for example mode,nlink")
	f.BoolVar(&o.verifyFiles, "verify-files", false, "read back at the end what was written and removed (default true against builtin)")
	cli.DurationVar(f, &o.tick, "clock-tick", run.DefaultTick, "`time` for which the server's clock may stand still, so that two changes have one time")
	f.IntVar(&o.show, "show", 100, "list `n` calls whose replies differ")
	f.StringVarP(&o.format, "format", "T", "text", "report as `format`: text or json")
	f.StringArrayVar(&o.report, "report", nil, "also write the report to this `file`: as a page if it ends in .html, a table of its seconds if in .parquet, or else JSON; - is standard output, and the other report goes to standard error; may be repeated")
	f.StringVar(&o.junit, "junit", "", "also write the report as JUnit's XML to this `file`, a test case for each operation")
	f.StringVar(&o.baseline, "baseline", "", "accept the differences in this `file`, an earlier report in JSON: only new ones count as failures")
	f.StringVar(&o.capture, "capture", "", "write our own packets to this `file`, pcapng (soft providers and TCP)")
	f.BoolVar(&o.selfCheck, "self-check", false, "decode our own packets and demand the same transactions")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress")
	f.StringArrayVar(&o.faults, "fault", nil, "`fault` to inject, see above; may be repeated")

	f.StringVar(&o.provider, "provider", "auto", "`fabric`: "+strings.Join(fabricNames, ", "))
	f.StringVar(&o.layout, "layout", "own", "`chunks` of calls: own (the endpoint's choice) or captured")
	o.fabricFlags.flags(f)
	f.StringSliceVar(&o.local, "local", nil, "`addresses` to connect from, in turn; one with RoCEv2 (default as the system routes)")
	cmd.Long += "\n\n" + faultsLong
	fixed := func(flag string, values ...string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	fixed("provider", fabricNames...)
	fixed("timing", "captured", "think", "fast", "rate")
	fixed("verify", "all", "status", "none")
	fixed("layout", "own", "captured")
	fixed("format", "text", "json")
	fixed("sec", "sys", "krb5", "krb5i", "krb5p")
	return cmd
}

var timings = map[string]run.Timing{"captured": run.AsCaptured, "think": run.Think, "fast": run.Fast, "rate": run.FixedRate}

func (o *runFlags) options() (opt run.Options, err error) {
	opt = run.Options{Directory: o.dir, Write: o.write, Reuse: o.reuse, Speed: o.speed, Rate: o.rate, Relaxed: o.relaxed, Clones: o.clones, Shared: o.shared, Stagger: o.stagger,
		Connections: o.connections, Slots: o.slots, Ignore: o.ignore, Prepare: !o.noPrepare, PrepareOnly: o.prepareOnly, Incomplete: o.incomplete,
		VerifyFiles: o.verifyFiles, Tick: o.tick, MaxRate: o.maxRate, MaxDuration: o.maxTime, MaxOps: o.maxOps, Timeout: o.timeout, Patience: o.patience, Mismatches: o.show}
	if o.dir3 != "" {
		if opt.Directory3, err = run.CleanDirectory(o.dir3); err != nil {
			return opt, cli.Usagef("--dir3: %v", err)
		}
	}
	if opt.Directory, err = run.CleanDirectory(o.dir); err != nil {
		return opt, cli.Usagef("--dir: %v", err)
	}
	if opt.Timing, err = pick("timing", o.timing, timings); err != nil {
		return opt, err
	}
	if opt.Verify, err = pick("verify", o.verify, map[string]judge.Level{"all": judge.All, "status": judge.Status, "none": judge.Nothing}); err != nil {
		return opt, err
	}
	if opt.Layout, err = pick("layout", o.layout, map[string]bool{"own": false, "captured": true}); err != nil {
		return opt, err
	}
	if opt.Tick == 0 {
		opt.Tick = -1 // it never stands still
	}
	if o.maxBytes != "" {
		n, err := parseSize("--max-bytes", o.maxBytes)
		if err != nil {
			return opt, err
		}
		opt.MaxBytes = uint64(n)
	}
	if err := o.fits(opt.Timing); err != nil {
		return opt, err
	}
	if err := o.rounds(&opt); err != nil {
		return opt, err
	}
	return opt, o.consistent()
}

// consistent reports flags that are out of range, or do not go together.
func (o *runFlags) consistent() error {
	switch {
	case o.clones < 1 || o.clones > 10000:
		return cli.Usagef("--clones is 1 to 10000")
	case o.shared && (o.clones == 1 || o.resume != ""):
		return cli.Usagef("--shared goes with --clones, and not with --resume")
	case o.stagger > 0 && o.clones == 1:
		return cli.Usagef("--stagger goes with --clones")
	case o.tick < 0:
		return cli.Usagef("--clock-tick is not negative")
	case o.prepareOnly && o.noPrepare:
		return cli.Usagef("--prepare-only and --no-prepare exclude each other")
	case o.prepareOnly && !o.write:
		return cli.Usagef("--prepare-only makes files: it needs --write")
	case o.show < 0:
		return cli.Usagef("--show is not negative")
	case o.format != "text" && o.format != "json":
		return cli.Usagef("-T is text or json, not %q", o.format)
	}
	return nil
}

// rounds reads the flags of replays that repeat the plan.
func (o *runFlags) rounds(opt *run.Options) (err error) {
	opt.MaxP99, opt.WarmUp = o.findMax, o.warmUp
	if o.loop != "" {
		n, nerr := strconv.Atoi(o.loop)
		if nerr != nil {
			opt.LoopFor, nerr = cli.ParseDuration(o.loop)
		}
		if opt.Rounds = n; nerr != nil || n < 0 || n == 0 && opt.LoopFor <= 0 {
			return cli.Usagef("--loop is a number of rounds or a time, not %q", o.loop)
		}
	}
	if o.loop == "" && o.findMax == 0 {
		return nil
	}
	switch {
	case o.loop != "" && o.findMax > 0:
		return cli.Usagef("--loop and --find-max exclude each other")
	case o.findMax > 0 && opt.Timing != run.FixedRate:
		return cli.Usagef("--find-max goes with --timing rate and the --rate to begin with")
	case !o.write:
		return cli.Usagef("--loop and --find-max make files for each round: they need --write")
	case o.resume != "" || o.prepareOnly || o.noPrepare || o.selfCheck || o.maxOps > 0 || o.maxBytes != "" || o.maxTime > 0:
		return cli.Usagef("--loop and --find-max do not go with --resume, --prepare-only, --no-prepare, --self-check and --max-...")
	}
	return nil
}

// fits refuses flags that have no effect with a timing, and a fixed rate without --rate.
func (o *runFlags) fits(t run.Timing) error {
	switch {
	case t == run.FixedRate && o.rate <= 0:
		return cli.Usagef("--timing rate needs a --rate")
	case t != run.FixedRate && o.rate > 0:
		return cli.Usagef("--rate goes with --timing rate; --max-rate limits the others")
	case t.Paced() && o.relaxed:
		return cli.Usagef("--relaxed goes with --timing fast and rate: the others keep the captured times")
	case !t.Paced() && o.speed != 1:
		return cli.Usagef("--speed goes with --timing captured and think")
	}
	return nil
}

// builtin is the word for the server in this process, in the place of a host.
const builtin = "builtin"

// applies refuses flags that would have no effect.
func (o *runFlags) applies(given func(flag string) bool, args []string) error {
	if args[1] == builtin {
		for _, flag := range []string{"mount", "nlm"} {
			if given(flag) {
				return cli.Usagef("--%s does not go with %s, which serves everything itself", flag, builtin)
			}
		}
	}
	return noPlanFlags(args[0], given)
}

// servers checks how the servers are written, before anything is read or sent: without --yes, none of them is
// asked for.
func (o *runFlags) servers(server string) error {
	for _, x := range []struct{ flag, name string }{{"SERVER", server}, {"--mount", o.mount}, {"--nlm", o.nlm}} {
		if x.name == "" && x.flag != "SERVER" || x.name == builtin && x.flag == "SERVER" {
			continue
		}
		host, port, err := providers.Split(x.name)
		switch {
		case err != nil:
			return cli.Usagef("%s: %v", x.flag, err)
		case x.flag == "--nlm" && port == 0:
			return cli.Usagef("--nlm: %q has no port", x.name)
		case x.flag == "SERVER" && port == 0 && len(nearest.Names(host, []string{builtin})) > 0:
			// A preview asks nobody, and would be that of another server; --yes would ask the resolver first.
			return cli.Usagef("did you mean %s? A host that is called %s is written with its port, %s:%d", builtin, host, host, providers.PortTCP)
		}
	}
	return nil
}

func (o *runFlags) run(ctx context.Context, s *cli.Streams, args []string) error {
	own := args[1] == builtin
	if err := o.servers(args[1]); err != nil {
		return err
	}
	opt, err := o.options()
	if err != nil {
		return err
	}
	where, err := o.fabricFlags.options()
	if err != nil {
		return err
	}
	for _, text := range o.local {
		a, err := netip.ParseAddr(text)
		if err != nil {
			return cli.Usagef("--local: %q is not an IP address", text)
		}
		where.Local = append(where.Local, a)
	}
	faults, err := parseFaults(o.faults)
	if err != nil {
		return err
	}
	tickets, err := o.tickets(args[1])
	if err != nil {
		return err
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	files, err := o.claim(s, args[0])
	if err != nil {
		return err
	}
	load, damaged, err := o.load(ctx, s, args[0])
	if err != nil {
		return err
	}
	defer load.Close()
	if err := faults.resolve(load); err != nil {
		return err
	}
	if own && !o.noPrepare && o.dir == "/" && load.NeedsAbove() {
		opt.Directory = "/export" // what lies above the captured base has its place then
	}
	resume, err := o.resumption(s, files, &opt, own)
	if err != nil {
		return err
	}
	opt.Window, opt.WindowText = o.memory.Scale(run.DefaultWindow), o.memory.Scale(run.DefaultWindowText)
	if !o.yes {
		fmt.Fprintf(s.Out, "Nothing was sent: this is what would be done with --yes.\n\n")
		err := errors.Join(run.Preview(s.Out, load, opt, args[1], own), tickets.preview(s.Out, load, opt.Layout), resume.preview(s.Out))
		return cmp.Or(err, damaged)
	}
	out := outputs{files: files}
	defer out.discard()
	reports, err := o.reports(s, &out)
	if err != nil {
		return err
	}
	if own {
		opt.Tick = -1 // its clock counts nanoseconds
	}
	t, err := o.target(ctx, s, files, load, args[1], opt.Directory, where, faults, tickets)
	if err != nil {
		return err
	}
	defer t.close()
	opt.Dial, opt.Access, opt.Access3 = t.dial, t.access, t.access3
	witness := report.NewWitness()
	if t.packets != nil {
		opt.Observe = witness.Observe
	}
	opt.Observe = resume.observe(opt.Observe)
	if !o.quiet {
		opt.Progress = func(p run.Progress) { progress(s.Err, p) }
	}
	defer relaxGC()()
	rep, err := run.Run(ctx, load, opt)
	if rep == nil {
		return err
	}
	rep.Setup.Server = t.name
	rep.Notes = append(rep.Notes, tickets.notes(load, opt.Layout)...)
	faults.note(rep)
	if err != nil {
		rep.Notes = append(rep.Notes, err.Error())
	}
	if reports.earlier != nil {
		rep.Accept(reports.earlier)
	}
	err = errors.Join(err, o.look(t, rep, args[0], witness))
	// A failure counts more than a damaged capture, of which the rest was replayed.
	return cmp.Or(errors.Join(o.print(s, reports, rep), err, outcome(rep)), damaged)
}

// look reads what was captured of a replay: it checks the packets, and compares them with the capture that was
// replayed.
func (o *runFlags) look(t *target, rep *report.Report, original string, witness *report.Witness) error {
	err := t.captured()
	if err != nil || t.file == "" {
		return err
	}
	if o.selfCheck {
		rep.SelfCheck, err = checkSelf(witness, t.file, &o.memory, o.keytab)
	}
	if !isPlan(original) {
		diff, cerr := compareCaptures(original, t.file, &o.memory, witness.Knows)
		rep.Diff, err = diff, errors.Join(err, cerr)
	}
	return err
}

// tickets is how calls to a server are protected, on a fabric that exists.
func (o *runFlags) tickets(server string) (*ticketing, error) {
	if err := checkFabric(o.provider); err != nil {
		return nil, err
	}
	if o.selfCheck && o.login.sec == "krb5p" && o.keytab == "" && os.Getenv("KRB5_KTNAME") == "" {
		return nil, cli.Usagef("--self-check has to read what --sec krb5p encrypts: give the server's keytab with --keytab")
	}
	return o.login.open(server)
}

// claim registers the input files, so that none of them is overwritten.
func (o *runFlags) claim(s *cli.Streams, name string) (*outfile.Files, error) {
	files, err := claim(s, name)
	if err != nil {
		return nil, err
	}
	cli.ClaimKeytab(files, o.keytab)
	o.login.claim(files)
	if o.baseline != "" {
		files.Reads(o.baseline)
	}
	for i, name := range append([]string{o.capture, o.resume, o.junit}, o.report...) {
		switch {
		case name == "" || name == "-" && i >= 2:
			continue
		case name == "-":
			return nil, cli.Usagef("--capture and --resume need the name of a file, not -")
		}
		if err := files.Check(name); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// relaxGC lets the garbage collector wait longer, unless GOGC is set: in a small heap it runs during the first
// calls, which it delays by a millisecond. The returned function undoes this.
func relaxGC() func() {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if _, set := os.LookupEnv("GOGC"); set || m.HeapAlloc > 64<<20 {
		return func() {}
	}
	old := debug.SetGCPercent(400)
	return func() { debug.SetGCPercent(old) }
}

// errDiffers means that a run differed from the capture. The report has already said so.
var errDiffers = errors.New("the replay differs from the capture")

func outcome(r *report.Report) error {
	if r.SelfCheck != nil && !r.SelfCheck.OK() {
		return errors.New("the decoder did not find in the program's own packets what was sent")
	}
	if !r.Explained() {
		return errDiffers
	}
	return nil
}

// reports are the files of a run's report, and the earlier report that it is compared with; nil where there is none.
type reports struct {
	written []*cli.Output // by --report
	junit   *cli.Output
	earlier *report.Saved
}

// reports creates the files, and reads the earlier report.
func (o *runFlags) reports(s *cli.Streams, out *outputs) (r reports, err error) {
	n := 0
	for _, name := range append(o.report, o.junit) {
		if name == "-" {
			n++
		}
	}
	if n > 1 {
		return r, cli.Usagef("only one of --report and --junit can go to standard output")
	}
	if o.baseline != "" {
		if r.earlier, err = readReport(o.baseline); err != nil {
			return r, fmt.Errorf("--baseline: %w", err)
		}
	}
	for _, name := range o.report {
		to, err := out.create(s, name)
		if err != nil {
			return r, err
		}
		r.written = append(r.written, to)
	}
	r.junit, err = out.create(s, o.junit)
	return r, err
}

// readReport reads a report that run --report has written.
func readReport(name string) (*report.Saved, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := report.Load(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return r, nil
}

// print writes the report. The files get it even if the run was interrupted: it is the record of
// what was sent, and it says so.
func (o *runFlags) print(s *cli.Streams, files reports, r *report.Report) error {
	var failed error // the other outputs are written nevertheless: a replay is not repeated for a full disk
	write := func(to *cli.Output, f func(io.Writer) error) {
		if to == nil {
			return
		}
		err := f(to)
		if err == nil {
			err = to.Commit()
		}
		failed = errors.Join(failed, err)
	}
	out := s.Out
	for i, name := range o.report {
		switch filepath.Ext(name) {
		case ".html", ".htm":
			write(files.written[i], r.HTML)
		case ".parquet":
			write(files.written[i], r.Parquet)
		default:
			write(files.written[i], func(w io.Writer) error { return writeJSON(w, r) })
		}
		if cli.ToStdout(name) {
			out = s.Err
		}
	}
	write(files.junit, r.JUnit)
	if cli.ToStdout(o.junit) {
		out = s.Err
	}
	if o.format == "json" {
		return errors.Join(writeJSON(out, r), failed)
	}
	return errors.Join(r.Text(out), failed)
}

func writeJSON(w io.Writer, v any) error {
	e := printable.Encoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// defaultPlan is how many bytes of text the tables of a plan may have: the program stays
// below 256 MiB then.
const defaultPlan = 64 << 20

// text is how many bytes of text the tables of a plan may have.
func (o *runFlags) text() int64 {
	if o.limit == 0 {
		return int64(o.memory.Scale(defaultPlan))
	}
	if !o.memory.Given() {
		cli.GrantMemory(4 * max(int(o.limit)-defaultPlan, 0))
	}
	return int64(o.limit)
}

// limited adds advice to the error for a plan that is too long.
func (o *runFlags) limited(w *workload.Workload, err error) (*workload.Workload, error) {
	var long *plan.TooLongError
	if errors.As(err, &long) {
		return nil, fmt.Errorf("%w before its first call, and all of it is held in memory, which takes up to four times as much: allow more with --limit-plan, for example --limit-plan %dM", err, max(long.Limit>>19, 1))
	}
	return w, err
}

// load reads a plan, or makes a temporary one from a capture. The first error is cli.ErrDamaged if a part of the
// capture could not be read, or nil.
func (o *runFlags) load(ctx context.Context, s *cli.Streams, name string) (w *workload.Workload, damaged, err error) {
	o.memory.Decoder() // a plan obeys the limit, too
	if n := o.memory.Note(); n != "" {
		cli.Tell(s.Err, "rpcrdma-replay", "note: %s", n)
	}
	if isPlan(name) {
		w, err = o.limited(workload.Open(name, o.text()))
		return w, nil, err
	}
	dir, remove, err := outfile.TempDir("rpcrdma-replay")
	if err != nil {
		return nil, nil, err
	}
	p := &planOptions{payload: o.payload, format: "text", keytab: o.keytab, limit: o.memory, same: o.same, separate: o.separate, span: o.span}
	if _, _, err := p.check([]string{name}); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	file := filepath.Join(dir, "plan")
	damaged, err = p.build(ctx, s, nil, file, []string{name})
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	if damaged != nil {
		fmt.Fprintln(s.Err, "rpcrdma-replay: the capture is damaged: what could be read is replayed")
	}
	w, err = o.limited(workload.Open(file, o.text()))
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	w.OnClose(remove)
	return w, damaged, nil
}

// target is the server of a run, and how it is reached.
type target struct {
	name string
	// directory stands for the captured one. It exists on the built-in server.
	directory string

	fabric  *providers.Fabric
	addr    netip.AddrPort
	mount   string // HOST:PORT
	locks   lockTarget
	version string
	load    *workload.Workload
	uid     uint32
	gid     uint32
	layout  bool
	faults  *faultPlan
	tickets *ticketing

	file    string // of our own packets
	own     *ownCapture
	packets *tap.Writer
	closers []func() error
}

func (t *target) close() {
	for i := len(t.closers) - 1; i >= 0; i-- {
		_ = t.closers[i]()
	}
	t.closers = nil
}

func (o *runFlags) target(ctx context.Context, s *cli.Streams, files *outfile.Files, load *workload.Workload, server, directory string, where providers.Options, faults *faultPlan, tickets *ticketing) (*target, error) {
	t := &target{directory: directory, version: load.Version(), load: load, uid: o.uid, gid: o.gid, layout: o.layout == "captured", faults: faults, tickets: tickets}
	if err := t.open(ctx, s, files, o, server, where); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// open finds the server and opens the way to it.
func (t *target) open(ctx context.Context, s *cli.Streams, files *outfile.Files, o *runFlags, server string, where providers.Options) error {
	if err := t.capture(files, o); err != nil {
		return err
	}
	if t.packets != nil {
		where.Tap = t.packets
	}
	where.Name = o.provider
	var err error
	where.Endpoint.Reconnect, where.TCP.Reconnect = !o.noReconnect, !o.noReconnect
	where.Endpoint.Timeout, where.TCP.Timeout = o.timeout, o.timeout
	t.faults.arm(&where)
	if server == builtin {
		return t.builtin(ctx, where)
	}
	if where.Name == "auto" {
		name, tried, err := providers.Choose(ctx, server, rpcVersion(t.version), where)
		if err != nil {
			return err
		}
		cli.Tell(s.Err, "rpcrdma-replay", "provider %s: %s", name, explain(tried))
		where.Name = name
	}
	if err = t.faults.check(where.Name, false); err != nil {
		return err
	}
	if t.fabric, err = providers.Open(where); err != nil {
		return err
	}
	t.closers = append(t.closers, t.fabric.Close)
	if t.addr, err = providers.Resolve(ctx, server, t.fabric.Port()); err != nil {
		return err
	}
	t.name = fmt.Sprintf("%s over %s", t.addr, where.Name)
	if a := t.load.Knows(t.addr.Addr()); a != "" && !o.force {
		return cli.Usagef("%s occurs in the capture (%s): a replay against the machines that were captured needs --force", t.addr.Addr(), a)
	}
	if o.nlm != "" {
		at, err := providers.Resolve(ctx, o.nlm, 0)
		if err != nil {
			return cli.Usagef("--nlm %s: %v", o.nlm, err)
		}
		t.locks.tcp, t.locks.udp = at, at
	}
	t.locks.options = where
	t.mount = o.mount
	return nil
}

// capture makes the capture file of the program's own packets.
func (t *target) capture(files *outfile.Files, o *runFlags) error {
	switch {
	case o.capture != "":
		t.file = o.capture
	case o.selfCheck:
		dir, remove, err := outfile.TempDir("rpcrdma-replay")
		if err != nil {
			return err
		}
		t.closers = append(t.closers, remove)
		t.file = filepath.Join(dir, "packets.pcapng")
	default:
		return nil
	}
	var err error
	if t.own, err = newOwnCapture(files, t.file); err != nil {
		return err
	}
	t.packets = t.own.packets
	return nil
}

// captured ends the capture of the program's own packets: all connections are closed first.
func (t *target) captured() error {
	if t.packets == nil {
		return nil
	}
	err := t.fabric.Close()
	return errors.Join(err, t.own.end())
}

// builtin starts a server in this process.
func (t *target) builtin(ctx context.Context, where providers.Options) error {
	if where.Name == "auto" {
		where.Name = "rocev2"
	}
	if where.Name == "rdma" {
		return cli.Usagef("the built-in server needs an address for the provider rdma: start it with the command serve")
	}
	if where.Name == "rocev2" && len(where.Local) > 0 {
		return cli.Usagef("--local: over rocev2, the program chooses the addresses of the built-in server and of its client: use --provider tcp or iwarp")
	}
	if err := t.faults.check(where.Name, true); err != nil {
		return err
	}
	server, clients, at, err := providers.Pair(where, func(o *providers.Options) {
		if t.faults.server != nil {
			o.Wrapped = t.faults.server.Provider
		}
	})
	if err != nil {
		return err
	}
	st := memory.New(memory.Options{})
	if err := makeAll(st, t.directory); err != nil {
		return fmt.Errorf("the built-in server: %s: %w", t.directory, err)
	}
	srv := providers.NewServer(st, providers.ServerOptions{})
	t.closers = append(t.closers, srv.Close, server.Close, clients.Close)
	l, err := server.Listen(ctx, at, t.faults.wrap(srv))
	if err != nil {
		return err
	}
	t.fabric, t.addr = clients, l.Addr()
	t.name = "the built-in server over " + where.Name
	return t.builtinLocks(ctx, srv, where)
}

// makeAll makes a directory and those above it.
func makeAll(st store.Store, directory string) error {
	at := st.Root()
	for name := range strings.SplitSeq(strings.Trim(directory, "/"), "/") {
		if name == "" {
			continue
		}
		var a store.Attr
		var w store.Wcc
		if err := st.Mkdir(&store.Cred{}, at, []byte(name), &store.SetAttr{Mask: store.SetMode, Mode: 0o755}, &a, &w); err != nil {
			return err
		}
		at = a.Handle
	}
	return nil
}

func (t *target) dial(ctx context.Context, _ int, c *plan.Connection) (transport.Requester, error) {
	if c != nil && c.Program == "nlm" {
		return t.dialLocks(ctx, c)
	}
	r, err := t.fabric.Dial(ctx, t.addr, func(e *endpoint.Options) {
		if t.layout && c != nil {
			// What the captured connection agreed on.
			if c.InlineSend > 0 {
				e.InlineSend = int(c.InlineSend)
			}
			if c.InlineReceive > 0 {
				e.InlineReceive = int(c.InlineReceive)
			}
			if c.CreditsAsked > 0 {
				e.Credits = c.CreditsAsked
			}
		}
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return t.tickets.requester(ctx, t.faults.requester(r), rpcVersion(t.version))
}

// rpcVersion is the RPC version number of an NFS version.
func rpcVersion(version string) uint32 {
	if version == "3" {
		return 3
	}
	return 4
}

func (t *target) access(ctx context.Context) (*run.Access, error) { return t.accessBy(ctx, t.version) }

func (t *target) access3(ctx context.Context) (*run.Access, error) { return t.accessBy(ctx, "3") }

func (t *target) accessBy(ctx context.Context, version string) (*run.Access, error) {
	r, err := t.fabric.Dial(ctx, t.addr, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	a := &run.Access{Version: version, Cred: client.Sys("rpcrdma-replay", t.uid, t.gid)}
	if version == "3" {
		if a.Mount, err = mounter(ctx, r, t.addr.Addr(), t.mount); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	if a.NFS, err = t.tickets.requester(ctx, r, rpcVersion(version)); err != nil {
		return nil, err
	}
	return a, nil
}

// checkSelf decodes what was sent.
func checkSelf(w *report.Witness, file string, memory *cli.Memory, keytab string) (*report.SelfCheck, error) {
	keys, err := cli.LoadKeys(keytab)
	if err != nil {
		return nil, err
	}
	w.Unwrap = keys.Contexts
	r, err := capture.Open([]string{file}, capture.Options{BatchSize: memory.Batch()})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return w.Check(r, memory.Decoder())
}

// progress writes a line about a run to a terminal or a log.
func progress(w io.Writer, p run.Progress) {
	var parts []string
	for v, n := range p.Verdicts {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, verdict.Verdict(v)))
		}
	}
	late := ""
	if p.LateBy > 10*time.Millisecond {
		late = fmt.Sprintf(", %s behind", p.LateBy.Round(time.Millisecond))
	}
	waits := ""
	if p.PutOff > 0 {
		waits = fmt.Sprintf(", %d put off by the server (%s)", p.PutOff, p.PutOffWhy)
	}
	fmt.Fprintf(w, "rpcrdma-replay: %s: %d of %d calls, %d in flight%s%s; %s\n", p.Elapsed.Round(time.Second), p.Done, p.Total, p.InFlight, waits, late, strings.Join(parts, ", "))
}
