package job

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// State is what the store says of a unit.
type State string

// States of a unit in the store.
const (
	Done    State = "done"
	Damaged State = "damaged" // done, and its input was truncated or malformed
	Failed  State = "failed"  // attempts failed; none worked yet
	IsAside State = "aside"   // set aside after crashes
	Missing State = "missing" // nothing is known of it
)

// Complete reports whether there is a result.
func (s State) Complete() bool { return s == Done || s == Damaged }

// Standing is how far a unit is.
type Standing struct {
	Unit     string        `json:"unit"`
	Tap      string        `json:"tap,omitempty"`
	State    State         `json:"state"`
	Files    int           `json:"files"`
	Bytes    int64         `json:"stored_bytes"`
	Counts   layout.Counts `json:"counts,omitzero"` // of a unit that is done
	Failures int           `json:"failures,omitempty"`
	Reason   string        `json:"reason,omitempty"`
	// Result is the state of a unit that is done, and Ended what it does not have; Apart is the unit before that neither has.
	Result layout.Result   `json:"-"`
	Ended  []layout.Result `json:"-"`
	Apart  string          `json:"-"`
	After  string          `json:"-"` // the unit before
}

// look tells how far a unit is. Of its objects, which may be large, nothing is kept.
func (b *budget) look(ctx context.Context, s *store.Store, unit string) (*Standing, error) {
	x := &Standing{Unit: unit, State: Missing}
	var u layout.Outline
	err := b.unit(ctx, s, unit, func(full *layout.Unit) { u = full.Outline() })
	switch {
	case Unusable(err):
		x.Reason = err.Error()
		return x, nil
	case err != nil:
		return nil, err
	}
	x.Tap, x.Files, x.Bytes, x.After = u.Tap, u.Files, u.Bytes, u.After
	err = b.done(ctx, s, u, func(d *layout.Done) {
		x.Counts, x.Result, x.Ended, x.Apart = d.Counts, d.State, d.Ended, d.Apart
		if x.State = Done; d.Status != 0 {
			x.State = Damaged
		}
	})
	switch {
	case err == nil:
		return x, nil
	case errors.Is(err, store.ErrNotFound):
	case errors.Is(err, layout.ErrFormat), errors.Is(err, store.ErrTooLarge):
		x.Reason = err.Error()
	default:
		return nil, err
	}
	f, n, err := lastFailure(ctx, s, unit)
	if err != nil {
		return nil, err
	}
	if x.Failures = n; f != nil {
		x.State, x.Reason = Failed, f.Reason
	}
	a, err := Aside(ctx, s, unit)
	if err != nil {
		return nil, err
	}
	if a != nil {
		x.State, x.Reason = IsAside, a.Reason
	}
	return x, nil
}

// LookAll tells how far the units of a job are, in their order.
func LookAll(ctx context.Context, s *store.Store, units []string) ([]*Standing, error) {
	list := make([]*Standing, len(units))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	b := newBudget(underWay)
	for i, u := range units {
		g.Go(func() (err error) {
			list[i], err = b.look(ctx, s, u)
			return err
		})
	}
	return list, g.Wait()
}
