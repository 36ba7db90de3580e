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
	if f.certainty == Certain && slices.ContainsFunc(b.pairs[k.pair].conns, func(o *conn) bool {
		_, ok := o.stoppedSide(stops)
		return !ok && o.both == nil
	}) {
		f.certainty = Likely // the same stops hold all that an adapter takes: others seem to wait for something else, or more waits than is seen
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
	var before []int64 // how long each call waited that came when a stop had ended
	way := max(k.near[1], 0)
	if stopped == k.client {
		held := b.pairs[k.pair].calls
		if f.what == window {
			held = k.calls
		}
		before = b.pairs[k.pair].heldBack(stops, held, way)
	}
	k.each(func(x *call) {
		n := int64(0)
		first := firstAfter(stops, x.start-way-soon)
		for j, s := range stops[first:] {
			if s.from > x.end {
				break
			}
			if stopped == k.client && x.start >= s.to+way && x.start < s.to+way+soon {
				n += b.longer(x, before[first+j])
				continue
			}
			n += max(min(x.end, s.to)-max(x.start, s.from), 0)
		}
		f.of(x, x.take(min(n, max(x.app-b.least[x.work], 0))))
	})
}

// heldBack is how long the calls that a stop can hold waited on average, where they came right after it. Each was made when another had been
// answered, whatever connection that was on: replies during the stop without a call that was sent meanwhile tell for how long. way is what a reply
// and the next call take between the capture point and the client.
func (p *pair) heldBack(stops []still, held []*call, way int64) []int64 {
	starts, ends, late := make([]int64, len(p.calls)), make([]int64, len(p.calls)), make([]int64, len(held))
	for i, x := range held {
		late[i] = x.start - way
	}
	for i, x := range p.calls {
		starts[i], ends[i] = x.start-way, x.end
	}
	slices.Sort(starts)
	slices.Sort(ends)
	slices.Sort(late)
	each := make([]int64, len(stops))
	for i, s := range stops {
		replies, sum := during(ends, s)
		calls, sent := during(starts, s)
		after, _ := during(late, still{s.to, s.to + soon})
		if n := max(replies-calls, after); after > 0 && sum > sent {
			each[i] = (sum - sent) / int64(n)
		}
	}
	return each
}

// during counts the times in a stop, and sums up how long before its end they were.
func during(times []int64, s still) (n int, sum int64) {
	i, _ := slices.BinarySearch(times, s.from)
	for ; i < len(times) && times[i] < s.to; i++ {
		n++
		sum += s.to - times[i]
	}
	return n, sum
}
