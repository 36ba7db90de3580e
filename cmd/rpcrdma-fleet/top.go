package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/live"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/screen"
	"github.com/rpcrdma/toolkit/internal/printable"
)

type topOptions struct {
	nats   natsFlags
	order  string
	tap    string
	format string
	every  time.Duration
	since  time.Duration
	batch  int
}

const topLong = `Show the taps whose agents send summaries, the slowest first, and one of them in
detail: operations, slowest transactions, connections, clients, files.

Without a terminal, or with --batch, tables are printed instead: the first when
all that NATS holds has been read, then one each --delay.`

func newTopCommand(s *cli.Streams) *cobra.Command {
	o := &topOptions{}
	batch := false
	cmd := &cobra.Command{
		Use:   "top [flags]",
		Short: "Show what all taps see now",
		Long:  topLong,
		Example: `  rpcrdma-fleet top --nats nats://a,b,c
  rpcrdma-fleet top --nats nats://a --batch 1 --tap nfs-7
  rpcrdma-fleet top --nats nats://a --batch 1 --format json | jq '.taps[] | select(.silent) | .latest.tap'`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			batch = cmd.Flags().Changed("batch")
			return o.run(cmd.Context(), s, batch)
		},
	}
	o.nats.flags(cmd)
	f := cmd.Flags()
	f.StringVar(&o.order, "sort", live.ByP99.String(), "list taps by this `value`: "+strings.Join(live.OrderNames(), ", "))
	f.StringVar(&o.tap, "tap", "", "with --batch: only the tap of this `name`, in detail")
	f.IntVarP(&o.batch, "batch", "b", 0, "print tables `n` times instead of a screen; 0: until a signal")
	cli.DurationVarP(f, &o.every, "delay", "d", 10*time.Second, "with --batch: `time` between tables")
	cli.DurationVar(f, &o.since, "since", 10*time.Minute, "begin with summaries that came within this `time`")
	f.StringVarP(&o.format, "format", "T", "text", "with --batch: print as `format`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(live.OrderNames(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (o *topOptions) run(ctx context.Context, s *cli.Streams, batch bool) error {
	by, ok := live.ParseOrder(o.order)
	switch {
	case !ok:
		return cli.Usagef("--sort %q: it is one of %s", o.order, strings.Join(live.OrderNames(), ", "))
	case o.format != "text" && o.format != "json":
		return cli.Usagef("--format %q: it is text or json", o.format)
	case o.batch < 0:
		return cli.Usagef("--batch: a number of tables, or 0")
	case o.every < 100*time.Millisecond || o.since < 0:
		return cli.Usagef("--delay has at least 100ms, and --since is not negative")
	}
	_, tty := cli.Terminal(s.Out)
	tables := batch || !tty || os.Getenv("TERM") == "dumb"
	var keys *os.File
	if !tables {
		keys = cli.Keyboard(s.In)
		tables = keys == nil
	}
	if !tables && (o.format != "text" || o.tap != "") {
		return cli.Usagef("--format and --tap go with --batch")
	}
	a, err := o.nats.Resolve(os.Getenv)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	say := notes.Printf
	var p *tea.Program
	if !tables {
		u := &screen.UI{Fleet: &live.Fleet{}, By: by, Now: time.Now}
		p = tea.NewProgram(u, tea.WithAltScreen(), tea.WithInput(keys), tea.WithOutput(s.Out), tea.WithoutSignalHandler())
		say = func(format string, args ...any) { go p.Send(screen.Notef(format, args...)) }
	}
	nc, err := queue.Dial(a, queue.Reader, "rpcrdma-fleet top", say)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, cancel := queue.Bound(ctx, nc, a)
	defer cancel()
	messages := make(chan live.Message, 256)
	ended := make(chan error, 1)
	go func() { ended <- live.Watch(ctx, nc, o.since, messages, say) }()
	if tables {
		return errors.Join(o.tables(ctx, s, by, messages, ended, say), queue.Refused(ctx))
	}
	return errors.Join(screenUntil(ctx, p, messages, ended), queue.Refused(ctx))
}

// screenUntil runs the screen until somebody, or the context, ends it.
func screenUntil(ctx context.Context, p *tea.Program, messages <-chan live.Message, ended <-chan error) error {
	var watching error
	go func() {
		for {
			select {
			case m := <-messages:
				list := screen.Arrived{m}
				for more := true; more && len(list) < 1000; {
					select {
					case m := <-messages:
						list = append(list, m)
					default:
						more = false
					}
				}
				p.Send(list)
			case watching = <-ended:
				p.Quit()
				return
			case <-ctx.Done():
				p.Quit()
				return
			}
		}
	}()
	_, err := p.Run()
	if errors.Is(err, tea.ErrInterrupted) {
		err = nil
	}
	return errors.Join(err, watching)
}

// answerWait is how long the first table waits for NATS.
const answerWait = 30 * time.Second

// tables prints tables.
func (o *topOptions) tables(ctx context.Context, s *cli.Streams, by live.Order, messages <-chan live.Message, ended <-chan error, note func(string, ...any)) error {
	f := &live.Fleet{}
	print := screen.Print
	if o.format == "json" {
		print = screen.JSON
	}
	out := printable.TextWriter(s.Out)
	// The first table waits until what NATS holds has been read, or NATS has said that it holds nothing.
	timer := time.NewTimer(answerWait)
	defer timer.Stop()
	for printed := 0; ; {
		now := false
		select {
		case m := <-messages:
			f.Add(m)
			now = printed == 0 && (m.Last || m.None)
		case <-timer.C:
			if now = true; printed == 0 {
				note("NATS has not told all that it holds within %v: what is shown is incomplete", answerWait)
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
		if !now {
			continue
		}
		if printed > 0 && o.format == "text" {
			if _, err := out.Write([]byte("\n")); err != nil {
				return err
			}
		}
		if err := print(out, f, by, o.tap, time.Now()); err != nil {
			return err
		}
		if printed++; printed == o.batch {
			return nil
		}
		timer.Reset(o.every)
	}
}
