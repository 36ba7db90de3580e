package expected

import (
	"slices"
	"time"
)

// Objects are the objects of which something is known, in order.
func (l *State) Objects() []int {
	ids := make([]int, 0, len(l.files))
	for id := range l.files {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Range is a part of a file whose content is known.
type Range struct {
	From, To uint64
	Hole     bool   // it reads as zeros
	Unseen   uint64 // bytes of it that this run wrote and no READ has returned
}

// Ranges are the parts of an object whose content is known, below end, in order. Adjacent ranges
// are joined if both are holes or neither is.
func (l *State) Ranges(object int, end uint64) (list []Range) {
	f := l.files[object]
	if f == nil {
		return nil
	}
	f.fills.each(0, end, func(x filled) {
		if !x.mine() && x.kind != empty {
			return
		}
		r := Range{From: x.from, To: x.to, Hole: x.kind == empty}
		if x.mine() && !x.read {
			r.Unseen = x.to - x.from
		}
		if n := len(list) - 1; n >= 0 && list[n].To == r.From && list[n].Hole == r.Hole {
			list[n].To, list[n].Unseen = r.To, list[n].Unseen+r.Unseen
			return
		}
		list = append(list, r)
	})
	return list
}

// Written is the end of the last byte that this run wrote to an object.
func (l *State) Written(object int) (end uint64) {
	if f := l.files[object]; f != nil {
		for i := range f.fills {
			if f.fills[i].mine() {
				end = f.fills[i].to
			}
		}
	}
	return end
}

// Unseen is how many bytes of a range of an object this run wrote and no READ has returned.
func (l *State) Unseen(object int, from, to uint64) (n uint64) {
	if f := l.files[object]; f != nil {
		f.fills.each(from, to, func(x filled) {
			if x.mine() && !x.read {
				n += x.to - x.from
			}
		})
	}
	return n
}

// units are the resolutions of servers' times: neither RFC 1813 nor RFC 8881 demands more.
var units = []time.Duration{1, 100, time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond,
	10 * time.Millisecond, 100 * time.Millisecond, time.Second, 2 * time.Second}

// SameTime reports whether a server's time equals one that a client has set, in the server's
// resolution.
func SameTime(set, is time.Time) bool {
	if d := set.Sub(is); d < 0 || d >= 2*time.Second {
		return false
	}
	for _, u := range units {
		if cut := set.UnixNano() % int64(u); set.UnixNano()-cut == is.UnixNano() {
			return true
		}
	}
	return false
}
