package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
)

// submission is what is to be decoded, and to where: the flags of run and submit.
type submission struct {
	unitFlags
	out   string
	retry bool
	every time.Duration

	arrivals unit.Arrivals
	damaged  []string // taps of which units are damaged or without a result
}

func (w *submission) flags(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVarP(&w.out, "write", "w", "", "`store` for the results: a folder, file:///folder, s3://bucket/folder or gs://bucket/folder")
	w.register(f)
	f.BoolVar(&w.retry, "retry", false, "also try units again that were set aside")
	cli.DurationVar(f, &w.every, "watch", 0, "go on until a signal: look for new captures each `time`, and take those that are finished")
}

// rounds plans what there is, and calls do; with --watch again and again, when something new is there.
func (w *submission) rounds(ctx context.Context, patterns []string, notes *cli.Problems, do func(*submitted) error) error {
	switch {
	case w.every == 0:
		return w.round(ctx, patterns, notes, do)
	case w.every < 100*time.Millisecond || w.every > 24*time.Hour:
		return cli.Usagef("--watch: 100ms to 24h")
	}
	for first := true; ; first = false {
		err := w.round(ctx, patterns, notes, do)
		switch {
		case ctx.Err() != nil:
			return w.ended(notes) // a signal is the way to end it; the store has what is left to do
		case err == nil, errors.Is(err, cli.ErrDamaged): // which was said
		case first:
			return err
		default:
			notes.Printf("%v; the next look is in %v", err, w.every)
		}
		select {
		case <-ctx.Done():
			return w.ended(notes)
		case <-time.After(w.every):
		}
	}
}

// ended says at the end of --watch which taps have units that are damaged or without a result.
func (w *submission) ended(notes *cli.Problems) error {
	if len(w.damaged) == 0 {
		return nil
	}
	slices.Sort(w.damaged)
	for _, tap := range w.damaged {
		notes.Printf("tap %q: not all captures could be decoded", tap)
	}
	return cli.ErrDamaged
}

func (w *submission) round(ctx context.Context, patterns []string, notes *cli.Problems, do func(*submitted) error) error {
	t, err := w.plan(ctx, patterns, storeOptions(notes))
	if err != nil || t == nil {
		return err
	}
	if err = do(t); err == nil || errors.Is(err, cli.ErrDamaged) {
		w.arrivals.Take(t.found)
	}
	for _, tap := range t.damaged {
		if !slices.Contains(w.damaged, tap) {
			w.damaged = append(w.damaged, tap)
		}
	}
	return errors.Join(err, t.store.Close())
}

// submitted is a job in its store.
type submitted struct {
	store *store.Store
	job   *layout.Job
	found []*layout.Unit // as the files were found, whether earlier units have them or not
	todo  []string       // units without a result, which are not set aside
	aside []string
	done  []string

	damaged []string // taps of units that are damaged or without a result, when all have ended
}

// plan finds the files, and puts the job into its store. With --watch, these are files that are new and finished; nil if there
// are none.
func (w *submission) plan(ctx context.Context, patterns []string, opt store.Options) (*submitted, error) {
	layoutOpt, err := w.options()
	switch {
	case err != nil:
		return nil, err
	case w.out == "":
		return nil, cli.Usagef("no output: name a store with -w")
	}
	s, err := store.Open(ctx, w.out, opt)
	if err != nil {
		return nil, err
	}
	in := store.NewInputs(opt)
	defer in.Close()
	units, err := w.units(ctx, in, patterns, layoutOpt, opt.Log)
	if err == nil && len(units) == 0 {
		return nil, s.Close()
	}
	t := &submitted{store: s, found: units}
	if err == nil {
		units, err = unit.Follow(ctx, in, s, units, opt.Log)
	}
	if err == nil {
		t.job, err = newJob(patterns, units, layoutOpt)
	}
	if err == nil {
		err = job.Write(ctx, s, t.job, units)
	}
	if err == nil {
		err = t.sort(ctx, units, w.retry)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return t, nil
}

// units are the captures of each tap.
func (w *submission) units(ctx context.Context, in *store.Inputs, patterns []string, opt layout.Options, log func(string, ...any)) ([]*layout.Unit, error) {
	if w.every == 0 {
		return unit.Plan(ctx, in, patterns, w.tap, opt)
	}
	return w.arrivals.Plan(ctx, in, patterns, w.tap, opt, func(url string) { log("%s is gone: it was deleted before it could be decoded", url) })
}

func newJob(patterns []string, units []*layout.Unit, opt layout.Options) (*layout.Job, error) {
	var ids []string
	for _, u := range units {
		ids = append(ids, u.ID)
	}
	return layout.NewJob(patterns, ids, opt, time.Now(), cli.Version())
}

// sort tells units that are done from those to be done.
func (t *submitted) sort(ctx context.Context, units []*layout.Unit, retry bool) error {
	done, aside := make([]bool, len(units)), make([]bool, len(units))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, u := range units {
		g.Go(func() (err error) {
			if done[i], err = job.IsDone(ctx, t.store, u); err != nil || done[i] {
				return err
			}
			if retry {
				return job.Retry(ctx, t.store, u.ID)
			}
			a, err := job.Aside(ctx, t.store, u.ID)
			aside[i] = a != nil
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, u := range units {
		switch {
		case done[i]:
			t.done = append(t.done, u.ID)
		case aside[i]:
			t.aside = append(t.aside, u.ID)
		default:
			t.todo = append(t.todo, u.ID)
		}
	}
	return nil
}

// tidy removes what those have left behind who were ended when the result of a unit was there, and nobody comes to the
// unit any more. Results of older versions get a manifest.
func (t *submitted) tidy(ctx context.Context) error {
	g := errgroup.Group{}
	g.SetLimit(16)
	for _, id := range t.done {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			unit.Tidy(ctx, id, t.store)
			u, err := job.ReadUnit(ctx, t.store, id)
			if err != nil {
				return err
			}
			d, err := job.ReadDone(ctx, t.store, u)
			if err != nil {
				return err
			}
			return unit.Count(ctx, t.store, u, d)
		})
	}
	return g.Wait()
}

// task is what is queued of a unit.
func (t *submitted) task(unit string) queue.Task {
	return queue.Task{Store: t.store.URL(), Job: t.job.ID, Unit: unit}
}

// keys are the Keys of the units to be decoded.
func (t *submitted) keys() []string {
	list := make([]string, len(t.todo))
	for i, u := range t.todo {
		list[i] = t.task(u).Key()
	}
	return list
}

// put queues the units.
func (t *submitted) put(ctx context.Context, q *queue.Queue, again bool) (queued int, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	added := make([]bool, len(t.todo))
	for i, u := range t.todo {
		g.Go(func() (err error) {
			added[i], err = q.Put(ctx, t.task(u), again)
			return err
		})
	}
	err = g.Wait()
	for _, a := range added {
		if a {
			queued++
		}
	}
	return queued, err
}

const submitLong = `Put the work of decoding captures into a queue of NATS JetStream, for workers on
any machine. Each tap is one unit of work: by default a folder, its files in the
order of their numbers or, where names do not tell, of their first packets. The
work is described in the store of the results; NATS only says what is still to
be done.

Submitting the same files again queues what has no result yet, and nothing
twice. The ID of the job is printed.` + watchLong

const watchLong = `

With --watch, the captures of a tap are taken as they come. Finished is an
object of a store; a file that has not changed between two looks, if another
file of the tap was written later; the last file, if five looks have found it
the same.`

func newSubmitCommand(s *cli.Streams) *cobra.Command {
	var w submission
	var n natsFlags
	var replicas int
	cmd := &cobra.Command{
		Use:   "submit [flags] PATTERN... -w STORE",
		Short: "Queue captures for workers on other machines",
		Long:  submitLong,
		Example: `  rpcrdma-fleet submit --nats nats://a,b,c 's3://caps/*/*.pcap*' -w s3://out
  rpcrdma-fleet submit --nats-context prod s3://caps/nfs-7/ --tap nfs-7 -w s3://out/nfs-7`,
		Args: patterns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if replicas < 0 || replicas > 5 {
				return cli.Usagef("--replicas %d: 1 to 5, or 0 to choose", replicas)
			}
			ctx, stop := cli.Context(cmd.Context())
			defer stop()
			notes := cli.NewProblems("rpcrdma-fleet", s.Err)
			nc, err := n.dial(queue.Submitter, "rpcrdma-fleet submit", notes)
			if err != nil {
				return err
			}
			defer nc.Close()
			q, err := queue.Create(ctx, nc, queue.Setup{Replicas: replicas})
			if err != nil {
				return err
			}
			return w.rounds(ctx, args, notes, func(t *submitted) error {
				queued, err := t.put(ctx, q, w.retry)
				if err != nil {
					return fmt.Errorf("%d of %d units were queued: %w", queued, len(t.todo), err)
				}
				notes.Printf("%d units: %d done before, %d queued now, %d queued before, %d set aside", len(t.job.Units), len(t.done), queued, len(t.todo)-queued, len(t.aside))
				_, err = fmt.Fprintln(s.Out, t.job.ID)
				return err
			})
		},
	}
	w.flags(cmd.Flags())
	n.flags(cmd)
	cmd.Flags().IntVar(&replicas, "replicas", 0, "on how many NATS servers the queue is kept, when it is made (default 3 in a cluster, otherwise 1)")
	return cmd
}

// patterns are the arguments of run and submit.
func patterns(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cli.Usagef("no captures are named: a file, a folder with a slash at its end, or a pattern such as 's3://caps/*/*.pcap*'")
	}
	return nil
}

// storeOptions are for commands that somebody waits for.
func storeOptions(notes *cli.Problems) store.Options {
	return store.Options{Log: notes.Printf, Reach: store.ForPeople}
}

// existingStore opens a store that must be there.
func existingStore(ctx context.Context, name string, notes *cli.Problems) (*store.Store, error) {
	opt := storeOptions(notes)
	opt.Existing = true
	return store.Open(ctx, name, opt)
}
