package diagnosis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// batch is a number of calls that are analyzed together. The causes are searched one after the other, and no time of a call is counted for
// two of them.
type batch struct {
	*Recorder
	traffic
	forward []*call // in the order of their sending
	pairs   []pair  // of hosts

	broke          int64 // what calls waited that were sent again on another connection
	waited, opened int64 // of the batch: all latencies; the time in which a call was under way
	from, to       int64
	least          []int64            // of each work
	usual          []int64            // the same of half of the calls that lost nothing
	busy           map[uint16]float64 // the part of the time with calls that the threads of a server work
	inLine         map[uint16]bool    // servers whose calls wait for each other longer than it works on them
}

// pair is two hosts with their connections, and the calls that were answered. They share the path.
type pair struct {
	conns []*conn
	calls []*call
	// queues is how long acknowledgements usually take on a connection where the least of them took less than half of that.
	queues int64
	busy   bool // a direction carries so much that it may be its link that delays packets
}

// busyRate is what a direction carries that is busy, in bytes a nanosecond: 1.6 Gb/s.
const busyRate = 0.2

// pairUp finds the pairs of hosts.
func (b *batch) pairUp() {
	at := make(map[[2]uint16]int)
	for _, k := range b.order {
		if len(k.calls) == 0 {
			continue
		}
		x := k.calls[0]
		key := [2]uint16{min(x.client, x.server), max(x.client, x.server)}
		i, ok := at[key]
		if !ok {
			i = len(b.pairs)
			at[key], b.pairs = i, append(b.pairs, pair{})
		}
		p := &b.pairs[i]
		k.pair, p.conns = i, append(p.conns, k)
		if usual := max(k.ways[0], 0) + max(k.ways[1], 0); k.samples[0] >= 4 && usual > 2*k.round() {
			p.queues = max(p.queues, usual)
		}
	}
	for i, calls := range b.apart(len(b.pairs), func(x *call) int {
		if x.end == 0 {
			return -1
		}
		return x.conn.pair
	}) {
		p := &b.pairs[i]
		p.calls = calls
		var open, until, read, written int64
		for _, x := range calls {
			open += max(x.end-max(x.start, until), 0)
			until = max(until, x.end)
			if x.pushed {
				read += int64(x.bytes)
			} else {
				written += int64(x.bytes)
			}
		}
		p.busy = float64(max(read, written)) > busyRate*float64(open)
	}
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
	ends, of := make([]int, n), make([]int32, len(b.forward))
	for i, x := range b.forward {
		k := f(x)
		if of[i] = int32(k); k >= 0 {
			ends[k]++
		}
	}
	sum := 0
	for k, c := range ends {
		ends[k] = sum
		sum += c
	}
	list := make([]*call, sum)
	for i, x := range b.forward {
		if k := of[i]; k >= 0 {
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

// inOrder sorts calls by a time. Most are in its order: they are in that of their sending.
func inOrder(calls []*call, at func(*call) int64) {
	last := int64(math.MinInt64)
	for _, x := range calls {
		t := at(x)
		if t < last {
			slices.SortStableFunc(calls, func(a, c *call) int { return cmp.Compare(at(a), at(c)) })
			return
		}
		last = t
	}
}

// begin is when the application began to wait for a call.
func (x *call) begin() int64 {
	if x.asked1 != 0 {
		return min(x.asked1, x.sent)
	}
	return x.sent
}

// againLeast is how soon a client asks again that was asked to wait, in nanoseconds: Linux waits 100 ms at least. What comes sooner is a call of
// somebody else for the same, unless nobody else calls for it.
const againLeast = 50_000_000

// asking is what a client has asked for, one call after the other.
type asking struct {
	calls, waits int
	until        int64 // reply to the last one
	overlap      bool  // it came after the next call
	soonest      int64 // from a reply that asks to wait to the next call
	open         []*call
}

// alone reports whether all calls are of one that was asked to wait and comes again.
func (a *asking) alone() bool { return !a.overlap && a.calls <= a.waits+1 }

// add adds a call.
func (a *asking) add(x *call) {
	if a.overlap = a.overlap || x.start < a.until; a.waits == a.calls && a.calls > 0 {
		a.soonest = earlier(a.soonest, x.start-a.until)
	}
	a.calls++
	a.waits += b2i(x.asksToWait())
	a.until = max(a.until, x.end)
}

// asksToWait reports whether the server put a call off.
func (x *call) asksToWait() bool { return x.status == wait || x.status == grace }

// chains joins calls that the server asked to wait with those that ask again.
func (b *batch) chains() {
	type key struct {
		client uint16
		thing  uint64
	}
	b.resent()
	asked := make(map[key]*asking)
	for _, x := range b.forward {
		if x.end == 0 || x.thing == 0 {
			continue
		}
		k := key{x.client, x.thing}
		if asked[k] == nil {
			asked[k] = new(asking)
		}
		asked[k].add(x)
	}
	usual := make(map[uint16][]int64) // of a client, if nobody else calls
	for k, a := range asked {
		if a.alone() && a.soonest > 0 {
			usual[k.client] = append(usual[k.client], a.soonest)
		}
	}
	for _, x := range b.forward {
		a := asked[key{x.client, x.thing}]
		if a == nil || x.end == 0 {
			continue
		}
		least := int64(againLeast)
		if a.alone() {
			least = 0
		} else if list := usual[x.client]; len(list) >= fewCalls {
			least = min(least, slices.Min(list))
		}
		if i := slices.IndexFunc(a.open, func(old *call) bool { return x.start-old.end >= least }); i >= 0 {
			x.asked1, a.open[i].again = a.open[i].begin(), true
			a.open = slices.Delete(a.open, i, i+1)
		}
		if x.asksToWait() {
			a.open = append(a.open, x)
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
	if b.point() == besideServer { // elsewhere first copies are seen
		for _, k := range b.order {
			if k.after != 0 {
				b.together(k)
			}
		}
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

// together finds the connections that were made with k, in place of others of the same mount: their calls have waited as long.
func (b *batch) together(k *conn) {
	var fresh []*conn
	old := 0
	for _, o := range b.order {
		if len(o.calls) == 0 || o.hosts != k.hosts {
			continue
		}
		switch first, last := o.calls[0].start, o.calls[len(o.calls)-1].start; {
		case first-k.after >= awayLeast:
			fresh = append(fresh, o)
		case last < k.calls[0].start:
			old++
		}
	}
	if len(fresh) > old {
		return
	}
	for _, o := range fresh {
		if o.calls[0].start < k.calls[0].start+awayLeast {
			o.after = max(o.after, k.after)
		}
	}
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
	b.least, b.usual = make([]int64, works), make([]int64, works)
	var list, whole []int64
	for w, calls := range b.apart(works, func(x *call) int {
		if x.app <= 0 {
			return -1
		}
		return int(x.work)
	}) {
		list, whole = list[:0], whole[:0]
		for _, x := range calls {
			list = append(list, x.app)
			if x.lost[rdma.CauseRecovery] == 0 {
				whole = append(whole, x.app)
			}
		}
		if len(list) > 0 {
			b.least[w] = nth(list, len(list)/50)
			b.usual[w] = max(median(whole), b.least[w])
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

// longer notes that a call took n longer than the capture point has seen of it.
func (b *batch) longer(x *call, n int64) int64 {
	x.app, x.left, b.total = x.app+n, x.left+n, b.total+n
	return n
}

// finding collects what a cause takes of calls.
type finding struct {
	code      Code
	side      Side
	where     string
	on        []int // connections, if it is theirs
	clock     Clock
	certainty Certainty

	time   int64
	calls  int
	events int
	typical,
	limit int64
	among     int   // connections of the mount
	most      int64 // that can be saved of the wall time; 0 if that is not known
	first     int64 // of losses: how long after the first notification of congestion they began; negative: before; 0: there was none
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
	key := causeKey{f.code, f.place()}
	old := r.sum[key]
	if old == nil {
		r.sum[key] = f
		return
	}
	old.time += f.time
	old.calls += f.calls
	old.events += f.events
	old.typical = max(old.typical, f.typical)
	old.on = each(append(old.on, f.on...))
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

// place says where a cause lies.
func (f *finding) place() string {
	switch n := len(f.on); n {
	case 0:
		return f.where
	case 1:
		return fmt.Sprintf("connection %d", f.on[0])
	case 2:
		return fmt.Sprintf("connections %d and %d", f.on[0], f.on[1])
	default:
		return fmt.Sprintf("%d connections", n)
	}
}

// each has every number once.
func each(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// like reports whether another connection's finding says the same.
func (f *finding) like(o *finding) bool {
	same := len(f.on) > 0 && len(o.on) > 0 && f.code == o.code && f.side == o.side && f.clock == o.clock && (f.certainty == Possible) == (o.certainty == Possible)
	switch f.code {
	case Outage:
		return false
	case PathDelay: // of several distances each counts for itself
		return same && f.what == o.what && (f.limit > 0) == (o.limit > 0) && max(f.typical-o.typical, o.typical-f.typical)*4 <= f.typical
	case LossRecovery:
		return same && (f.what == tail) == (o.what == tail)
	}
	return same && f.what == o.what && f.limit == o.limit
}

// join adds the finding of another connection that is like it and costs less.
func (f *finding) join(o *finding) {
	if rank(o.certainty) > rank(f.certainty) && o.time*4 > f.time {
		f.certainty = o.certainty
	}
	if f.who != o.who {
		f.who = bothWays
	}
	if f.what != o.what && o.what == before {
		f.what = before
	}
	if f.clock == Wall { // it passes on all of them together
		f.time = max(f.time, o.time)
		if f.certainty == Certain {
			f.certainty = Likely // that holds for each of them; what they lose together is not clear
		}
	} else {
		f.time += o.time
	}
	f.calls += o.calls
	f.events += o.events
	f.typical = max(f.typical, o.typical)
	f.on = each(append(f.on, o.on...))
	for i := range o.worst {
		f.show(&o.worst[i].at, o.worst[i].n)
	}
}

// joined are the findings, the costliest first. Connections with the same finding have one together.
func (r *Recorder) joined() []*finding {
	var out []*finding
	for _, f := range slices.SortedFunc(maps.Values(r.sum), func(a, b *finding) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.code, b.code), slices.Compare(a.on, b.on), cmp.Compare(a.where, b.where))
	}) {
		if i := slices.IndexFunc(out, f.like); i >= 0 {
			out[i].join(f)
			continue
		}
		out = append(out, f)
	}
	for _, f := range out {
		// How many calls more the application would have made at a time does not show.
		switch now := max(f.limit, 1); f.code {
		case Credits:
			f.time = f.time * moreCalls / (moreCalls + now*int64(max(f.among, len(f.on))))
			if len(f.on)*2 < f.among {
				f.certainty = Possible // others have credits to spare
			}
		case SessionSlots:
			f.time = f.time * moreCalls / (moreCalls + now)
		}
		if f.most > 0 {
			f.time = min(f.time, f.most)
		}
	}
	return out
}

// moreCalls is how many calls more at a time an application is taken to have, that waits for credits or slots.
const moreCalls = 12

// causes looks for all causes. Those that packets prove come first: each takes its part of the latencies, and the others explain what is left.
func (b *batch) causes() {
	b.measure()
	if len(b.forward) == 0 {
		return
	}
	b.traffic = b.seenTraffic()
	b.pairUp()
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
	b.unsteadyWays()
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
		if x.kind == askingFew {
			if b.few == nil {
				b.few = make(map[uint16]bool)
			}
			b.few[x.client] = true
		}
		if x.kind < settingUp {
			b.p99 = append(b.p99, x.app)
		}
		got := x.done + max(x.conn.near[1], 0) // when the client had it
		if x.conn.fabric < rdma.IWARP {
			got = max(got, x.done+x.nearC/2)
		}
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

// acknowledgements are the round trips of a connection, and the least of packets that no data of their own precedes.
func (k *conn) acknowledgements() (ways [2][]int64, clear [2]int64) {
	ways = [2][]int64{make([]int64, 0, len(k.calls)), make([]int64, 0, len(k.calls))}
	var behind []int64 // of acknowledgements of the server behind its answers to RDMA Reads
	k.hide()
	for _, x := range k.calls {
		if x.backward || x.end == 0 || x.resent || x.lost[rdma.CauseRecovery]+x.lost[rdma.CauseNotReady] > 0 {
			continue // of what was sent twice it is not known which one was acknowledged
		}
		for i, w := range [2]int64{x.wayS, x.wayC} {
			if w < 0 {
				continue
			}
			if i == 0 && x.hidden {
				behind = append(behind, w)
			} else {
				ways[i] = append(ways[i], w)
			}
			if (i == 0 || !x.pushed) && (clear[i] == 0 || w < clear[i]) {
				clear[i] = max(w, 1)
			}
		}
	}
	if len(ways[0]) < fewCalls {
		ways[0] = append(ways[0], behind...)
	}
	return ways, clear
}

// measure finds the usual round trips of a connection: of TCP the least, since its acknowledgements may be delayed.
func (k *conn) measure() {
	ways, clear := k.acknowledgements()
	for i, list := range ways {
		if len(list) == 0 {
			continue
		}
		mid := len(list) / 2
		k.ways[i], k.floor[i] = nth(list, mid), clear[i]
		if clear[i] == 0 {
			k.floor[i] = slices.Min(list)
		}
		k.spread[i] = nth(list[mid:], len(list)*3/4-mid) - nth(list[:mid+1], len(list)/4) // none before the middle one is more, none behind it less
		if k.fabric == rdma.IWARP || k.fabric == rdma.TCP {
			k.ways[i] = nth(list, len(list)/10)
			k.floor[i] = min(k.floor[i], k.ways[i])
			k.bunch[i] = nth(list, len(list)/4) - k.ways[i]
		}
	}
	for i, n := range k.known {
		if n > 0 && k.floor[i] > n {
			k.floor[i] = n
		}
	}
	k.samples = [2]int{len(ways[0]), len(ways[1])}
	if k.near = k.floor; k.both != nil {
		k.near = [2]int64{k.both.points[1].near[0], k.both.points[0].near[1]}
		return
	}
	for i := range k.near {
		if k.waited(i) {
			k.near[i] = -1 // which tells nothing of the way
		}
	}
}

// hide marks calls whose acknowledgement waits behind the answer to an RDMA Read of the client: a responder answers in the order of the requests
// (IBTA volume 1, section 9.9.1).
func (k *conn) hide() {
	var fetches []still
	k.each(func(x *call) {
		if x.done > x.end {
			fetches = append(fetches, still{x.end, x.done})
		}
	})
	if len(fetches) == 0 {
		return
	}
	fetches, _ = merge(fetches)
	for _, x := range k.calls {
		i := firstAfter(fetches, x.callEnd)
		x.hidden = i < len(fetches) && fetches[i].from < x.callEnd
	}
}

// acked is the longest time that the round trip to the server can have taken, by the acknowledgement of the call; -1 if that is not known.
func (x *call) acked() int64 {
	if x.hidden && x.conn.samples[0] >= fewCalls {
		return x.conn.floor[0]
	}
	return x.wayS
}

// toServer is the round trip from the capture point nearest the server to it that a call had, as far as it is known.
func (x *call) toServer() int64 {
	switch k := x.conn; {
	case x.hidden:
		return max(k.near[0], 0)
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
	return n + x.fetched()
}

// fetched is how long the server kept data that the client reads by itself when it has the reply.
func (x *call) fetched() int64 {
	if x.done <= x.end {
		return 0
	}
	return max(x.done-x.end-max(x.nearC, 0)-x.forth-x.back-max(x.conn.near[0], 0), 0)
}

// each calls f for the answered forward calls of a connection.
func (k *conn) each(f func(x *call)) {
	for _, x := range k.calls {
		if !x.backward && x.end != 0 {
			f(x)
		}
	}
}

// gappy reports whether the capture lacks so many packets of a connection that nothing may be concluded from what is not there.
func (k *conn) gappy() bool { return k.gaps*1000 > k.packets }

// lanesOf are what the sides of a connection have sent; nil if that is not known.
func (b *batch) lanesOf(k *conn) *[2]lane {
	if k.both != nil {
		return &k.both.lanes
	}
	return b.lanes[k.id]
}
