package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/rotate"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/units"
)

const captureLong = `Capture packets from network interfaces and write them to a file, or to a series
of files. Without --all, only what RPC-over-RDMA needs is taken: RoCEv2 (UDP
port 4791), RoCEv1, iWARP (TCP port 20049, or --ports), IP fragments of these,
with --rpc also rpcbind, MOUNT and NFS over TCP and UDP, and all that is wrapped
in a tunnel or mirror, which --no-tunnels leaves out. The kernel does the
choosing.

The name decides the format: .pcap is pcap, everything else pcapng; .gz or .zst
at the end compresses. -r reads packets from a capture instead of an interface,
to split it or to find the place where a condition is met.

Once the interfaces are open, the program gives up the privileges that it no
longer needs: it becomes the user who called sudo, or the one of -Z, without
capabilities, and can only write below the directory of -w: no other files, no
network. The files belong to that user.

A capture ends with Ctrl-C, after -c packets or --duration, or when a
transaction meets a condition. What was captured until then is written.`

const captureExamples = `  rpcrdma-dump capture -i eth0 -w trace.pcapng
  rpcrdma-dump capture -i eth0 -w ring.pcapng -C 100M -W 10 \
    --stop-latency 50ms --after 2s
  rpcrdma-dump capture -i eth0 --rpc -w 'nfs-%H%M%S.pcapng.zst' -G 600 -W 24
  rpcrdma-dump capture -r big.pcapng -w part.pcapng -C 100M
  rpcrdma-dump capture -D`

// captureOptions are the flags of the command capture.
type captureOptions struct {
	memory cli.Memory
	liveOptions
	read     []string
	write    string
	size     fileSize
	every    seconds
	keep     int
	count    uint64
	duration seconds
	latency  time.Duration
	match    string
	broken   string
	keytab   string
	after    seconds
	list     cli.Interfaces
}

func newCaptureCommand(s *cli.Streams) *cobra.Command {
	o := &captureOptions{}
	cmd := &cobra.Command{
		Use:     "capture [flags] -i INTERFACE -w FILE",
		Short:   "Capture packets from network interfaces",
		Long:    captureLong,
		Example: captureExamples,
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd, s) },
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&o.write, "write", "w", "", "write to this `file`; - is standard output")
	o.interfaceFlags(f)
	f.BoolVar(&o.all, "all", false, "take all packets")
	o.filterFlag(f, "filter", "f")
	o.tuningFlags(f)
	f.StringArrayVarP(&o.read, "read", "r", nil, "take packets from this `file` instead; - is standard input")
	f.VarP(&o.size, "file-size", "C", "start a new file before one exceeds this `size`: 100M, or a number of millions of bytes")
	f.VarP(&o.every, "file-seconds", "G", "start a new file after this many `seconds`; strftime conversions (%H) in the name are filled in")
	f.IntVarP(&o.keep, "files", "W", 0, "with -C or -G: keep the newest `n` files, remove older ones")
	f.Uint64VarP(&o.count, "count", "c", 0, "stop after `n` packets; 0 takes all")
	f.Var(&o.duration, "duration", "stop after this many `seconds`, or 10m")
	cli.DurationVar(f, &o.latency, "stop-latency", 0, "stop at the first transaction that took longer than this `time`: 50ms")
	f.StringVar(&o.broken, "stop-rule", "", "stop at the first violation of one of the rules in this `list`, as in check --rules")
	f.StringVar(&o.match, "stop-filter", "", "stop at the first transaction for which the display filter `expression` holds")
	f.Var(&o.after, "after", "after the condition is met, go on for this many `seconds`, or 500ms")
	o.list.Flag(f)
	cli.KeytabFlag(f, &o.keytab)
	o.memory.Flag(f)
	return cmd
}

// seconds is a flag for a time: a number of seconds, or a duration.
type seconds time.Duration

func (t *seconds) Type() string { return "seconds" }

func (t *seconds) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

func (t *seconds) Set(v string) error {
	d, err := cli.ParseDuration(v)
	if err == nil && d == 0 {
		err = errors.New("a time must be above zero")
	}
	if err != nil {
		return err
	}
	*t = seconds(d)
	return nil
}

func (o *captureOptions) check(s *cli.Streams) error {
	_, tty := cli.Terminal(s.Out)
	switch {
	case o.write == "":
		return cli.Usagef("no file to write: name one with -w; - is standard output")
	case o.write == "-" && tty:
		return cli.Usagef("a capture is not for a terminal: redirect standard output")
	case len(o.ifaces) == 0 && len(o.read) == 0:
		return cli.Usagef("no interface: name one with -i (-D lists them)")
	case o.keep < 0:
		return cli.Usagef("-W is a number of files, and not negative")
	case o.after > 0 && o.latency == 0 && o.match == "" && o.broken == "":
		return cli.Usagef("--after goes with --stop-latency, --stop-filter or --stop-rule")
	}
	if len(o.ifaces) == 0 && (o.expr != "" || o.all || o.direct || o.rpc || o.ports != nil || o.snap != 0 || o.promisc || o.clock || o.fanout != 0 || o.rings != 0 || o.ring != 0 || o.events.Level != 0 || o.box.Given()) {
		return cli.Usagef("-f, --all, --rpc, --ports, --no-tunnels, -s, -B, -p, -Z, --sandbox, --hardware-time, --fanout, --events and --rings go with -i")
	}
	return nil
}

func (o *captureOptions) run(cmd *cobra.Command, s *cli.Streams) error {
	if o.list.Wanted {
		return o.list.List(s.Out)
	}
	if n := o.memory.Note(); n != "" {
		cli.Tell(s.Err, "rpcrdma-dump", "note: %s", n)
	}
	if err := o.check(s); err != nil {
		return err
	}
	stop, err := o.conditions()
	if err != nil {
		return err
	}
	in := &inputOptions{liveOptions: o.liveOptions, read: o.read, keytab: o.keytab}
	if o.write != "-" {
		in.needs.Series = []string{patternDir(o.write, "%")}
	}
	j, err := open(cmd, s, in, nil)
	if err != nil {
		return err
	}
	defer j.in.Close()
	if o.every > 0 && strings.Contains(o.write, "%") {
		j.noteZone()
	}
	if stop != nil {
		stop.view.Unwrap = j.keys.Contexts
	}
	c := &capturing{job: j, o: o, stop: stop, started: time.Now()}
	opt := rotate.Options{
		Name: o.write, Stdout: s.Out, Size: int64(o.size), Every: int64(o.every), Keep: o.keep,
		Writer: capture.WriterOptions{Application: "rpcrdma-dump " + cli.Version()}, Files: j.files,
	}
	if t, ok := j.in.Reader.(capture.Tapper); ok {
		opt.Writer.Taps = t.Taps
		if taps := t.Taps(); len(taps) > 0 {
			opt.Writer.Link = taps[0].Link
		}
	}
	if opt.Writer.Link == 0 {
		opt.Writer.Link = capture.LinkEthernet
	}
	if j.in.iface != nil {
		opt.Statistics = c.statistics
	}
	if c.out, err = rotate.New(opt); err != nil {
		var system *fs.PathError
		var link *os.LinkError
		if errors.As(err, &system) || errors.As(err, &link) {
			return j.box.Explain(err)
		}
		return &cli.UsageError{Err: err}
	}
	if o.size == 0 && o.every == 0 {
		in.needs.Series = nil // the only file is open
	}
	if err := j.confine(in.needs); err != nil {
		return err
	}
	return c.run()
}

// capturing is a capture under way.
type capturing struct {
	*job
	o       *captureOptions
	out     *rotate.Writer
	stop    *stopper // nil if no transaction ends it
	started time.Time
	packets uint64
	end     int64 // time of the last packet wanted, if known
	ending  bool  // end is known
}

func (c *capturing) run() error {
	defer c.interrupts()()
	if r := c.in.iface; r != nil {
		to := c.o.write
		if to == "-" {
			to = "standard output"
		}
		if name, ok := c.box.As(); ok {
			to += " as " + text.SafeString(name)
		}
		c.notes.Printf("capturing on %s to %s; Ctrl-C ends", strings.Join(c.in.names, ", "), to)
		c.notes.Printf("%s", c.o.taken())
		if c.o.duration > 0 {
			defer time.AfterFunc(time.Duration(c.o.duration), r.Stop).Stop()
		}
	}
	var b capture.Batch
	err := c.copy(&b)
	if r := c.in.iface; r != nil {
		r.Stop()
	}
	err = errors.Join(err, closed(c.out.Close()))
	if errors.Is(err, cli.ErrClosed) {
		return cli.ErrClosed
	}
	c.report()
	if err == nil {
		err = c.cutShort()
	}
	if err != nil {
		return err
	}
	if c.notes.Damaged() {
		return cli.ErrDamaged
	}
	return nil
}

// copy takes packets until the input or the capture ends.
func (c *capturing) copy(b *capture.Batch) error {
	for {
		switch err := c.in.Read(b); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if c.stop != nil && !c.stop.hit {
			c.stop.d.Batch(b)
			if c.stop.hit {
				c.met()
			}
		}
		for i := range b.Packets {
			p := &b.Packets[i]
			if c.in.iface == nil && c.o.duration > 0 && c.packets == 0 {
				c.until(p.Time + int64(c.o.duration))
			}
			if c.ending && p.Time > c.end {
				return nil
			}
			if err := c.out.Write(p); err != nil {
				return closed(err)
			}
			if c.packets++; c.packets == c.o.count {
				return nil
			}
		}
		if c.in.iface != nil {
			if err := c.out.Flush(); err != nil {
				return closed(err)
			}
		}
	}
}

// until ends the capture behind the packets of a time.
func (c *capturing) until(t int64) {
	if !c.ending || t < c.end {
		c.ending, c.end = true, t
	}
}

// met records the condition that a transaction has met.
func (c *capturing) met() {
	c.until(c.stop.at + int64(c.o.after))
	on := ""
	if c.o.after > 0 {
		on = fmt.Sprintf("; continuing for %v", time.Duration(c.o.after))
	}
	c.notes.Printf("stopped by %s%s", c.stop.why, on)
	if r := c.in.iface; r != nil {
		// Packets may cease to come.
		time.AfterFunc(time.Duration(c.o.after), r.Stop)
	}
}

func (c *capturing) statistics() []rotate.Statistics {
	r := c.in.iface
	taps, now := r.Taps(), time.Now().UnixNano()
	var out []rotate.Statistics
	for _, s := range r.Stats() {
		if s.Tap >= len(taps) {
			continue // any, without a packet
		}
		out = append(out, rotate.Statistics{
			Tap: uint16(s.Tap), Link: taps[s.Tap].Link,
			Statistics: capture.Statistics{
				Time: now, Start: c.started.UnixNano(),
				Received: s.Received, Dropped: s.Dropped, Missed: s.Missed,
			},
		})
	}
	return out
}

func (c *capturing) report() {
	list, total := c.in.Problems()
	for _, p := range list {
		c.notes.Printf("%v", p)
	}
	if total > 0 {
		c.notes.Damage()
	}
	n := c.out.Count()
	in := ""
	if n.Files > 1 || c.o.keep > 0 {
		in = " in " + units.Plural(n.Files, "file")
	}
	switch {
	case n.Cut:
		c.notes.Printf("at least %s written; the compression was not ended", units.Plural(n.Packets, "packet"))
	default:
		c.notes.Printf("%s written, %d bytes%s", units.Plural(n.Packets, "packet"), n.Bytes, in)
	}
	if c.in.iface != nil {
		counters(c.notes, c.in.iface)
	}
	if c.stop != nil && !c.stop.hit {
		c.notes.Printf("note: no transaction met the condition")
	}
}

// stopRule is a condition that ends a capture. It returns why it holds for a
// transaction, or an empty string.
type stopRule func(v *rpc.View) string

// stopper decodes beside writing until a rule holds.
type stopper struct {
	d     *decode.Decoder
	view  rpc.View
	rules []stopRule
	check *check.Checker // nil: no findings are asked for
	hit   bool
	why   string
	at    int64 // time of the packet with which it was known
}

// newStopper makes a stopper for rules and for findings of a selection; either
// may be nil. blamed says that a rule asks what time was lost to.
func newStopper(rules []stopRule, findings *check.Selection, blamed bool, memory *cli.Memory) *stopper {
	t := &stopper{view: rpc.View{Names: &rpc.Names{Limit: memory.Names()}}, rules: rules}
	opt := decode.Options{Live: true, Memory: memory.Decoder(), Transactions: transaction.Options{OnCompletion: true}}
	if findings != nil {
		t.check = check.New(check.Options{Rules: *findings}, t.finding)
		opt.Transactions.OnCompletion = false // check wants them in the order of their calls
		opt.Observe(t.check.Observer())
	}
	if blamed {
		attribute(&opt, memory)
	}
	t.d = decode.New(opt, t.transaction)
	return t
}

func (t *stopper) transaction(tx *transaction.Transaction) {
	if t.hit {
		return
	}
	v := &t.view
	v.Set(tx)
	if t.check != nil {
		if t.check.Transaction(v); t.hit {
			return
		}
	}
	for _, rule := range t.rules {
		if why := rule(v); why != "" {
			what := text.Operations(append(text.Program(nil, v), ' '), v)
			t.stop(fmt.Sprintf("packet %d, XID 0x%08x, %s: %s", t.d.Stats().Last.Number, tx.XID, what, why))
			return
		}
	}
	v.Learn()
}

// finding takes one from check.
func (t *stopper) finding(f *check.Finding) {
	if t.hit {
		return
	}
	at := ""
	if f.Operation != "" {
		at = fmt.Sprintf(", XID 0x%08x, %s %s", f.XID, f.Program, f.Operation)
	}
	t.stop(fmt.Sprintf("packet %d%s: %s: %s", f.Ref.Number, at, f.Rule.ID, text.SafeString(f.Seen)))
}

func (t *stopper) stop(why string) {
	t.hit, t.at, t.why = true, t.d.Stats().Last.Time, why
	t.d.Stop()
}
