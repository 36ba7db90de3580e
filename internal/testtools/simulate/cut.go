package simulate

import (
	"cmp"
	"io"
	"slices"
)

// Cut is what capture points that ran for a part of the time have of a run.
func (r *Result) Cut(from, to int64) *Result {
	cut := *r
	for i, list := range r.taps {
		cut.taps[i] = nil
		for _, p := range list {
			if p.time >= from && p.time < to {
				cut.taps[i] = append(cut.taps[i], p)
			}
		}
	}
	return &cut
}

// Shift is what a capture point had noted with a clock that is off by a while, and goes too fast by parts of a million.
func (r *Result) Shift(p Point, by int64, drift float64) *Result {
	shifted := *r
	shifted.taps[p] = make([]record, len(r.taps[p]))
	for i, x := range r.taps[p] {
		x.time += by + int64(float64(x.time-r.Config.Start)*drift/1e6)
		shifted.taps[p][i] = x
	}
	return &shifted
}

// WriteMerged writes what a point has noted, and another one of another Result, as one capture: nothing in it says which packet is whose.
func (r *Result) WriteMerged(w io.Writer, p Point, other *Result, q Point) error {
	list := slices.Concat(r.taps[p], other.taps[q])
	slices.SortStableFunc(list, func(a, b record) int { return cmp.Compare(a.time, b.time) })
	return write(w, list, r.Config.Snap)
}
