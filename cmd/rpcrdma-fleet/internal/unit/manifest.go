package unit

import (
	"context"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// Count says in the manifest of a tap that the Parquet files of a unit count from now on, unless those of a later unit do. It is
// written before done.json: who goes on from this unit writes the next one.
func Count(ctx context.Context, out *store.Store, u *layout.Unit, d *layout.Done) error {
	c := &counter{ctx, out, u}
	now, err := c.counted()
	if err != nil || now != nil && now.Unit == u.ID {
		return err
	}
	if newest, err := c.newest(now); err != nil || !newest {
		return err
	}
	files, err := c.earlier(d, now)
	if err != nil {
		return err
	}
	m := &layout.Manifest{Tap: u.Tap, Unit: u.ID, Files: append(files, d.Results...)}
	_, err = out.WriteSmall(ctx, layout.ManifestName(u.Tap), m.Encode())
	return err
}

type counter struct {
	ctx context.Context //nolint:containedctx // of Count
	out *store.Store
	u   *layout.Unit
}

// counted is the manifest of the tap so far; nil if there is none.
func (r *counter) counted() (*layout.Manifest, error) {
	b, err := r.out.ReadSmall(r.ctx, layout.ManifestName(r.u.Tap), layout.MaxDone)
	if err != nil {
		if job.Unusable(err) {
			err = nil
		}
		return nil, err
	}
	m, err := layout.ParseManifest(b, r.u.Tap)
	if err != nil {
		return nil, nil //nolint:nilerr // it is made anew
	}
	return m, nil
}

// newest reports whether the unit is the last one of its tap, or one of those before it, and the manifest is not of a unit
// that comes after this one.
func (r *counter) newest(now *layout.Manifest) (bool, error) {
	id, err := job.Head(r.ctx, r.out, r.u.Tap)
	if err != nil || id == "" {
		return err == nil, err
	}
	for n := 0; id != r.u.ID; n++ {
		if now != nil && now.Unit == id || n >= maxChain {
			return false, nil
		}
		u, err := job.ReadUnit(r.ctx, r.out, id)
		if err != nil || u.After == "" {
			if err == nil || job.Unusable(err) {
				return false, nil
			}
			return false, err
		}
		id = u.After
	}
	return true, nil
}

// earlier are the files that count of units before.
func (r *counter) earlier(d *layout.Done, now *layout.Manifest) ([]layout.Result, error) {
	var groups [][]layout.Result
	for n := 0; d.Follows != "" && n < maxChain; n++ {
		before, tails := d.Follows, d.Apart == d.Follows
		listed := now != nil && now.Unit == before
		var files []layout.Result
		if listed {
			files = now.Files
		} else {
			u, err := job.ReadUnit(r.ctx, r.out, before)
			if err != nil {
				return nil, err
			}
			if d, err = job.ReadDone(r.ctx, r.out, u); err != nil {
				return nil, err
			}
			files = d.Results
		}
		if !tails { // the unit that follows has these transactions whole
			files = slices.DeleteFunc(slices.Clone(files), func(x layout.Result) bool { return x.Tail && strings.Contains(x.Name, "/"+before+"-") })
		}
		groups = append(groups, files)
		if listed {
			break
		}
	}
	slices.Reverse(groups)
	return slices.Concat(groups...), nil
}
