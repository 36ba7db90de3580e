package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/metrics"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/crew"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/work"
)

// conditions are what a worker may do, and with what.
type conditions struct {
	Allow []string
	Most  int64  // bytes that a unit may ask for
	Key   []byte // signs what is kept for resuming
}

// orders are what a child process is told on its standard input.
type orders struct {
	Name       string
	Address    queue.Address
	Conditions conditions
}

// maxOrders is the size of orders.
const maxOrders = 256 << 10

// supervised makes a worker a child process, which reads orders and ends with its standard input.
const supervised = "supervised"

type workerOptions struct {
	nats  natsFlags
	count int
	allow []string
	most  cli.Size
	key   string

	listen string
}

const workerLong = `Take units of work from a queue of NATS JetStream, one after another, until a
signal ends the program: the unit in work is given back then, and another worker
goes on at the last place that was saved. Any number of workers may run,
anywhere.

What to read and write is said by messages and by objects that others have
written. Without --allow, a worker touches only buckets of s3:// and gs:// that
its own credentials open, at the servers that its environment names.

With -n, several workers run, each as a process. One that crashes is started
again; without -n, whoever started the program has to do that.`

func newWorkerCommand(s *cli.Streams) *cobra.Command {
	o := &workerOptions{most: 1 << 30}
	child := false
	cmd := &cobra.Command{
		Use:   "worker [flags]",
		Short: "Decode what is queued",
		Long:  workerLong,
		Example: `  rpcrdma-fleet worker --nats nats://a,b,c
  rpcrdma-fleet worker --nats-context prod -n 4 --allow file:///shared/caps --allow file:///shared/out`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if child {
				return obey(cmd.Context(), s, decoder)
			}
			return o.run(cmd.Context(), s)
		},
	}
	o.nats.flags(cmd)
	f := cmd.Flags()
	f.IntVarP(&o.count, "workers", "n", 0, "run this many workers, each as a process (default: this process is the worker)")
	f.StringArrayVar(&o.allow, "allow", nil, "work on stores and captures below this `URL`; may be repeated")
	f.Var(&o.most, "most-memory", "refuse units that ask for more resident memory than this")
	f.StringVar(&o.key, "resume-key", "", "sign what is kept for resuming with what is in this `file`, and use only what is signed by it")
	f.StringVar(&o.listen, "listen", "", "without -n: serve metrics to Prometheus at this `address`; :PORT is on this host only")
	f.BoolVar(&child, supervised, false, "")
	_ = f.MarkHidden(supervised)
	return cmd
}

func (o *workerOptions) run(ctx context.Context, s *cli.Streams) error {
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	if o.count < 0 || o.count > maxWorkers {
		return cli.Usagef("-n %d: 1 to %d", o.count, maxWorkers)
	}
	if o.count > 0 && o.listen != "" {
		return cli.Usagef("--listen goes without -n: each worker has metrics of its own")
	}
	if _, err := work.NewAllow(o.allow); err != nil {
		return &cli.UsageError{Err: fmt.Errorf("--allow %w", err)}
	}
	a, err := o.nats.Resolve(os.Getenv)
	if err != nil {
		return &cli.UsageError{Err: err}
	}
	c := conditions{Allow: o.allow, Most: int64(o.most)}
	if c.Key, err = readKey("--resume-key", o.key); err != nil {
		return err
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	if o.count == 0 {
		decode := decoder(c, notes)
		if o.listen != "" {
			m := &workerMetrics{}
			served, err := metrics.Listen("rpcrdma-fleet", o.listen)
			if err != nil {
				return err
			}
			defer served.Close()
			served.Serve(m)
			decode = m.counted(decode)
		}
		return labour(ctx, queue.NewName(), a, c, decode, notes)
	}
	nc, err := queue.Dial(a, queue.RoleWorker, "rpcrdma-fleet worker", notes.Printf)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, unbind := queue.Bound(ctx, nc, a)
	defer unbind()
	q, err := queue.Await(ctx, nc, notes.Printf)
	if err != nil {
		return errors.Join(queue.Refused(ctx), unlessCanceled(err))
	}
	return newCrew(o.count, a, c, q, notes).Run(ctx)
}

// maxWorkers is how many child processes there may be.
const maxWorkers = 1024

// newCrew makes child processes of this program that are workers.
func newCrew(n int, a queue.Address, c conditions, q *queue.Queue, notes *cli.Problems) *crew.Crew {
	program, err := os.Executable()
	if err != nil {
		program = os.Args[0]
	}
	return &crew.Crew{
		Size: n, Program: program, Args: []string{"worker", "--" + supervised},
		Name:   queue.NewName,
		Orders: func(name string) any { return orders{Name: name, Address: a, Conditions: c} },
		Ended: func(name, reason string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := q.Bury(ctx, name, reason); err != nil {
				notes.Printf("worker %s has ended, which NATS cannot be told: %v", name, err)
			}
		},
		Note: notes.Printf,
	}
}

// obey is the life of a child process.
func obey(ctx context.Context, s *cli.Streams, decoder func(conditions, *cli.Problems) work.Decode) error {
	in := bufio.NewReader(io.LimitReader(s.In, maxOrders))
	line, err := in.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("no orders on standard input: %w", err)
	}
	var o orders
	if err := json.Unmarshal(line, &o); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, s.In) // until the parent ends
		cancel()
	}()
	notes := cli.NewProblems("worker "+o.Name, s.Err)
	return labour(ctx, o.Name, o.Address, o.Conditions, decoder(o.Conditions, notes), notes)
}

// labour takes units until the context ends.
func labour(ctx context.Context, name string, a queue.Address, c conditions, decode work.Decode, notes *cli.Problems) error {
	allow, err := work.NewAllow(c.Allow)
	if err != nil {
		return err
	}
	nc, err := queue.Dial(a, queue.RoleWorker, "rpcrdma-fleet worker "+name, notes.Printf)
	if err != nil {
		return err
	}
	defer nc.Close()
	ctx, unbind := queue.Bound(ctx, nc, a)
	defer unbind()
	q, err := queue.Await(ctx, nc, notes.Printf)
	if err != nil {
		if ctx.Err() != nil {
			return queue.Refused(ctx)
		}
		return err
	}
	x := &work.Executor{Allow: allow, Store: storeOptions(notes), Decode: decode}
	w := &queue.Worker{Name: name, Version: cli.Version(), Exec: x, Note: notes.Printf}
	return errors.Join(w.Run(ctx, q), x.Close(), queue.Refused(ctx))
}

// decoder decodes units within the conditions.
func decoder(c conditions, notes *cli.Problems) work.Decode {
	return func(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, progress func(queue.Progress)) error {
		if u.Options.Memory > c.Most {
			return queue.Permanent(fmt.Errorf("the unit asks for %d MiB of memory, and --most-memory is %d MiB", u.Options.Memory>>20, c.Most>>20))
		}
		allow, err := work.NewAllow(c.Allow)
		if err != nil {
			return err
		}
		cli.LimitProcess(int(u.Options.Memory))
		size := u.Bytes()
		_, err = unit.Run(ctx, u, in, out, unit.Options{
			Key: c.Key, Log: notes.Printf, Allow: allow.Check,
			Progress: func(p unit.Progress) {
				progress(queue.Progress{File: p.Files, Files: len(u.Files), Bytes: p.Stored, Size: size, Packets: p.Packets})
			},
		})
		if err != nil && unit.Permanent(err) {
			return queue.Permanent(err)
		}
		return err
	}
}
