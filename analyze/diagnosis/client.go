package diagnosis

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// readResponses finds adapters of clients that answer RDMA Reads late.
func (b *batch) readResponses() {
	for _, k := range b.order {
		if k.queued || k.samples[1] < 4 || k.delayedAcks() {
			continue
		}
		f := &finding{code: ClientReadResponse, side: Client, on: []int{k.id}, clock: Calls, certainty: Likely}
		late := b.late(k)
		took, _ := k.usually(func(x *call) int64 {
			if late(x) < 0 {
				return -1
			}
			return x.pulled - late(x)
		})
		var low, least int64
		if f.typical, low = k.usually(late); k.answersLate {
			least = stillLeast // of some Reads
		} else if f.typical < 150_000 || low*2 < f.typical || f.typical < 3*k.near[1] || f.typical < took*int64(len(b.pairs[k.pair].conns)) {
			continue // it may have waited for the data of other Reads
		}
		switch quick := k.undisturbed(); {
		case k.answersLate:
		case quick < 0 || quick*3 > f.typical || k.fabric >= rdma.IWARP && f.typical < brisk:
			if k.fabric >= rdma.IWARP {
				continue // over TCP, software hosts answer late for any reason
			}
			f.certainty = Possible // an adapter made of software is late with all
		case b.mixed:
			f.certainty = Possible // the Reads may be those that the other point has seen
		}
		k.each(func(x *call) {
			if n := late(x); n >= least {
				f.of(x, x.take(n))
			}
		})
		if k.answersLate {
			f.typical = f.time / int64(max(f.calls, 1))
		}
		b.Recorder.found(f)
	}
}

// undisturbed is how long the client's acknowledgements take while it answers no Reads, all but the slowest quarter; -1 of few. Others stay behind its
// answers.
func (k *conn) undisturbed() int64 {
	var reads []still
	k.each(func(x *call) {
		if x.firstRead != 0 {
			reads = append(reads, still{x.firstRead, x.lastRead})
		}
	})
	reads, _ = merge(reads)
	var list []int64
	k.each(func(x *call) {
		if i := firstAfter(reads, x.end); x.wayC >= 0 && (i == len(reads) || reads[i].from > x.end+x.wayC) {
			list = append(list, x.wayC)
		}
	})
	if len(list) < 8 {
		return -1
	}
	return nth(list, len(list)*3/4)
}

// late returns how much longer than the way, and the data, the client's answers to the RDMA Reads of a call took; -1 without Reads.
func (b *batch) late(k *conn) func(*call) int64 {
	perKiB := float64(0)
	if l := b.lanesOf(k); l != nil {
		perKiB = l[k.client].fastest()
	}
	return func(x *call) int64 {
		if x.firstRead == 0 || x.lost[rdma.CauseReadSlot]+x.lost[rdma.CauseRecovery]+x.lost[rdma.CauseNotReady] > 0 {
			return -1
		}
		return max(x.pulled-max(k.near[1], 0)-int64(perKiB*float64(x.bytes)/1024), 0)
	}
}

// usually is how late what is measured of calls comes in the middle, and all but a tenth of them at least; 0 of few calls.
func (k *conn) usually(late func(*call) int64) (mid, low int64) {
	var list []int64
	k.each(func(x *call) {
		if n := late(x); n >= 0 {
			list = append(list, n)
		}
	})
	if len(list) < 8 {
		return 0, 0
	}
	mid = median(list)
	return mid, nth(list[:len(list)/2+1], len(list)/10) // none before the middle one is more
}

// soon is how long after a reply a call comes that has waited for what the reply freed, besides the way of the reply to the client and back.
const soon = 50_000

// windows finds calls that had to wait for a credit of their connection, or a slot of their client's session: all were in use, and the call
// came as soon as a reply had freed one.
func (b *batch) windows() {
	for _, k := range b.order {
		calls := slices.DeleteFunc(slices.Clone(k.calls), func(x *call) bool { return x.backward })
		b.window(calls, Credits, func(x *call) (*int64, uint32) { return &x.credits, x.most() })
	}
	for _, calls := range b.apart(len(b.names.list), func(x *call) int {
		if x.slotLimit == 0 {
			return -1
		}
		return int(x.client)
	}) {
		b.window(calls, SessionSlots, func(x *call) (*int64, uint32) { return &x.slots, x.slotLimit })
	}
}

// most is how many calls at a time the credits allow: a client has no room for replies to more than it asks for (RFC 8166, section 3.3.1).
func (x *call) most() uint32 {
	if x.asked > 0 {
		return min(x.asked, x.granted)
	}
	return x.granted
}

// markWaits finds the calls that waited although the capture point saw room, or all that the client asked for was in use. It is far from the client: a call holds its credit, or its slot,
// until the client has the reply, and the next call takes as long to reach the capture point. Where points were distinguished by the order of
// packets, none of them has seen the calls and the replies of one side.
func markWaits(calls []*call, of func(*call) (waited *int64, limit uint32)) {
	var ends []int64 // when each is free again, as the capture point sees it, in order
	freed := 0       // how many of ends have come
	full := int64(0) // since when none was
	for _, x := range calls {
		way := min(max(x.nearC, x.conn.near[1], 0), 2*max(x.conn.near[1], 0))
		if k := x.conn; k.both != nil && k.both.crossed {
			way = 0
		} else if way < farLeast && x.most() == x.granted {
			continue
		}
		if x.end == 0 {
			continue
		}
		w, limit := of(x)
		first := freed
		for freed < len(ends) && ends[freed] <= x.start {
			freed++
		}
		if full != 0 && freed > first {
			*w, full = max(*w, ends[first]-full, 1), 0
		}
		if full == 0 && len(ends)-freed+1 >= int(limit) {
			full = x.start
		}
		ends = append(ends, x.end+way-way/8)
		for i := len(ends) - 1; i > freed && ends[i] < ends[i-1]; i-- {
			ends[i], ends[i-1] = ends[i-1], ends[i]
		}
	}
}

// farLeast is the least round trip between the capture point and the client that counts for credits, in nanoseconds.
const farLeast = 1_000

// fewAtOnce is the most calls at a time that hardly any application keeps to by itself, unless it makes one after the other.
const fewAtOnce = 8

func (b *batch) window(calls []*call, code Code, of func(*call) (waited *int64, limit uint32)) {
	f := &finding{code: code, side: Server, clock: Wall, certainty: Likely}
	// Replies in the order of their coming, to see which one was there before a call.
	var ends []int64
	for _, x := range calls {
		if x.conn.gappy() {
			return // all may seem to be in use, since the capture lacks replies
		}
		if x.end != 0 {
			ends = append(ends, x.end)
		}
		f.on = append(f.on, x.conn.id)
	}
	f.on = each(f.on)
	if code == SessionSlots && len(calls) > 0 && b.few[calls[0].client] {
		f.side = Client
	}
	markWaits(calls, of)
	slices.Sort(ends)
	prompt, n, zero, echo, told := 0, 0, 0, 0, 0
	last := int64(0)
	for _, x := range calls {
		if x.end != 0 && x.rawGrant == 0 {
			zero++
		}
		w, limit := of(x)
		if *w <= 0 {
			continue
		}
		n++
		i, _ := slices.BinarySearch(ends, x.start+1)
		if x.told {
			told++
			prompt++
		} else if i > 0 {
			last = ends[i-1]
			if x.start-last <= max(x.conn.wayBack(), 0)+soon {
				prompt++
			}
		}
		f.of(x, *w)
		f.limit = int64(limit)
		if x.end != 0 && x.asked == x.most() {
			echo++
		}
		if x.conn.queued {
			f.certainty = Possible // more calls would wait for what these wait for
		}
	}
	if n < 8 || prompt*10 < n*7 || prompt*2 < len(calls) {
		return
	}
	if growth(calls) > 1.25 {
		f.certainty = Possible // they wait for each other at the server
	}
	f.limited(n, told, zero*2 > len(calls), echo*10 >= n*9)
	f.typical = f.time / int64(n)
	// The calls that waited would have gone out at once.
	span := calls[len(calls)-1].start - calls[0].start
	f.time = max(min(f.time, span), int64(float64(span)*float64(prompt)/float64(len(calls))))
	if told < n {
		f.time = min(f.time, span/10*9) // as for ten times as many callers: the capture does not show how many wait
	}
	p := &b.pairs[calls[0].conn.pair]
	f.among = len(p.conns)
	if n := b.carrying(p); n > 0 {
		f.most = max(span-n, 1)
	}
	b.Recorder.found(f)
}

// limited says who limits the calls, and how certain that is. n calls waited; of told ones a kernel measured it.
func (f *finding) limited(n, told int, zero, echo bool) {
	if f.limit > fewAtOnce {
		f.certainty = Possible // the application may have as many calls at a time
	}
	if f.code != Credits {
		return
	}
	switch {
	case told == n:
		f.certainty = Certain
	case zero:
		f.what, f.limit = "zero", 0 // one caller that sends each call at once would look the same
	case echo:
		f.what, f.side = "echo", Client
	}
}

// carrying is how long the busier direction of the link between two hosts needs for its data; 0 if that is not known. More calls at a time cannot
// shorten it. The link of a host is as fast in both directions: what it sends beside the capture point, at one rate, tells the rate of both.
func (b *batch) carrying(p *pair) int64 {
	var bytes, large [2]uint64
	var pace [2]float64
	rate := 0.0
	for _, x := range p.calls {
		if x.bytes >= chunkLeast {
			large[b2i(x.pushed)] += uint64(x.bytes)
		}
	}
	for side := range pace {
		for _, k := range p.conns {
			l := b.lanesOf(k)
			if l == nil {
				continue
			}
			way := &l[(int(k.client)+side)&1]
			bytes[side] += way.bytes
			packets, chunks := way.fastest(), fastest(&way.chunks)
			if chunks > 0 && chunks <= slowLink { // jitter brings packets closer to each other
				if packets*10 > chunks*9 {
					rate = max(rate, chunks)
				}
				packets = chunks
			}
			if packets > 0 && (pace[side] == 0 || packets < pace[side]) {
				pace[side] = packets
			}
		}
		switch {
		case pace[side] <= slowLink:
		case large[side]*2 < bytes[side] || p.conns[0].fabric >= rdma.IWARP:
			return 0 // it may be that of the calls, or of a host that feeds TCP
		default:
			rate = max(rate, pace[side]) // packets of a message follow each other
		}
	}
	took := 0.0
	for side := range pace {
		took = max(took, float64(bytes[side])/1024*max(pace[side], rate))
	}
	return int64(took)
}

// oneAtATime finds clients that send a call only when the one before has been answered.
func (b *batch) oneAtATime() {
	for c, calls := range b.apart(len(b.names.list), func(x *call) int {
		if x.end == 0 {
			return -1
		}
		return int(x.client)
	}) {
		if len(calls) < 32 {
			continue
		}
		var replied, end, open, data, bytes, held, app int64
		alone, window := 0, 0
		for _, x := range calls {
			if x.start >= replied {
				alone++
			}
			replied = max(replied, x.end)
			if x.granted <= 1 || x.slots > 0 {
				window++ // it may not send more
			}
			back := x.end + max(x.conn.wayBack(), 0) // when the client had the reply
			open += max(back-max(x.start, end), 0)
			end = max(end, back)
			held += max(x.app-b.least[x.work], 0)
			app += x.app
			if x.bytes > 0 {
				data++
				bytes += int64(x.bytes)
			}
		}
		if alone*20 < len(calls)*19 || open*2 < b.to-b.from || window*2 > len(calls) {
			continue
		}
		f := &finding{code: OneAtATime, side: Client, where: "client " + b.names.list[c], clock: Wall, certainty: Possible, calls: len(calls)}
		f.time, f.typical = open*15/16, open/int64(len(calls))
		if data*2 > int64(len(calls)) && bytes <= data*64<<10 && open*10 >= (b.to-b.from)*7 && held*10 < app*3 {
			f.certainty = Likely
		}
		for _, x := range calls[:min(len(calls), shown)] {
			f.show(x, 1)
		}
		b.Recorder.found(f)
	}
}
