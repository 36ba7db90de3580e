package unit

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Follow makes each unit go on from the last one of its tap in the store: only files that no earlier unit has are decoded. A
// file that is older than what was decoded already has what follows it decoded again, if all of that is still there;
// otherwise it comes last. What is worth knowing of that is logged. A unit without a new file becomes the last one of its tap.
func Follow(ctx context.Context, in *store.Inputs, s *store.Store, list []*layout.Unit, log func(format string, args ...any)) ([]*layout.Unit, error) {
	out := make([]*layout.Unit, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i, u := range list {
		g.Go(func() (err error) {
			c := &chain{in: in, s: s, log: log, begin: map[string]int64{}}
			if out[i], err = c.follow(ctx, u); err != nil {
				err = fmt.Errorf("tap %q: %w", u.Tap, err)
			}
			return err
		})
	}
	return out, g.Wait()
}

// chain is the units of a tap, as far as they had to be looked at: the last one first.
type chain struct {
	in    *store.Inputs
	s     *store.Store
	log   func(format string, args ...any)
	links []link
	begin map[string]int64 // time of the first packet of files, by URL
}

type link struct {
	u    *layout.Unit
	done bool
	// end is the time of the newest packet up to here; where a unit is not done, of the first packet of its last file.
	end int64
}

// maxChain is how many units of a tap are looked at.
const maxChain = 100_000

func (c *chain) follow(ctx context.Context, u *layout.Unit) (*layout.Unit, error) {
	id, err := job.Head(ctx, c.s, u.Tap)
	if err != nil || id == "" {
		return u, err
	}
	if err := c.push(ctx, id); err != nil || len(c.links) == 0 {
		return u, err
	}
	head := c.links[0]
	if !reflect.DeepEqual(head.u.Options, u.Options) {
		c.log("tap %q: the options are others than those of unit %s, which is replaced", u.Tap, head.u.ID)
		return u, nil
	}
	added, err := c.added(ctx, u.Files)
	if err != nil {
		return nil, err
	}
	if len(added) == 0 {
		return head.u, nil
	}
	late, err := c.late(ctx, added)
	if err != nil {
		return nil, err
	}
	if len(late) > 0 {
		again, err := c.branch(ctx, added, late)
		if err != nil || again != nil {
			return again, err
		}
	}
	return head.u.Next(added)
}

// push adds a unit and finds out when it ends. A unit that is not there, or malformed, ends the chain.
func (c *chain) push(ctx context.Context, id string) error {
	u, err := job.ReadUnit(ctx, c.s, id)
	if err != nil {
		if job.Unusable(err) {
			err = nil
		}
		return err
	}
	l := link{u: u}
	d, err := job.ReadDone(ctx, c.s, u)
	switch {
	case err == nil && !d.Last.IsZero():
		l.done, l.end = true, d.Last.UnixNano()
	case err == nil || job.Unusable(err):
		l.done = err == nil
		if l.end, err = c.begins(ctx, u.Files[len(u.Files)-1]); err != nil {
			return err
		}
	default:
		return err
	}
	c.links = append(c.links, l)
	return nil
}

// more adds the unit before the last one that was added.
func (c *chain) more(ctx context.Context) (bool, error) {
	n := len(c.links)
	if id := c.links[n-1].u.After; id != "" && n < maxChain {
		err := c.push(ctx, id)
		return len(c.links) > n, err
	}
	return false, nil
}

// begins is the time of the first packet of a file. Where there is none, the file counts as made when it was last written.
func (c *chain) begins(ctx context.Context, f layout.File) (int64, error) {
	if at, ok := c.begin[f.URL]; ok {
		return at, nil
	}
	at, ok, err := begins(ctx, c.in, f)
	if err != nil && !job.Unusable(err) {
		return 0, err
	}
	if !ok || err != nil {
		at = f.Modified.UnixNano()
	}
	c.begin[f.URL] = at
	return at, nil
}

// added are the files that no unit has. Units are looked at as long as one of the files may be in those before.
func (c *chain) added(ctx context.Context, files []layout.File) ([]layout.File, error) {
	rest := slices.Clone(files)
	for i := 0; ; i++ {
		have := make(map[layout.File]bool, len(c.links[i].u.Files))
		for _, f := range c.links[i].u.Files {
			have[f] = true
		}
		rest = slices.DeleteFunc(rest, func(f layout.File) bool { return have[f] })
		older := false
		for j := 0; j < len(rest) && !older; j++ {
			at, err := c.begins(ctx, rest[j])
			if err != nil {
				return nil, err
			}
			older = at <= c.links[i].end
		}
		if !older {
			return rest, nil
		}
		if ok, err := c.more(ctx); err != nil || !ok {
			return rest, err
		}
	}
}

// late are the files that begin before the end of the last unit, and files of it that have changed since. Captures are not sorted
// to the nanosecond: of a file that begins shortly before the end, the name tells.
func (c *chain) late(ctx context.Context, files []layout.File) (late []layout.File, err error) {
	head := &c.links[0]
	for _, f := range files {
		at, err := c.begins(ctx, f)
		if err != nil {
			return nil, err
		}
		// A ring uses names again: a file that begins later is another one.
		changed := (!head.done || at <= head.end) && slices.ContainsFunc(head.u.Files, func(x layout.File) bool { return x.URL == f.URL })
		before := at < head.end && layout.Natural(f.URL, head.u.Files[len(head.u.Files)-1].URL) < 0
		if changed || before || at < head.end-outOfOrder {
			late = append(late, f)
		}
	}
	return late, nil
}

// branch makes a unit of late files and all that comes after them, which takes the place of the units that have that now. It is
// nil if not all of it is still there.
func (c *chain) branch(ctx context.Context, added, late []layout.File) (*layout.Unit, error) {
	first := slices.MinFunc(late, func(a, b layout.File) int { return cmp.Compare(c.begin[a.URL], c.begin[b.URL]) })
	replaced := make(map[string]bool)
	for _, f := range added {
		replaced[f.URL] = true
	}
	files, n := slices.Clone(added), 0
	for ; n < len(c.links); n++ {
		l := &c.links[n]
		changed := slices.ContainsFunc(l.u.Files, func(f layout.File) bool { return replaced[f.URL] })
		if l.end <= c.begin[first.URL] && !changed {
			break
		}
		for _, f := range l.u.Files {
			if replaced[f.URL] {
				continue
			}
			if ok, err := c.in.Unchanged(ctx, f); err != nil {
				return nil, err
			} else if !ok {
				c.log("tap %q: %s begins before what was decoded already, and is decoded out of order: %s, which comes after it, is not there any more",
					l.u.Tap, first.URL, f.URL)
				return nil, nil
			}
			files = append(files, f)
		}
		if n == len(c.links)-1 {
			if _, err := c.more(ctx); err != nil {
				return nil, err
			}
		}
	}
	if n < len(c.links) && c.links[n].done {
		before := c.links[n].u
		if ok, err := c.s.Exists(ctx, layout.ResumeName(before.ID)); err != nil {
			return nil, err
		} else if !ok {
			c.log("tap %q: %s is decoded out of order: what was kept of the time before it was removed", before.Tap, first.URL)
			return nil, nil
		}
	}
	slices.SortFunc(files, func(a, b layout.File) int { return cmp.Or(layout.Natural(a.URL, b.URL), strings.Compare(a.URL, b.URL)) })
	if !layout.Ordered(files) {
		if err := byTime(ctx, c.in, files); err != nil {
			return nil, err
		}
	}
	u := c.links[0].u
	c.log("tap %q: %s begins at %s, before the end of what was decoded already, so %s after it will be decoded again", u.Tap, first.URL,
		time.Unix(0, c.begin[first.URL]).UTC().Format(time.RFC3339), units.Plural(len(files)-len(added), "file"))
	if n == len(c.links) {
		return layout.NewUnit(u.Tap, files, u.Options)
	}
	return c.links[n].u.Next(files)
}
