package diagnosis

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// batch is a number of calls that are analyzed together. The causes are searched one after the other, and no time of a call is counted for
// two of them.
type batch struct {
	*Recorder
	forward []*call          // in the order of their sending
	lanes   map[int]*[2]lane // by the number of the connection

	waited, opened int64 // of the batch: all latencies; the time in which a call was under way
	from, to       int64
	least          []int64 // of each work
}

// work is what calls have in common that take equally long if nothing holds them up.
type work struct {
	server, op uint16
	size       uint8
}

// number numbers the work of each call, and the operations of each server. It returns how many works there are.
func (b *batch) number() int {
	type group struct{ server, op uint16 }
	groups := make(map[group]uint32)
	works := make(map[work]uint32)
	type known struct { // the last of an operation
		work          work
		number, group uint32
		ok            bool
	}
	last := make([]known, len(b.names.list))
	for _, x := range b.forward {
		w := work{x.server, x.op, uint8(bits.Len32(x.bytes))}
		l := &last[x.op]
		if !l.ok || l.work != w {
			g := group{x.server, x.op}
			if _, ok := groups[g]; !ok {
				groups[g] = uint32(len(groups))
			}
			if _, ok := works[w]; !ok {
				works[w] = uint32(len(works))
			}
			*l = known{w, works[w], groups[g], true}
		}
		x.work, x.group = l.number, l.group
	}
	return len(works)
}

// apart splits the calls that f takes by the number it has for them, in their order; f returns −1 for the others. The numbers are less than n.
func (b *batch) apart(n int, f func(*call) int) [][]*call {
	ends := make([]int, n)
	for _, x := range b.forward {
		if k := f(x); k >= 0 {
			ends[k]++
		}
	}
	sum := 0
	for k, c := range ends {
		ends[k] = sum
		sum += c
	}
	list := make([]*call, sum)
	for _, x := range b.forward {
		if k := f(x); k >= 0 {
			list[ends[k]] = x
			ends[k]++
		}
	}
	out, from := make([][]*call, n), 0
	for k, end := range ends {
		out[k] = list[from:end:end]
		from = end
	}
	return out
}

// begin is when the application began to wait for a call.
func (x *call) begin() int64 {
	if x.asked1 != 0 {
		return min(x.asked1, x.sent)
	}
	return x.sent
}

// againLeast is how soon a client asks again that was asked to wait, in nanoseconds: Linux waits 100 ms at least.
const againLeast = 50_000_000

// chains joins calls that the server asked to wait with those that ask again. What comes sooner is a call of somebody else for the same.
func (b *batch) chains() {
	type key struct {
		client uint16
		thing  uint64
	}
	b.resent()
	open := make(map[key][]*call)
	for _, x := range b.forward {
		if x.end == 0 || x.thing == 0 {
			continue
		}
		k := key{x.client, x.thing}
		list := open[k]
		if i := slices.IndexFunc(list, func(old *call) bool { return x.start-old.end >= againLeast }); i >= 0 {
			x.asked1, list[i].again = list[i].begin(), true
			list = slices.Delete(list, i, i+1)
			open[k] = list
		}
		if x.status == wait || x.status == grace {
			open[k] = append(list, x)
		}
	}
}

// resent joins the copies of calls that were sent again on another connection. What else comes there before the first reply has waited
// as well, though the capture point has not seen its first copy: the path may have been cut.
func (b *batch) resent() {
	if !slices.ContainsFunc(b.forward, func(x *call) bool { return x.from != x.conn.id && x.end != 0 }) {
		return
	}
	first := make(map[callKey]*call)
	again := false
	for _, x := range b.forward {
		k := callKey{x.client, x.xid}
		if old := first[k]; old == nil {
			first[k] = x
		}
		if x.from == x.conn.id || x.end == 0 {
			continue
		}
		if old := first[k]; old.conn != x.conn && old.end != 0 && old.wayC >= 0 {
			x.from, x.sent = x.conn.id, x.start // the client had a reply, and asks once more
			continue
		}
		again = true
		x.conn.after = max(x.conn.after, x.sent)
	}
	if !again {
		return
	}
	for _, k := range b.order {
		if k.after != 0 {
			b.moved(k, first)
		}
	}
	for _, x := range b.forward {
		// Replies that the server sends again and again, though the client does not ask again: it had them before.
		if x.conn.left != 0 && x.end-x.start >= awayLeast && x.lost[rdma.CauseRecovery]*2 > x.end-x.start {
			x.again = true
		}
	}
}

// callKey tells calls of a client apart.
type callKey struct {
	client uint16
	xid    uint32
}

// moved joins the calls that were moved to a connection with their first copies.
func (b *batch) moved(k *conn, first map[callKey]*call) {
	replied := int64(0)
	k.each(func(x *call) {
		if replied == 0 || x.end < replied {
			replied = x.end
		}
	})
	k.each(func(x *call) {
		old := first[callKey{x.client, x.xid}]
		switch {
		case old != x && old.conn != x.conn:
			x.sent, x.from, old.again = min(x.sent, old.sent), old.conn.id, true
			old.conn.left = k.after
		case x.from == k.id && x.start < replied && x.start-k.after >= awayLeast:
			x.sent, x.from, x.guessed = k.after, 0, true
		}
	})
}

// floors finds how long calls take if nothing holds them up: as long as the quickest of their kind.
func (b *batch) floors() {
	works := b.number()
	b.least = make([]int64, works)
	var list []int64
	for w, calls := range b.apart(works, func(x *call) int {
		if x.app <= 0 {
			return -1
		}
		return int(x.work)
	}) {
		list = list[:0]
		for _, x := range calls {
			list = append(list, x.app)
		}
		if len(list) > 0 {
			b.least[w] = nth(list, len(list)/50)
		}
	}
}

// held is how much longer than the quickest of its kind a call took, so far as nothing has explained it.
func (b *batch) held(x *call) int64 { return min(x.app-b.least[x.work], x.left) }

// take takes up to n of a call's latency for a cause.
func (x *call) take(n int64) int64 {
	n = min(max(n, 0), x.left)
	x.left -= n
	return n
}

// finding collects what a cause takes of calls.
type finding struct {
	code      Code
	side      Side
	where     string
	clock     Clock
	certainty Certainty

	time   int64
	calls  int
	events int
	typical,
	limit int64
	what, who string
	worst     []worst
}

type worst struct {
	at call
	n  int64
}

// shown is how many packets are named as evidence of a cause.
const shown = 3

// of adds time of a call.
func (f *finding) of(x *call, n int64) {
	if n <= 0 {
		return
	}
	f.time += n
	f.calls++
	f.show(x, n)
}

// show keeps a call as evidence if it weighs more than others.
func (f *finding) show(x *call, n int64) {
	if len(f.worst) == shown && f.worst[shown-1].n >= n {
		return
	}
	f.worst = append(f.worst, worst{*x, n})
	slices.SortStableFunc(f.worst, func(a, b worst) int { return cmp.Compare(b.n, a.n) })
	f.worst = f.worst[:min(len(f.worst), shown)]
}

// found adds what a cause has found in a batch.
func (r *Recorder) found(f *finding) {
	if f.time <= 0 && f.code != CaptureGaps {
		return
	}
	key := causeKey{f.code, f.where}
	old := r.sum[key]
	if old == nil {
		r.sum[key] = f
		return
	}
	old.time += f.time
	old.calls += f.calls
	old.events += f.events
	old.typical = max(old.typical, f.typical)
	if rank(f.certainty) > rank(old.certainty) { // the weaker one holds for the whole
		old.certainty = f.certainty
	}
	for i := range f.worst {
		old.show(&f.worst[i].at, f.worst[i].n)
	}
}

func rank(c Certainty) int {
	switch c {
	case Certain:
		return 0
	case Likely:
		return 1
	}
	return 2
}

func (k *conn) where() string { return fmt.Sprintf("connection %d", k.id) }

// causes looks for all causes. Those that packets prove come first: each takes its part of the latencies, and the others explain what is left.
func (b *batch) causes() {
	b.measure()
	if len(b.forward) == 0 {
		return
	}
	switch {
	case b.interval.lanes != nil:
		b.lanes = b.interval.lanes
	case b.watch != nil:
		b.lanes = b.watch.copied()
	}
	b.outage()
	b.recall()
	b.askedToWait()
	b.silence()
	b.stalls()
	b.tails()
	b.congestion()
	b.linkFull()
	b.paused()
	b.pathStall()
	b.readDepth()
	b.threads()
	b.pathDelay()
	b.readResponses()
	b.serverTime()
	b.windows()
	b.oneAtATime()
}

// measure finds what all causes need.
func (b *batch) measure() {
	for _, k := range b.order {
		k.measure()
	}
	b.forward = make([]*call, 0, len(b.calls))
	for i := range b.calls {
		if x := &b.calls[i]; !x.backward {
			b.forward = append(b.forward, x)
		}
	}
	b.chains()
	busy := int64(0)
	for _, x := range b.forward {
		if x.end == 0 || x.again {
			continue
		}
		x.app = max(x.done-x.begin(), 0) + max(x.conn.near[1], 0)
		x.left = x.app
		b.waited += x.app
		b.p99 = append(b.p99, x.app)
		got := x.done + max(x.conn.near[1], x.nearC/2) // when the client had it
		b.opened += max(got-max(x.begin(), busy), 0)
		busy = max(busy, got)
	}
	b.floors()
	if len(b.forward) == 0 {
		return
	}
	b.from, b.to = b.forward[0].start, b.forward[0].start
	for _, x := range b.forward {
		b.to = max(b.to, x.start, x.done)
		b.from = min(b.from, x.sent)
	}
	for _, x := range b.forward {
		if x.end == 0 && !x.again {
			b.unanswered++
			b.hanging = max(b.hanging, b.to-x.start)
		}
	}
	b.total += b.waited
	b.open += b.opened
	b.count += len(b.forward)
	if b.first == 0 {
		b.first = b.from
	}
	b.last = max(b.last, b.to)
	if len(b.p99) > 1<<18 {
		nth(b.p99, len(b.p99)/2)
		b.p99 = b.p99[:copy(b.p99, b.p99[len(b.p99)/2:])] // the upper half keeps the high percentiles, a little too low
	}
}

// measure finds the round trips of a connection: of TCP the least, since its acknowledgements may be delayed.
func (k *conn) measure() {
	ways := [2][]int64{make([]int64, 0, len(k.calls)), make([]int64, 0, len(k.calls))}
	var clear [2]int64 // the least of packets that no data of their own precedes
	for _, x := range k.calls {
		if x.backward || x.end == 0 || x.resent || x.lost[rdma.CauseRecovery]+x.lost[rdma.CauseNotReady] > 0 {
			continue // of what was sent twice it is not known which one was acknowledged
		}
		for i, w := range [2]int64{x.wayS, x.wayC} {
			if w < 0 {
				continue
			}
			ways[i] = append(ways[i], w)
			if (i == 0 || !x.pushed) && (clear[i] == 0 || w < clear[i]) {
				clear[i] = max(w, 1)
			}
		}
	}
	for i, list := range ways {
		if len(list) == 0 {
			continue
		}
		k.ways[i], k.floor[i] = nth(list, len(list)/2), clear[i]
		if clear[i] == 0 {
			k.floor[i] = slices.Min(list)
		}
		k.spread[i] = nth(list, len(list)*3/4) - nth(list, len(list)/4)
		if k.fabric == rdma.IWARP || k.fabric == rdma.TCP {
			k.ways[i] = nth(list, len(list)/10)
		}
	}
	k.samples = [2]int{len(ways[0]), len(ways[1])}
	if k.near = k.floor; k.both != nil {
		k.near = [2]int64{k.both.points[1].floor[0], k.both.points[0].floor[1]}
	}
}

// toServer is the round trip from the capture point nearest the server to it that a call had, as far as it is known.
func (x *call) toServer() int64 {
	switch k := x.conn; {
	case x.nearS >= 0 && k.fabric < rdma.IWARP:
		return x.nearS
	case k.both != nil:
		return max(k.both.points[1].ways[0], 0)
	default:
		return max(k.ways[0], 0)
	}
}

// sentAt and replyAt are when the capture point nearest the sender had the whole call, and the whole reply.
func (x *call) sentAt() int64  { return x.callEnd - x.forth }
func (x *call) replyAt() int64 { return x.end - x.back }

// service is how long the server worked on a call, or let it wait: what its phases hold without the way.
func (x *call) service() int64 {
	w := x.toServer()
	n := max(x.act-x.callEnd-w, 0)
	if x.firstRead != 0 {
		n += max(x.answer-max(x.lastRead, x.callEnd)-w, 0)
	}
	return n
}

// each calls f for the answered forward calls of a connection.
func (k *conn) each(f func(x *call)) {
	for _, x := range k.calls {
		if !x.backward && x.end != 0 {
			f(x)
		}
	}
}

// lanesOf are what the sides of a connection have sent; nil if that is not known.
func (b *batch) lanesOf(k *conn) *[2]lane {
	if k.both != nil {
		return &k.both.lanes
	}
	return b.lanes[k.id]
}
