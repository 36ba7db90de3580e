package chrometrace

import "github.com/rpcrdma/toolkit/internal/heap"

// lanes gives each interval the lowest lane that is free. Intervals usually arrive ordered by start; one that
// arrives late gets a lane that is free at its time, too.
type lanes struct {
	busy  []item  // heap of lanes by the end of their interval
	free  []item  // heap of lanes by number
	ends  []int64 // of each lane: when its last interval ended
	limit int
}

// maxTried bounds the search for a lane of a late interval.
const maxTried = 16

// take returns the lane for [start, end]; ok is false if all are taken.
func (l *lanes) take(start, end int64) (lane int, ok bool) {
	for len(l.busy) > 0 && l.busy[0].key <= start {
		var u item
		u, l.busy = heap.Pop(l.busy, item.before)
		l.free = heap.Push(l.free, item{int64(u.lane), u.lane}, item.before)
	}
	// A free lane may have been in use after the start of a late interval.
	lane = -1
	var held [maxTried]item
	n := 0
	for len(l.free) > 0 && n < maxTried {
		var u item
		u, l.free = heap.Pop(l.free, item.before)
		if l.ends[u.lane] <= start {
			lane = u.lane
			break
		}
		held[n] = u
		n++
	}
	for _, u := range held[:n] {
		l.free = heap.Push(l.free, u, item.before)
	}
	if lane < 0 {
		if len(l.ends) >= l.limit {
			return 0, false
		}
		lane = len(l.ends)
		l.ends = append(l.ends, 0)
	}
	end = max(end, start)
	l.ends[lane] = end
	l.busy = heap.Push(l.busy, item{end, lane}, item.before)
	return lane, true
}

// reset forgets all intervals.
func (l *lanes) reset() { l.busy, l.free, l.ends = l.busy[:0], l.free[:0], l.ends[:0] }

type item struct {
	key  int64
	lane int
}

// before orders heaps by key.
func (x item) before(o item) bool { return x.key < o.key }
