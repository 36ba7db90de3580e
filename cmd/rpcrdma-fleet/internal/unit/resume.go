package unit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/snapshot"
)

// maxProgress is how many bytes of a kept state are read.
const maxProgress = 1 << 30

// Snapshot implements decode.StatePart.
func (k *kept) Snapshot(p *snapshot.Plan) { p.Fixed(k) }

// state is what a kept state of a unit has.
func (r *run) state(unit string) decode.StateOptions {
	return decode.StateOptions{
		Parts: append(r.pass.Parts(), &r.kept), Key: r.opt.Key,
		Settings: []decode.StateNote{{Name: "unit", Value: unit}},
	}
}

// begin begins an attempt: where an earlier one stopped, if there was one that this program understands; otherwise where the
// unit before this one ends.
func begin(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt *Options) (*run, error) {
	r, err := newRun(ctx, u, in, out, opt)
	if err != nil {
		return nil, err
	}
	err = r.load(layout.ProgressName(u.ID), u.ID)
	if err == nil && !slices.Contains(u.Parts(), r.kept.files) {
		err = &stateError{fmt.Errorf("%w: it was saved after %d files", decode.ErrStateDamaged, r.kept.files)}
	}
	switch {
	case err == nil:
		r.before.Resumed = r.kept.files
		r.tell(0, 0)
		return r, nil
	case errors.Is(err, store.ErrNotFound):
	case !unusableState(err):
		return nil, err
	default:
		opt.Log("%v starts over: %v", u, err)
	}
	return follow(ctx, u, in, out, opt)
}

// load loads what was kept of a unit. After an error, the run is of no use any more, except where nothing was kept.
func (r *run) load(name, unit string) error {
	b, err := r.out.ReadSmall(r.ctx, name, maxProgress)
	if err != nil {
		return err
	}
	if _, err = r.pass.Decoder().LoadState(b, r.state(unit)); err != nil {
		return &stateError{err}
	}
	return nil
}

// unusableState reports whether an error is of what was kept, and not of the store.
func unusableState(err error) bool {
	var x *stateError
	return errors.As(err, &x) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrTooLarge)
}

// stateError says why what was kept cannot be used.
type stateError struct{ error }

// save keeps what is known. The object replaces the one before whole or not at all.
func (r *run) save(name string) error {
	var b bytes.Buffer
	if err := r.pass.Decoder().SaveState(&b, r.state(r.u.ID)); err != nil {
		return err
	}
	_, err := r.out.WriteSmall(r.ctx, name, b.Bytes())
	return err
}

// follow begins a unit where the one before it ends: with what is kept of that one; if there is nothing that this program
// understands, by decoding its captures again; if these are gone, with an empty memory.
func follow(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt *Options) (*run, error) {
	r, err := newRun(ctx, u, in, out, opt)
	if err != nil || u.After == "" {
		return r, err
	}
	before, lost, err := ahead(ctx, u, in, out, opt)
	if err != nil {
		return nil, err
	}
	if before != nil {
		if r, err = r.after(before); err != nil {
			return nil, err
		}
		r.next(before.ID)
	}
	for _, p := range lost {
		r.problem(p)
	}
	return r, nil
}

// ahead is the unit that a unit goes on from: the nearest one before it that is done, or can be done now. The others are
// problems of this unit.
func ahead(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt *Options) (*layout.Unit, []layout.Problem, error) {
	var lost []layout.Problem
	for id, n := u.After, 0; id != "" && n < maxChain; n++ {
		p, err := job.ReadUnit(ctx, out, id)
		if job.Unusable(err) {
			lost = append(lost, missing(id, err.Error()))
			return nil, lost, nil
		}
		if err != nil {
			return nil, nil, err
		}
		aside, err := job.Aside(ctx, out, id)
		if err != nil {
			return nil, nil, err
		}
		if aside == nil {
			if _, err = complete(ctx, p, in, out, opt); err == nil {
				return p, lost, nil
			}
			if !Permanent(err) {
				return nil, nil, fmt.Errorf("%v, which comes before: %w", p, err)
			}
			lost = append(lost, missing(id, err.Error()))
		} else {
			lost = append(lost, missing(id, "it was set aside: "+aside.Reason))
		}
		id = p.After
	}
	return nil, lost, nil
}

func missing(unit, why string) layout.Problem {
	return layout.Problem{Text: fmt.Sprintf("unit %s, which comes before, is missing: %s", unit, why)}
}

// complete decodes a unit if it is not done.
func complete(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt *Options) (*layout.Done, error) {
	if d, err := IsDone(ctx, u, out); d != nil || err != nil && !errors.Is(err, layout.ErrFormat) {
		return d, err
	}
	if err := allowed(u, opt); err != nil {
		return nil, err
	}
	opt.Log("%v comes before, and is decoded first", u)
	return Run(ctx, u, in, out, Options{Key: opt.Key, Log: opt.Log, Allow: opt.Allow})
}

func allowed(u *layout.Unit, opt *Options) error {
	for i := range u.Files {
		if opt.Allow == nil {
			break
		}
		if err := opt.Allow(u.Files[i].URL); err != nil {
			return unusable("a capture of unit %s: %w", u.ID, err)
		}
	}
	return nil
}

// after makes the run one that knows what was known at the end of a unit that is done.
func (r *run) after(before *layout.Unit) (*run, error) {
	err := r.load(layout.ResumeName(before.ID), before.ID)
	if err == nil || !unusableState(err) {
		return r, err
	}
	r.opt.Log("%v cannot be gone on from: %v", before, err)
	var list []*layout.Unit // to be decoded again, the last one first
	apart := ""
	for u, n := before, 0; u != nil && n < maxChain; n++ {
		list = append(list, u)
		d, err := IsDone(r.ctx, u, r.out)
		if err != nil && !errors.Is(err, layout.ErrFormat) {
			return nil, err
		}
		if d == nil || d.Follows == "" {
			break
		}
		if d.Follows == d.Apart {
			apart = d.Apart
			break
		}
		if u, err = job.ReadUnit(r.ctx, r.out, d.Follows); err != nil && !job.Unusable(err) {
			return nil, err
		}
	}
	x, err := newRun(r.ctx, r.u, r.in, r.out, r.opt)
	if err != nil {
		return nil, err
	}
	x.kept.apart = apart
	if err = x.repeat(list); err == nil || !Permanent(err) {
		return x, err
	}
	r.opt.Log("its captures cannot be decoded again: %v. What follows begins with an empty memory: calls that were open there are reported without replies", err)
	if x, err = newRun(r.ctx, r.u, r.in, r.out, r.opt); err == nil {
		x.kept.apart = before.ID
	}
	return x, err
}

// repeat decodes units again, the last one first in the list.
func (r *run) repeat(list []*layout.Unit) error {
	r.again = true
	defer func() { r.again = false }()
	before := r.kept.apart
	for _, u := range slices.Backward(list) {
		if u.After != before {
			r.problem(missing(u.After, "it was not there when what follows was decoded"))
		}
		before = u.ID
		if err := allowed(u, r.opt); err != nil {
			return err
		}
		for i := range u.Files {
			if err := r.file(&u.Files[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// next ends what is known of the unit before.
func (r *run) next(before string) {
	k, st := &r.kept, r.pass.Decoder().Stats()
	*k = kept{
		damage: k.damage, problems: k.problems, cut: k.cut, late: k.late, lost: k.lost, skipped: k.skipped, captures: k.captures,
		follows: before, apart: k.apart, fresh: k.fresh, ended: k.ended, last: max(k.last, st.Last.Time),
		base: layout.Counts{Packets: st.Packets, Bytes: st.Bytes, Transactions: st.Transactions, Connections: st.Connections},
	}
	r.before = Progress{}
}
