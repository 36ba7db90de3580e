package diagnosis

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// outage finds calls that were sent again, after a reconnect, on another connection.
func (b *batch) outage() {
	f := &finding{code: Outage, side: Server, clock: Calls, certainty: Certain}
	guessed := int64(0)
	for _, x := range b.forward {
		if x.end == 0 || x.from == x.conn.id || x.start <= x.sent {
			continue
		}
		f.typical = max(f.typical, x.start-x.sent)
		if x.guessed {
			guessed += x.start - x.sent
		}
		f.of(x, x.take(x.start-x.sent))
		f.on = append(f.on, x.conn.id)
	}
	f.on = each(f.on)
	if guessed*2 > f.time {
		f.certainty = Likely
	}
	if f.typical < awayLeast {
		f.certainty = Possible // the client may have wanted another connection
	} else {
		b.broke = f.time
	}
	if f.certainty == Certain && b.point() == besideServer {
		f.certainty = Likely // more calls may have been sent that did not come there
	}
	b.Recorder.found(f)
}

// Silences of a server are no outage if they are shorter, or if fewer calls wait.
const (
	silentLeast = 500_000_000
	silentCalls = 2
)

// How an outage shows other than by a reconnect.
const (
	silent = "silent"  // a server answered nothing, then all at once
	cutOff = "cut off" // TCP sent the same again and again
)

// silence finds times in which a server answered nothing, though it had several calls, and then all of them at once.
func (b *batch) silence() {
	for s, list := range b.apart(len(b.names.list), func(x *call) int {
		if x.end == 0 || x.again || x.from != x.conn.id || x.asked1 != 0 {
			return -1
		}
		return int(x.server)
	}) {
		if len(list) < silentCalls {
			continue
		}
		inOrder(list, func(x *call) int64 { return x.act })
		f := &finding{code: Outage, side: Server, where: "server " + b.names.list[s], clock: Calls, certainty: Likely, what: silent}
		last := int64(0)
		for i, x := range list {
			from := last
			last = max(last, x.act, x.end)
			if from == 0 || x.act-from < silentLeast {
				continue
			}
			var waited []*call
			begun := x.act
			for _, y := range list[i:] {
				if y.act-x.act >= (x.act-from)/10 {
					break
				}
				if y.callEnd <= x.act-silentLeast/2 && !near1(y.silence(), y.conn.timeout) { // else the transport has sent its reply again
					waited = append(waited, y)
					begun = min(begun, max(y.callEnd, from))
				}
			}
			if len(waited) < silentCalls || x.act-begun < silentLeast {
				continue
			}
			for _, y := range waited {
				f.typical = max(f.typical, y.act-max(y.callEnd, from))
				f.of(y, y.take(y.act-max(y.callEnd, from)))
			}
		}
		b.Recorder.found(f)
	}
}

// stalls takes what package blame has attributed.
func (b *batch) stalls() {
	for _, k := range b.order {
		loss := &finding{code: LossRecovery, side: Network, on: []int{k.id}, clock: Calls, certainty: Certain}
		rnr := &finding{code: ReceiverNotReady, side: b.notReady(k), on: []int{k.id}, clock: Calls, certainty: Certain}
		b.windowClosed(k, rnr)
		cut := &finding{code: Outage, side: Network, on: []int{k.id}, clock: Calls, certainty: Likely, what: cutOff}
		depth := &finding{code: ReadDepth, side: k.shallow, on: []int{k.id}, clock: Calls, certainty: Likely}
		slowed := b.slowed(k)
		unknown, seen, all, long, again, refused := int64(0), int64(0), int64(0), int64(0), 0, 0
		b.behindRefused(k, rnr)
		k.each(func(x *call) {
			if n := x.lost[rdma.CauseNotReady]; n > 0 && rnr.side == Server && k.fabric < rdma.IWARP {
				n = x.take(n)
				seen += n
				rnr.of(x, n)
			}
			if n := x.lost[rdma.CauseRecovery]; k.fabric >= rdma.IWARP && n >= cutLeast {
				cut.typical = max(cut.typical, n)
				cut.of(x, x.take(n))
			} else {
				if k.fabric < rdma.IWARP && n > 0 && !slowed {
					n = max(n, min(x.app-b.usual[x.work], x.left)) // it waited behind what was sent again as well
				}
				loss.of(x, x.take(n))
				long += n * int64(b2i(n >= awayLeast))
			}
			all += x.app
			again += b2i(x.resent && x.lost[rdma.CauseNotReady] == 0)
			refused += b2i(x.lost[rdma.CauseNotReady] > 0)
			depth.of(x, x.take(x.lost[rdma.CauseReadSlot]))
			unknown += x.lost[rdma.CauseUnknown]
		})
		b.heldBy(k, rnr)
		if n := len(k.calls) - refused; n >= duplicates && again*10 >= n*9 {
			b.unsure = true // the capture shows packets twice, rather than that they were sent twice
		}
		k.behindReads = depth.time*5 > all
		if slowed || k.depth == 0 {
			depth.certainty = Possible // Reads are under way for longer because their answers are paced; or nobody has said how many may be
		}
		b.surelyLost(k, loss, all, unknown, again)
		if k.fabric >= rdma.IWARP || rnr.side == Server && rnr.time > seen*3/2 || b.throttled(k) {
			rnr.certainty = Likely // a closed window hides who waits; or most is of calls that were not there yet, or would have waited for a slow link
		}
		if l := b.lanesOf(k); l != nil && l[0].rnrs+l[1].rnrs+l[0].zeroWindow+l[1].zeroWindow > 0 {
			loss.certainty = Possible // what follows a refused Send is sent again as well, and TCP asks again and again whether there is room
		}
		if b.broke > 0 && long*2 > loss.time {
			loss.certainty = Possible // what was lost then is the outage
		}
		b.Recorder.found(loss)
		b.Recorder.found(cut)
		b.Recorder.found(rnr)
		k.slots = depth
	}
}

// surelyLost says of losses which way the packets went, and how sure that is. all is the latency of the calls of the connection, unknown how
// much of it nothing explains, and again how many of them have packets that came again.
func (b *batch) surelyLost(k *conn, loss *finding, all, unknown int64, again int) {
	l := b.lanesOf(k)
	if l != nil {
		loss.who, loss.what = k.lost(l)
		if told, again := earlier(l[0].cnpFirst, l[1].cnpFirst), earlier(l[0].againFirst, l[1].againFirst); told != 0 && again != 0 && b.slowed(k) {
			loss.first = again - told
		}
	}
	if unknown > loss.time/4 || l != nil && l[0].unseen()+l[1].unseen() > 0 {
		loss.certainty = Likely // others may have been lost before the capture point that nothing shows
	}
	if k.fabric >= rdma.IWARP {
		if loss.certainty == Certain {
			loss.certainty = Likely // a window of TCP may have kept the data back as well
		}
		if loss.time*20 < all || b.mixed && again*3 > len(k.calls) {
			loss.certainty = Possible // TCP sends again what an acknowledgement was only late for
		}
	}
	if k.left != 0 {
		loss.certainty = Possible // the connection broke: what was away before is the outage
	}
}

// cutLeast is from how long on TCP sends again what gets through nowhere, in nanoseconds: several of its timeouts have passed.
const cutLeast = 1_500_000_000

// lost says which way the packets went that were lost, and where that was.
func (k *conn) lost(l *[2]lane) (way, place string) {
	c, s := &l[k.client&1], &l[k.client.Other()&1]
	switch n, m := c.late+c.between+c.seen, s.late+s.between+s.seen; {
	case n == 0 && m == 0:
	case n*4 < m:
		way = "from server to client"
	case m*4 < n:
		way = "from client to server"
	default:
		way = bothWays
	}
	switch {
	case c.unseen()+s.unseen() > 0:
		place = before
	case c.between+s.between > 0:
		place = "between the capture points"
	case k.both != nil:
		place = "behind the capture points"
	default:
		place = "behind the capture point"
	}
	return way, place
}

// duplicates is how many calls tell that all packets of a connection come twice.
const duplicates = 16

// behindRefused finds what waited in the server's adapter behind a reply that the client had no buffer for: whatever was ready meanwhile
// came when that was sent again.
func (b *batch) behindRefused(k *conn, f *finding) {
	l := b.lanesOf(k)
	if l == nil || f.side != Client {
		return
	}
	list := l[k.client.Other()].refused
	if len(list) == 0 {
		return
	}
	refused := make(map[*call]int64)
	rest := make(map[uint32][]int64) // of the time of the calls of a work
	k.each(func(x *call) {
		n := int64(0)
		for _, stage := range [3]still{{x.callEnd, x.act}, {x.lastRead, x.answer}, {x.answer, x.end}} {
			if stage.from == 0 || stage.from < x.callEnd {
				continue
			}
			for _, s := range list[firstAfter(list, stage.from):] {
				if s.to > stage.to {
					break
				}
				n += s.to - max(s.from, stage.from)
			}
		}
		refused[x], rest[x.work] = n, append(rest[x.work], x.app-n)
	})
	k.each(func(x *call) {
		f.of(x, x.take(min(refused[x], x.app-median(rest[x.work]))))
	})
}

// heldBy finds the calls that could not be sent while the server's adapter refused others: they come right after what it refused, when that is sent
// again. They were posted when others had been answered, about as long after it as a quick call takes.
func (b *batch) heldBy(k *conn, f *finding) {
	l := b.lanesOf(k)
	if l == nil || f.side != Server || k.fabric >= rdma.IWARP {
		return
	}
	list := l[k.client].refused
	k.each(func(x *call) {
		if i := firstAfter(list, x.start-held); i < len(list) && list[i].to < x.start {
			if n := list[i].to - list[i].from - b.least[x.work]; n > 0 {
				f.of(x, x.take(b.longer(x, n)))
			}
		}
	})
}

// held is how soon after a call those come that waited behind it.
const held = 20_000

// notReady is the side whose adapter refused, or whose TCP did not read.
func (b *batch) notReady(k *conn) Side {
	l := b.lanesOf(k)
	if l == nil {
		return Server
	}
	if s := &l[k.client]; s.rnrs+s.zeroWindow > l[k.client.Other()].rnrs+l[k.client.Other()].zeroWindow {
		return Client
	}
	return Server
}

// tails finds replies that came one timeout of the transport late: their packets, or what acknowledged them, were lost beyond the capture
// point, with nothing behind them that would have shown it. One such delay says nothing, unless others were lost; several that agree with the
// announced timeout, and with each other, do.
func (b *batch) tails() {
	for i := range b.pairs {
		p := &b.pairs[i]
		b.lostCalls(p)
		t, least := int64(0), 2
		for _, k := range p.conns {
			if t = max(t, k.timeout); k.timeout > 0 && k.lossy() {
				least = 1 // it is announced, and others were lost
			}
		}
		if t == 0 {
			t = p.likelyTimeout()
		}
		if t > 0 && !slices.ContainsFunc(p.conns, func(k *conn) bool { return k.gappy() || k.fabric >= rdma.IWARP }) {
			b.tailsOf(p.calls, t, least)
		}
	}
}

// quiet reports whether the silence of a call may be a timeout t: the server had the call long before, and nothing was sent again.
func (x *call) quiet(t int64) bool {
	return x.lost[rdma.CauseRecovery] < t/2 && x.wayS >= 0 && x.wayS < t/8
}

// likelyTimeout is the adapter timeout (4.096 µs times a power of two) that explains the long silences: at least three, and nearly all of
// about that length, agree with it. It is 0 if there is none. The times of a busy server vary more.
func (p *pair) likelyTimeout() int64 {
	var agree, others [32]int
	for _, x := range p.calls {
		n := x.silence()
		for i := 8; i < 24; i++ {
			switch t := int64(4096) << i; {
			case n >= t-t/100 && n <= t+t/20 && x.quiet(t):
				agree[i]++
			case n > t/2 && n < 2*t:
				others[i]++
			}
		}
	}
	best := 0
	for i := range agree {
		if agree[i] > agree[best] && agree[i] >= 3*max(others[i], 1) {
			best = i
		}
	}
	if agree[best] == 0 {
		return 0
	}
	return 4096 << best
}

// lossesFromClients reports whether the capture shows losses of packets from a client, and was not taken beside that client.
func (b *batch) lossesFromClients(p *pair) bool {
	return slices.ContainsFunc(p.conns, func(k *conn) bool {
		l := b.lanesOf(k)
		if l == nil || k.fabric >= rdma.IWARP || k.point() == besideClient {
			return false
		}
		c := &l[k.client&1]
		return c.late+c.seen+c.unseen()+l[k.client.Other()&1].reread > 0
	})
}

// gap is a time in which nothing is under way between two hosts, before the call at an index.
type gap struct {
	n  int64
	at int
}

// gaps finds the gaps, and how many recoveries took one timeout of the transport, by its exponent.
func (p *pair) gaps() (list []gap, timeouts [32]int) {
	until := int64(0)
	for i, x := range p.calls {
		if until > 0 && x.start > until && x.from == x.conn.id && x.asked1 == 0 {
			list = append(list, gap{x.start - until, i})
		}
		until = max(until, x.done)
		for j := 8; j < 24; j++ {
			if t := int64(4096) << j; x.lost[rdma.CauseRecovery] >= t && x.lost[rdma.CauseRecovery] < t+t/8 || x.conn.timeout == t {
				timeouts[j]++
			}
		}
	}
	return list, timeouts
}

// oneTimeout reports whether a gap lasts as long as one timeout.
func (g gap) oneTimeout(t int64) bool { return g.n > t/2 && g.n < t+t/4 }

// lostCalls finds calls that were lost before the capture point, with none behind them that would have shown it: nothing is under way
// between two hosts for one timeout of the transport more than usual, and other losses from the client were seen.
func (b *batch) lostCalls(p *pair) {
	if !b.lossesFromClients(p) {
		return
	}
	gaps, timeouts := p.gaps()
	if len(gaps) < 4*fewCalls {
		return
	}
	list := make([]int64, len(gaps))
	for i := range gaps {
		list[i] = gaps[i].n
	}
	usual := median(list)
	for j := 8; j < 24; j++ {
		t := int64(4096) << j
		if timeouts[j] < 2 || usual > t/4 {
			continue
		}
		fit, other := 0, 0
		for _, g := range gaps {
			if g.oneTimeout(t) {
				fit++
			} else if g.n > t/4 {
				other++
			}
		}
		if fit >= 2 && other*4 <= fit && fit*4 <= len(gaps) {
			b.lostInGaps(p, gaps, t, usual)
			return
		}
	}
}

// lostInGaps counts what gaps of one timeout cost the calls behind them.
func (b *batch) lostInGaps(p *pair, gaps []gap, timeout, usual int64) {
	for _, g := range gaps {
		if !g.oneTimeout(timeout) {
			continue
		}
		first, n := p.calls[g.at], min(timeout, g.n-usual)
		for _, x := range p.calls[g.at:] {
			if x.start > first.start+held {
				break
			}
			n := x.take(b.longer(x, n))
			f := &finding{code: LossRecovery, side: Network, on: []int{x.conn.id}, clock: Calls, certainty: Likely, what: before, who: "from client to server"}
			f.of(x, n)
			b.Recorder.found(f)
		}
	}
}

func (b *batch) tailsOf(calls []*call, t int64, least int) {
	var late []*call
	near := 0
	usual := make(map[uint16][]int64)
	for _, x := range calls {
		switch n := x.silence(); {
		case n <= t/4:
			usual[x.op] = append(usual[x.op], n)
		case !near1(n, t):
			near++
		case x.quiet(t):
			late = append(late, x)
		}
	}
	if len(late) < least || near > len(late) || len(late)*4 > len(calls) {
		return
	}
	f := &finding{code: LossRecovery, side: Network, clock: Calls, certainty: Likely, typical: t, what: tail}
	for _, x := range late {
		f.of(x, x.take(x.silence()-max(median(usual[x.op]), 0)))
		f.on = append(f.on, x.conn.id)
	}
	f.on = each(f.on)
	f.events = f.calls
	b.Recorder.found(f)
}

// window is what TCP closes if nobody reads.
const window = "window"

// windowClosed finds what waited while a side did not read, so that the window of TCP was closed.
func (b *batch) windowClosed(k *conn, f *finding) {
	l := b.lanesOf(k)
	if l == nil || k.fabric < rdma.IWARP {
		return
	}
	f.what = window
	sender := k.client
	if f.side == Client {
		sender = sender.Other()
	}
	if list := l[sender&1].refused; len(list) > 0 {
		b.stopped(k, f, list, sender)
	}
}

// What is said of losses.
const (
	tail     = "tail" // it was not seen
	before   = "before the capture point"
	bothWays = "in both directions"
)

// near1 reports whether n is the timeout t, or two of them, a little more.
func near1(n, t int64) bool {
	return n >= t-t/100 && n <= t+t/20 || n >= 2*t-t/50 && n <= 2*t+t/10
}

// silence is the longest time of a call in which the capture shows nothing of it that came from the server.
func (x *call) silence() int64 {
	n := max(x.act-x.callEnd, x.end-x.answer)
	if x.firstRead != 0 {
		n = max(n, x.answer-x.lastRead)
	}
	return n
}

// congestion finds the time in which a sender was paced after CNPs. All that waits behind the paced stream waits for it, whatever
// transfer it belongs to.
func (b *batch) congestion() {
	for _, k := range b.order {
		l := b.lanesOf(k)
		if l == nil {
			continue
		}
		for side := range l {
			b.paced(k, &l[side], rdma.Side(side) != k.client)
		}
	}
}

// pacedLeast is how many CNPs make congestion.
const pacedLeast = 3

func (b *batch) paced(k *conn, l *lane, server bool) {
	if l.cnps < pacedLeast || l.last.Time <= l.cnpFirst {
		return
	}
	fast := l.fastest()
	if fast == 0 {
		return
	}
	// Connections between the same hosts share their link. One may have been paced for all of the capture.
	link, together, throughout := fast, uint64(0), false
	for _, o := range b.pairs[k.pair].conns {
		l := b.lanesOf(o)
		if l == nil {
			continue
		}
		way := &l[o.side(b2i(server))&1]
		if n := way.fastest(); n > 0 {
			link, throughout = min(link, n), throughout || n > slowLink && way.cnps >= pacedLeast
		}
		together += way.sinceCNP
	}
	// The time since the first CNP in which calls were under way.
	open, busy := int64(0), l.cnpFirst
	k.each(func(x *call) {
		open += max(min(x.end, l.last.Time)-max(x.start, busy), 0)
		busy = max(busy, min(x.end, l.last.Time))
	})
	if open <= 0 || l.sinceCNP == 0 {
		return
	}
	slowed := min(1-fast*float64(l.sinceCNP)/1024/float64(open), (l.pace()-fast)*float64(l.sinceCNP)/1024/float64(open))
	if slowed < 0.2 {
		return
	}
	f := &finding{code: Congestion, side: Network, on: []int{k.id}, clock: Calls, certainty: Likely, events: l.cnps, what: "server"}
	if l.cnps >= 8 && slowed > 0.5 && server && link*float64(together)/1024 < float64(open)/2 && !throughout && !k.lossy() && !k.queues(1) {
		f.certainty = Certain // else losses, others on the link or the server slow it as well, or the queue is behind the capture point, which shows a part of it
	}
	if !server {
		f.what = "client"
	}
	k.each(func(x *call) {
		n := int64(float64(min(x.end, l.last.Time)-max(x.start, l.cnpFirst)) * slowed)
		if x.end > l.cnpFirst && x.start < l.last.Time {
			n = max(n, b.held(x)*9/10) // some of it would be there without
			if server {
				n += b.longer(x, x.queued())
			}
		}
		f.of(x, x.take(n))
	})
	k.queued = f.time > 0
	b.Recorder.found(f)
}

// pathStall finds times in which the path stood still: acknowledgements of all calls came late, together, and nothing was lost.
func (b *batch) pathStall() {
	for i := range b.pairs {
		var on [2][]*conn // of each direction: connections share their path
		for _, k := range b.pairs[i].conns {
			for way, judged := range b.acknowledgesAtOnce(k) {
				if judged {
					on[way] = append(on[way], k)
				}
			}
		}
		for way, list := range on {
			b.pathStallOf(list, way)
		}
	}
}

// acknowledgesAtOnce reports of both sides whether late acknowledgements of theirs mean that the path stood still.
func (b *batch) acknowledgesAtOnce(k *conn) (sides [2]bool) {
	if k.queued || k.paused || k.unsteady || k.gappy() || k.lossy() {
		return sides // what follows a lost packet is acknowledged late as well
	}
	// Acknowledgements stay behind the answers to RDMA Reads before them.
	_, fetches := k.usually(func(x *call) int64 {
		if x.done <= x.end {
			return -1
		}
		return x.fetched()
	})
	_, reads := k.usually(b.late(k))
	return [2]bool{fetches < stillLeast/3, reads < stillLeast/3}
}

type still struct{ from, to int64 }

// lateTrips are the trips of connections that took long, from how long on that is, and whether there are enough others to tell; quick adapters only.
func lateTrips(conns []*conn, way int) (list []still, least int64, ok bool) {
	n := 0
	trips := make([][]still, len(conns))
	for i, k := range conns {
		trips[i] = k.trips(way)
		n += len(trips[i])
	}
	low := make([]int64, 0, n)
	for _, all := range trips {
		for _, s := range all {
			low = append(low, s.to-s.from)
		}
	}
	if len(low) < 16 {
		return nil, 0, false
	}
	quick := nth(low, len(low)/5)
	if quick > softAck {
		return nil, 0, false
	}
	least = max(stillLeast, 5*quick)
	for i, k := range conns {
		late := max(least, 2*k.floor[way]) // distance is of one connection, and always there
		for _, s := range trips[i] {
			if s.to-s.from >= late {
				list = append(list, s)
			}
		}
	}
	return list, least, len(list)*10 <= len(low)*8
}

func (b *batch) pathStallOf(conns []*conn, way int) {
	list, least, ok := lateTrips(conns, way)
	if !ok {
		return
	}
	if way == 1 && len(list) >= 3 {
		n, received := 0, receivedOf(conns)
		for _, s := range list {
			n += b2i(received(s))
		}
		if n*4 > len(list)*3 { // few of them by chance
			for _, k := range conns {
				k.answersLate = true
			}
			return
		}
	}
	merged, together := merge(list)
	if conns[0].fabric < rdma.IWARP { // those of TCP may have waited for data to go with
		together = max(together, withOthers(conns, way, list))
	}
	// What left at different times is acknowledged together when the path goes on. Adapters in software are late with single packets.
	if len(merged) < 3 || together*10 < len(list)*4 || moving(conns, merged)*2 > len(merged) {
		return
	}
	f := &finding{code: PathStall, side: Network, clock: Calls, certainty: Likely, events: len(merged)}
	if len(b.stops) >= pausesLeast || slices.ContainsFunc(conns, b.throttled) {
		f.certainty = Possible // it is not clear who stops whom; or it may be a link that is full
	}
	for _, s := range merged {
		f.typical = max(f.typical, s.to-s.from)
	}
	take := func(x *call) {
		more := int64(0) // the reply was still on its way, or the next call
		if x.nearC >= least {
			more = x.nearC
		}
		end := x.end + more
		n := int64(0)
		for _, s := range merged[firstAfter(merged, x.start):] {
			if s.from > end {
				break
			}
			n += max(min(end, s.to)-max(x.start, s.from), 0)
		}
		more = b.longer(x, min(more, n))
		f.of(x, x.take(min(n, max(b.held(x), more))))
	}
	for _, k := range conns {
		n := f.calls
		if k.each(take); f.calls > n {
			f.on = append(f.on, k.id)
		}
	}
	b.Recorder.found(f)
}

// receivedOf returns a function that reports whether the client received a reply long before the acknowledgement arrived, while the path carried
// other packets of the client: a call followed the reply at once, and followed no earlier reply. Then the answer to an earlier Read was late, not the path.
func receivedOf(conns []*conn) func(still) bool {
	var calls, replies []*call
	var reads []still
	for _, k := range conns {
		k.each(func(x *call) {
			calls, replies = append(calls, x), append(replies, x)
			if x.firstRead != 0 {
				reads = append(reads, still{x.firstRead, x.lastRead})
			}
		})
	}
	slices.SortFunc(reads, func(a, c still) int { return cmp.Compare(a.to, c.to) })
	inOrder(calls, func(x *call) int64 { return x.start })
	inOrder(replies, func(x *call) int64 { return x.end })
	way := max(conns[0].near[1], 0)
	return func(s still) bool {
		behind := reads[firstAfter(reads, s.to-held):firstAfter(reads, s.to+1)]
		if !slices.ContainsFunc(behind, func(x still) bool { return x.from < s.from+way && x.to-x.from >= stillLeast }) {
			return false
		}
		i, _ := slices.BinarySearchFunc(calls, s.from, func(x *call, t int64) int { return cmp.Compare(x.start, t) })
		for _, x := range calls[i:] {
			if x.start >= s.to-held {
				return false
			}
			j, _ := slices.BinarySearchFunc(replies, x.start-way-held, func(y *call, t int64) int { return cmp.Compare(y.end, t) })
			if j < len(replies) && replies[j].replyAt() >= s.from && replies[j].end <= x.start-way+jitter {
				return true
			}
		}
		return false
	}
}

// lossy reports whether packets of a connection came again: acknowledgements of what is behind them come late.
func (k *conn) lossy() bool {
	return slices.ContainsFunc(k.calls, func(x *call) bool { return x.resent || x.lost[rdma.CauseRecovery] > 0 })
}

// throttled reports whether most data of a side came at the pace of a slow link.
func (b *batch) throttled(k *conn) bool {
	l := b.lanesOf(k)
	return l != nil && slices.ContainsFunc(l[:], func(l lane) bool {
		pace, took := l.usual()
		return pace > slowLink && pace < slowest && float64(took)*1024 > pace*float64(l.bytes)/3
	})
}

// moving is how many of the times in which a path seems to stand still have packets of both sides in their second half: those pass each other.
func moving(conns []*conn, stills []still) (n int) {
	at := make([]int, len(conns))
	all := make([][]moment, len(conns))
	for i, k := range conns {
		all[i] = k.moments()
	}
	for _, s := range stills {
		var seen [2]bool
		for i, list := range all {
			for ; at[i] < len(list) && list[at[i]].at < s.to-held; at[i]++ {
				if m := list[at[i]]; m.at > (s.from+s.to)/2 {
					seen[conns[i].side(0)^m.from] = true
				}
			}
		}
		n += b2i(seen[0] && seen[1])
	}
	return n
}

// withOthers is how many of the acknowledgements from a side that came late did so together with other packets of that side, when nothing else of
// it had come for as long: it was not the adapter that was late with an acknowledgement.
func withOthers(conns []*conn, way int, late []still) (n int) {
	var at []int64
	for _, k := range conns {
		for _, m := range k.moments() {
			if m.from == k.side(1-way) {
				at = append(at, m.at)
			}
		}
	}
	slices.Sort(at)
	for _, s := range late {
		i, _ := slices.BinarySearch(at, (s.from+s.to)/2)
		n += b2i(i < len(at) && at[i] >= s.to-held && at[i] <= s.to+held)
	}
	return n
}

// softAck is from how long on an acknowledgement may be that of an adapter in software, in nanoseconds.
const softAck = 100_000

// stillLeast is the least time for which a path stands still, in nanoseconds.
const stillLeast = 300_000

// trips are the times in which packets of calls, or of replies, went and were acknowledged.
func (k *conn) trips(way int) []still {
	list := make([]still, 0, len(k.calls))
	calls := make(map[int64]bool)
	if k.fabric >= rdma.IWARP && way == 1 {
		k.each(func(x *call) { calls[x.start] = true })
	}
	k.each(func(x *call) {
		w, at := x.wayS, x.sentAt()
		if way == 1 {
			if w, at = x.wayC, x.replyAt(); calls[x.end+w] {
				return // it may have waited for the call with which it went
			}
		} else if k.fabric >= rdma.IWARP && w >= x.act-x.callEnd {
			return // the acknowledgement went with what the server sent next
		}
		if w < 0 || k.fabric >= rdma.IWARP && w > ackMost || x.resent || x.lost[rdma.CauseRecovery] > 0 || x.lost[rdma.CauseNotReady] > 0 || k.timeout > 0 && near1(w, k.timeout) {
			return
		}
		list = append(list, still{at, at + w})
	})
	if k.fabric >= rdma.IWARP { // one segment of TCP may acknowledge all that came while it waited for data to go with
		slices.SortFunc(list, func(a, c still) int { return cmp.Or(cmp.Compare(a.to, c.to), cmp.Compare(c.from, a.from)) })
		list = slices.CompactFunc(list, func(a, c still) bool { return a.to == c.to })
	}
	return list
}

// merge joins those that overlap. together is how many of them end together with others that began before.
func merge(list []still) (merged []still, together int) {
	slices.SortFunc(list, func(a, c still) int { return cmp.Compare(a.to, c.to) })
	for i, s := range list {
		if i > 0 && s.to-list[i-1].to <= held || i+1 < len(list) && list[i+1].to-s.to <= held {
			together++
		}
	}
	slices.SortFunc(list, func(a, c still) int { return cmp.Compare(a.from, c.from) })
	for _, s := range list {
		if n := len(merged); n > 0 && s.from <= merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged, together
}

// firstAfter is the first of the stills that ends after a time.
func firstAfter(list []still, t int64) int {
	n, _ := slices.BinarySearchFunc(list, t, func(s still, t int64) int { return cmp.Compare(s.to, t) })
	return n
}

// Nobody would change distances below the first; from the second on they are far.
const (
	nearby = 200_000
	far    = 300_000
)

// steady reports whether nearly all round trips of a connection took about as long: distance does not change. Adapters in software,
// and queues, make some acknowledgements late, and some not.
func (k *conn) steady() bool {
	return !k.unsteady && k.spread[0]+k.spread[1] <= (max(k.ways[0], 0)+max(k.ways[1], 0))/4
}

// constant reports whether all round trips took equally long, as those do that no queue delays. Acknowledgements of TCP may wait equally long as well.
func (k *conn) constant() bool {
	usual := max(k.ways[0], 0) + max(k.ways[1], 0)
	return !k.unsteady && k.fabric < rdma.IWARP && (k.spread[0]+k.spread[1])*32 <= usual && (usual-k.round())*32 <= usual
}

// bunched reports whether many round trips took equally long, and none much less, though others may have taken longer: acknowledgements of TCP may be delayed.
func (k *conn) bunched() bool {
	for i, n := range k.floor {
		if k.fabric >= rdma.IWARP && n*8 > k.round() && k.bunch[i]*32 > n {
			return false
		}
	}
	return true
}

// restless reports whether acknowledgements take long, now more, now less: adapters are made of software, or queues come and go.
func (k *conn) restless() bool { return k.ways[0]+k.ways[1] >= brisk && !k.steady() }

// round is what distance makes of a round trip between client and server.
func (k *conn) round() int64 { return max(k.floor[0], 0) + max(k.floor[1], 0) }

// delayedAcks reports whether what looks like distance may be the time that TCP lets acknowledgements wait.
func (k *conn) delayedAcks() bool {
	if k.fabric < rdma.IWARP {
		return false
	}
	if k.both != nil {
		return k.both.points[0].delayedAcks() || k.both.points[1].delayedAcks()
	}
	return k.near[0] < k.floor[0] || k.near[1] < k.floor[1]
}

// waited reports whether the acknowledgements of a side (0, the server, or 1, the client) took as long as those that TCP lets wait for data to
// go with. They did not wait if data of that side came before them that would have carried them: it was sent before what they acknowledge came.
func (k *conn) waited(side int) bool {
	n := k.floor[side]
	if k.fabric < rdma.IWARP || !slices.ContainsFunc(ackDelays[:], func(t int64) bool { return n >= t && n <= t+t/4 }) {
		return false
	}
	count, passed := 0, 0
	list, from := k.moments(), k.side(1-side)
	k.each(func(x *call) {
		w, at := x.wayS, x.callEnd
		if side == 1 {
			w, at = x.wayC, x.end
		}
		if w < 0 {
			return
		}
		count++
		i, _ := slices.BinarySearchFunc(list, at+1, func(m moment, t int64) int { return cmp.Compare(m.at, t) })
		for ; i < len(list) && list[i].at < at+w*9/10; i++ {
			if list[i].from == from {
				passed++
				return
			}
		}
	})
	return passed*2 < count
}

// ackDelays are the usual delays of acknowledgements in TCP stacks, in nanoseconds.
var ackDelays = [...]int64{39_000_000, 99_000_000, 195_000_000}

// slowed reports whether a side of a connection received CNPs and may have sent more slowly since.
func (b *batch) slowed(k *conn) bool {
	l := b.lanesOf(k)
	return l != nil && slices.ContainsFunc(l[:], func(l lane) bool {
		return l.cnps >= pacedLeast && (l.paced.bytes < chunkLeast || l.pace() > l.fastest()*5/4)
	})
}

// nearest is the round trip of the nearest other connection to the same server, if it takes less than half of that of k; else 0.
func (b *batch) nearest(k *conn, round int64) (base int64) {
	for _, o := range b.order {
		if o == k || o.samples[0] < 4 || len(o.calls) == 0 || o.calls[0].server != k.calls[0].server {
			continue
		}
		if n := o.round(); n < round/2 && (base == 0 || n < base) {
			base = n
		}
	}
	return base
}

// distant reports whether the acknowledgements of a connection show distance: they take long, and always about as long.
func (b *batch) distant(k *conn) bool {
	round := k.round()
	usual := max(k.ways[0], 0) + max(k.ways[1], 0)
	return k.samples[0]+k.samples[1] >= 4 && len(k.calls) > 0 && round >= nearby && !k.delayedAcks() && usual <= round*3/2 &&
		(round >= long && !k.unsteady && k.bunched() && !b.mixed || k.steady())
}

// sameWay reports whether another connection between the same hosts shows distance, and the quickest acknowledgements of this one took about as long.
func (b *batch) sameWay(k *conn) bool {
	return k.samples[0]+k.samples[1] >= 4 && len(k.calls) > 0 && !k.delayedAcks() && slices.ContainsFunc(b.pairs[k.pair].conns, func(o *conn) bool {
		return o != k && b.distant(o) && 4*k.round() >= 3*o.round() && 3*k.round() <= 4*o.round()
	})
}

// unclear reports whether another connection to the same server shows neither that it is far nor that it is near, or whether one between the same
// hosts shows another distance. Then the round trip of k may hold more than the way, or the way may delay more than k.
func (b *batch) unclear(k *conn) bool {
	return slices.ContainsFunc(b.order, func(o *conn) bool {
		switch {
		case o == k || len(o.calls) == 0 || o.calls[0].server != k.calls[0].server:
			return false
		case b.distant(o) || b.sameWay(o):
			return o.pair == k.pair && (4*o.round() < 3*k.round() || 3*o.round() > 4*k.round())
		}
		return o.samples[0] < 4 || o.round() >= k.round()/2
	})
}

// unsteadyWays finds connections whose round trips are long and vary: queues of a path may be most of what their calls wait for.
func (b *batch) unsteadyWays() {
	for _, k := range b.order {
		if !k.restless() || k.queued || k.gappy() || k.delayedAcks() || b.distant(k) || b.sameWay(k) {
			continue
		}
		f := &finding{code: PathDelay, side: Network, on: []int{k.id}, clock: Calls, certainty: Possible, typical: max(k.ways[0], 0) + max(k.ways[1], 0), what: unsteady}
		all, ways := int64(0), int64(0)
		way := func(x *call) int64 { return min(max(x.acked(), 0)+max(x.wayC, 0), x.left) }
		k.each(func(x *call) { all, ways = all+x.app, ways+way(x) })
		if ways*2 <= all {
			continue
		}
		k.each(func(x *call) { f.of(x, x.take(way(x))) })
		b.Recorder.found(f)
	}
}

// unsteady says of a way that its round trips differ.
const unsteady = "unsteady"

// pathDelay finds distance: the acknowledgements of the transport take as long as the way. Of several connections to a server, the
// nearest one shows what the way need not take.
func (b *batch) pathDelay() {
	type distance struct {
		*finding
		server uint16
	}
	var found []distance
	doubtful := make(map[uint16]bool) // servers to which distances are not certain
	for _, k := range b.order {
		if !b.distant(k) && !b.sameWay(k) {
			continue
		}
		p := &b.pairs[k.pair]
		round := k.round()
		base := b.nearest(k, round)
		f := &finding{code: PathDelay, side: Network, on: []int{k.id}, clock: Calls, certainty: Certain, typical: round, limit: base}
		if round < far || k.samples[0] < 8 || b.unclear(k) {
			f.certainty = Likely
		}
		if k.queued || b.slowed(k) || (p.busy || p.queues > round/2) && !k.constant() {
			f.certainty = Possible // acknowledgements wait behind data
		}
		whole, app := int64(0), int64(0)
		k.each(func(x *call) {
			app += x.app
			n := round - base
			if x.firstRead != 0 {
				n *= 2
			}
			if x.done > x.end { // the client fetched the data
				n += round - base
			}
			whole += n
			f.of(x, x.take(n))
		})
		to := k.calls[0].server
		if f.certainty == Certain && (f.time*2 < app || f.time*4 < whole*3 || b.inLine[to] || float64(f.time) > 1.25*float64(app)*(1-b.busy[to])) {
			f.certainty = Likely // what else the calls wait for may hide more round trips, other causes seem to have taken some of it, calls wait for the round trips of others as well, or would wait in line instead
		}
		found = append(found, distance{f, to})
		doubtful[to] = doubtful[to] || f.certainty != Certain
	}
	for _, f := range found {
		if f.certainty == Certain && doubtful[f.server] {
			f.certainty = Likely // the others may have the same
		}
		b.Recorder.found(f.finding)
	}
}
