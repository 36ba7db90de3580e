package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/metrics"
	"github.com/rpcrdma/toolkit/cmd/internal/sandbox"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/edge"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

type agentOptions struct {
	nats     natsFlags
	orders   edge.Orders
	box      sandbox.Options
	speed    string
	spool    cli.Size
	out      string
	folder   string
	room     cli.Size
	memory   cli.Size
	replicas int
	linger   time.Duration
	listen   string
}

const agentLong = `Watch a network interface, and send a summary of each interval to NATS
JetStream: rpcrdma-fleet top shows those of all taps. With -w, transactions are
written as Parquet files too, to a store or to a folder of this machine, where
other commands and SQL engines find them among those that were decoded from
captures.

Packets are decoded by a process of its own. It has no network, no files (but
the folder of -w) and no privilege once the interface is open; this one has the
network, and sees no packet.

When NATS is away, the latest summaries are kept in memory, up to --spool; what
is dropped is counted, and the next summary says so. Nothing is stored twice.
When the store is away, files wait in --folder, up to --folder-size; the oldest
are removed.`

// observer makes an agent the process that decodes.
const observer = "observer"

func newAgentCommand(s *cli.Streams) *cobra.Command {
	o := &agentOptions{spool: 16 << 20, room: 1 << 30, memory: 256 << 20}
	child := false
	cmd := &cobra.Command{
		Use:   "agent [flags]",
		Short: "Send what a tap sees now",
		Long:  agentLong,
		Example: `  rpcrdma-fleet agent --nats nats://a,b,c -i eth0 --tap nfs-7
  rpcrdma-fleet agent --nats-context prod -i mirror0 --tap rack3 -w s3://out --folder /var/lib/rpcrdma
  rpcrdma-fleet agent --nats nats://a -r trace.pcap --speed 1 --tap replayed`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if child {
				return observe(cmd.Context(), s)
			}
			return o.run(cmd.Context(), s)
		},
	}
	o.nats.flags(cmd)
	f := cmd.Flags()
	f.StringArrayVarP(&o.orders.Interfaces, "interface", "i", nil, "capture on this network `interface` (repeatable); trace stands for the kernel's own events")
	f.StringArrayVarP(&o.orders.Files, "read", "r", nil, "observe this capture `file` instead (repeatable)")
	f.StringVar(&o.speed, "speed", "1", "with -r: `multiple` of the captured speed, or max")
	f.StringVar(&o.orders.Tap, "tap", "", "`name` of the tap (default: the name of this host)")
	cli.DurationVarP(f, &o.orders.Interval, "interval", "d", 10*time.Second, "`length` of an interval")
	f.StringSliceVar(&o.orders.Ports, "ports", nil, "with -i: `list` of TCP ports of iWARP (default 20049)")
	f.BoolVar(&o.orders.RPC, "rpc", false, "with -i: also rpcbind, MOUNT and NFS over TCP and UDP")
	f.BoolVar(&o.orders.NoTunnels, "no-tunnels", false, "with -i: leave out what is wrapped in a tunnel or mirror")
	f.StringVarP(&o.orders.Filter, "capture-filter", "f", "", "with -i: only packets for which this `expression` of tcpdump holds; with -i trace: only calls, by a filter of events")
	o.orders.Events.Flag(f)
	f.BoolVarP(&o.orders.Promisc, "promisc", "p", false, "with -i: also take frames for other stations (promiscuous mode)")
	o.box.Flags(f)
	f.Var(&o.spool, "spool", "keep at most this many bytes of summaries while NATS is away")
	f.IntVar(&o.replicas, "replicas", 1, "store summaries on this many servers, if the stream is not there yet")
	f.StringVarP(&o.out, "write", "w", "", "also write transactions to this `store`: s3://…, gs://…, file://… or a folder")
	f.StringVar(&o.folder, "folder", "", "with -w: `folder` where files wait for the store (default: a temporary one)")
	f.Var(&o.room, "folder-size", "with -w: keep at most this many bytes of files while the store is away")
	cli.DurationVar(f, &o.orders.Every, "rotate", 5*time.Minute, "with -w: begin a new file after this `time`")
	cli.DurationVar(f, &o.linger, "linger", 10*time.Second, "at the end, give up after this `time` if NATS or the store is away")
	f.StringVar(&o.listen, "listen", "", "serve metrics to Prometheus at this `address`; :PORT is on this host only")
	f.Var(&o.memory, "limit-memory", "resident memory of the process that decodes")
	f.BoolVar(&child, observer, false, "")
	_ = f.MarkHidden(observer)
	return cmd
}

// check looks for mistakes.
func (o *agentOptions) check() error {
	r := &o.orders
	if err := r.Events.Check(r.Interfaces); err != nil {
		return err
	}
	switch {
	case len(r.Interfaces) == 0 && len(r.Files) == 0:
		return cli.Usagef("no input: name a network interface with -i, or a capture file with -r")
	case len(r.Interfaces) > 0 && len(r.Files) > 0:
		return cli.Usagef("-i and -r exclude each other")
	case len(r.Interfaces) == 0 && (len(r.Ports) > 0 || r.RPC || r.NoTunnels || r.Filter != "" || r.Promisc || o.box.Given()):
		return cli.Usagef("--ports, --rpc, --no-tunnels, -f, -p, -Z and --sandbox go with -i")
	case r.Interval < 100*time.Millisecond || r.Interval > time.Hour:
		return cli.Usagef("-d: an interval has 100ms to 1h")
	case r.Every < time.Second || r.Every > 24*time.Hour:
		return cli.Usagef("--rotate: 1s to 24h")
	case o.out == "" && o.folder != "":
		return cli.Usagef("--folder goes with -w")
	case o.spool < live.MaxSummary:
		return cli.Usagef("--spool: at least %d bytes, the size of one summary", live.MaxSummary)
	case o.replicas < 1 || o.replicas > 5:
		return cli.Usagef("--replicas: 1 to 5")
	case slices.Contains(r.Files, "-"):
		return cli.Usagef("-r -: standard input is not possible here")
	}
	return nil
}

// complete makes the orders for the observer.
func (o *agentOptions) complete() error {
	r := &o.orders
	if o.speed != "max" {
		speed, err := strconv.ParseFloat(strings.TrimPrefix(o.speed, "x"), 64)
		if err != nil || speed < 0 || speed > 1e9 || speed != speed {
			return cli.Usagef("--speed: %q is neither a factor nor max", o.speed)
		}
		r.Speed = speed
	}
	if r.Tap == "" {
		host, err := os.Hostname()
		if err != nil {
			return cli.Usagef("the host has no name (%v); use --tap", err)
		}
		r.Tap = host
	}
	if err := layout.CheckTap(r.Tap); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--tap: %w", err)}
	}
	r.Agent, r.Memory, r.User, r.Mode = live.NewAgent(), int(o.memory), o.box.User, o.box.Mode
	return nil
}

func (o *agentOptions) run(ctx context.Context, s *cli.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.complete(); err != nil {
		return err
	}
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	ctx, stop := cli.Context(ctx)
	defer stop()
	a, err := o.nats.Resolve(os.Getenv)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	nc, err := queue.Dial(a, queue.Agent, "rpcrdma-fleet agent", notes.Printf)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, unbind := queue.Bound(ctx, nc, a)
	defer unbind()
	up, done, err := o.uploader(ctx, notes)
	if err != nil {
		return err
	}
	defer done()
	x := &forwarding{agentOptions: o, notes: notes, spool: live.NewSpool(int(o.spool), notes.Printf), up: up}
	if o.listen != "" {
		served, err := metrics.Listen("rpcrdma-fleet", o.listen)
		if err != nil {
			return err
		}
		defer served.Close()
		served.Serve(x.measured())
	}
	// What was observed is still sent when a signal has ended observing.
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	var group sync.WaitGroup
	var sending, uploading error
	group.Go(func() { sending = x.spool.Send(late, nc, o.replicas) })
	if up != nil {
		group.Go(func() { uploading = up.Run(late) })
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	go func() { // an agent that may not send need not observe
		group.Wait()
		end()
	}()
	err = o.watch(watching, x.take, s.Err)
	x.spool.End()
	if up != nil {
		up.End()
	}
	timer := time.AfterFunc(o.linger, cancel)
	group.Wait()
	timer.Stop()
	if err := errors.Join(err, queue.Refused(ctx), unlessCanceled(sending), unlessCanceled(uploading), x.left()); err != nil {
		return err
	}
	if x.damaged {
		return cli.ErrDamaged
	}
	return nil
}

func unlessCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// forwarding passes on what the observer writes.
type forwarding struct {
	*agentOptions
	notes   *cli.Problems
	spool   *live.Spool
	up      *edge.Uploader // nil without -w
	metrics live.Metrics
	damaged bool
}

// measured are the metrics of the agent.
func (x *forwarding) measured() *live.Metrics {
	m := &x.metrics
	m.Tap, m.Waiting, m.Dropped = x.orders.Tap, x.spool.Waiting, x.spool.Dropped
	if x.up != nil {
		m.Files, m.Removed = x.up.Waiting, x.up.Removed
	}
	return m
}

func (x *forwarding) take(r *edge.Record) error {
	if r.Note != "" {
		x.notes.Printf("%s", text.SafeString(r.Note))
	}
	x.damaged = x.damaged || r.Damaged
	if r.Part != nil && x.up != nil {
		if err := x.up.Add(r.Part); err != nil {
			return err
		}
	}
	if len(r.Summary) == 0 {
		return nil
	}
	s, err := live.Decode(r.Summary)
	if err != nil {
		return fmt.Errorf("from the observer: %w", err)
	}
	if s.Tap != x.orders.Tap || s.Agent != x.orders.Agent {
		return errors.New("the observer speaks for another tap")
	}
	x.metrics.Add(s, time.Now())
	return x.spool.Add(s)
}

// left says what was not delivered.
func (x *forwarding) left() (err error) {
	if n := x.spool.Waiting(); n > 0 {
		err = fmt.Errorf("summaries that were not stored: %d", n)
	}
	if n := x.spool.Dropped(); n > 0 {
		x.notes.Printf("summaries that were dropped, as there was no room: %d", n)
	}
	if x.up == nil {
		return err
	}
	if n := x.up.Waiting(); n > 0 {
		err = errors.Join(err, fmt.Errorf("files of transactions that are still in %s: %d", x.orders.Folder, n))
	}
	if n := x.up.Removed(); n > 0 {
		x.notes.Printf("files of transactions that were removed, as there was no room: %d", n)
	}
	return err
}

// uploader prepares the way of transactions; nil if they are not wanted.
func (o *agentOptions) uploader(ctx context.Context, notes *cli.Problems) (*edge.Uploader, func(), error) {
	if o.out == "" {
		return nil, func() {}, nil
	}
	out, err := store.Open(ctx, o.out, store.Options{Log: notes.Printf})
	if err != nil {
		return nil, nil, err
	}
	done := func() { out.Close() }
	dir := o.folder
	if dir == "" {
		if dir, err = os.MkdirTemp("", "rpcrdma-agent-"); err != nil {
			done()
			return nil, nil, err
		}
		done = func() {
			out.Close()
			os.Remove(dir) // only if it is empty
		}
	} else if err = os.MkdirAll(dir, 0o700); err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		done()
		return nil, nil, err
	}
	o.orders.Folder = dir
	up, err := edge.NewUploader(dir, o.orders.Tap, int64(o.room), out, notes.Printf)
	if err != nil {
		done()
		return nil, nil, err
	}
	return up, done, nil
}

// watch runs the observer until it ends. At the end of the context it is asked to.
func (o *agentOptions) watch(ctx context.Context, take func(*edge.Record) error, stderr io.Writer) error {
	orders, err := json.Marshal(&o.orders)
	if err != nil {
		return err
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "agent", "--"+observer)
	var said bytes.Buffer
	cmd.Stderr = &limited{w: &said, left: 16 << 10}
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _, _ = in.Write(append(orders, '\n')) }() // it may have ended already
	stop := context.AfterFunc(ctx, func() { in.Close() })
	defer stop()
	kill := context.AfterFunc(ctx, func() { time.AfterFunc(o.linger, func() { _ = cmd.Process.Kill() }) })
	defer kill()
	bad := edge.Records(out, take)
	if bad != nil {
		_ = cmd.Process.Kill()
	}
	err = cmd.Wait()
	in.Close()
	if words := strings.TrimSpace(said.String()); err != nil && bad == nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 2 {
			return &cli.UsageError{Err: errors.New(text.SafeString(strings.TrimPrefix(words, "rpcrdma-fleet: ")))}
		}
		fmt.Fprintln(stderr, text.SafeString(words))
		return fmt.Errorf("the observer has ended: %w", err)
	}
	return bad
}

// limited keeps the beginning of what is written.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	n := min(len(b), l.left)
	l.left -= n
	_, err := l.w.Write(b[:n])
	return len(b), err
}

// observe is the life of an observer. It ends with its standard input: with the agent,
// however that ends.
func observe(ctx context.Context, s *cli.Streams) error {
	in := bufio.NewReader(io.LimitReader(s.In, maxOrders))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no orders on standard input: %w", err)
	}
	var o edge.Orders
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	// A signal of the terminal is for the agent, which then closes standard input.
	undo := cli.OnSignal(func(int) bool { return true })
	defer undo()
	cli.LimitProcess(o.Memory)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, s.In)
		cancel()
	}()
	return edge.Observe(ctx, &o, s.Out)
}
