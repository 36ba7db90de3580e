package diagnosis

import (
	"cmp"
	"math"
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
		b.full(&b.pairs[i])
	}
}

func (b *batch) full(p *pair) {
	var open, busy, app int64
	for _, x := range p.calls {
		end := x.end + x.queued()
		open += max(end-max(x.start, busy), 0)
		busy = max(busy, end)
		app += x.app + end - x.end
		if x.conn.fabric >= rdma.IWARP {
			app -= max(x.conn.near[1], 0) // which may be how long TCP let the acknowledgement wait
		}
	}
	if open <= 0 || app*2 < 3*open {
		return
	}
	f := &finding{code: LinkFull, side: Network, clock: Calls, certainty: Likely, what: "client"}
	var took [2]float64 // by what each side sends
	var pace float64
	behind := false
	for way := range took {
		n, carried, after := b.linkPace(p, way, open)
		took[way], behind = n*carried, behind || after && n > 0
		if n > 0 && took[way] >= took[0] {
			pace, f.what = n, [2]string{"client", "server"}[way]
		}
	}
	if pace == 0 || took[0]+took[1] < 0.7*float64(open) {
		return
	}
	f.typical = int64(8 * 1024 / pace * 1e9)
	rest := 1 - fastLink/pace // a link that is faster has its queue, too, if all want more than it carries
	for _, k := range p.conns {
		f.on = append(f.on, k.id)
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

// spacing is how the data of a side followed each other, on all connections between two hosts.
type spacing struct {
	carried, kib float64 // KiB of all; of those that came at the usual pace
	took         int64   // by the latter
	quick        float64 // pace of the quickest
	gaps         bool    // some came closer to each other than usual, after a gap
}

// spacing is how what a side sent followed each other. ok is false if something else than a link spaces it, or packets are missing.
func (b *batch) spacing(p *pair, way int) (s spacing, ok bool) {
	for _, k := range p.conns {
		l := b.lanesOf(k)
		if l == nil || k.queued || k.gappy() || !p.busy && k.constant() && k.round() >= nearby { // packets that a queue delays take longer, and not always the same
			return s, false
		}
		lane := &l[k.side(way)&1]
		if lane.cnps >= pacedLeast {
			return s, false
		}
		s.carried += float64(lane.bytes) / 1024
		if usual, n := lane.usual(); n > 0 {
			s.took, s.kib = s.took+n, s.kib+float64(n)/usual
			s.gaps = s.gaps || fastest(&lane.chunks)*1.6 < usual
		}
		if n := lane.fastest(); n > 0 && (s.quick == 0 || n < s.quick) {
			s.quick = n
		}
	}
	return s, s.carried > 0
}

// linkPace is the pace of a link that is full of what a side sends, in nanoseconds for a KiB, how many it sends, and whether its queue is behind
// the capture point. way is 0 for what the client sends, and 1 for what the server sends. pace is 0 if the link is not full.
func (b *batch) linkPace(p *pair, way int, open int64) (pace, carried float64, behind bool) {
	s, ok := b.spacing(p, way)
	if !ok {
		return 0, 0, false
	}
	least := int64(8)
	if len(p.conns) > 1 {
		least = 6 // where packets of several alternate, they come at other paces
	}
	pace = float64(s.took) / max(s.kib, 1)
	overTCP := p.conns[0].fabric >= rdma.IWARP
	switch whole := float64(open) / s.carried; {
	case !s.gaps && s.took*10 >= open*least && pace >= whole*0.8 && pace <= whole*1.3*max(float64(s.took)/float64(open), 1):
		pace = min(pace, whole) // each has a part of the link; else they take turns
	case !s.gaps && !overTCP && s.quick*1.25 >= pace && s.quick > slowLink && s.kib*10 >= s.carried*6: // none came faster
	default:
		pace, behind = p.drained(way), true
	}
	if pace < slowLink || pace > slowest || overTCP && pace < slowTCP {
		return 0, 0, false
	}
	return pace, s.carried, behind
}

// queued is how much longer a reply took from the capture point to the client than it need, where that is usual.
func (x *call) queued() int64 {
	k := x.conn
	if !k.queues(1) || k.delayedAcks() {
		return 0
	}
	return max(min(x.nearC, 2*k.ways[1])-max(k.near[1], 0), 0)
}

// waiting reports whether packets to the server wait in a queue of the path: their acknowledgements take much longer than they need.
func (k *conn) waiting() bool { return k.ways[0] >= queueLeast && k.ways[0] >= 4*k.floor[0] }

// queues reports whether acknowledgements from a side take long, and not because of distance, which does not change.
func (k *conn) queues(way int) bool {
	return k.ways[way] >= queueLeast && (k.spread[way]*10 >= k.ways[way] || k.floor[way]*4 <= k.ways[way])
}

// burst is what a side sent between two times. acked is when the last of it was acknowledged, 0 if that is not known.
type burst struct{ from, at, acked, bytes, floor int64 }

// bursts lists what a side sent, in order. way is 0 for the client, 1 for the server.
func (p *pair) bursts(way int) []burst {
	var list []burst
	for _, x := range p.calls {
		k := x.conn
		if way == 1 {
			s := burst{from: x.replyAt(), at: x.replyAt(), floor: k.floor[1]}
			if x.pushed {
				s.from, s.bytes = min(x.answer, s.at), int64(x.bytes)
			}
			if x.wayC >= 0 {
				s.acked = s.at + x.wayC
			}
			list = append(list, s)
			continue
		}
		s := burst{from: x.sentAt(), at: x.sentAt(), floor: k.floor[0]}
		if x.wayS >= 0 && !x.hidden {
			s.acked = s.at + x.wayS
		}
		if list = append(list, s); x.firstRead != 0 {
			from := x.firstRead
			if k.both != nil {
				from += k.both.ways[1]
			}
			list = append(list, burst{from: from, at: from + x.pulled, bytes: int64(x.bytes)})
		}
	}
	slices.SortStableFunc(list, func(a, c burst) int { return cmp.Compare(a.at, c.at) })
	return list
}

// misfit compares the acknowledgements of bursts with those of a link of a pace that carries one burst after the other. diff is the sum of the
// differences, late the sum of what the acknowledgements took beyond their least.
func misfit(list []burst, pace float64) (diff, late float64) {
	free := 0.0 // when the link is
	origin := list[0].from
	for i := range list {
		s := &list[i]
		at := float64(s.at - origin)
		free = max(max(free, float64(s.from-origin))+float64(s.bytes)*pace/1024, at)
		if s.acked != 0 {
			n := float64(s.acked - s.at - s.floor)
			diff += math.Abs(free - at - n)
			late += n
		}
	}
	return diff, late
}

// drained is the pace of a link behind the capture point whose queue explains when what a side sent was acknowledged, in nanoseconds for a KiB: the more
// bytes are under way, the later. It is 0 if there is none.
func (p *pair) drained(way int) float64 {
	list := p.bursts(way)
	if len(list) < 2*fewCalls {
		return 0
	}
	best, least := 0.0, math.Inf(1)
	try := func(pace float64) {
		if diff, _ := misfit(list, pace); diff < least {
			best, least = pace, diff
		}
	}
	for pace := float64(slowLink); pace < slowest; pace *= math.Sqrt2 {
		try(pace)
	}
	for step := math.Sqrt(math.Sqrt2); step > 1.01; step = math.Sqrt(step) {
		mid := best
		try(mid * step)
		try(mid / step)
	}
	_, late := misfit(list, best)
	if late < queueLeast*fewCalls || least*3 > late {
		return 0
	}
	return best
}

// queueLeast is how long packets are queued on a link that is full, in nanoseconds.
const queueLeast = 200_000
