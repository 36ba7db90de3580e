package diagnosis

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// pausesLeast is how many stops make a cause.
const pausesLeast = 3

// paused finds what frames of flow control have stopped. Whose packets are absent until the frame that ends a stop, and come right after
// it, is the side that was stopped. A frame that stops what comes to the end beside which it was captured is of that end's adapter: it
// cannot take more. A frame that stops what this end sends is of the switch.
func (b *batch) paused() {
	stops := b.stops
	if len(stops) < pausesLeast {
		return
	}
	for _, k := range b.order {
		switch {
		case k.queued:
		case k.both == nil:
			b.pausedOf(k, k, stops)
		default:
			for i, p := range k.both.points {
				if !k.paused {
					b.pausedOf(k, p, k.both.stops[i])
				}
			}
		}
	}
}

// moment is a packet of a side.
type moment struct {
	at   int64
	from rdma.Side
}

// moments are the packets of a connection that its calls tell of.
func (k *conn) moments() []moment {
	var list []moment
	server := k.client.Other()
	k.each(func(x *call) {
		list = append(list, moment{x.start, k.client}, moment{x.callEnd, k.client}, moment{x.act, server}, moment{x.answer, server}, moment{x.end, server})
		if x.firstRead != 0 {
			list = append(list, moment{x.firstRead, server}, moment{x.lastRead, k.client})
		}
	})
	slices.SortFunc(list, func(a, c moment) int { return cmp.Compare(a.at, c.at) })
	return list
}

// settled is how long packets that were under way may still come after a stop.
const settled = 20_000

// stoppedSide is the side whose packets stops have held; ok is false if that is not clear.
func (k *conn) stoppedSide(stops []still) (side rdma.Side, ok bool) {
	list := k.moments()
	var inside, after [2]int
	for _, s := range stops {
		i, _ := slices.BinarySearchFunc(list, s.from+settled, func(m moment, t int64) int { return cmp.Compare(m.at, t) })
		var seen [2]bool
		for ; i < len(list) && list[i].at < s.to; i++ {
			seen[list[i].from&1] = true
		}
		for j := range seen {
			if seen[j] {
				inside[j]++
			}
		}
		if i < len(list) && list[i].at < s.to+soon {
			after[list[i].from&1]++
		}
	}
	for s := range rdma.Side(2) {
		if n := after[0] + after[1]; n >= pausesLeast && after[s]*10 >= n*7 && inside[s]*10 <= len(stops) {
			return s, true
		}
	}
	return 0, false
}

// pausedOf finds it of a connection, by the stops that were seen at a capture point and what that shows of the connection.
func (b *batch) pausedOf(k, at *conn, stops []still) {
	stopped, ok := at.stoppedSide(stops)
	if !ok {
		return
	}
	if at != k && at.client != k.client {
		stopped = stopped.Other()
	}
	f := &finding{code: Pause, side: Network, on: []int{k.id}, clock: Calls, certainty: Likely, what: "the switch"}
	near := at.point()
	switch {
	case near == besideClient && stopped != k.client:
		f.side, f.what, f.certainty = Client, "the client's adapter", Certain
	case near == besideServer && stopped == k.client:
		f.side, f.what, f.certainty = Server, "the server's adapter", Certain
	case near == between || near == "":
		f.certainty, f.what = Possible, "an adapter or a switch"
	}
	for _, s := range stops {
		f.typical = max(f.typical, s.to-s.from)
	}
	f.events = len(stops)
	b.stopped(k, f, stops, stopped)
	k.paused = f.time > 0
	b.Recorder.found(f)
}

// stopped finds the calls that waited while a side could not send. stops are when that was.
func (b *batch) stopped(k *conn, f *finding, stops []still, stopped rdma.Side) {
	// A call that could not be sent waited since the reply that had made room for it.
	var replies []int64
	if stopped == k.client {
		k.each(func(x *call) { replies = append(replies, x.end) })
		slices.Sort(replies)
	}
	used := make([]int, len(stops))
	k.each(func(x *call) {
		n := int64(0)
		first := firstAfter(stops, x.start-soon)
		for j, s := range stops[first:] {
			if s.from > x.end {
				break
			}
			if stopped == k.client && x.start >= s.to && x.start < s.to+soon {
				i, _ := slices.BinarySearch(replies, s.from)
				i += used[first+j]
				used[first+j]++
				if i >= len(replies) || replies[i] >= s.to {
					continue
				}
				d := s.to - max(s.from, replies[i])
				x.app, x.left, b.total = x.app+d, x.left+d, b.total+d
				n += d
				continue
			}
			n += max(min(x.end, s.to)-max(x.start, s.from), 0)
		}
		f.of(x, x.take(min(n, max(x.app-b.least[x.work], 0))))
	})
}
