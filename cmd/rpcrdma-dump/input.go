package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/capture/live"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// inputOptions say what is read and how it is decoded. All commands that read
// captures have them.
type inputOptions struct {
	liveOptions
	read        []string
	follow      bool
	clock       clockFlag
	keytab      string
	noICRC      bool
	openCalls   int
	connections int
	memory      size
	message     size
}

func (o *inputOptions) flags(f *pflag.FlagSet) {
	f.StringArrayVarP(&o.read, "read", "r", nil, "read this `file` (the same as naming it); - is standard input")
	f.BoolVar(&o.follow, "follow", false, "at the end of the file wait for more, until Ctrl-C")
	o.interfaceFlags(f)
	o.filterFlag(f, "capture-filter", "")
	f.Var(&o.clock, "clock", "times of packets: `capture`, or erspan for those of the switch in mirrors of ERSPAN type III")
	cli.KeytabFlag(f, &o.keytab)
	f.BoolVar(&o.noICRC, "no-icrc", false, "do not verify the invariant CRC of RoCE packets")
	f.IntVar(&o.openCalls, "limit-calls", 0, "calls `n` without a reply that are remembered (default 16384)")
	f.IntVar(&o.connections, "limit-connections", 0, "connections `n` followed at once (default 8192)")
	f.Var(&o.memory, "limit-memory", "resident memory of the program, for example 64M; at least 32M (default 240M)")
	f.Var(&o.message, "limit-message", "longest message that is put together from chunks (default 4M)")
}

// files are the inputs of a command line.
func (o *inputOptions) files(args []string) ([]string, error) {
	names := append(append([]string(nil), o.read...), args...)
	switch captures := len(o.ifaces) > 0; {
	case captures && len(names) > 0:
		return nil, cli.Usagef("-i captures: no file is read beside it")
	case captures && o.follow:
		return nil, cli.Usagef("--follow is for a file")
	case !captures && (o.rpc || o.ports != nil || o.expr != ""):
		return nil, cli.Usagef("--ports, --rpc and the capture filter go with -i")
	case !captures && len(names) == 0:
		return nil, cli.Usagef("no input: name a capture file, - for standard input, or an interface with -i")
	case o.follow && (len(names) != 1 || names[0] == "-"):
		return nil, cli.Usagef("--follow is for one file")
	}
	return names, nil
}

func (o *inputOptions) decoder() decode.Options {
	return decode.Options{
		SkipICRC: o.noICRC,
		Clock:    decode.Clock(o.clock),
		Memory:   cli.LimitMemory(int(o.memory)),
		Transactions: transaction.Options{
			Open:     o.openCalls,
			Assembly: int(o.message),
		},
		RoCE: roce.Limits{Connections: o.connections},
		TCP:  decode.TCPLimits{Connections: o.connections, Record: int(o.message)},
	}
}

// batch is how many bytes of packets are read at once where memory is short; 0
// for as many as is best.
func (o *inputOptions) batch() int {
	if o.memory == 0 || o.memory >= 128<<20 {
		return 0
	}
	return 64 << 10
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
		return fmt.Errorf("%q is no clock: capture or erspan", v)
	}
	return nil
}

// size is a flag for a number of bytes.
type size int

func (s *size) Type() string { return "size" }

func (s *size) String() string {
	if *s == 0 {
		return ""
	}
	return fmt.Sprint(int(*s))
}

func (s *size) Set(v string) error {
	n, unit := int64(0), ""
	if _, err := fmt.Sscanf(v, "%d%s", &n, &unit); err != nil && unit != "" || n <= 0 {
		return fmt.Errorf("%q is not a size: use for example 65536, 64K, 4M or 1G", v)
	}
	shift := 0
	switch unit {
	case "":
	case "k", "K", "KiB":
		shift = 10
	case "m", "M", "MiB":
		shift = 20
	case "g", "G", "GiB":
		shift = 30
	default:
		return fmt.Errorf("%q is not a size: use for example 65536, 64K, 4M or 1G", v)
	}
	if n > math.MaxInt>>shift || n > 1<<40>>shift {
		return fmt.Errorf("%q is too much", v)
	}
	*s = size(n << shift)
	return nil
}

// input is a capture.Reader that can be interrupted, and that counts packets
// that the capture has cut.
type input struct {
	capture.Reader
	names     []string
	live      bool         // reading may wait for a writer
	iface     *live.Reader // not nil: the Reader, which captures
	interrupt chan struct{}
	once      sync.Once // of closing it
	cut       atomic.Uint64

	spare   capture.Batch
	request chan struct{}
	answer  chan error
}

func openInput(names []string, stdin io.Reader, batch int) (*input, error) {
	r, err := capture.Open(names, capture.Options{Stdin: stdin, BatchSize: batch})
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

// stop ends the input: what an interface has captured is still delivered.
func (in *input) stop() {
	if in.iface != nil {
		in.iface.Stop()
		return
	}
	in.once.Do(func() { close(in.interrupt) })
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
		b.Packets = b.Packets[:0]
		return io.EOF
	default:
	}
	if !in.live || in.iface != nil {
		err := in.Reader.Read(b)
		in.count(b)
		return err
	}
	// Another goroutine waits for the source. It reads into a batch of its
	// own, which it may still hold when this one has long left.
	if in.request == nil {
		in.request, in.answer = make(chan struct{}), make(chan error, 1)
		go func() {
			for range in.request {
				in.answer <- in.Reader.Read(&in.spare)
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

func (in *input) count(b *capture.Batch) {
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
	s       *streams
	in      *input
	d       *decode.Decoder
	keys    *cli.Keys
	stopped bool // by the command itself
	notes   problemNotes
}

// start opens the input.
func start(cmd *cobra.Command, s *streams, o *inputOptions, args []string) (*job, error) {
	names, err := o.files(args)
	if err != nil {
		return nil, err
	}
	keys, err := cli.LoadKeys(o.keytab)
	if err != nil {
		return nil, err
	}
	j := &job{s: s, keys: keys, notes: problemNotes{w: s.err}}
	if o.memory != 0 && o.memory < cli.LeastMemory {
		j.notes.printf("note: --limit-memory %d cannot be kept: the program itself needs %dM, which is the limit now",
			o.memory, cli.LeastMemory>>20)
	}
	if len(o.ifaces) == 0 && !o.follow {
		j.in, err = openInput(names, s.in, o.batch())
	} else {
		j.in, err = o.openLive(names)
	}
	if err != nil {
		return nil, err
	}
	if r := j.in.iface; r != nil {
		for _, note := range r.Notes() {
			j.notes.printf("note: %s", note)
		}
	}
	return j, nil
}

// stop ends the run after the packet at hand. What the decoder reports from
// then on is to be left out.
func (j *job) stop() {
	j.stopped = true
	j.d.Stop()
	if j.in.live {
		j.in.stop() // or it waits for the next packet
	}
}

// interruptAgain is how long after an interrupt another one means the same.
const interruptAgain = 500 * time.Millisecond

// interrupts lets Ctrl-C end the input, until the result is called. A second
// one kills.
func (j *job) interrupts() func() {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	go func() {
		select {
		case <-interrupts:
			j.in.stop()
			// Some senders signal the process and its group: that is not
			// somebody's second thought.
			select {
			case <-time.After(interruptAgain):
				signal.Stop(interrupts)
			case <-ended:
			}
		case <-ended:
		}
	}()
	return func() {
		close(ended)
		signal.Stop(interrupts)
	}
}

// run decodes the whole input.
func (j *job) run(progress bool) error {
	defer j.interrupts()()
	if progress {
		defer showProgress(j.s.err, j.in)()
	}
	return j.d.Run(j.in)
}

// finish reports what is wrong with the input and returns the error that the
// command ends with. err is what ended the run, out the error of the output.
func (j *job) finish(err, out error) error {
	if out != nil {
		return out
	}
	j.notes.input(j.in, j.d, j.stopped)
	j.keys.Notes(j.notes.printf)
	if r := j.in.iface; r != nil {
		counters(&j.notes, r)
		r.Close()
	}
	if err != nil {
		return err
	}
	if j.notes.damaged {
		return cli.ErrDamaged
	}
	return nil
}
