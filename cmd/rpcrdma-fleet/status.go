package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/table"
)

// numbers are how many units are how far, by the store.
type numbers struct {
	Units        int    `json:"units"`
	Done         int    `json:"done"`    // without damage
	Damaged      int    `json:"damaged"` // done, with truncated or malformed input
	Failed       int    `json:"failed"`
	Aside        int    `json:"aside"`
	Missing      int    `json:"missing"`
	StoredBytes  int64  `json:"stored_bytes"`
	DoneBytes    int64  `json:"stored_bytes_done"`
	Packets      uint64 `json:"packets"`
	Transactions uint64 `json:"transactions"`
}

func tally(list []*job.Standing) (n numbers) {
	n.Units = len(list)
	for _, u := range list {
		n.StoredBytes += u.Bytes
		if u.State.Complete() {
			n.DoneBytes += u.Bytes
			n.Packets += u.Counts.Packets
			n.Transactions += u.Counts.Transactions
		}
		switch u.State {
		case job.Done:
			n.Done++
		case job.Damaged:
			n.Damaged++
		case job.Failed:
			n.Failed++
		case job.IsAside:
			n.Aside++
		case job.Missing:
			n.Missing++
		}
	}
	return n
}

func (n numbers) String() string {
	s := fmt.Sprintf("%d of %d units done", n.Done+n.Damaged, n.Units)
	if n.Damaged > 0 {
		s += fmt.Sprintf(", %d of them with truncated or malformed input", n.Damaged)
	}
	if n.Done+n.Damaged < n.Units {
		s += fmt.Sprintf("; %d missing, %d failed, %d set aside", n.Missing, n.Failed, n.Aside)
	}
	return s
}

// status is what the command shows.
type status struct {
	Schema   string         `json:"schema"`
	Store    string         `json:"store"`
	Complete bool           `json:"complete"` // all units of all jobs are done
	NATS     natsStatus     `json:"nats"`
	Jobs     []*jobStatus   `json:"jobs"`
	Workers  []workerStatus `json:"workers"`
}

type natsStatus struct {
	Asked bool   `json:"asked"`
	Error string `json:"error,omitempty"` // why it did not answer
	Odd   int    `json:"malformed_records"`
}

type jobStatus struct {
	ID      string       `json:"id"`
	Created time.Time    `json:"created"`
	Version string       `json:"version"`
	Numbers numbers      `json:"numbers"`
	Running int          `json:"running"`
	Queued  int          `json:"queued"`
	Units   []unitStatus `json:"units"`
}

type unitStatus struct {
	*job.Standing
	// Queue is what NATS says of a unit that is not done: running, queued, nothing.
	Queue    string         `json:"queue,omitempty"`
	Worker   string         `json:"worker,omitempty"`
	Progress queue.Progress `json:"progress,omitzero"`
	Crashes  int            `json:"crashes,omitempty"`
}

type workerStatus struct {
	Name string `json:"name"`
	*queue.Sign
}

const (
	statusSchema = "rpcrdma.fleet.status/1"
	isRunning    = "running"
	isQueued     = "queued"
)

type statusOptions struct {
	nats   natsFlags
	jobs   []string
	format string
}

const statusLong = `Show how far the jobs in a store are, and what workers do. The store alone says
which units are done; NATS, where it is given and answers, says which of the
others are in work or queued, and by whom.

Exit status 3 says that not all units are done.`

func newStatusCommand(s *cli.Streams) *cobra.Command {
	o := &statusOptions{}
	cmd := &cobra.Command{
		Use:   "status [flags] STORE",
		Short: "Show how far jobs are",
		Long:  statusLong,
		Example: `  rpcrdma-fleet status --nats nats://a,b,c s3://out
  rpcrdma-fleet status --format json s3://out`,
		Args: cli.Exactly(1, "the store of the results"),
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), s, args[0]) },
	}
	o.nats.flags(cmd)
	cmd.Flags().StringArrayVar(&o.jobs, "job", nil, "only the job with this `ID`; may be repeated (default: all)")
	cmd.Flags().StringVar(&o.format, "format", "table", "table or json")
	return cmd
}

func (o *statusOptions) run(ctx context.Context, s *cli.Streams, name string) error {
	if o.format != "table" && o.format != "json" {
		return cli.Usagef("--format %s: table or json", o.format)
	}
	ctx, stop := cli.Context(ctx)
	defer stop()
	notes := cli.NewProblems("rpcrdma-fleet", s.Err)
	st, err := existingStore(ctx, name, notes)
	if err != nil {
		return err
	}
	defer st.Close()
	x := &status{Schema: statusSchema, Store: st.URL(), Complete: true, Jobs: []*jobStatus{}, Workers: []workerStatus{}}
	snap := o.ask(ctx, x, notes)
	if err := o.look(ctx, st, x, snap); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(snap.Workers)) {
		x.Workers = append(x.Workers, workerStatus{name, snap.Workers[name]})
	}
	if o.format == "json" {
		err = x.json(s.Out)
	} else {
		err = x.table(s.Out)
	}
	if err == nil && !x.Complete {
		return cli.ErrDamaged
	}
	return err
}

// ask asks NATS, if there is any. That it does not answer is part of the status.
func (o *statusOptions) ask(ctx context.Context, x *status, notes *cli.Problems) *queue.Snapshot {
	none := &queue.Snapshot{}
	if !o.nats.given() {
		return none
	}
	x.NATS.Asked = true
	snap, err := func() (*queue.Snapshot, error) {
		nc, err := o.nats.dial(queue.Reader, "rpcrdma-fleet status", notes)
		if err != nil {
			return nil, err
		}
		defer nc.Close()
		ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		q, err := queue.Open(ctx, nc)
		if err != nil {
			return nil, err
		}
		return q.Look(ctx)
	}()
	if err != nil {
		x.NATS.Error = err.Error()
		notes.Printf("NATS does not say what is in work: %v", err)
		return none
	}
	x.NATS.Odd = snap.Odd
	return snap
}

// look reads the jobs from the store.
func (o *statusOptions) look(ctx context.Context, st *store.Store, x *status, snap *queue.Snapshot) error {
	ids := o.jobs
	if len(ids) == 0 {
		var err error
		if ids, err = job.IDs(ctx, st); err != nil {
			return err
		}
		if len(ids) == 0 {
			return fmt.Errorf("%s: there are no jobs in this store", st.URL())
		}
	}
	for _, id := range ids {
		if !layout.IsID(id) {
			return cli.Usagef("--job %s: the ID of a job has 32 digits and letters from a to f", id)
		}
		j, err := job.Read(ctx, st, id)
		if err != nil {
			return err
		}
		list, err := job.LookAll(ctx, st, j.Units)
		if err != nil {
			return err
		}
		y := &jobStatus{ID: j.ID, Created: j.Created, Version: j.Version, Numbers: tally(list)}
		for _, u := range list {
			y.add(u, queue.Task{Store: st.URL(), Unit: u.Unit}.Key(), snap)
		}
		if y.Numbers.Done+y.Numbers.Damaged < y.Numbers.Units {
			x.Complete = false
		}
		x.Jobs = append(x.Jobs, y)
	}
	slices.SortFunc(x.Jobs, func(a, b *jobStatus) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return nil
}

// add joins what the store and what NATS say of a unit.
func (j *jobStatus) add(s *job.Standing, key string, snap *queue.Snapshot) {
	u := unitStatus{Standing: s}
	if !s.State.Complete() {
		r := snap.Records[key]
		if r != nil {
			u.Crashes = len(r.Crashes)
		}
		switch {
		case r != nil && r.State == queue.Running && snap.Workers[r.Worker] != nil && snap.Workers[r.Worker].Key == key:
			u.Queue, u.Worker, u.Progress = isRunning, r.Worker, snap.Workers[r.Worker].Progress
			j.Running++
		case snap.Queued[key]:
			u.Queue = isQueued
			j.Queued++
		}
	}
	j.Units = append(j.Units, u)
}

func (x *status) json(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(x)
}

// table shows jobs, units that are not done, and workers.
func (x *status) table(w io.Writer) error {
	w = printable.TextWriter(w)
	for i, j := range x.Jobs {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "job %s of %s: %s", j.ID, j.Created.UTC().Format(time.RFC3339), j.Numbers)
		if x.NATS.Asked && x.NATS.Error == "" && j.Numbers.Done+j.Numbers.Damaged < j.Numbers.Units {
			fmt.Fprintf(w, "; %d running, %d queued", j.Running, j.Queued)
		}
		fmt.Fprintf(w, "\n%d packets, %d transactions, %s of %s read\n", j.Numbers.Packets, j.Numbers.Transactions, size(j.Numbers.DoneBytes), size(j.Numbers.StoredBytes))
		var rows [][]string
		for _, u := range j.Units {
			if !u.State.Complete() {
				rows = append(rows, u.row())
			}
		}
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintln(w)
		if err := table.Print(w, []string{"UNIT", "TAP", "STATE", "READ", "OF", "FILES", "CRASHES", "FAILURES", "WORKER OR REASON"},
			[]bool{false, false, false, true, true, true, true, true, false}, rows); err != nil {
			return err
		}
	}
	if len(x.Workers) == 0 {
		return nil
	}
	var rows [][]string
	for _, k := range x.Workers {
		rows = append(rows, []string{k.Name, or(k.Unit, "-"), fmt.Sprintf("%d/%d", k.Progress.File, k.Progress.Files), strconv.FormatUint(k.Progress.Packets, 10),
			strconv.Itoa(k.Done), size(k.Resident), k.Started.UTC().Format(time.RFC3339), k.Version})
	}
	fmt.Fprintln(w)
	return table.Print(w, []string{"WORKER", "UNIT", "FILES", "PACKETS", "DONE", "RESIDENT", "SINCE", "VERSION"},
		[]bool{false, false, true, true, true, true, false, false}, rows)
}

func (u *unitStatus) row() []string {
	state, who := string(u.State), u.Reason
	if u.Queue != "" {
		state = u.Queue
	}
	if u.Worker != "" {
		who = u.Worker
	}
	return []string{u.Unit, printable.Line(u.Tap), state, size(u.Progress.Bytes), size(u.Bytes), fmt.Sprintf("%d/%d", u.Progress.File, u.Files),
		strconv.Itoa(u.Crashes), strconv.Itoa(u.Failures), printable.Line(who)}
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1fG", float64(n)/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.1fM", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1fK", float64(n)/(1<<10))
}
