package job

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// Plan makes a job of the files that patterns find: a unit for each tap. Tap names the only tap; if it is empty, the
// folders of the files are taps.
func Plan(ctx context.Context, in *store.Inputs, patterns []string, tap string, opt layout.Options, version string) (*layout.Job, []*layout.Unit, error) {
	var found []layout.Found
	for _, p := range patterns {
		list, err := in.Find(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		found = append(found, list...)
	}
	taps, files := layout.Group(found, tap)
	units, ids := make([]*layout.Unit, len(taps)), make([]string, len(taps))
	for i, name := range taps {
		list := files[name]
		if !layout.Ordered(list) {
			if err := order(ctx, in, list); err != nil {
				return nil, nil, err
			}
		}
		u, err := layout.NewUnit(name, list, opt)
		if err != nil {
			return nil, nil, err
		}
		units[i], ids[i] = u, u.ID
	}
	j, err := layout.NewJob(patterns, ids, opt, time.Now(), version)
	return j, units, err
}

// headBytes is where the first packet of a capture is looked for.
const headBytes = 64 << 10

// order sorts files by the time of their first packet. Those of which none can be read come last, in the order that
// they have.
func order(ctx context.Context, in *store.Inputs, files []layout.File) error {
	first := make(map[string]int64, len(files))
	times := make([]int64, len(files))
	g, sub := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range files {
		g.Go(func() error {
			b, err := in.Head(sub, files[i], headBytes)
			times[i] = firstTime(b)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i := range files {
		first[files[i].URL] = times[i]
	}
	slices.SortStableFunc(files, func(a, b layout.File) int {
		return cmp.Or(cmp.Compare(first[a.URL], first[b.URL]), layout.Natural(a.URL, b.URL), strings.Compare(a.URL, b.URL))
	})
	return nil
}

// firstTime is the time of the first packet in the first bytes of a capture.
func firstTime(b []byte) int64 {
	r, err := capture.NewReader(bytes.NewReader(b), "", capture.Options{BatchSize: 1})
	if err != nil {
		return math.MaxInt64
	}
	defer r.Close()
	var batch capture.Batch
	if err := r.Read(&batch); err != nil || len(batch.Packets) == 0 {
		return math.MaxInt64
	}
	return batch.Packets[0].Time
}
