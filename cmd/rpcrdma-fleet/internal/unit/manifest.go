package unit

import (
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// manifest says which Parquet files count, from now on. It is written before done.json: who goes on from this unit writes
// the next one.
func (r *run) manifest(d *layout.Done) error {
	now, err := r.counted()
	if err != nil {
		return err
	}
	if newest, err := r.newest(now); err != nil || !newest {
		return err
	}
	files, err := r.earlier(d, now)
	if err != nil {
		return err
	}
	m := &layout.Manifest{Tap: r.u.Tap, Unit: r.u.ID, Files: append(files, d.Results...)}
	_, err = r.out.WriteSmall(r.ctx, layout.ManifestName(r.u.Tap), m.Encode())
	return err
}

// counted is the manifest of the tap so far; nil if there is none.
func (r *run) counted() (*layout.Manifest, error) {
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
func (r *run) newest(now *layout.Manifest) (bool, error) {
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
func (r *run) earlier(d *layout.Done, now *layout.Manifest) ([]layout.Result, error) {
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
