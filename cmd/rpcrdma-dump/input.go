package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/analyze/scrub"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/sandbox"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/duplicates"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/outfile"
	"github.com/rpcrdma/toolkit/internal/units"
)

// inputOptions are the flags that say what is read and how it is decoded. All commands that read captures
// have them.
type inputOptions struct {
	liveOptions
	read        []string
	follow      bool
	clock       clockFlag
	keytab      string
	scrub       string // file with a key
	noICRC      bool
	openCalls   int
	connections int
	trackers    int
	memory      cli.Memory
	message     size
	span        cli.Span
	first       uint64 // packets of captures that the input continues

	// needs is what the command still needs after confinement; set before start.
	needs sandbox.Needs
}

func (o *inputOptions) flags(f *pflag.FlagSet) {
	o.readFlag(f)
	f.BoolVar(&o.follow, "follow", false, "wait for more at the end of the file, until Ctrl-C")
	o.interfaceFlags(f)
	o.filterFlag(f, "capture-filter", "")
	o.decoderFlags(f)
}

// fileFlags are for commands that read files only.
func (o *inputOptions) fileFlags(f *pflag.FlagSet) {
	o.readFlag(f)
	o.decoderFlags(f)
}

func (o *inputOptions) readFlag(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.read, "read", "r", nil, "read this `file` (the same as naming it); - is standard input")
}

func (o *inputOptions) decoderFlags(f *pflag.FlagSet) {
	o.span.Flags(f)
	f.Var(&o.clock, "clock", "times of packets: `capture`, or erspan for those of the switch in mirrors of ERSPAN type III")
	cli.KeytabFlag(f, &o.keytab)
	f.BoolVar(&o.noICRC, "no-icrc", false, "do not verify the invariant CRC of RoCE packets")
	cli.PositiveVar(f, &o.openCalls, "limit-calls", "remember at most `n` calls without a reply (default 16384)")
	cli.PositiveVar(f, &o.connections, "limit-connections", "follow at most `n` connections at once (default 8192)")
	o.memory.Flag(f)
	f.Var(&o.message, "limit-message", "longest message to assemble from chunks (default 4M)")
}

// files are the inputs of a command line.
func (o *inputOptions) files(args []string) ([]string, error) {
	names := append(append([]string(nil), o.read...), args...)
	switch captures := len(o.ifaces) > 0; {
	case captures && len(names) > 0:
		return nil, cli.Usagef("-i captures: no file is read beside it")
	case captures && o.follow:
		return nil, cli.Usagef("--follow is for a file: what -i captures is shown as it comes")
	case !captures && (o.rpc || o.ports != nil || o.expr != "" || o.direct || o.rings != 0 || o.events.Level != 0 || o.box.Given()):
		return nil, cli.Usagef("--ports, --rpc, --no-tunnels, --rings, --events, -Z, --sandbox and the capture filter go with -i")
	case !captures && len(names) == 0:
		return nil, cli.Usagef("no input: name a capture file, - for standard input, or an interface with -i")
	case o.follow && len(names) != 1:
		return nil, cli.Usagef("--follow is for one file")
	case o.follow && names[0] == "-":
		return nil, cli.Usagef("--follow is for a file: standard input is read as it comes, without it")
	}
	return names, o.span.Check(len(o.ifaces) > 0 || o.follow, names)
}

// trackersFlag is for commands whose results several trackers can bring together.
func (o *inputOptions) trackersFlag(f *pflag.FlagSet) {
	cli.NumberVar(f, &o.trackers, "trackers", 1, 64, "follow connections of different hosts with `n` trackers side by side, at most 64 (default: one tracker for all); not with -i and --follow")
}

// checkTrackers checks what the flag says.
func (o *inputOptions) checkTrackers() error {
	if o.trackers > 0 && (len(o.ifaces) > 0 || o.follow) {
		return cli.Usagef("--trackers is for files: what is captured is followed by one tracker")
	}
	return nil
}

// noteTrackers says that a single tracker has to do.
func (j *job) noteTrackers(n int) {
	if n > 0 && j.d.Trackers() == 0 {
		j.notes.Printf("note: --trackers is not used: this output needs the order of the capture, or has limits for all connections together")
	}
}

func (o *inputOptions) decoder() decode.Options {
	if !o.memory.Given() {
		cli.GrantMemory(4*int(o.message) + 8<<10*o.openCalls + 16<<10*o.connections)
	}
	return decode.Options{
		SkipICRC: o.noICRC,
		Live:     len(o.ifaces) > 0 || o.follow,
		Clock:    decode.Clock(o.clock),
		Memory:   o.memory.Decoder(),
		Trackers: o.trackers,
		Transactions: transaction.Options{
			Open:     o.openCalls,
			Assembly: int(o.message),
		},
		RoCE: roce.Limits{Connections: o.connections},
		TCP:  decode.TCPLimits{Connections: o.connections, Record: int(o.message)},
	}
}

// windowBytes is how many bytes of packets a window holds; given is the value of the flag, 0 for as much as is usual, or as
// there is memory for.
func (o *inputOptions) windowBytes(given size, usual int) int {
	switch {
	case given == 0 && o.memory.Given(): // what is known of the packets takes as much again
		return o.memory.Scale(usual / 2)
	case given == 0:
		return usual
	}
	return int(given)
}

// clockFlag is a flag for a clock.
type clockFlag decode.Clock

func (c *clockFlag) Type() string { return "capture|erspan" }

func (c *clockFlag) String() string { return [...]string{"capture", "erspan"}[*c] }

func (c *clockFlag) Set(v string) error {
	switch v {
	case "capture":
		*c = clockFlag(decode.ClockCapture)
	case "erspan":
		*c = clockFlag(decode.ClockERSPAN)
	default:
		return fmt.Errorf("%q is not a clock: capture or erspan", v)
	}
	return nil
}

// size is a flag with a number of bytes.
type size = cli.Size

// input is a capture.Reader that can be interrupted, and that counts packets cut by the capture.
type input struct {
	capture.Reader
	names     []string
	live      bool        // reading may wait for a writer
	iface     live.Source // not nil: the Reader, which captures
	interrupt chan struct{}
	once      sync.Once // of closing it
	short     bool      // it came before the end of the input; for the goroutine that reads, and after it
	cut       atomic.Uint64

	scrubbed *scrub.Reader // not nil: packets are read through it
	span     *cli.Selected // packets outside of it are left out

	shown func(*capture.Batch) // not nil: it is shown all packets that are read

	spare   capture.Batch
	request chan struct{}
	answer  chan error
}

func openInput(names []string, stdin io.Reader, opt capture.Options) (*input, error) {
	opt.Stdin = stdin
	r, err := duplicates.Open(names, opt)
	if err != nil {
		return nil, err
	}
	in := &input{Reader: r, names: names, interrupt: make(chan struct{})}
	for _, n := range names {
		in.live = in.live || mayWait(n, stdin)
	}
	return in, nil
}

// openLive starts to capture, or to follow a file.
func (o *inputOptions) openLive(names []string) (*input, error) {
	in := &input{names: names, live: true, interrupt: make(chan struct{})}
	if o.follow {
		f, err := capture.Follow(names[0])
		if err != nil {
			return nil, err
		}
		in.Reader, err = capture.NewReader(f, names[0], capture.Options{})
		if err != nil {
			f.Close()
			return nil, err
		}
		return in, nil
	}
	r, err := o.open()
	if err != nil {
		return nil, err
	}
	in.names, in.Reader, in.iface = o.liveOptions.names(), r, r
	return in, nil
}

// stop ends the input; packets already captured on an interface are still delivered.
func (in *input) stop() {
	if in.iface != nil {
		in.iface.Stop()
		return
	}
	in.once.Do(func() { close(in.interrupt) })
}

// end closes the input after the last Read, which may have come before the end of the files.
func (in *input) end() {
	if in.request == nil {
		in.Close()
		return
	}
	close(in.request) // its goroutine may still wait for the source, which stays open for it
	in.request = nil
}

// mayWait reports whether reading a file may wait for a writer.
func mayWait(name string, stdin io.Reader) bool {
	if name == "-" {
		f, ok := stdin.(*os.File)
		if !ok {
			return true
		}
		st, err := f.Stat()
		return err != nil || !st.Mode().IsRegular()
	}
	st, err := os.Stat(name)
	return err != nil || !st.Mode().IsRegular()
}

// Read implements capture.Reader. After an interrupt it returns io.EOF, even
// while the source itself waits.
func (in *input) Read(b *capture.Batch) error {
	select {
	case <-in.interrupt:
		in.short = true
		b.Packets = b.Packets[:0]
		return io.EOF
	default:
	}
	if !in.live || in.iface != nil {
		err := in.read(b)
		in.count(b)
		return err
	}
	// Another goroutine waits for the source. It reads into its own batch, which it may still hold long after
	// this call has returned.
	if in.request == nil {
		in.request, in.answer = make(chan struct{}), make(chan error, 1)
		go func() {
			for range in.request {
				in.answer <- in.read(&in.spare)
			}
		}()
	}
	in.request <- struct{}{}
	select {
	case err := <-in.answer:
		*b, in.spare = in.spare, *b
		in.count(b)
		return err
	case <-in.interrupt:
		b.Packets = b.Packets[:0]
		return io.EOF
	}
}

// read reads packets, without those that lie outside of the span.
func (in *input) read(b *capture.Batch) error { return in.span.Read(b, in.source) }

// source reads from the source.
func (in *input) source(b *capture.Batch) error {
	if in.scrubbed != nil {
		return in.scrubbed.Read(b)
	}
	return in.Reader.Read(b)
}

// duplicated reports whether packets come twice, as far as has been read.
func (in *input) duplicated() bool {
	r, ok := in.Reader.(*duplicates.Reader)
	return ok && len(r.Found()) > 0
}

// Place implements capture.Placer.
func (in *input) Place() (capture.Place, bool) {
	if p, ok := in.Reader.(capture.Placer); ok && !in.live {
		return p.Place()
	}
	return capture.Place{}, false
}

// bases are the names of the inputs without their folders.
func (in *input) bases() []string {
	names := make([]string, len(in.names))
	for i, n := range in.names {
		names[i] = filepath.Base(n)
	}
	return names
}

func (in *input) count(b *capture.Batch) {
	if in.shown != nil {
		in.shown(b)
	}
	n := uint64(0)
	for i := range b.Packets {
		if p := &b.Packets[i]; uint32(len(p.Data)) < p.Length {
			n++
		}
	}
	if n > 0 {
		in.cut.Add(n)
	}
}

// job is one run of a decoder over the input of a command.
type job struct {
	s       *cli.Streams
	in      *input
	d       *decode.Decoder
	keys    *cli.Keys
	files   *outfile.Files
	stopped bool        // by the command itself
	signal  atomic.Bool // a signal has ended the input
	notes   *cli.Problems
	box     *sandbox.Box // not nil: the input is captured
	early   func()       // removes the signal handler installed when the interfaces are opened
	resume  *resume      // not nil: the input continues another one
	indexed *whole       // not nil: what an index told of the input, which was not read
	missed  uint64       // transactions for which the filter does not hold
	matched bool         // it holds for one
}

// matches counts whether the filter holds for a transaction.
func (j *job) matches(holds bool) bool {
	if holds {
		j.matched = true
	} else {
		j.missed++
	}
	return holds
}

// noteMissed says that the filter has not held for any transaction.
func (j *job) noteMissed(filter string) {
	if j.missed > 0 && !j.matched {
		j.notes.Printf("note: the filter %s selects none of %s", filter, units.Plural(j.missed, "transaction"))
	}
}

// claim registers the files that a command reads, including those that are not captures, so that none of them
// is overwritten.
func (o *inputOptions) claim(s *cli.Streams, args []string, others ...string) (*outfile.Files, error) {
	names, err := o.files(args)
	if err != nil {
		return nil, err
	}
	files := &outfile.Files{}
	for _, n := range append(names, others...) {
		if n == "-" {
			files.ReadsStream("standard input", s.In)
		} else {
			files.Reads(n)
		}
	}
	cli.ClaimKeytab(files, o.keytab)
	if o.scrub != "" {
		files.Reads(o.scrub)
	}
	files.Prints(s.Out)
	return files, files.CheckStream("standard output", s.Out)
}

// start opens the input. For live captures it then gives up privileges that are no longer needed.
func start(cmd *cobra.Command, s *cli.Streams, o *inputOptions, args []string) (*job, error) {
	j, err := open(cmd, s, o, args)
	if err == nil {
		err = j.confine(o.needs)
	}
	if err != nil {
		return nil, err
	}
	if j.in.iface != nil {
		j.notes.Printf("%s", o.taken())
	}
	return j, nil
}

// open opens the input and gives up privileges, but does not confine the process yet.
func open(cmd *cobra.Command, s *cli.Streams, o *inputOptions, args []string) (*job, error) {
	names, err := o.files(args)
	if err != nil {
		return nil, err
	}
	if err := cli.Distinct("", names); err != nil {
		return nil, err
	}
	keys, err := cli.LoadKeys(o.keytab)
	if err != nil {
		return nil, err
	}
	j := &job{s: s, keys: keys, notes: cli.NewProblems("rpcrdma-dump", s.Err)}
	if j.files, err = o.claim(s, args); err != nil {
		return nil, err
	}
	if n := o.memory.Note(); n != "" {
		j.notes.Printf("note: %s", n)
	}
	if f := cmd.Flags().Lookup("time"); f != nil {
		if t, ok := f.Value.(*timeFlag); ok && t.format.Local {
			j.noteZone()
		}
	}
	if len(o.ifaces) > 0 {
		if j.box, err = o.box.Open(o.needs.Writes()); err != nil {
			return nil, &cli.UsageError{Err: err}
		}
		// An interrupt while privileges are given up does not lose packets in the rings.
		j.early = cli.OnSignal(func(n int) bool {
			j.signal.Store(true)
			return n == 1
		})
	}
	var chosen *cli.Selected
	if len(o.ifaces) == 0 && !o.follow {
		opt := capture.Options{
			BatchSize: o.memory.Batch(), Window: o.memory.Window(), First: o.first,
		}
		if chosen, err = o.span.Open(names, opt); err == nil {
			j.in, err = openInput(names, s.In, opt)
		}
	} else {
		j.in, err = o.openLive(names)
	}
	if err != nil {
		return nil, err
	}
	j.in.span = chosen
	if err := j.scrubbed(o); err != nil {
		j.in.Close()
		return nil, err
	}
	if r := j.in.iface; r != nil {
		for _, note := range r.Notes() {
			j.notes.Printf("note: %s", note)
		}
		if err := j.box.Drop(); err != nil {
			r.Close()
			return nil, err
		}
	}
	return j, nil
}

// confine locks a program that captures into what it needs.
func (j *job) confine(n sandbox.Needs) error {
	if j.box == nil {
		return nil
	}
	if err := j.box.Confine(n); err != nil {
		j.in.iface.Close()
		return err
	}
	for _, note := range j.box.Notes() {
		j.notes.Printf("note: %s", note)
	}
	return nil
}

// need registers a file that will be written; an empty name and standard output need nothing.
func (o *inputOptions) need(file string) {
	if file != "" && file != "-" {
		o.needs.Files = append(o.needs.Files, file)
	}
}

// patternDir is the directory that contains all files named by a pattern; special are the characters that
// start a placeholder.
func patternDir(pattern, special string) string {
	if i := strings.IndexAny(pattern, special); i >= 0 {
		pattern = pattern[:i]
	}
	return filepath.Dir(pattern)
}

// stop ends the run after the current packet. What the decoder reports after that must be ignored.
func (j *job) stop() {
	j.stopped = true
	j.d.Stop()
	if j.in.live {
		j.in.stop() // or it waits for the next packet
	}
}

// interrupts lets a signal end the input until the returned function is called. A second signal ends the
// program.
func (j *job) interrupts() func() {
	done := cli.OnSignal(func(n int) bool {
		if n > 1 {
			return false
		}
		j.signal.Store(true)
		j.in.stop()
		return true
	})
	if j.signal.Load() {
		j.in.stop()
	}
	return func() {
		done()
		if j.early != nil {
			j.early()
			j.early = nil
		}
	}
}

// whole returns an error if a signal has cut the input short. For an input that is still being written that
// is the normal end; for a file, the output would not be what was requested.
func (j *job) whole(name string) error {
	switch {
	case !j.signal.Load():
		return nil
	case j.in.live:
		j.notes.Printf("interrupted: %s holds what came until then", name)
		return nil
	}
	return fmt.Errorf("%w: %s was not written", cli.ErrInterrupted, name)
}

// cutShort is the error for a file that was not read to its end because of a signal: what was printed is not what was
// requested. Where others still write, this is the normal end, and there is no error.
func (j *job) cutShort() error {
	if !j.signal.Load() || j.in.live || j.stopped || !j.in.short {
		return nil
	}
	if j.d == nil {
		return fmt.Errorf("%w before the end of the input", cli.ErrInterrupted)
	}
	return fmt.Errorf("%w after %d packets, before the end of the input", cli.ErrInterrupted, j.d.Stats().Packets)
}

// run decodes the whole input.
func (j *job) run(progress bool) error {
	defer j.interrupts()()
	if progress {
		defer showProgress(j.s.Err, j.in)()
	}
	return j.resume.decode(j)
}

// finish reports problems of the input and returns the error that the command ends with. err is the error of
// the run, out the error of the output.
func (j *job) finish(err, out error) error {
	if out != nil {
		return out
	}
	inputProblems(j.notes, j.in, j.d, j.stopped, j.resume)
	j.keys.Notes(j.notes.Printf)
	if j.in.scrubbed != nil {
		scrubZeros(j.notes, j.in.scrubbed.Stats())
	}
	if r := j.in.iface; r != nil {
		counters(j.notes, r)
	}
	j.in.end()
	if err == nil {
		err = j.cutShort()
	}
	if err != nil {
		return err
	}
	if j.notes.Damaged() {
		return cli.ErrDamaged
	}
	return nil
}
