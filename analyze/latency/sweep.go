package latency

import "github.com/rpcrdma/toolkit/internal/heap"

// event is a time at which the number of calls or Reads in flight changes.
type event struct {
	at      int64 // ns since 1970
	change  int32 // +1 or -1
	granted uint32
}

// before orders events by time. At the same time, ends come first: a reply and the next call with the same
// timestamp are not two calls in flight.
func (e event) before(o event) bool { return e.at < o.at || e.at == o.at && e.change < o.change }

// level tracks how many calls or Reads are in flight. Calls arrive in the order of their beginnings; pending
// ends wait in a heap.
type level struct {
	heap    []event
	started bool
	now     int64
	n       int
	most    int
	granted uint32 // by the latest reply; 0 before the first
	limited float64
	known   float64   // ns in which granted was known
	time    []float64 // ns at each level; the last is "maxLevel and more"
	lost    uint64    // events beyond the limit
}

// push adds an event to the heap.
func (l *level) push(e event, budget *int) {
	if *budget <= 0 {
		l.lost++
		return
	}
	*budget--
	l.heap = heap.Push(l.heap, e, event.before)
}

func (l *level) pop(budget *int) (e event) {
	*budget++
	e, l.heap = heap.Pop(l.heap, event.before)
	return e
}

// enter adds a call and returns the number in flight. granted is the credit grant of its reply, 0 if that does not matter.
func (l *level) enter(start, end int64, granted uint32, budget *int) int {
	l.advance(start, budget)
	l.step(event{at: start, change: 1})
	l.push(event{at: end, change: -1, granted: granted}, budget)
	return l.n
}

// step processes one event, and accounts for the time up to it.
func (l *level) step(e event) {
	if !l.started {
		l.started, l.now = true, e.at
	}
	if dt := float64(e.at - l.now); e.at > l.now {
		l.now = e.at
		n := min(l.n, maxLevel)
		if n >= len(l.time) {
			l.room(n)
		}
		l.time[n] += dt
		if l.granted > 0 {
			l.known += dt
			if l.n >= int(l.granted) {
				l.limited += dt
			}
		}
	}
	l.n += int(e.change)
	l.most = max(l.most, l.n)
	if e.granted > 0 {
		l.granted = e.granted
	}
}

// room makes room for the time at a level.
func (l *level) room(n int) {
	for len(l.time) <= n {
		l.time = append(l.time, 0)
	}
}

// setBack is by how much the clock of a capture must go back to have been set, in nanoseconds. Packets of several queues or taps come less late.
const setBack = 1e9

// wasSet reports whether the clock was set back from one time to another.
func wasSet(from, to int64) bool { return to < from && uint64(from)-uint64(to) > setBack }

// advance processes all events up to and including t. If the clock was set back, the calls in flight end there: the capture
// does not tell how long they took.
func (l *level) advance(t int64, budget *int) {
	if l.started && wasSet(l.now, t) {
		l.finish(budget)
		l.now = t
	}
	for len(l.heap) > 0 && (l.heap[0].at < t || l.heap[0].at == t && l.heap[0].change < 0) {
		l.step(l.pop(budget))
	}
}

// finish processes all remaining events.
func (l *level) finish(budget *int) {
	for len(l.heap) > 0 {
		l.step(l.pop(budget))
	}
}

// mean is the average number in flight, and busy the fraction of the time with any in flight.
func (l *level) mean() (mean, busy float64) {
	var area, all, idle float64
	for n, t := range l.time {
		area += float64(n) * t
		all += t
		if n == 0 {
			idle = t
		}
	}
	if all == 0 {
		return 0, 0
	}
	return area / all, (all - idle) / all
}

// atLeast is the time spent with n or more in flight.
func (l *level) atLeast(n int) (t float64) {
	for i := n; i < len(l.time); i++ {
		t += l.time[i]
	}
	return t
}
