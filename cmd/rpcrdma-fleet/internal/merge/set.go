package merge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"github.com/rpcrdma/toolkit/analyze/onepass"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// Limits of what is read.
const (
	// MaxState is how large the state of a unit may be, before it is decompressed and after that.
	MaxState = 64 << 20
	// ahead is how many bytes of states are read at a time, compressed and not, and aheadUnits of how many units.
	ahead      = MaxState
	aheadUnits = 16
)

// Set is the units of a job whose states are merged. It is a state.Source.
type Set struct {
	Units Units

	ctx  context.Context //nolint:containedctx // of the command: state.Source has none
	s    *store.Store
	list []entry // in the order of names
}

// entry is a state that is merged.
type entry struct {
	name  string // of the unit in the state: see state.Unit
	unit  string // ID
	state layout.Result
	ended []layout.Result // the rest of it
	about *job.Standing
}

// Open finds the units of a job, and passes the states of those that are done to the surveyors, each of which must take
// it; then it calls Decide. Without the ID of a job, results are made of all that is known of each tap.
func Open(ctx context.Context, s *store.Store, jobs []string, to ...state.Surveyor) (*Set, error) {
	x := &Set{ctx: ctx, s: s, Units: Units{Schema: Schema, NotDone: []Unit{}}}
	units, err := x.find(jobs)
	if err != nil {
		return nil, err
	}
	all, err := job.LookAll(ctx, s, units)
	if err == nil {
		all, err = x.earlier(all)
	}
	if err != nil {
		return nil, err
	}
	var list []entry
	for _, a := range all {
		switch {
		case a.State.Complete():
			list = append(list, entry{unit: a.Unit, state: a.Result, ended: a.Ended, about: a})
		case a.State == job.Missing && a.Reason != "":
			a.State = job.Failed // something is there, and it is malformed
		}
	}
	seen := make(map[string]bool)
	err = x.each(list, func(e *entry, u *state.Unit, err error) error {
		if err != nil && hopeless(err) {
			e.about.State, e.about.Reason = job.Failed, err.Error()
			return nil //nolint:nilerr // Units tells of it
		} else if err != nil {
			return err
		}
		for _, v := range to {
			if err := v.Survey(u); err != nil {
				e.about.State, e.about.Reason = job.Failed, "state: "+err.Error()
				return nil //nolint:nilerr // Units tells of it
			}
		}
		if e.name = u.Name(); !seen[e.name] { // else another unit has the same contents
			seen[e.name] = true
			x.list = append(x.list, *e)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(x.list, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	for _, v := range to {
		for _, l := range v.Decide() {
			if i, ok := slices.BinarySearchFunc(x.list, l.Name, func(e entry, n string) int { return strings.Compare(e.name, n) }); ok {
				x.list[i].about.State, x.list[i].about.Reason = job.Failed, l.Err.Error()
			}
		}
	}
	for _, a := range all {
		x.Units.count(a)
	}
	for i := range x.list {
		x.list[i].about = nil
	}
	return x, nil
}

// earlier adds units of which results are made, too: where a unit is not done, the nearest one before it that is; and those
// whose captures come before, but are not in the state of what follows.
func (x *Set) earlier(all []*job.Standing) ([]*job.Standing, error) {
	have := make(map[string]bool, len(all))
	for _, a := range all {
		have[a.Unit] = true
	}
	for i := 0; i < len(all) && len(all) <= layout.MaxUnits; i++ {
		for a := all[i]; ; {
			id := a.After
			if a.State.Complete() {
				id = a.Apart
			}
			if id == "" || have[id] {
				break
			}
			have[id] = true
			list, err := job.LookAll(x.ctx, x.s, []string{id})
			if err != nil {
				return nil, err
			}
			if a = list[0]; a.State.Complete() {
				all = append(all, a)
				break // its turn comes
			}
		}
	}
	return all, nil
}

// find lists the units: those of the jobs that are named, or the last ones of all taps. In a store without taps, these are
// the units of the only job, or all units if there is no job.
func (x *Set) find(named []string) ([]string, error) {
	if len(named) > 0 {
		return x.jobs(named)
	}
	ids, err := job.IDs(x.ctx, x.s)
	if err != nil {
		return nil, err
	}
	heads, err := job.Heads(x.ctx, x.s)
	switch {
	case err != nil:
		return nil, err
	case len(ids) == 1:
		units, err := x.jobs(ids)
		if err != nil || len(heads) == 0 || slices.Equal(units, heads) {
			return units, err
		}
		x.Units.Job = ""
		return heads, nil
	case len(heads) > 0:
		return heads, nil
	case len(ids) > 1:
		return nil, cli.Usagef("there are %d jobs in %s: name one with --job, such as %s or %s", len(ids), x.s.URL(), ids[0], ids[1])
	}
	return x.folders()
}

// jobs lists the units of jobs.
func (x *Set) jobs(ids []string) (units []string, err error) {
	for _, id := range ids {
		j, err := job.Read(x.ctx, x.s, id)
		if err != nil {
			return nil, err
		}
		x.Units.Job = j.ID
		units = append(units, j.Units...)
	}
	if len(ids) > 1 {
		x.Units.Job = ""
		slices.Sort(units)
		units = slices.Compact(units)
		return x.last(units)
	}
	return units, nil
}

// last takes out units that come before others of the list, which have what they have.
func (x *Set) last(units []string) ([]string, error) {
	all, err := job.LookAll(x.ctx, x.s, units)
	if err != nil {
		return nil, err
	}
	before := make(map[string]bool)
	for _, a := range all {
		for n := 0; a.After != "" && !before[a.After] && n < layout.MaxUnits; n++ {
			before[a.After] = true
			list, err := job.LookAll(x.ctx, x.s, []string{a.After})
			if err != nil {
				return nil, err
			}
			a = list[0]
		}
	}
	return slices.DeleteFunc(units, func(u string) bool { return before[u] }), nil
}

// folders are all units of the store: they were decoded without a job.
func (x *Set) folders() (units []string, err error) {
	for o, err := range x.s.Folders(x.ctx, layout.Units) {
		if err != nil {
			return nil, err
		}
		if id := strings.TrimSuffix(strings.TrimPrefix(o.Name, layout.Units), "/"); layout.IsID(id) {
			units = append(units, id)
		}
		if len(units) > layout.MaxUnits {
			return nil, fmt.Errorf("%s: more than %d units", x.s.URL(), layout.MaxUnits)
		}
	}
	if len(units) == 0 {
		return nil, fmt.Errorf("there is neither a job nor a unit in %s", x.s.URL())
	}
	slices.Sort(units)
	return units, nil
}

// hopeless reports whether an error is of the unit, and not of the store.
func hopeless(err error) bool {
	for _, is := range [...]error{store.ErrNotFound, store.ErrTooLarge, layout.ErrFormat, state.ErrFormat, state.ErrVersion, state.ErrDamaged, state.ErrSize} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// whole reads a state, and all that belongs to it.
func (x *Set) whole(ctx context.Context, e *entry) (*state.Unit, error) {
	units, err := x.read(ctx, &e.state)
	if err != nil {
		return nil, err
	}
	if n := len(units); n != 1 {
		return nil, fmt.Errorf("state: %w: it has %d units, not one", state.ErrDamaged, n)
	}
	var ended []*state.Unit
	for i := range e.ended {
		more, err := x.read(ctx, &e.ended[i])
		if err != nil {
			return nil, err
		}
		ended = append(ended, more...)
	}
	return onepass.Join(units[0], ended)
}

// read reads a state.
func (x *Set) read(ctx context.Context, r *layout.Result) ([]*state.Unit, error) {
	if n := max(r.Size, r.Unpacked); n > MaxState {
		return nil, fmt.Errorf("state: %w: %d bytes, more than %d", state.ErrSize, n, MaxState)
	}
	b, err := x.s.ReadSmall(ctx, r.Name, r.Size)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != r.SHA256 {
		return nil, fmt.Errorf("state: %w: it is not the one that done.json names", state.ErrDamaged)
	}
	f, err := state.Decode(b, r.Unpacked) // more than it promises is not decompressed
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	return f.Units(), nil
}

// Each implements state.Source.
func (x *Set) Each(f func(*state.Unit) error) error {
	return x.each(x.list, func(e *entry, u *state.Unit, err error) error {
		if err == nil && u.Name() != e.name {
			err = state.ErrChanged
		}
		if err != nil {
			return fmt.Errorf("unit %s: %w", e.unit, err)
		}
		return f(u)
	})
}

// each reads states, some ahead, and passes them on in the order of the list. It ends with the first error of do.
func (x *Set) each(list []entry, do func(*entry, *state.Unit, error) error) error {
	type result struct {
		unit *state.Unit
		err  error
	}
	ctx, cancel := context.WithCancel(x.ctx)
	defer cancel()
	bytes := semaphore.NewWeighted(ahead)
	queue := make(chan chan result, aheadUnits)
	size := func(i int) int64 {
		n := int64(1)
		for _, s := range append(list[i].ended, list[i].state) {
			n = min(n+min(s.Size, ahead)+min(s.Unpacked, ahead), ahead)
		}
		return n
	}
	go func() {
		defer close(queue)
		for i := range list {
			c := make(chan result, 1)
			// In order, so that the one that is waited for has what it needs.
			if bytes.Acquire(ctx, size(i)) != nil {
				return
			}
			select {
			case queue <- c:
			case <-ctx.Done():
				return
			}
			go func() {
				u, err := x.whole(ctx, &list[i])
				c <- result{u, err}
			}()
		}
	}()
	i := 0
	for c := range queue {
		r := <-c
		if err := do(&list[i], r.unit, r.err); err != nil {
			return err
		}
		bytes.Release(size(i))
		i++
	}
	if i < len(list) {
		return context.Cause(ctx)
	}
	return nil
}
