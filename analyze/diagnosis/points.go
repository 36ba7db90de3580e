package diagnosis

import (
	"cmp"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// points are capture points that may show the same packets. Each is decoded for itself, and what two of them show of a connection is
// joined: the way between them, the server's work as seen beside the server, and what only one of them has.
type points struct {
	mu      sync.Mutex // the next packets come while calls are joined
	opt     decode.Options
	several bool // inputs
	off     bool
	taps    func() []capture.Tap
	list    []*point // by tap
	memory  int      // fabric.Options.Memory of each
	calls   int      // that each keeps
	conns   int      // that each follows
	ended   bool
}

// point is a capture point.
type point struct {
	rec   *Recorder
	dec   *decode.Decoder
	place place
	tap   int    // its number
	lane  [2]int // and the interface: points with the same were distinguished by the order in which packets came
	count uint64
	batch capture.Batch
	spare []call // those before: what was found of them is still in use
}

// place is where packets of a connection were captured.
type place struct{ file, tap, key string }

// mostPoints is how many capture points are decoded apart.
const mostPoints = 8

// usualPoints is how many a file is taken to have, before its interfaces are known.
const usualPoints = 4

// Points has the Recorder follow each capture point of its input for itself as well, and join what two of them show of a connection. The
// function that it returns has to be shown all packets, before or while the decoder has them. opt and memory are for the decoder of the
// whole, as Attach has it: the points share half as much. files is how many there are, and taps are capture.Tapper.Taps of the input.
func (r *Recorder) Points(opt decode.Options, memory, files int, taps func() []capture.Tap) func(*capture.Batch) {
	n := min(files, mostPoints)
	if n < 2 {
		n = usualPoints
	}
	opt.Concurrent, opt.Trackers, opt.Observers = false, 0, nil
	opt.Memory /= 2 * n
	for _, most := range []*int{&opt.RoCE.Connections, &opt.TCP.Connections} {
		*most = max(cmp.Or(*most, maxConns)/n, 1)
	}
	r.points = &points{
		opt: opt, several: files > 1, taps: taps, memory: max(memory/(2*n), 1), calls: max(8*batchCalls/n, batchCalls), conns: max(r.opt.Connections/n, 1),
	}
	return r.points.take
}

// take decodes packets, each for its point.
func (p *points) take(b *capture.Batch) {
	if p.off {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.list == nil && !p.several && len(p.taps()) < 2 {
		p.off = true
		return
	}
	for i := range b.Packets {
		x := &b.Packets[i]
		if int(x.Tap) >= len(p.list) && !p.learn() || int(x.Tap) >= len(p.list) {
			continue
		}
		t := p.list[x.Tap]
		t.count++
		y := *x
		if p.several {
			y.Number = t.count
		}
		t.batch.Packets = append(t.batch.Packets, y)
	}
	for _, t := range p.list {
		if len(t.batch.Packets) > 0 {
			t.dec.Batch(&t.batch)
			t.batch.Packets = t.batch.Packets[:0]
		}
	}
}

// learn makes points of new taps.
func (p *points) learn() bool {
	taps := p.taps()
	for i := len(p.list); i < len(taps) && i < mostPoints; i++ {
		p.list = append(p.list, p.point(taps, i))
	}
	return len(p.list) > 0
}

func (p *points) point(taps []capture.Tap, i int) *point {
	t := &taps[i]
	x := &point{rec: New(Options{kept: true, Calls: p.calls, Connections: p.conns}), place: place{file: filepath.Base(t.File)}, tap: i, lane: [2]int{t.Lane, t.Interface}}
	for k := range taps {
		if k != i && taps[k].File == t.File {
			x.place.tap = cmp.Or(t.Name, t.Description, "interface "+strconv.Itoa(t.Interface))
		}
	}
	opt := p.opt
	x.rec.Attach(&opt, p.memory, nil)
	opt.Observe(decode.Observer{Closed: x.rec.Closed})
	var v rpc.View
	x.dec = decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		x.rec.Transaction(&v)
	})
	return x
}

// flush ends the decoders.
func (p *points) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended {
		p.ended = true
		for _, x := range p.list {
			x.dec.Flush()
		}
	}
}

// file and tapName are of evidence.
func (x *call) file(only string) string {
	if x.place != nil {
		return x.place.file
	}
	return only
}

// connectionKey is what the file calls its connection.
func (x *call) connectionKey() string {
	if x.place != nil {
		return x.place.key
	}
	return x.conn.key
}

func (p *place) tapName() string {
	if p == nil {
		return ""
	}
	return p.tap
}

// both is what two capture points show of a connection: the first one is nearer the client, the second one nearer the server.
type both struct {
	points  [2]*conn
	at      [2]*point
	crossed bool // the first point has what was sent, the second one what was received
	lanes   [2]lane
	stops   [2][]still
	clock   clock // of the first one, to that of the second
	ways    [2]int64
}

// clock tells what another one shows: it is ahead by some time, and by a part of the time that has passed.
type clock struct {
	at, ahead int64
	drift     float64
}

// of is the time of the other clock.
func (c *clock) of(t int64) int64 {
	if t == 0 {
		return 0
	}
	return t + c.ahead + int64(float64(t-c.at)*c.drift)
}

// sharedLeast is how many complete calls two points have to share of a connection to be joined.
const sharedLeast = 4

// recently is how long before the newest call of a point those begin that another point may still show, in nanoseconds.
const recently = 3_000_000_000

// same tells the calls of a connection apart.
type same struct {
	conn int // of the whole
	xid  uint32
	nth  int // with this XID
}

// seen is a call as the points of a connection show it; nil if one does not.
type seen [2]*call

// join replaces the calls of connections that two points show.
func (p *points) join(r *Recorder) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.list) < 2 {
		return
	}
	p.identify(r)
	calls := make([]map[same]*call, len(p.list))
	saw := make(map[*point]traffic)
	for i, x := range p.list {
		calls[i], saw[x] = x.index(), x.rec.seenTraffic()
	}
	p.pairUp(r, calls)
	joined := make(map[int]map[same]seen)
	both := make(map[int]*both)
	for _, k := range r.order {
		if k.both != nil {
			joined[k.id], both[k.id] = map[same]seen{}, k.both
		}
	}
	for n, x := range p.list {
		for key, c := range calls[n] {
			if b := both[key.conn]; b != nil && (b.at[0] == x || b.at[1] == x) {
				y := joined[key.conn][key]
				y[b2i(b.at[1] == x)] = c
				joined[key.conn][key] = y
			}
		}
	}
	p.show(r, calls)
	used := make(map[*call]bool)
	r.calls = slices.DeleteFunc(r.calls, func(x call) bool { return x.conn.both != nil })
	r.mixed = false
	for _, k := range r.order {
		if k.both == nil {
			continue
		}
		calls := joined[k.id]
		if !r.final {
			maps.DeleteFunc(calls, func(_ same, y seen) bool { // the other point may show it yet
				return (y[0] == nil || y[1] == nil) && recent(y, k.both.at)
			})
		}
		for _, y := range calls {
			used[y[0]], used[y[1]] = true, true
		}
		if k.both.oneLane() {
			r.mixed = !k.both.sort(calls) || k.both.gappy() || r.mixed
		}
		r.unsure = !k.measureBoth(calls, saw) || r.unsure
		list := make([]call, 0, len(calls))
		for _, y := range calls {
			list = append(list, k.call(r, y))
		}
		slices.SortFunc(list, func(a, b call) int {
			return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.xid, b.xid), cmp.Compare(a.end, b.end))
		})
		r.calls = append(r.calls, list...)
		a, s := k.both.points[0], k.both.points[1]
		k.gaps, k.packets = min(a.gaps, s.gaps), max(a.packets, s.packets)
	}
	r.unsure = r.unsure || r.mixed && torn(r.calls)
	if !r.final {
		for _, x := range p.list {
			x.keep(used)
		}
	}
}

// show has the calls that only one point shows name its packets.
func (p *points) show(r *Recorder, calls []map[same]*call) {
	count := make(map[same]int)
	for i := range r.calls {
		x := &r.calls[i]
		key := same{conn: x.conn.id, xid: x.xid}
		if x.backward {
			key.nth = backwards
		}
		n := count[key]
		count[key]++
		if key.nth += n; x.conn.both != nil {
			continue
		}
		for j, list := range calls {
			if shown := list[key]; shown != nil && shown.start == x.start {
				x.shownBy(p.list[j], shown)
				break
			}
		}
	}
}

// backwards numbers the calls of servers apart.
const backwards = 1 << 20

// oneLane reports whether the two points were distinguished by the order in which packets came.
func (b *both) oneLane() bool {
	return b.at[0].place.file == b.at[1].place.file && b.at[0].lane == b.at[1].lane
}

// sort finds out whose packets came first, if points were distinguished by the order of packets. Clocks that differ by more than the way make
// one point the first in both directions. Else the sender's point is the first in each: then what is the client's, and what the server's, is
// put together from both. The server acts on no call, and acknowledges none, that has not come to it. ok is false if that is so of some calls, and not of others.
func (b *both) sort(calls map[same]seen) (ok bool) {
	first := b2i(b.at[0].tap > b.at[1].tap)
	n, before := 0, 0
	for _, y := range calls {
		f, s := y[first], y[1-first]
		if f == nil || s == nil || !f.whole() || !s.whole() {
			continue
		}
		n++
		if f.act < s.callEnd-jitter || f.wayS >= 0 && f.callEnd+f.wayS < s.callEnd-jitter || f.wayC >= 0 && f.end+f.wayC < s.end-jitter {
			before++
		}
	}
	b.crossed = before*50 <= n
	if !b.crossed {
		return before*2 >= n
	}
	b.points, b.at = [2]*conn{b.points[first], b.points[1-first]}, [2]*point{b.at[first], b.at[1-first]}
	for key, y := range calls {
		y = seen{y[first], y[1-first]}
		if y[0] != nil && y[1] != nil && y[0].end != 0 && y[1].end != 0 {
			y = seen{sorted(y[0], y[1]), sorted(y[1], y[0])}
		}
		calls[key] = y
	}
	return true
}

// gappy reports whether a point lacks packets: what only the other one has may count as its own.
func (b *both) gappy() bool {
	return slices.ContainsFunc(b.points[:], (*conn).gappy)
}

// sorted is a call at one end: what the client sent as c has it, and what the server sent as s has it.
func sorted(c, s *call) *call {
	x := *c
	x.act, x.answer, x.end, x.done, x.firstRead, x.pushed = s.act, s.answer, s.end, s.done, s.firstRead, s.pushed
	x.pulled = x.lastRead - x.firstRead
	if x.wayS = -1; s.wayS >= 0 {
		x.wayS = s.callEnd + s.wayS - c.callEnd
	}
	if x.wayC = -1; c.wayC >= 0 {
		x.wayC = c.end + c.wayC - s.end
	}
	x.nearS, x.nearC = x.wayS, x.wayC
	x.credits, x.slots = 0, 0 // see markWaits
	return &x
}

// torn reports whether many calls are incomplete: some of what one point shows counts as the other one's.
func torn(calls []call) bool {
	n := 0
	for i := range calls {
		n += b2i(!calls[i].whole())
	}
	return n*10 > len(calls)
}

// identify finds which connection of the whole each connection of a point is: the one that has most of its calls.
func (p *points) identify(r *Recorder) {
	type id struct {
		ends string
		xid  uint32
	}
	whole := make(map[id]*conn, len(r.calls))
	for i := range r.calls {
		x := &r.calls[i]
		whole[id{x.conn.ends(), x.xid}] = x.conn
	}
	for _, x := range p.list {
		votes := make(map[*conn]map[int]int)
		for i := range x.rec.calls {
			c := &x.rec.calls[i]
			if c.conn.same != 0 {
				continue
			}
			if k := whole[id{c.conn.ends(), c.xid}]; k != nil {
				if votes[c.conn] == nil {
					votes[c.conn] = make(map[int]int)
				}
				votes[c.conn][k.id]++
			}
		}
		for c, list := range votes {
			for k, n := range list {
				if c.same == 0 || n > list[c.same] || n == list[c.same] && k < c.same {
					c.same = k
				}
			}
		}
	}
}

// ends is the key of a connection without its time.
func (k *conn) ends() string { return ends(k.key) }

func ends(key string) string { return key[:max(strings.LastIndexByte(key, '|'), 0)] }

// index finds the calls of a point.
func (p *point) index() map[same]*call {
	m := make(map[same]*call, len(p.rec.calls))
	for i := range p.rec.calls {
		x := &p.rec.calls[i]
		if x.conn.same == 0 {
			continue
		}
		key := same{conn: x.conn.same, xid: x.xid}
		if x.backward {
			key.nth = backwards
		}
		for m[key] != nil {
			key.nth++
		}
		m[key] = x
	}
	return m
}

// keep drops the calls that were used, and those that are too old.
func (p *point) keep(used map[*call]bool) {
	newest := int64(0)
	for i := range p.rec.calls {
		newest = max(newest, p.rec.calls[i].start)
	}
	list := p.spare[:0]
	for i := range p.rec.calls {
		if x := &p.rec.calls[i]; !used[x] && x.start >= newest-recently {
			list = append(list, *x)
		}
	}
	p.spare, p.rec.calls = p.rec.calls, list
}

// recent reports whether the point that does not show a call may not have come to it.
func recent(y seen, at [2]*point) bool {
	for i, x := range y {
		if x == nil {
			continue
		}
		list := at[i].rec.calls
		return x.start >= list[len(list)-1].start-recently
	}
	return false
}

// pairUp finds the two points that show a connection farthest from each other. A server is nearer the point at which it takes less time.
func (p *points) pairUp(r *Recorder, calls []map[same]*call) {
	type found struct {
		way []int64
		at  [2]*conn
	}
	most := make(map[int]int64)
	which := make(map[int]*both)
	open := make(map[int]bool) // the connections of which that is not known yet
	for _, k := range r.order {
		if k.both == nil {
			open[k.id] = true
		}
	}
	if len(open) == 0 {
		return
	}
	for i := range p.list {
		for j := range p.list {
			if i == j {
				continue
			}
			shared := make(map[int]*found)
			for key, a := range calls[i] {
				if !open[key.conn] {
					continue
				}
				b := calls[j][key]
				if b == nil || !a.whole() || !b.whole() {
					continue
				}
				f := shared[key.conn]
				if f == nil {
					f = &found{at: [2]*conn{a.conn, b.conn}}
					shared[key.conn] = f
				}
				f.way = append(f.way, (a.end-a.callEnd)-(b.end-b.callEnd))
			}
			for id, f := range shared {
				n := median(f.way)
				if len(f.way) < sharedLeast || which[id] != nil && n <= most[id] {
					continue
				}
				most[id], which[id] = n, &both{points: f.at, at: [2]*point{p.list[i], p.list[j]}}
			}
		}
	}
	for _, k := range r.order {
		if k.both == nil {
			k.both = which[k.id]
		}
	}
}

// whole reports whether all of a call was seen, and nothing of it twice.
func (x *call) whole() bool {
	return x.end != 0 && !x.backward && !x.resent && x.lost[rdma.CauseRecovery] == 0 && x.lost[rdma.CauseNotReady] == 0
}

// measureBoth finds how the clocks of the two points differ, and what was sent. ok is false if some packets count as those of the other
// point: the way there and back then takes less than no time.
func (k *conn) measureBoth(calls map[same]seen, saw map[*point]traffic) (ok bool) {
	b := k.both
	type sample struct{ at, forth, back int64 }
	var list []sample
	for i, c := range b.points {
		c.calls = c.calls[:0]
		for _, y := range calls {
			if y[i] != nil && y[i].conn == c {
				c.calls = append(c.calls, y[i])
			}
		}
		slices.SortFunc(c.calls, func(a, c *call) int { return cmp.Compare(a.start, c.start) })
		c.measure()
		b.stops[i] = slices.Clone(saw[b.at[i]].stops)
	}
	for _, y := range calls {
		if y[0] != nil && y[1] != nil && y[0].whole() && y[1].whole() {
			list = append(list, sample{y[0].callEnd, y[1].callEnd - y[0].callEnd, y[0].end - y[1].end})
		}
	}
	if len(list) == 0 {
		return true
	}
	slices.SortFunc(list, func(a, c sample) int { return cmp.Compare(a.at, c.at) })
	all := len(list)
	list = slices.DeleteFunc(list, func(s sample) bool { return s.forth+s.back < -max(jitter, s.forth/8, -s.forth/8) })
	if ok = len(list)*50 >= all*49; len(list) == 0 {
		return ok
	}
	// The quickest packets of both directions took equally long.
	least := func(list []sample) (forth, back int64) {
		forth, back = list[0].forth, list[0].back
		for _, s := range list {
			forth, back = min(forth, s.forth), min(back, s.back)
		}
		return forth, back
	}
	half := func(forth, back int64) int64 { return (forth - back) / 2 }
	b.clock = clock{at: list[0].at}
	if n := len(list) / 2; n >= 8 {
		from, to := list[n/2].at, list[n+n/2].at
		if d := float64(half(least(list[n:]))-half(least(list[:n]))) / float64(max(to-from, 1)); d > -mostDrift && d < mostDrift {
			b.clock.drift = d
		}
	}
	for i := range list {
		s := &list[i]
		d := int64(float64(s.at-b.clock.at) * b.clock.drift)
		s.forth, s.back = s.forth-d, s.back+d
	}
	forth, back := least(list)
	b.clock.ahead = half(forth, back)
	way := max(forth+back, 0) / 2
	b.ways = [2]int64{way, way}
	for i := range b.points {
		near, other := i, 1-i // the points nearest the sender, and farthest from it
		if b.crossed {
			near, other = 0, 1
		}
		l := &b.lanes[k.side(i)]
		*l = b.points[near].lane(saw[b.at[near]].lanes, i)
		far := b.points[other].lane(saw[b.at[other]].lanes, i)
		l.late, l.reread = min(l.late, far.late), min(l.reread, far.reread) // what one of them has seen is seen
		l.between = far.late - l.late
	}
	l := &b.lanes[k.side(0)]
	for _, t := range [...]*int64{&l.first.Time, &l.last.Time, &l.cnpFirst, &l.cnpLast, &l.againFirst} {
		*t = b.clock.of(*t)
	}
	l.refused = slices.Clone(l.refused)
	for _, list := range [...][]still{l.refused, b.stops[0]} {
		for i := range list {
			list[i] = still{b.clock.of(list[i].from), b.clock.of(list[i].to)}
		}
	}
	return ok
}

// jitter is by how much a timestamp may be wrong, in nanoseconds.
const jitter = 5_000

// lane is what a side of a connection has sent: 0, the client, or 1, the server.
func (k *conn) lane(lanes map[int]*[2]lane, i int) lane {
	if l := lanes[k.id]; l != nil {
		return l[k.side(i)]
	}
	return lane{}
}

// mostDrift is how much faster than another one a clock may be.
const mostDrift = 200e-6

// side returns the client's side of the connection for 0 and the server's for 1.
func (k *conn) side(i int) rdma.Side {
	if i == 0 {
		return k.client
	}
	return k.client.Other()
}

// ackMost is how long an acknowledgement of TCP may have taken to tell a way, in nanoseconds: later ones were delayed.
const ackMost = 30_000_000

// nearest is what a packet and its acknowledgement took between a point and the side nearest to it: 0, the server, or 1, the client.
func (k *conn) nearest(side int, way int64) int64 {
	if k.fabric >= rdma.IWARP || way < 0 {
		way = k.floor[side]
	}
	if way < 0 || k.fabric >= rdma.IWARP && way > ackMost {
		return 0
	}
	return way
}

// call joins what two points show of a call. It expresses all times on the clock of the second point.
func (k *conn) call(r *Recorder, y seen) call {
	b := k.both
	for i := range y {
		if o := y[1-i]; y[i] != nil && o != nil && y[i].end == 0 && o.end != 0 {
			y[i] = nil // all of it is what the other one has
		}
	}
	var x call
	switch a, s := y[0], y[1]; {
	case s == nil:
		x = *a
		x.toClock(&b.clock)
		x.forth, x.back = b.ways[0], b.ways[1]
		x.callEnd += x.forth
		for _, t := range [...]*int64{&x.act, &x.answer, &x.firstRead, &x.lastRead} {
			if *t != 0 {
				*t = max(*t-x.back, x.callEnd)
			}
		}
		x.nearS = max(x.wayS-x.forth-x.back, 0)
	case a == nil:
		x = *s
		x.forth, x.back = b.ways[0], b.ways[1]
		if x.start -= x.forth; x.from == x.conn.id {
			x.sent -= x.forth
		}
		if x.end != 0 {
			x.end, x.done = x.end+x.back, x.done+x.back
		}
		x.nearC = max(x.wayC-x.forth-x.back, 0)
	default:
		c := *a
		c.toClock(&b.clock)
		x = *s
		x.start, x.sent, x.from, x.conn = c.start, c.sent, c.from, c.conn
		x.end, x.done, x.pulled = c.end, c.done, c.pulled
		forth, back := s.callEnd-c.callEnd, c.end-s.end // clocks that differ take from one what they give to the other
		x.forth, x.back = max(forth+min(back, 0), 0), max(back+min(forth, 0), 0)
		x.nearC = b.points[0].nearest(1, a.wayC)
		x.nearS = b.points[1].nearest(0, s.wayS)
		x.wayS, x.wayC = x.forth+x.nearS, x.back+x.nearC
		x.credits, x.slots = a.credits, a.slots
		x.resent = a.resent || s.resent
		for i, n := range a.lost {
			x.lost[i] = max(x.lost[i], n)
		}
	}
	i := 0
	if y[0] == nil {
		i = 1
	}
	p := b.at[i]
	shown := y[i]
	x.shownBy(p, shown)
	switch first := p.rec.conns[x.from]; {
	case x.from == x.conn.id:
		x.from = k.id
	case first != nil:
		x.from = first.same
	default:
		x.from = 0
	}
	x.conn = k
	x.client, x.server, x.op = shown.client, shown.server, shown.op
	r.names.adopt(&x, &p.rec.names)
	return x
}

// shownBy has a call show the packet of a point.
func (x *call) shownBy(p *point, shown *call) {
	k := shown.conn
	k.shown = place{p.place.file, p.place.tap, k.key}
	x.frame, x.stamp, x.place = shown.frame, shown.stamp, &k.shown
}

// toClock gives a call the times of another clock.
func (x *call) toClock(c *clock) {
	for _, t := range [...]*int64{&x.start, &x.sent, &x.callEnd, &x.act, &x.firstRead, &x.lastRead, &x.answer, &x.end, &x.done} {
		*t = c.of(*t)
	}
}

// wayBack is the round trip between the client and the capture point nearest to it.
func (k *conn) wayBack() int64 {
	if k.both != nil {
		return k.both.points[0].ways[1]
	}
	return k.ways[1]
}
