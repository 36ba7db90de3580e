package unit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// headBytes is how much of a file is read to find out when it begins.
const headBytes = 64 << 10

// Plan finds the files that patterns mean, and makes a unit of those of each tap, in the order of the names of taps.
// tap, if not empty, is the tap of all. Files are in the natural order of their names; if names do not tell, since
// they differ in more than numbers, files are in the order of their first packets.
func Plan(ctx context.Context, in *store.Inputs, patterns []string, tap string, opt layout.Options) ([]*layout.Unit, error) {
	all, err := find(ctx, in, patterns)
	if err != nil {
		return nil, err
	}
	return group(ctx, in, all, tap, opt)
}

// find lists the files that patterns mean. After an error, those of the patterns before and after it are in the list.
func find(ctx context.Context, in *store.Inputs, patterns []string) (all []layout.Found, err error) {
	for _, p := range patterns {
		list, e := in.Find(ctx, p)
		if e != nil && (err == nil || errors.Is(err, store.ErrNotFound)) {
			err = e
		}
		all = append(all, list...)
	}
	return all, err
}

func group(ctx context.Context, in *store.Inputs, all []layout.Found, tap string, opt layout.Options) ([]*layout.Unit, error) {
	taps, files := layout.Group(all, tap)
	units := make([]*layout.Unit, 0, len(taps))
	for _, name := range taps {
		list := files[name]
		if !layout.Ordered(list) {
			if err := byTime(ctx, in, list); err != nil {
				return nil, err
			}
		}
		u, err := layout.NewUnit(name, list, opt)
		if err != nil {
			return nil, fmt.Errorf("tap %q: %w", name, err)
		}
		units = append(units, u)
	}
	return units, nil
}

// byTime sorts files by the time of their first packet. Those without one stay where their names put them: before the
// next file.
func byTime(ctx context.Context, in *store.Inputs, files []layout.File) error {
	type dated struct {
		layout.File
		at int64
	}
	list := make([]dated, len(files))
	next := int64(-1)
	for i := len(files) - 1; i >= 0; i-- {
		at, ok, err := begins(ctx, in, files[i])
		switch {
		case err != nil:
			return err
		case ok:
			next = at
		}
		list[i] = dated{files[i], next}
	}
	slices.SortStableFunc(list, func(a, b dated) int { return cmp.Compare(a.at, b.at) })
	for i := range list {
		files[i] = list[i].File
	}
	return nil
}

// begins is when the first packet of a file was captured.
func begins(ctx context.Context, in *store.Inputs, f layout.File) (at int64, ok bool, err error) {
	b, err := in.Head(ctx, f, headBytes)
	if err != nil || len(b) == 0 {
		return 0, false, err
	}
	r, openErr := capture.NewReader(bytes.NewReader(b), f.URL, capture.Options{BatchSize: 4 << 10})
	if openErr != nil {
		return 0, false, nil //nolint:nilerr // what it is instead is said when it is decoded
	}
	defer r.Close()
	var batch capture.Batch
	if r.Read(&batch) != nil || len(batch.Packets) == 0 {
		return 0, false, nil
	}
	return batch.Packets[0].Time, true, nil
}
