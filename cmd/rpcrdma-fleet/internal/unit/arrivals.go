package unit

import (
	"context"
	"errors"
	"slices"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// settled is after how many looks the capture of a tap that was written last counts as finished, if none has found it
// changed.
const settled = 5

// Arrivals finds captures that have come and are finished since the last look. An object of a store is finished when it is
// there. A local file is finished if it has not changed since the last look, and a file of the same tap was written later
// or nothing was added to it for several looks.
type Arrivals struct {
	seen map[string]arrived // by URL
}

type arrived struct {
	file  layout.File
	looks int  // that have found it as it is
	taken bool // it was planned
}

// Plan makes units, as the function Plan does, of files that are finished and were not taken before. There may be none.
// Each file that is gone before it was taken is passed to lost.
func (a *Arrivals) Plan(ctx context.Context, in *store.Inputs, patterns []string, tap string, opt layout.Options, lost func(url string)) ([]*layout.Unit, error) {
	all, err := find(ctx, in, patterns)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	return group(ctx, in, a.look(all, tap, lost), tap, opt)
}

// Take marks the files of units as taken.
func (a *Arrivals) Take(units []*layout.Unit) {
	for _, u := range units {
		for i := range u.Files {
			if x, ok := a.seen[u.Files[i].URL]; ok && sameFile(x.file, u.Files[i]) {
				x.taken = true
				a.seen[x.file.URL] = x
			}
		}
	}
}

func sameFile(a, b layout.File) bool {
	return a.URL == b.URL && a.Size == b.Size && a.ETag == b.ETag && a.Modified.Equal(b.Modified)
}

// look returns the files of a list that are finished and were not taken.
func (a *Arrivals) look(list []layout.Found, tap string, lost func(url string)) []layout.Found {
	now := make(map[string]arrived, len(list))
	latest := make(map[string]layout.File) // of each tap
	tapOf := func(f *layout.Found) string {
		if tap != "" {
			return tap
		}
		return f.Tap()
	}
	for i := range list {
		f := &list[i]
		x := arrived{file: f.File, looks: 1}
		if old, ok := a.seen[f.URL]; ok && sameFile(old.file, f.File) {
			x.looks, x.taken = old.looks+1, old.taken
		}
		now[f.URL] = x
		if t := tapOf(f); !f.Modified.Before(latest[t].Modified) {
			latest[t] = f.File
		}
	}
	for url, x := range a.seen {
		if _, ok := now[url]; !ok && !x.taken {
			lost(url)
		}
	}
	a.seen = now
	return slices.DeleteFunc(slices.Clone(list), func(f layout.Found) bool {
		x := now[f.URL]
		finished := f.ETag != "" || x.looks >= settled || x.looks > 1 && latest[tapOf(&f)].URL != f.URL
		return x.taken || !finished
	})
}
