package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/internal/units"
)

type runOptions struct {
	work  submission
	count int
	dir   string
	key   string
}

const runLong = `Decode captures with several workers on this machine. Each tap is one unit of
work: by default a folder, its files in the order of their numbers or, where
names do not tell, of their first packets. The results are in the store when the
program ends.

The workers are processes of their own, which get their units from a NATS server
within this program; it listens on the loopback interface only, and nobody else
knows its password. A unit whose worker crashed is given to another, three times
at most.

A signal ends the program; the same command goes on where it stopped. What is
done is never decoded again. The ID of the job is printed.` + watchLong

func newRunCommand(s *cli.Streams) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run [flags] PATTERN... -w STORE",
		Short: "Decode captures on this machine",
		Long:  runLong,
		Example: `  rpcrdma-fleet run 's3://caps/*/*.pcap*' -w s3://out
  rpcrdma-fleet run captures/ --tap nfs-7 -w out`,
		Args: patterns,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args) },
	}
	o.work.flags(cmd.Flags())
	cmd.Flags().IntVarP(&o.count, "workers", "n", 0, "how many workers (default: one for each processor)")
	cmd.Flags().StringVar(&o.dir, "queue", "", "keep the queue in this `folder`, and with it how often workers crashed in which unit (default: a temporary one)")
	cmd.Flags().StringVar(&o.key, "resume-key", "", "sign what is kept for resuming with what is in this `file`, and use only what is signed by it")
	return cmd
}

func (o *runOptions) run(ctx context.Context, s *cli.Streams, args []string) error {
	if o.count < 0 || o.count > maxWorkers {
		return cli.Usagef("-n %d: 1 to %d", o.count, maxWorkers)
	}
	key, err := readKey("--resume-key", o.key)
	if err != nil {
		return err
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	return o.work.rounds(ctx, args, notes, func(t *submitted) error {
		return o.round(ctx, s, notes, t, key)
	})
}

// round decodes what was planned.
func (o *runOptions) round(ctx context.Context, s *cli.Streams, notes *cli.Problems, t *submitted, key []byte) error {
	err := t.tidy(ctx) // the queue of an earlier run has ended with it
	if err == nil && len(t.todo) > 0 {
		notes.Printf("%s, of which %d done before", units.Plural(len(t.job.Units), "unit"), len(t.done))
		c := conditions{Most: int64(o.work.memory), Key: key}
		if c.Allow, err = t.places(ctx); err == nil {
			err = o.decode(ctx, t, c, notes)
		}
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%w; the same command goes on", cli.ErrInterrupted)
	}
	if err != nil {
		return err
	}
	_, lost := fmt.Fprintln(s.Out, t.job.ID)
	if err := t.sum(ctx, notes); lost == nil {
		return err
	}
	return lost
}

// places are what the workers may touch: the store of the results, and the folders of the captures.
func (t *submitted) places(ctx context.Context) ([]string, error) {
	seen := map[string]bool{t.store.URL(): true}
	list := []string{t.store.URL()}
	ids := slices.Clone(t.todo)
	for n := 0; n < len(ids); n++ {
		u, err := job.ReadUnit(ctx, t.store, ids[n])
		if err != nil && n >= len(t.todo) && job.Unusable(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n >= len(t.todo) { // one before: its captures are read if this program cannot go on from it
			if d, err := unit.IsDone(ctx, u, t.store); err == nil && d != nil && d.Version == unit.Version() {
				continue
			}
		}
		if u.After != "" {
			ids = append(ids, u.After)
		}
		for i := range u.Files {
			name, query, _ := strings.Cut(u.Files[i].URL, "?")
			scheme, rest, _ := strings.Cut(name, "://")
			dir := scheme + "://" + strings.TrimSuffix(path.Dir(rest), "/") + "/"
			if query != "" {
				dir += "?" + query
			}
			if !seen[dir] {
				seen[dir] = true
				list = append(list, dir)
			}
		}
	}
	return list, nil
}

// decode has workers decode the units, until all have ended.
func (o *runOptions) decode(ctx context.Context, t *submitted, c conditions, notes *cli.Problems) error {
	n := o.count
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	n = min(n, len(t.todo))
	e, err := queue.Embed(o.dir, notes.Printf)
	if err != nil {
		return err
	}
	defer e.Close()
	nc, err := queue.Dial(e.Address, queue.Submitter, "rpcrdma-fleet run", notes.Printf)
	if err != nil {
		return err
	}
	defer nc.Close()
	q, err := queue.Create(ctx, nc, queue.Setup{Replicas: 1})
	if err != nil {
		return err
	}
	if _, err := t.put(ctx, q, o.work.retry); err != nil {
		return err
	}
	workers, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	waiting, gaveUp := context.WithCancelCause(ctx)
	defer gaveUp(nil)
	go func() {
		err := newCrew(n, e.Address, c, q, notes).Run(workers)
		if err != nil {
			gaveUp(err)
		}
		ended <- err
	}()
	w := &watch{notes: notes, all: len(t.job.Units), ended: len(t.done), next: time.Now().Add(tellAfter)}
	_, err = q.Wait(waiting, t.keys(), w.changed) // of what is lost, the store says what became of it
	stop()
	if crash := <-ended; crash != nil {
		return crash
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// tellAfter is how often it is said how far the work is.
const tellAfter = 10 * time.Second

// watch says how far the work is.
type watch struct {
	notes      *cli.Problems
	all, ended int
	next       time.Time
}

func (w *watch) changed(_ string, r *queue.Record) {
	if r.State.Final() {
		w.ended++
	}
	if now := time.Now(); now.After(w.next) {
		w.next = now.Add(tellAfter)
		w.notes.Printf("%d of %d units have ended", w.ended, w.all)
	}
}

// sum says what became of the units, by the store alone.
func (t *submitted) sum(ctx context.Context, notes *cli.Problems) error {
	list, err := job.LookAll(ctx, t.store, t.job.Units)
	if err != nil {
		return err
	}
	n := tally(list)
	notes.Printf("%s", n)
	for _, u := range list {
		switch {
		case u.State == job.Done:
			continue
		case u.State == job.Damaged:
			notes.Printf("unit %s (tap %q): %s: captures are truncated or malformed", u.Unit, u.Tap, u.State)
		default:
			notes.Printf("unit %s (tap %q): %s: %s", u.Unit, u.Tap, u.State, or(u.Reason, "nothing is known of it"))
		}
		t.damaged = append(t.damaged, u.Tap)
	}
	if n.Done != n.Units {
		return cli.ErrDamaged
	}
	return nil
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
