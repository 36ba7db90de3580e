package column

import "slices"

// run is a value, and how many times it was appended. Most columns of most pages have only one value: it is counted, and encoded
// once for all pages of that many rows.
type run[T comparable] struct {
	v T
	n int
}

// add appends a value; false if it is another one.
func (r *run[T]) add(v T, times int) bool {
	if r.n > 0 && r.v != v {
		return false
	}
	r.v = v
	r.n += times
	return true
}

// spill moves the values to list.
func (r *run[T]) spill(list []T) []T {
	if r.n > 0 {
		list = appendTimes(list, r.v, r.n)
		r.n = 0
	}
	return list
}

func appendTimes[T any](list []T, v T, times int) []T {
	n := len(list)
	list = slices.Grow(list, times)[:n+times]
	if times == 0 {
		return list
	}
	more := list[n:]
	more[0] = v
	for i := 1; i < times; i *= 2 {
		copy(more[i:], more[:i])
	}
	return list
}

// runs encodes runs, and keeps what became of them.
type runs[T comparable] struct {
	how   func(dst []byte, list []T) []byte
	known map[run[T]][]byte
	list  []T
}

// maxRuns bounds how many encoded runs are kept.
const maxRuns = 64

// encode returns a run encoded. It belongs to runs.
func (x *runs[T]) encode(r run[T]) []byte {
	b, ok := x.known[r]
	if !ok {
		if x.known == nil || len(x.known) >= maxRuns {
			x.known = make(map[run[T]][]byte)
		}
		x.list = appendTimes(keep(x.list), r.v, r.n)
		b = x.how(nil, x.list)
		x.known[r] = b
	}
	return b
}
