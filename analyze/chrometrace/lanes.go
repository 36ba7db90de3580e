package chrometrace

// lanes gives each interval the lowest lane that is free. Intervals usually arrive ordered by start; one that
// arrives late gets a lane that is free at its time, too.
type lanes struct {
	busy  queue   // lanes by the end of their interval
	free  queue   // lanes by number
	ends  []int64 // of each lane: when its last interval ended
	limit int
}

// maxTried bounds the search for a lane of a late interval.
const maxTried = 16

// take returns the lane for [start, end]; ok is false if all are taken.
func (l *lanes) take(start, end int64) (lane int, ok bool) {
	for len(l.busy) > 0 && l.busy[0].key <= start {
		u := l.busy.pop()
		l.free.push(item{int64(u.lane), u.lane})
	}
	// A free lane may have been in use after the start of a late interval.
	lane = -1
	var held [maxTried]item
	n := 0
	for len(l.free) > 0 && n < maxTried {
		u := l.free.pop()
		if l.ends[u.lane] <= start {
			lane = u.lane
			break
		}
		held[n] = u
		n++
	}
	for _, u := range held[:n] {
		l.free.push(u)
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
	l.busy.push(item{end, lane})
	return lane, true
}

// reset forgets all intervals.
func (l *lanes) reset() { l.busy, l.free, l.ends = l.busy[:0], l.free[:0], l.ends[:0] }

// queue is a heap: the item with the lowest key is the first one.
type queue []item

type item struct {
	key  int64
	lane int
}

func (q *queue) push(x item) {
	h := append(*q, x)
	*q = h
	for i := len(h) - 1; i > 0; {
		up := (i - 1) / 2
		if h[up].key <= h[i].key {
			return
		}
		h[up], h[i] = h[i], h[up]
		i = up
	}
}

func (q *queue) pop() item {
	h := *q
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	*q = h
	for i := 0; ; {
		least := i
		for _, c := range [2]int{2*i + 1, 2*i + 2} {
			if c < last && h[c].key < h[least].key {
				least = c
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
