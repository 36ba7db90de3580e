package unit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/snapshot"
)

// maxProgress is how many bytes of a kept state are read.
const maxProgress = 1 << 30

// Snapshot implements decode.StatePart.
func (k *kept) Snapshot(p *snapshot.Plan) { p.Fixed(k) }

// state is what a kept state has.
func (r *run) state() decode.StateOptions {
	return decode.StateOptions{
		Parts: append(r.pass.Parts(), &r.kept), Key: r.opt.Key,
		Settings: []decode.StateNote{{Name: "unit", Value: r.u.ID}},
	}
}

// begin begins an attempt: where an earlier one stopped, if there was one that this program understands.
func begin(ctx context.Context, u *layout.Unit, in *store.Inputs, out *store.Store, opt *Options) (*run, error) {
	r, err := newRun(ctx, u, in, out, opt)
	if err != nil {
		return nil, err
	}
	b, err := out.ReadSmall(ctx, layout.ProgressName(u.ID), maxProgress)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return r, nil
	case errors.Is(err, store.ErrTooLarge):
	case err != nil:
		return nil, err
	default:
		if err = r.load(b); err == nil {
			return r, nil
		}
	}
	opt.Log("%v starts over: %v", u, err)
	return newRun(ctx, u, in, out, opt) // what was loaded halfway is of no use
}

func (r *run) load(b []byte) error {
	if _, err := r.pass.Decoder().LoadState(b, r.state()); err != nil {
		return err
	}
	if !slices.Contains(r.u.Parts(), r.kept.files) {
		return fmt.Errorf("%w: it was saved after %d files", decode.ErrStateDamaged, r.kept.files)
	}
	r.before.Resumed = r.kept.files
	r.tell(0, 0)
	return nil
}

// save keeps what is known. The file replaces the one before whole or not at all.
func (r *run) save() error {
	var b bytes.Buffer
	if err := r.pass.Decoder().SaveState(&b, r.state()); err != nil {
		return err
	}
	_, err := r.out.WriteSmall(r.ctx, layout.ProgressName(r.u.ID), b.Bytes())
	return err
}
