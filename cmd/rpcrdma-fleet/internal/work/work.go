// Package work does what a worker has to do with a unit: it looks at its store, decodes it, and notes what became
// of it.
package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
)

// Decode decodes a unit and writes its result, done.json last.
type Decode func(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, progress func(queue.Progress)) error

// Executor implements queue.Executor with stores.
type Executor struct {
	Allow  Allow
	Decode Decode
	Store  store.Options

	once   sync.Once
	inputs *store.Inputs

	mu     sync.Mutex
	stores map[string]*store.Store
	job    *layout.Job // the last one: most units in a row are of the same
}

// maxStores is how many stores are kept open.
const maxStores = 16

// Close closes what is open.
func (x *Executor) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	var errs []error
	for _, s := range x.stores {
		errs = append(errs, s.Close())
	}
	x.stores = nil
	if x.inputs != nil {
		errs = append(errs, x.inputs.Close())
	}
	return errors.Join(errs...)
}

// Allowed says why this worker does not touch a store.
func (x *Executor) Allowed(s string) error { return x.Allow.Check(s) }

func (x *Executor) open(ctx context.Context, url string) (*store.Store, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.stores[url]; s != nil {
		return s, nil
	}
	s, err := store.Open(ctx, url, x.Store)
	if err != nil {
		return nil, err
	}
	if x.stores == nil || len(x.stores) >= maxStores {
		for _, old := range x.stores {
			_ = old.Close()
		}
		x.stores = map[string]*store.Store{}
	}
	x.stores[url] = s
	return s, nil
}

// Standing tells what the store says of a unit.
func (x *Executor) Standing(ctx context.Context, t queue.Task) (queue.Standing, error) {
	s, err := x.open(ctx, t.Store)
	if err != nil {
		return 0, err
	}
	ok, err := x.belongs(ctx, s, t)
	if err != nil || !ok {
		return queue.Foreign, err
	}
	u, err := job.ReadUnit(ctx, s, t.Unit)
	if job.Unusable(err) {
		return 0, queue.Permanent(err)
	}
	if err != nil {
		return 0, err
	}
	done, err := job.IsDone(ctx, s, u)
	if err != nil {
		return 0, err
	}
	if done {
		unit.Tidy(ctx, t.Unit, s) // the one who decoded it may have been killed before
		return queue.Done, nil
	}
	a, err := job.Aside(ctx, s, t.Unit)
	if err != nil {
		return 0, err
	}
	if a != nil {
		return queue.SetAside, nil
	}
	return queue.ToDo, nil
}

// belongs reports whether the job is in the store, and the unit in the job.
func (x *Executor) belongs(ctx context.Context, s *store.Store, t queue.Task) (bool, error) {
	x.mu.Lock()
	j := x.job
	x.mu.Unlock()
	if j == nil || j.ID != t.Job {
		var err error
		j, err = job.Read(ctx, s, t.Job)
		if job.Unusable(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		x.mu.Lock()
		x.job = j
		x.mu.Unlock()
	}
	_, ok := slices.BinarySearch(j.Units, t.Unit)
	return ok, nil
}

// Run decodes a unit.
func (x *Executor) Run(ctx context.Context, t queue.Task, progress func(queue.Progress)) error {
	s, err := x.open(ctx, t.Store)
	if err != nil {
		return err
	}
	u, err := job.ReadUnit(ctx, s, t.Unit)
	if err != nil {
		return err
	}
	for i := range u.Files {
		if err := x.Allow.Check(u.Files[i].URL); err != nil {
			return queue.Permanent(fmt.Errorf("a capture of the unit: %w", err))
		}
	}
	x.once.Do(func() { x.inputs = store.NewInputs(x.Store) })
	err = x.Decode(ctx, u, x.inputs, s, progress)
	// What was submitted is not there any more: no other attempt finds it.
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound) {
		return queue.Permanent(err)
	}
	return err
}

// Fail notes a failed attempt.
func (x *Executor) Fail(ctx context.Context, t queue.Task, worker, reason string) error {
	s, err := x.open(ctx, t.Store)
	if err != nil {
		return err
	}
	// Only what belongs to a job gets objects in the store.
	if ok, err := x.belongs(ctx, s, t); err != nil || !ok {
		return err
	}
	return job.Fail(ctx, s, t.Unit, worker, reason)
}

// SetAside notes that a unit is not tried any more.
func (x *Executor) SetAside(ctx context.Context, t queue.Task, crashes []queue.Crash) error {
	s, err := x.open(ctx, t.Store)
	if err != nil {
		return err
	}
	var reasons []string
	for _, c := range crashes {
		reasons = append(reasons, fmt.Sprintf("worker %s: %s", c.Worker, c.Reason))
	}
	return job.SetAside(ctx, s, t.Unit, len(crashes), fmt.Sprintf("%d workers crashed: %s", len(crashes), strings.Join(reasons, "; ")))
}
