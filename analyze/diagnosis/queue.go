package diagnosis

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// readDepth finds servers that may have one RDMA Read under way at a time: the next one goes out when the one before has been answered,
// and replies wait behind it, since requests of a queue pair stay in order. A server with one thread answers a call before it reads the
// data of the next.
func (b *batch) readDepth() {
	var found []*conn
	for _, k := range b.order {
		if k.queued {
			k.slots.certainty = Possible // Reads are under way for longer because their data wait
		}
		b.Recorder.found(k.slots)
		if k.queued {
			continue
		}
		var reads []*call
		k.each(func(x *call) {
			if x.firstRead != 0 {
				reads = append(reads, x)
			}
		})
		if len(reads) < 16 {
			continue
		}
		chained, behind := k.chained(reads)
		if chained*10 < (len(reads)-1)*6 || behind*10 < chained*7 {
			k.queued = k.queued || k.depth == 1 && k.behindReads // the server does not work on calls that wait behind Reads
			continue
		}
		f := &finding{code: ReadDepth, side: k.shallow, on: []int{k.id}, clock: Calls, certainty: Likely, limit: 1}
		switch {
		case k.depth == 0:
			f.certainty = Possible // the setup, which says whose limit it is, was not seen
		case k.depth > 1:
			f.side, f.what = Server, unused // it keeps to less than was agreed
		}
		quick := make(map[uint32]int64) // the least time that the server needed for a work, but for asking for its data
		k.each(func(x *call) {
			if n, ok := quick[x.work]; !ok || x.service()-x.pullWait() < n {
				quick[x.work] = x.service() - x.pullWait()
			}
		})
		k.each(func(x *call) {
			own := max(int64(x.reads)-1, 0) * k.round() // its own Reads went one after the other as well, even in the quickest call
			f.of(x, x.take(max(b.held(x), x.service()-quick[x.work])+own))
		})
		if f.time > 0 {
			k.queued, found = true, append(found, k)
		}
		b.Recorder.found(f)
	}
	for _, k := range b.order { // of the other connections of a mount it holds as well
		if k.depth <= 1 && len(k.calls) > 0 && slices.ContainsFunc(found, func(o *conn) bool { return o.hosts == k.hosts }) {
			k.queued = true
		}
	}
}

// chained is how many calls the server had, but asked for their data only when it had those of the one before, and how many of them it
// asked for before it answered that one.
func (k *conn) chained(reads []*call) (chained, behind int) {
	inOrder(reads, func(x *call) int64 { return x.firstRead })
	for i, x := range reads[1:] {
		a := reads[i]
		gap := x.firstRead - a.lastRead
		if k.depth != 1 && x.nearS < 0 || x.callEnd+max(x.nearS, 0) > a.lastRead || gap < k.near[0]*9/10-1000 || gap > max(k.near[0], 0)+max(k.near[1], 0)+turn {
			continue
		}
		chained++
		behind += b2i(a.answer > x.firstRead)
	}
	return chained, behind
}

// unused says of a limit that it is lower than what was agreed.
const unused = "unused"

// pullWait is how long a call was with the server before that asked for its data, which takes no work: it waited in line.
func (x *call) pullWait() int64 {
	if x.firstRead == 0 {
		return 0
	}
	return max(x.firstRead-x.callEnd-x.toServer(), 0)
}

// turn is how long an adapter may need to send the next Read Request, in nanoseconds.
const turn = 20_000

// slowLink is the pace of 20 Gb/s, in nanoseconds for a KiB. Links of today's adapters are faster: what comes at a slower pace without a
// gap has a bottleneck; what comes faster may be all that is asked for.
const (
	slowLink = 410
	slowTCP  = 700    // as for 12 Gb/s: hosts may feed TCP only as fast as a link
	fastLink = 200    // as for 40 Gb/s
	slowest  = 82_000 // 100 Mb/s
)

// linkFull finds links that carry all they can: the packets of a direction follow each other at one pace, without gaps, while several
// calls wait. The connections between two hosts share their link.
func (b *batch) linkFull() {
	for i := range b.pairs {
		b.full(&b.pairs[i], true)
		b.full(&b.pairs[i], false)
	}
}

func (b *batch) full(p *pair, server bool) {
	f := &finding{code: LinkFull, side: Network, clock: Calls, certainty: Likely, what: "client"}
	if server {
		f.what = "server"
	}
	var open, busy, app int64
	for _, x := range p.calls {
		end := x.end
		if server {
			end += x.queued()
		}
		open += max(end-max(x.start, busy), 0)
		busy = max(busy, end)
		app += x.app + end - x.end
		if x.conn.fabric >= rdma.IWARP {
			app -= max(x.conn.near[1], 0) // which may be how long TCP let the acknowledgement wait
		}
	}
	if open <= 0 || app < 3*open {
		return
	}
	pace, behind, ok := b.linkPace(p, server, open)
	if !ok || pace < slowLink || pace > slowest || p.conns[0].fabric >= rdma.IWARP && pace < slowTCP {
		return
	}
	f.typical = int64(8 * 1024 / pace * 1e9)
	rest := 1 - fastLink/pace // a link that is faster has its queue, too, if all want more than it carries
	for _, k := range p.conns {
		if l := b.lanesOf(k); l[k.side(b2i(server))&1].bytes > 0 {
			f.on = append(f.on, k.id)
		}
		k.each(func(x *call) {
			if behind { // replies were in the queue when they had passed the capture point
				b.longer(x, x.queued())
			}
			f.of(x, x.take(int64(float64(x.app)*rest)))
		})
		k.queued = k.queued || f.time > 0
	}
	b.Recorder.found(f)
}

// linkPace is the pace of a link that is full, in nanoseconds for a KiB, and whether its queue is behind the capture point. ok is false if it is not.
func (b *batch) linkPace(p *pair, server bool, open int64) (pace float64, behind, ok bool) {
	var bytes, took int64
	kib := 0.0 // that came at the usual pace
	for _, k := range p.conns {
		l := b.lanesOf(k)
		if l == nil || k.queued || k.gappy() || !p.busy && k.constant() && k.round() >= nearby { // packets that a queue delays take longer, and not always the same
			return 0, false, false
		}
		way := &l[k.side(b2i(server))&1]
		if way.cnps >= pacedLeast {
			return 0, false, false
		}
		bytes += int64(way.bytes)
		if usual, n := way.usual(); n > 0 {
			took, kib = took+n, kib+float64(n)/usual
			behind = behind || fastest(&way.chunks)*1.6 < usual // what comes closer to each other than usual has had a gap before it
		}
	}
	if bytes == 0 {
		return 0, false, false
	}
	least := int64(8)
	if len(p.conns) > 1 {
		least = 6 // where packets of several alternate, they come at other paces
	}
	pace = float64(took) / max(kib, 1)
	if whole := float64(open) * 1024 / float64(bytes); behind || took*10 < open*least || pace < whole*0.8 || pace > whole*1.3*max(float64(took)/float64(open), 1) {
		pace = p.drained(open, server)
		return pace, server, pace > 0
	} else if pace > whole { // each has a part of the link; else they take turns
		pace = whole
	}
	return pace, false, true
}

// queued is how much longer a reply took from the capture point to the client than it need, where that is usual.
func (x *call) queued() int64 {
	k := x.conn
	if !k.queues(1) || k.delayedAcks() {
		return 0
	}
	return max(min(x.nearC, 2*k.ways[1])-max(k.near[1], 0), 0)
}

// drainedLeast is how many bytes tell the rate at which a queue is emptied.
const drainedLeast = 64 << 10

// waiting reports whether packets to the server wait in a queue of the path: their acknowledgements take much longer than they need.
func (k *conn) waiting() bool { return k.ways[0] >= queueLeast && k.ways[0] >= 4*k.floor[0] }

// queues reports whether acknowledgements from a side take long, and not because of distance, which does not change.
func (k *conn) queues(way int) bool {
	return k.ways[way] >= queueLeast && (k.spread[way]*10 >= k.ways[way] || k.floor[way]*4 <= k.ways[way])
}

// drained returns the rate at which a queue behind the capture point empties, in nanoseconds for each KiB; 0 if there is no queue, or
// it is empty half of the time. Packets of a side that are sent behind its data are acknowledged when the data have left the queue: between two
// acknowledgements, the data between their packets have passed.
func (p *pair) drained(open int64, server bool) float64 {
	way := b2i(server)
	type point struct{ at, acked, bytes int64 }
	var list []point
	for _, x := range p.calls {
		k := x.conn
		if !k.queues(way) {
			continue
		}
		switch {
		case server && x.wayC >= 0:
			list = append(list, point{x.replyAt(), x.replyAt() + x.wayC, 0})
		case !server && x.wayS >= 0:
			list = append(list, point{x.sentAt(), x.sentAt() + x.wayS, 0})
		}
		switch {
		case server && x.pushed:
			list = append(list, point{x.replyAt(), 0, int64(x.bytes)})
		case !server && x.firstRead != 0:
			list = append(list, point{x.lastRead, 0, int64(x.bytes)})
		}
	}
	slices.SortStableFunc(list, func(a, c point) int { return cmp.Compare(a.at, c.at) })
	var paces []int64
	var times []int64
	sent, from, fromAcked := int64(0), int64(0), int64(0)
	for _, p := range list {
		sent += p.bytes
		switch {
		case p.acked == 0:
		case fromAcked == 0:
			from, fromAcked = sent, p.acked
		case sent-from >= drainedLeast && p.acked > fromAcked:
			paces = append(paces, (p.acked-fromAcked)*1024/(sent-from))
			times = append(times, p.acked-fromAcked)
			from, fromAcked = sent, p.acked
		}
	}
	if len(paces) < 16 {
		return 0
	}
	mid, near, many := median(slices.Clone(paces)), int64(0), 0
	for i, n := range paces {
		if n*10 >= mid*6 && n*10 <= mid*15 {
			near += times[i]
			many++
		}
	}
	if near*10 < open*6 || many*10 < len(paces)*6 { // a path that stands still lets much go at once, again and again
		return 0
	}
	return float64(mid)
}

// queueLeast is how long packets are queued on a link that is full, in nanoseconds.
const queueLeast = 200_000
