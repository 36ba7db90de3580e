package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// parallel is how many small objects are read or written at a time.
const parallel = 16

// Write puts a job and its units into a store. What is there already stays as it is: contents make the IDs.
func Write(ctx context.Context, s *store.Store, j *layout.Job, units []*layout.Unit) error {
	g, sub := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	b := newBudget(underWay)
	for _, u := range units {
		g.Go(func() error {
			return b.put(sub, s, u)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if _, err := Read(ctx, s, j.ID); err == nil {
		return nil
	}
	// The job last: whoever finds it finds its units.
	_, err := s.WriteSmall(ctx, layout.JobName(j.ID), j.Encode())
	return err
}

// Put puts a unit into a store, as the last one of its tap.
func Put(ctx context.Context, s *store.Store, u *layout.Unit) error {
	return newBudget(layout.MaxUnit).put(ctx, s, u)
}

func (b *budget) put(ctx context.Context, s *store.Store, u *layout.Unit) error {
	if b.unit(ctx, s, u.ID, func(*layout.Unit) {}) != nil {
		if _, err := s.WriteSmall(ctx, layout.UnitName(u.ID), u.Encode()); err != nil {
			return err
		}
	}
	if now, err := Head(ctx, s, u.Tap); err != nil || now == u.ID {
		return err
	}
	_, err := s.WriteSmall(ctx, layout.HeadName(u.Tap), (&layout.Head{Tap: u.Tap, Unit: u.ID}).Encode())
	return err
}

// Head reads which unit is the last of a tap; empty if there is none.
func Head(ctx context.Context, s *store.Store, tap string) (unit string, err error) {
	return readHead(ctx, s, layout.HeadName(tap))
}

func readHead(ctx context.Context, s *store.Store, name string) (unit string, err error) {
	b, err := s.ReadSmall(ctx, name, layout.MaxFailure)
	if err != nil {
		if Unusable(err) {
			err = nil
		}
		return "", err
	}
	h, err := layout.ParseHead(b, name)
	if err != nil {
		return "", nil //nolint:nilerr // the next one who submits writes it anew
	}
	return h.Unit, nil
}

// Heads are the last units of all taps, in ascending order.
func Heads(ctx context.Context, s *store.Store) ([]string, error) {
	var names []string
	for o, err := range s.Folders(ctx, layout.Taps) {
		if err != nil {
			return nil, err
		}
		names = append(names, o.Name+"head.json")
		if len(names) > layout.MaxUnits {
			return nil, fmt.Errorf("more than %d taps", layout.MaxUnits)
		}
	}
	units := make([]string, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, name := range names {
		g.Go(func() (err error) {
			units[i], err = readHead(ctx, s, name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.Sort(units)
	units = slices.Compact(units)
	return slices.DeleteFunc(units, func(u string) bool { return u == "" }), nil
}

// Unusable reports whether an object is not there, or is not what its name promises.
func Unusable(err error) bool {
	return errors.Is(err, layout.ErrFormat) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrTooLarge)
}

// Read reads a job.
func Read(ctx context.Context, s *store.Store, id string) (*layout.Job, error) {
	if !layout.IsID(id) {
		return nil, fmt.Errorf("%.100q is not an ID of a job", id)
	}
	b, err := s.ReadSmall(ctx, layout.JobName(id), layout.MaxJob)
	if err != nil {
		return nil, err
	}
	j, err := layout.ParseJob(b)
	if err == nil && j.ID != id {
		err = fmt.Errorf("%w: it is job %s", layout.ErrFormat, j.ID)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", layout.JobName(id), err)
	}
	return j, nil
}

// ReadUnit reads a unit.
func ReadUnit(ctx context.Context, s *store.Store, id string) (u *layout.Unit, err error) {
	err = newBudget(layout.MaxUnit).unit(ctx, s, id, func(x *layout.Unit) { u = x })
	return u, err
}

// unit reads a unit, and passes it on.
func (b *budget) unit(ctx context.Context, s *store.Store, id string, to func(*layout.Unit)) error {
	return b.read(ctx, s, layout.UnitName(id), layout.MaxUnit, func(x []byte) error {
		u, err := layout.ParseUnit(x)
		if err == nil && u.ID != id {
			err = fmt.Errorf("%w: it is unit %s", layout.ErrFormat, u.ID)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", layout.UnitName(id), err)
		}
		to(u)
		return nil
	})
}

// ReadDone reads what became of a unit: ErrNotFound if it is not done, ErrFormat if what is there does not fit, which
// means the same.
func ReadDone(ctx context.Context, s *store.Store, u *layout.Unit) (d *layout.Done, err error) {
	err = newBudget(layout.MaxDone).done(ctx, s, u.Outline(), func(x *layout.Done) { d = x })
	return d, err
}

// done reads a Done, and passes it on.
func (b *budget) done(ctx context.Context, s *store.Store, u layout.Outline, to func(*layout.Done)) error {
	return b.read(ctx, s, layout.DoneName(u.ID), layout.MaxDone, func(x []byte) error {
		d, err := layout.ParseDone(x, u)
		if err != nil {
			return fmt.Errorf("%s: %w", layout.DoneName(u.ID), err)
		}
		to(d)
		return nil
	})
}

// IsDone reports whether a unit is done.
func IsDone(ctx context.Context, s *store.Store, u *layout.Unit) (bool, error) {
	_, err := ReadDone(ctx, s, u)
	switch {
	case err == nil:
		return true, nil
	case Unusable(err):
		return false, nil
	}
	return false, err
}

// Aside reads why a unit was set aside; nil if it was not.
func Aside(ctx context.Context, s *store.Store, unit string) (*layout.Aside, error) {
	b, err := s.ReadSmall(ctx, layout.AsideName(unit), layout.MaxFailure)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	a, err := layout.ParseAside(b, unit)
	if err != nil {
		// Somebody meant to set it aside.
		a = &layout.Aside{Unit: unit, Reason: "aside.json: " + err.Error()}
	}
	return a, nil
}

// Fail notes that an attempt at a unit failed.
func Fail(ctx context.Context, s *store.Store, unit, worker, reason string) error {
	n, _, err := failures(ctx, s, unit)
	if err != nil {
		return err
	}
	f := &layout.Failure{Unit: unit, Attempt: n + 1, Reason: reason, Worker: worker, Time: time.Now()}
	_, err = s.WriteSmall(ctx, layout.FailedName(unit, f.Attempt), f.Encode())
	return err
}

// maxFailures is how many failures are looked at.
const maxFailures = 100000

// failures tells the number of the last failure, and how many there are.
func failures(ctx context.Context, s *store.Store, unit string) (last, count int, err error) {
	for o, err := range s.List(ctx, layout.FailedFolder(unit)) {
		if err != nil {
			return 0, 0, err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(o.Name, layout.FailedFolder(unit)), ".json")
		n, err := strconv.Atoi(name)
		if err != nil || n < 0 || n > maxFailures {
			continue // not one of ours
		}
		last = max(last, n)
		if count++; count >= maxFailures {
			break
		}
	}
	return last, count, nil
}

// lastFailure reads the last failure of a unit; nil if there is none.
func lastFailure(ctx context.Context, s *store.Store, unit string) (f *layout.Failure, count int, err error) {
	n, count, err := failures(ctx, s, unit)
	if err != nil || count == 0 {
		return nil, 0, err
	}
	b, err := s.ReadSmall(ctx, layout.FailedName(unit, n), layout.MaxFailure)
	if err == nil {
		f, err = layout.ParseFailure(b, unit)
	}
	if Unusable(err) {
		return &layout.Failure{Unit: unit, Attempt: n, Reason: "the note of it is malformed"}, count, nil
	}
	return f, count, err
}

// SetAside notes that a unit is not tried any more.
func SetAside(ctx context.Context, s *store.Store, unit string, attempts int, reason string) error {
	a := &layout.Aside{Unit: unit, Attempts: attempts, Reason: reason, Time: time.Now()}
	_, err := s.WriteSmall(ctx, layout.AsideName(unit), a.Encode())
	return err
}

// Retry forgets that a unit was set aside.
func Retry(ctx context.Context, s *store.Store, unit string) error {
	return s.Remove(ctx, layout.AsideName(unit))
}

// IDs lists the jobs of a store.
func IDs(ctx context.Context, s *store.Store) ([]string, error) {
	var list []string
	for o, err := range s.Folders(ctx, layout.Jobs) {
		if err != nil {
			return nil, err
		}
		if id := strings.TrimSuffix(strings.TrimPrefix(o.Name, layout.Jobs), "/"); layout.IsID(id) {
			list = append(list, id)
		}
		if len(list) > layout.MaxUnits {
			return nil, fmt.Errorf("more than %d jobs", layout.MaxUnits)
		}
	}
	slices.Sort(list)
	return list, nil
}
