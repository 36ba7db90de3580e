package unit

import (
	"context"
	"fmt"
	"io"
	"sort"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// Around finds the captures of a chain of units, of which the last one is named, that have the packets of a time: the one that
// begins before it, which must still be there, and those before and after it, if they are. gone is told which are not.
func Around(ctx context.Context, in *store.Inputs, s *store.Store, unit string, at int64, gone func(url string)) ([]layout.File, error) {
	files, err := near(ctx, s, unit, at)
	if err != nil {
		return nil, err
	}
	c := &chain{in: in, begin: map[string]int64{}}
	after := sort.Search(len(files), func(i int) bool {
		there, begin := false, int64(0) // of a file that is gone: a ring deletes the oldest ones
		if err == nil {
			there, err = in.Unchanged(ctx, files[i])
		}
		if err == nil && there {
			begin, err = c.begins(ctx, files[i])
		}
		return begin > at
	})
	if err != nil {
		return nil, err
	}
	if after == 0 {
		return nil, nil
	}
	var list []layout.File
	for i := max(after-2, 0); i < min(after+1, len(files)); i++ {
		there, err := in.Unchanged(ctx, files[i])
		switch {
		case err != nil:
			return nil, err
		case there:
			list = append(list, files[i])
		case i == after-1:
			return nil, fmt.Errorf("%s, which has the packets of that time: %w any more", files[i].URL, store.ErrNotFound)
		default:
			gone(files[i].URL)
		}
	}
	return list, nil
}

// near are the captures of the units from the last one that ends before a time on.
func near(ctx context.Context, s *store.Store, unit string, at int64) (files []layout.File, err error) {
	for n := 0; unit != "" && n < maxChain; n++ {
		u, err := job.ReadUnit(ctx, s, unit)
		if job.Unusable(err) && n > 0 {
			break // units before were removed
		}
		if err != nil {
			return nil, err
		}
		files = append(u.Files[:len(u.Files):len(u.Files)], files...)
		if d, err := job.ReadDone(ctx, s, u); err == nil && !d.Last.IsZero() && d.Last.UnixNano() < at {
			break
		} else if err != nil && !job.Unusable(err) {
			return nil, err
		}
		unit = u.After
	}
	return files, nil
}

// Source is a capture as an input of capture.OpenSeries.
func Source(ctx context.Context, in *store.Inputs, f layout.File) capture.Source {
	return capture.Source{Name: f.URL, Size: f.Size, Open: func() (io.ReadCloser, error) { return in.Open(ctx, f, 0) }}
}
