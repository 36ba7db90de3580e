package unit

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// Pruned is what Prune removes.
type Pruned struct {
	Objects int
	Bytes   int64
}

// Prune removes what is older than a time: the Parquet files of days that had ended, what was kept of units from which no other
// goes on, and jobs. What reports are made from stays, and so does what is needed if a capture of that time comes late. With dry,
// it only counts.
func Prune(ctx context.Context, s *store.Store, before time.Time, dry bool) (Pruned, error) {
	p := &pruner{ctx: ctx, s: s, before: before, dry: dry}
	heads, err := job.Heads(ctx, s)
	if err != nil {
		return p.Pruned, err
	}
	for _, id := range heads {
		if err := p.tap(id); err != nil {
			return p.Pruned, err
		}
	}
	if err := p.days(); err != nil {
		return p.Pruned, err
	}
	return p.Pruned, p.jobs(heads)
}

type pruner struct {
	Pruned
	ctx    context.Context //nolint:containedctx // of Prune
	s      *store.Store
	before time.Time
	dry    bool
}

func (p *pruner) remove(o store.Object) error {
	p.Objects++
	p.Bytes += o.Size
	if p.dry {
		return nil
	}
	return p.s.Remove(p.ctx, o.Name)
}

// tap prunes the units of a tap, the last one first. The newest one that ended before the time stays whole: a late capture makes
// others go on from it.
func (p *pruner) tap(head string) error {
	needed := map[string]bool{}
	old, tap := -1, ""
	for id, n := head, 0; id != "" && n < maxChain; n++ {
		u, err := job.ReadUnit(p.ctx, p.s, id)
		if err != nil {
			if job.Unusable(err) {
				break
			}
			return err
		}
		tap, id = u.Tap, u.After
		d, err := job.ReadDone(p.ctx, p.s, u)
		if err != nil {
			if job.Unusable(err) {
				continue // it is to be decoded
			}
			return err
		}
		if d.Apart != "" {
			needed[d.Apart] = true
		}
		if old >= 0 || d.Last.Before(p.before) {
			old++
		}
		if old > 0 && !needed[u.ID] {
			if err := p.unit(u.ID); err != nil {
				return err
			}
		}
	}
	if tap == "" || p.dry {
		return nil
	}
	return p.manifest(tap)
}

// unit removes the state of a unit, which those after it have, and what they went on from.
func (p *pruner) unit(id string) error {
	for o, err := range p.s.List(p.ctx, layout.UnitFolder(id)) {
		if err == nil && (o.Name == layout.StateName(id) || o.Name == layout.ResumeName(id)) {
			err = p.remove(o)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// ended reports whether a day had ended, by the name of a folder or a file in it.
func (p *pruner) ended(name string) bool {
	day, _, _ := strings.Cut(strings.TrimPrefix(name, layout.Transactions+"day="), "/")
	at, err := time.Parse(time.DateOnly, day)
	return err == nil && !at.AddDate(0, 0, 1).After(p.before)
}

// manifest takes files out that will be removed. If a worker has written a newer one meanwhile, that of its next unit has all files.
func (p *pruner) manifest(tap string) error {
	b, err := p.s.ReadSmall(p.ctx, layout.ManifestName(tap), layout.MaxDone)
	if err != nil {
		if job.Unusable(err) {
			err = nil
		}
		return err
	}
	m, err := layout.ParseManifest(b, tap)
	if err != nil {
		return fmt.Errorf("%s: %w", layout.ManifestName(tap), err)
	}
	n := len(m.Files)
	m.Files = slices.DeleteFunc(m.Files, func(f layout.Result) bool { return p.ended(f.Name) })
	if len(m.Files) == n {
		return nil
	}
	_, err = p.s.WriteSmall(p.ctx, layout.ManifestName(tap), m.Encode())
	return err
}

// days removes Parquet files, of agents too.
func (p *pruner) days() error {
	for folder, err := range p.s.Folders(p.ctx, layout.Transactions) {
		if err != nil {
			return err
		}
		if !p.ended(folder.Name) {
			continue
		}
		for o, err := range p.s.List(p.ctx, folder.Name) {
			if err == nil {
				err = p.remove(o)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// jobs removes jobs of which every unit has been followed by others.
func (p *pruner) jobs(heads []string) error {
	ids, err := job.IDs(p.ctx, p.s)
	if err != nil {
		return err
	}
	for _, id := range ids {
		j, err := job.Read(p.ctx, p.s, id)
		if job.Unusable(err) {
			continue
		}
		if err != nil {
			return err
		}
		last := func(u string) bool { _, ok := slices.BinarySearch(heads, u); return ok }
		if j.Created.Before(p.before) && !slices.ContainsFunc(j.Units, last) {
			if err := p.remove(store.Object{Name: layout.JobName(id)}); err != nil {
				return err
			}
		}
	}
	return nil
}
