package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/monitor"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/metrics"
	"github.com/rpcrdma/toolkit/cmd/internal/sandbox"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

const rootLong = `rpcrdma-top shows the activity on an RDMA network: operations per second, their
latency and its phases; the transactions that are open now and the progress of
their chunks; connections with their credits; the busiest files and clients;
latency over time.

It replays captures at the speed at which they were taken, or at another one:
--speed. "-r -" is standard input, for example from tcpdump -U -w -.

With -i it captures. Once the interfaces and the address of --listen are open,
it gives up root, capabilities, files and network: -Z, --sandbox.

With --batch it needs no terminal: it prints plain tables, one set for each
interval, or one at the end with --batch 0. In both modes --listen serves
metrics to Prometheus.

Columns, order, thresholds, theme and more can be set in a configuration file,
$XDG_CONFIG_HOME/rpcrdma/top.toml (~/.config/rpcrdma/top.toml), whose keys are
in docs/rpcrdma-top.md. Flags count more. VIEW is overview, transactions,
connections, files, clients, fabric or sessions; a column has the name that the
key c shows.`

const rootExit = `Exit status:
  0  success
  1  failure: a file cannot be read, output cannot be written; with
     --fail-on-alarm, that there was an alarm
  2  usage
  3  finished, but the input is truncated or malformed`

const rootExamples = `  rpcrdma-top -r trace.pcap
  rpcrdma-top -r trace.pcap --speed 10 -Y 'op == WRITE'
  rpcrdma-top -i eth0 -d 2
  tcpdump -i eth0 -U -w - udp port 4791 | rpcrdma-top -r -
  rpcrdma-top -r trace.pcap --batch 0
  rpcrdma-top -r trace.pcap --batch 5 -d 0.5
  rpcrdma-top -r trace.pcap -b --columns transactions=age,xid,operation
  rpcrdma-top -r trace.pcap -b --alarm p99=1s --fail-on-alarm
  rpcrdma-top -i eth0 --batch 0 --listen :9400
  rpcrdma-top -D`

type options struct {
	read       []string
	interfaces []string
	ports      []string
	rpc        bool
	promisc    bool
	events     cli.Events
	direct     bool // no tunnels
	speed      speedFlag
	interval   time.Duration
	stuck      time.Duration
	linger     time.Duration
	alarms     []string
	thresholds monitor.Thresholds // made of them
	fail       bool               // on an alarm
	bell       bool
	columns    []string
	sorts      []string
	layout     arrangements // made of them
	theme      string
	inks       map[tone]*string // colors that the user chose
	look       *theme           // made of them
	resolve    bool
	config     string
	configFile *config // nil: none
	keep       cli.Size
	keepGiven  bool
	filter     string
	batch      int
	batching   bool
	verbose    bool
	listen     string
	color      string
	ascii      bool
	noMouse    bool
	noICRC     bool
	keytab     string
	span       cli.Span
	memory     cli.Memory
	cpu        string
	box        sandbox.Options
	links      cli.Interfaces
}

// speedFlag is a factor, or max.
type speedFlag float64

func (s *speedFlag) Type() string { return "factor" }

func (s *speedFlag) String() string {
	if *s == 0 {
		return "max"
	}
	return strconv.FormatFloat(float64(*s), 'g', -1, 64)
}

func (s *speedFlag) Set(v string) error {
	if v == "max" {
		*s = 0
		return nil
	}
	f, err := strconv.ParseFloat(strings.TrimPrefix(v, "x"), 64)
	if err != nil || f < 0 || f > 1e9 || f != f {
		return fmt.Errorf("%q is not a speed: use for example 1, 0.5, 10 or max", v)
	}
	*s = speedFlag(f)
	return nil
}

func newRootCommand(s *cli.Streams) *cobra.Command {
	o := &options{speed: 1, thresholds: monitor.DefaultThresholds, inks: make(map[tone]*string)}
	cmd := cli.NewRoot(&cobra.Command{
		Use:     "rpcrdma-top [flags] [FILE...]",
		Short:   "Show the activity on an RDMA network",
		Long:    rootLong + "\n\n" + rootExit,
		Example: rootExamples,
		Args:    cli.CommandOrFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.links.Wanted {
				return o.links.List(s.Out)
			}
			o.read = append(o.read, args...)
			o.batching = cmd.Flags().Changed("batch")
			if o.batching && !cmd.Flags().Changed("speed") {
				o.speed = 0 // nobody watches
			}
			o.keepGiven = cmd.Flags().Changed("keep")
			if err := o.configure(cmd.Flags().Changed); err != nil {
				return err
			}
			if o.batching {
				o.keep = 0 // nobody selects what to write
			}
			return o.run(s)
		},
	}, s)
	f := cmd.Flags()
	f.SortFlags = false
	f.StringArrayVarP(&o.read, "read", "r", nil, "replay this `file` (repeatable); - is standard input")
	f.StringArrayVarP(&o.interfaces, "interface", "i", nil, "capture on this network `interface` instead (repeatable); any is all of them, trace the kernel's own events, which need no packets")
	f.StringSliceVar(&o.ports, "ports", nil, "with -i: `list` of TCP ports of iWARP (default 20049)")
	f.BoolVar(&o.rpc, "rpc", false, "with -i: also rpcbind, MOUNT and NFS over TCP and UDP")
	f.BoolVar(&o.direct, "no-tunnels", false, "with -i: nothing that is wrapped in a tunnel or mirror")
	o.links.Flag(f)
	f.BoolVarP(&o.promisc, "promisc", "p", false, "with -i: also take frames for other stations (promiscuous mode)")
	o.events.Flag(f)
	o.box.Flags(f)
	f.Var(&o.speed, "speed", "replay at this multiple of the captured speed; max or 0 does not wait at all (default 1; with --batch max)")
	f.Lookup("speed").DefValue = ""
	cli.DurationVarP(f, &o.interval, "interval", "d", time.Second, "`length` of an interval in seconds or such as 500ms, in the time of the capture")
	cli.DurationVar(f, &o.stuck, "stuck", time.Second, "a call is stuck if none of its packets was seen for this `time`")
	cli.DurationVar(f, &o.linger, "linger", 10*time.Second, "keep listing transactions for this `time` after their end")
	f.StringArrayVar(&o.alarms, "alarm", nil, "raise an alarm at this `threshold` in an interval (repeatable): NAME=VALUE with again, marked, stalled, errors as 1% or 0.01; cnp, rnr, fatal a second; p99 as 100ms; stuck calls; 0 is off")
	f.BoolVar(&o.fail, "fail-on-alarm", false, "exit with status 1 if there was an alarm, and say which")
	f.BoolVar(&o.bell, "bell", false, "ring the terminal's bell at a new alarm")
	f.StringVarP(&o.filter, "filter", "Y", "", "only transactions for which the display filter `expression` holds")
	f.IntVarP(&o.batch, "batch", "b", 0, "print tables for `n` intervals instead of a live screen; 0: one at the end of the input")
	f.BoolVarP(&o.verbose, "verbose", "v", false, "with --batch: print whole lists")
	f.StringVar(&o.listen, "listen", "", "serve metrics to Prometheus at this `address`; :PORT is on this host only")
	f.StringArrayVar(&o.columns, "columns", nil, "`VIEW=COLUMN,...`: show these columns in this order, or with - before their names not these (repeatable)")
	f.StringArrayVar(&o.sorts, "sort", nil, "`VIEW=COLUMN`: sort by this column; -COLUMN: the other way round; none: as the rows come (repeatable)")
	f.Var(&o.keep, "keep", "with -i: hold the latest packets, up to this size, such as 64M, for the key w; it writes them to the working directory")
	f.BoolVar(&o.resolve, "resolve", false, "look up names of hosts")
	f.StringVar(&o.config, "config", "", "read this configuration `file`, or none (default: see above)")
	f.StringVar(&o.theme, "theme", "auto", "`name` of the colors: auto (dark or light, as the terminal says), dark, light, high-contrast or none")
	f.StringVar(&o.color, "color", "auto", "`when` to use colors: auto, always or never")
	f.BoolVar(&o.ascii, "ascii", false, "use ASCII only; this is the default without a UTF-8 locale")
	f.BoolVar(&o.noMouse, "no-mouse", false, "leave the mouse to the terminal, so that it selects text")
	o.span.Flags(f)
	cli.KeytabFlag(f, &o.keytab)
	f.BoolVar(&o.noICRC, "no-icrc", false, "do not verify the invariant CRC of RoCE packets")
	o.memory.Flag(f)
	f.StringVar(&o.cpu, "cpuprofile", "", "write a CPU profile to this `file`")
	_ = f.MarkHidden("cpuprofile")
	_ = cmd.RegisterFlagCompletionFunc("theme", cobra.FixedCompletions(themeNames, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("columns", completeColumns)
	_ = cmd.RegisterFlagCompletionFunc("sort", completeColumns)
	_ = cmd.RegisterFlagCompletionFunc("alarm", completeAlarms)
	_ = cmd.RegisterFlagCompletionFunc("color", cobra.FixedCompletions([]string{"auto", "always", "never"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("speed", cobra.FixedCompletions([]string{"max", "1", "10", "100"}, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(cli.NewManCommand("rpcrdma-top", s.Err))
	return cmd
}

func (o *options) check() error {
	switch {
	case len(o.read) == 0 && len(o.interfaces) == 0:
		return cli.Usagef("no input: name a capture file with -r (- is standard input) or a network interface with -i")
	case len(o.read) > 0 && len(o.interfaces) > 0:
		return cli.Usagef("-r and -i exclude each other")
	case len(o.interfaces) == 0 && o.box.Given():
		return cli.Usagef("-Z and --sandbox go with -i")
	case len(o.interfaces) == 0 && (len(o.ports) > 0 || o.rpc || o.direct || o.promisc):
		return cli.Usagef("--ports, --rpc, --no-tunnels and -p go with -i")
	case len(o.interfaces) == 0 && o.keepGiven:
		return cli.Usagef("--keep goes with -i: files are read again")
	case o.interval < time.Millisecond || o.interval > 24*time.Hour:
		return cli.Usagef("--interval is between 1ms and 24h")
	case o.stuck <= 0 || o.linger <= 0:
		return cli.Usagef("--stuck and --linger are times above zero")
	case o.batch < 0:
		return cli.Usagef("--batch is a number of intervals, or 0 for one table at the end")
	case o.color != "auto" && o.color != "always" && o.color != "never":
		return cli.Usagef("--color is auto, always or never, not %q", o.color)
	}
	var err error
	if err := o.span.Check(len(o.interfaces) > 0, o.read); err != nil {
		return err
	}
	if o.look, err = parseTheme(o.theme); err != nil {
		return cli.Usagef("--theme: %w", err)
	}
	for t, c := range o.inks {
		o.look.set(t, *c)
	}
	return errors.Join(thresholds(&o.thresholds, o.alarms), o.layout.flags(o.columns, o.sorts))
}

// completeColumns completes the values of --columns and --sort.
func completeColumns(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, v := range tables {
		name := strings.ToLower(viewNames[v])
		if !strings.HasPrefix(typed, name+"=") {
			out = append(out, name+"=")
			continue
		}
		head := typed[:max(strings.LastIndexAny(typed, "=,"), 0)+1]
		out = nil
		for _, c := range emptyTable(v).names() {
			out = append(out, head+c)
		}
		break
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

func completeAlarms(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, n := range alarmNames() {
		out = append(out, n+"=")
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// saveDir is the directory that files are written to while capturing.
func (o *options) saveDir() string {
	dir, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}

func (o *options) run(s *cli.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	match, err := cli.Filter(o.filter)
	if err != nil {
		return err
	}
	files, err := o.claim(s)
	if err != nil {
		return err
	}
	stop, err := cli.Profile(files, o.cpu)
	if err != nil {
		return err
	}
	defer stop()
	interrupts := &interrupts{c: make(chan struct{}, 2)}
	defer interrupts.unwatch()
	box, err := o.openBox(interrupts)
	if err != nil {
		return err
	}
	keys, err := cli.LoadKeys(o.keytab)
	if err != nil {
		return err
	}
	src, err := openSource(o, s.In)
	if err != nil {
		return err
	}
	notes := cli.NewProblems("rpcrdma-top", s.Err)
	if n := o.memory.Note(); n != "" {
		notes.Printf("note: %s", n)
	}
	m, kept := o.model(match, src, notes, keys)
	fopt := monitor.FeedOptions{Speed: float64(o.speed), Live: src.live, Reopen: src.again}
	shown, err := o.display(s, &fopt)
	if err != nil {
		return err
	}
	if shown.screen == nil {
		interrupts.watch()
	}
	// The address is opened before anything else, so that a mistake shows at once.
	var served *metrics.Server
	if o.listen != "" {
		if served, err = metrics.Listen("rpcrdma-top", o.listen); err != nil {
			return err
		}
		defer served.Close()
	}
	if box != nil {
		if err := confine(box, o.needs(), s.Err); err != nil {
			return err
		}
	}
	shown.begin(s.Err, notes, src)
	feed := monitor.Start(m, src, fopt)
	if served != nil {
		served.Serve(collector{feed})
		if shown.screen == nil {
			fmt.Fprintf(s.Err, "rpcrdma-top: metrics at http://%s/metrics\n", served.Addr())
		}
	}
	save := newSaver(o, files, src, kept, keys)
	ended, err := o.watch(s, feed, src, shown, save, interrupts.c)
	save.end()
	feed.Stop()
	src.end()
	if src.live {
		src.counters(s.Err)
	}
	if ended {
		inputProblems(notes, feed.Ending())
		keys.Notes(notes.Printf)
	}
	switch alarm := o.fail && raised(s.Err, feed.Latest()); {
	case err != nil:
		return err
	case alarm:
		return errAlarm
	case notes.Damaged() && ended:
		return cli.ErrDamaged
	}
	return nil
}

// model makes the model of a source, and what keeps its packets, if that is wanted.
func (o *options) model(match *filter.Filter, src *source, notes *cli.Problems, keys *cli.Keys) (*monitor.Model, *keeper) {
	opt := monitor.Options{
		Interval: o.interval, Stuck: o.stuck, Linger: o.linger, Filter: match,
		Groups: o.listen != "", Message: notes.Message, Unwrap: keys.Contexts, Alarms: o.thresholds,
	}
	opt.Decode.SkipICRC, opt.Decode.Live = o.noICRC, src.live
	opt.Decode.Memory = o.memory.Decoder()
	opt.Names = o.memory.Names()
	opt.Fabric, opt.Sessions = o.memory.Scale(fabric.DefaultMemory), o.memory.Scale(session.DefaultMemory)
	opt.Why = o.memory.Scale(16 << 20)
	if len(o.read) == 1 && o.read[0] != "-" {
		opt.File = filepath.Base(o.read[0])
	}
	var kept *keeper
	if src.live && o.keep > 0 {
		cli.GrantMemory(2 * int(o.keep)) // a copy is made to write from
		kept = newKeeper(int(o.keep))
		opt.Decode.Observe(decode.Observer{Packet: kept.packet})
	}
	m := monitor.New(opt)
	if src.drops != nil {
		m.Drops(src.drops)
	}
	return m, kept
}

// openBox chooses who the program becomes; nil if it does not capture.
func (o *options) openBox(i *interrupts) (*sandbox.Box, error) {
	if len(o.interfaces) == 0 {
		return nil, nil
	}
	box, err := o.box.Open(o.keep > 0)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	if o.batching {
		i.watch()
	}
	return box, nil
}

// needs are the files that a confined program still writes.
func (o *options) needs() (n sandbox.Needs) {
	if o.keep > 0 {
		n.Files = []string{filepath.Join(o.saveDir(), "part")} // or whatever it is called
	}
	n.Names = o.resolve
	return n
}

// interrupts are signals that end the input if there is no screen. One that arrives while privileges are
// given up loses no packets in the rings.
type interrupts struct {
	c    chan struct{}
	undo func()
}

func (i *interrupts) watch() {
	if i.undo != nil {
		return
	}
	i.undo = cli.OnSignal(func(n int) bool {
		if n > 2 {
			return false
		}
		i.c <- struct{}{}
		return true
	})
}

func (i *interrupts) unwatch() {
	if i.undo != nil {
		i.undo()
	}
}

// display is where figures are shown: one of the two fields is not nil.
type display struct {
	screen *styles
	keys   *os.File // of the screen: where they come from
	tables *batchPrinter
}

// display chooses between a live screen and tables. Styles are created, and the terminal is opened, before privileges are given up:
// detecting the terminal's capabilities may need files.
func (o *options) display(s *cli.Streams, feed *monitor.FeedOptions) (*display, error) {
	columns, tty := cli.Terminal(s.Out)
	color, err := cli.Color(o.color, s.Out)
	if err != nil {
		return nil, err
	}
	if tty && !o.batching && os.Getenv("TERM") != "dumb" {
		in := s.In
		if o.readsStdin() {
			in = nil // it is the capture
		}
		if keys := cli.Keyboard(in); keys != nil {
			return &display{screen: newStyles(s.Out, color, o.look), keys: keys}, nil
		}
	}
	if !o.batching {
		fmt.Fprintln(s.Err, "rpcrdma-top: no terminal for a live screen; tables for each interval instead, as with --batch")
	}
	out := newBatchPrinter(s.Out, o, columns, color)
	if out.each() {
		feed.Interval = out.interval
	}
	feed.Refresh = time.Second
	return &display{tables: out}, nil
}

// begin holds problems back while a screen is shown. Without one it prints the notes about the source.
func (d *display) begin(w io.Writer, notes *cli.Problems, src *source) {
	if d.screen != nil {
		notes.Hold()
		return
	}
	if src.notes != nil {
		for _, n := range src.notes() {
			fmt.Fprintf(w, "rpcrdma-top: %s\n", n)
		}
	}
}

// confine gives up privileges, files and network.
func confine(box *sandbox.Box, n sandbox.Needs, w io.Writer) error {
	err := box.Drop()
	if err == nil {
		err = box.Confine(n)
	}
	if err != nil {
		return err
	}
	for _, n := range box.Notes() {
		fmt.Fprintf(w, "rpcrdma-top: note: %s\n", n)
	}
	return nil
}

// watch shows the figures until the input ends or the user quits; ended is false if part of the input was not
// wanted.
func (o *options) watch(s *cli.Streams, feed *monitor.Feed, src *source, d *display, save *saver, interrupts <-chan struct{}) (ended bool, err error) {
	if d.screen == nil {
		err = o.tables(feed, d.tables, src, interrupts)
		return !d.tables.enough, err
	}
	err = o.screen(s, feed, src.name, d, save)
	ended = true
	select {
	case <-feed.Done():
	default:
		ended = false // the user left
		feed.Stop()
		src.end()
		<-feed.Done()
	}
	return ended, errors.Join(err, feed.Wait())
}

// claim registers the files that are read, so that none of them is overwritten.
func (o *options) claim(s *cli.Streams) (*outfile.Files, error) {
	files := o.inputs(s)
	if o.configFile != nil {
		files.Reads(o.configFile.path)
		o.configFile.files = o.inputs(s) // it is the one who may write that
	}
	files.Prints(s.Out)
	return files, files.CheckStream("standard output", s.Out)
}

// inputs are the captures, and the keytab.
func (o *options) inputs(s *cli.Streams) *outfile.Files {
	files := &outfile.Files{}
	for _, n := range o.read {
		if n == "-" {
			files.ReadsStream("standard input", s.In)
		} else {
			files.Reads(n)
		}
	}
	cli.ClaimKeytab(files, o.keytab)
	return files
}

// screen runs the live screens.
func (o *options) screen(s *cli.Streams, feed *monitor.Feed, name string, d *display, save *saver) error {
	u := newUI(feed, name, d.screen, glyphsFor(o.ascii || !cli.UTF8()))
	u.arrange(o.layout)
	if o.resolve {
		u.hosts = newHosts(len(o.interfaces) > 0, false)
	}
	u.config, u.saver, u.terminal, u.bell, u.mouseOn = o.configFile, save, s.Out, o.bell, !o.noMouse
	opts := []tea.ProgramOption{tea.WithInput(d.keys), tea.WithOutput(s.Out), tea.WithAltScreen()}
	if !o.noMouse {
		opts = append(opts, tea.WithMouseCellMotion())
	}
	// Signals arrive in only one way, including SIGHUP: the terminal is restored just before the program
	// ends.
	p := tea.NewProgram(u, append(opts, tea.WithoutSignalHandler())...)
	defer cli.OnSignal(func(n int) bool {
		if n > 1 {
			return false
		}
		go p.Quit() // it waits for the program to take it
		return true
	})()
	_, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	return err
}

func (o *options) readsStdin() bool { return slices.Contains(o.read, "-") }

// tables waits for the end of the input, or for the user. Packets that a live capture has already received
// count; a second signal does not wait for them.
func (o *options) tables(feed *monitor.Feed, out *batchPrinter, src *source, interrupts <-chan struct{}) error {
	var short error
	select {
	case <-feed.Done():
	case <-interrupts:
		if src.live {
			src.end()
			select {
			case <-feed.Done():
			case <-interrupts:
			}
		} else if src.again != nil && o.speed == 0 { // files that are not replayed at a pace: these are not the tables that were requested
			short = fmt.Errorf("%w before the end of the input", cli.ErrInterrupted)
		}
		feed.Stop()
		<-feed.Done()
	}
	err := feed.Wait()
	out.end(feed.Latest())
	return errors.Join(err, out.err, short)
}
