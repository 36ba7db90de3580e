package fabric

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Options say what a Recorder does. The zero value is a good choice.
type Options struct {
	// Operation, if set, is called for each operation as it ends.
	Operation func(*Operation)
	// Episode, if set, is called for each episode as it ends. It must not keep its argument.
	Episode func(*Episode)
	// DecodeAs names the layer above connections by port or service id of the setup: see
	// ParseDecodeAs.
	DecodeAs map[uint64]string
	// Top is how many of the longest episodes the report names: 1000 at most.
	Top int
	// Interval is the length of the intervals over time; 0 lets the capture
	// decide.
	Interval time.Duration
	// Lean omits everything that only a report needs: histograms, sums and intervals.
	Lean bool
	// Live keeps a list of connections for Health.
	Live bool
	// Memory bounds the histograms (DefaultMemory bytes).
	Memory int
}

// wantsOperations reports whether anything is done with an operation at its end.
func (o *Options) wantsOperations() bool { return !o.Lean || o.Operation != nil }

// DefaultMemory is how many bytes the histograms of a Recorder take at most.
const DefaultMemory = 32 << 20

// Limits of a report. Whatever exceeds them is counted.
const (
	maxConnections = 1024
	maxTop         = 1000
	maxServices    = 64
)

// Recorder collects what the report says. It is an rdma.Watcher, and must not be
// used by two goroutines at once.
type Recorder struct {
	opt     Options
	samples *latency.Samplers
	slots   int     // operations in all rings
	made    int     // connections
	scale   int     // memory for rings and trails, in sixteenths of the usual amount
	steps   int     // in all trails
	stalled int     // room for stalls, of all directions
	list    []Stall // for blame
	live    []*conn
	gone    []Health
	touched []*conn // since the last call of Active
	news    int     // how many of gone have ended since
	scratch []int64

	// unstalled is a connection without stalls since unstalledFrom; nil if none is known. A stall, and the end of a connection, forgets it.
	unstalled     *rdma.Connection
	unstalledFrom int64

	last     *conn
	sizes    [5][sizeClasses]*group
	ended    []*connReport
	lost     uint64                // connections beyond maxConnections
	services map[Service]*[5]group // of those
	totals   Totals
	series   series
	after    reaction
	pauses   pauses
	fatals   []FatalNAK
	top      []*Episode
	ways     map[way]*lanes
	notices  [numNotices]noticeGroup

	markToCNP, cnpConn, cnpAddr, cnpPort latency.Sampler
	cnpAt                                map[cnpScope]rdma.Ref
}

// New makes a Recorder.
func New(opt Options) *Recorder {
	if opt.Memory <= 0 {
		opt.Memory = DefaultMemory
	}
	opt.Top = min(opt.Top, maxTop)
	r := &Recorder{
		opt: opt, samples: latency.NewSamplers(opt.Memory),
		services: make(map[Service]*[5]group), cnpAt: make(map[cnpScope]rdma.Ref),
		ways: make(map[way]*lanes),
	}
	r.scale = min(max(16*opt.Memory/DefaultMemory, 1), 16)
	r.series.length, r.series.fixed = int64(opt.Interval), opt.Interval > 0
	return r
}

// conn is the state of a connection.
type conn struct {
	owner   *Recorder
	place   int // in Recorder.live
	touched int // place in Recorder.touched, from 1; 0 if it is not there
	c       *rdma.Connection
	dirs    [2]direction
	marks   [2]congestion
	out     [2]outward // by sender

	named    bool
	name     Service
	guessed  bool
	hint     string
	messages int

	started  [2][5]uint64 // operations by side and kind, without those of rdma.Run.Sends
	extra    bool         // beyond maxConnections: it has no groups of its own
	groups   [5]*group
	notices  *[numNotices]noticeGroup // nil before the first episode
	fatal    uint64
	inFlight int

	served [2][numWorks]middle // by server
}

// over is Connection.Watched of a connection that is closed, or part of another one: stragglers
// are ignored.
type over struct{}

// WatchedConnection implements rdma.Watched.
func (over) WatchedConnection() {}

// WatchedConnection implements rdma.Watched.
func (*conn) WatchedConnection() {}

// conn is the state of c; nil if it is over.
func (r *Recorder) conn(c *rdma.Connection) *conn {
	if k := r.last; k != nil && k.c == c { // most packets; this is inlined
		return k
	}
	return r.find(c)
}

// find is conn for a connection other than the last. With Options.Live, which touches connections, that is none.
func (r *Recorder) find(c *rdma.Connection) *conn {
	k, _ := c.Watched.(*conn)
	if k == nil {
		if c.Watched != nil {
			return nil
		}
		k = r.newConn(c)
		c.Watched = k
	}
	if r.touch(k); !r.opt.Live {
		r.last = k
	}
	return k
}

func (r *Recorder) newConn(c *rdma.Connection) *conn {
	r.made++
	k := &conn{owner: r, c: c, extra: r.made > maxConnections}
	r.opened(k)
	return k
}

// group is the group of a kind of operations on a connection.
func (r *Recorder) group(k *conn, kind rdma.WorkKind) *group {
	if k.extra {
		return &r.of(k.service(r))[kind]
	}
	if k.groups[kind] == nil {
		k.groups[kind] = new(group)
	}
	return k.groups[kind]
}

// Saw implements rdma.Watcher.
func (r *Recorder) Saw(c *rdma.Connection, s *rdma.Sighting) {
	k := r.conn(c)
	if k == nil {
		return
	}
	if s.Restarted {
		r.giveUp(k, s.From, Interrupted)
		r.abandon(k, s.From)
	}
	resent := r.totals.Resent
	switch s.Class {
	case rdma.ClassRequest:
		r.request(k, s.From, s)
	case rdma.ClassReadResponse, rdma.ClassAck, rdma.ClassNAK, rdma.ClassRNR:
		r.response(k, s.From.Other(), s)
	case rdma.ClassSegment:
		r.segment(k, s)
	case rdma.ClassReady:
		r.ready(k, s)
		return
	}
	r.congested(k, s, s.Novelty == rdma.NoveltyAgain || r.totals.Resent > resent)
}

// Merged implements rdma.Watcher.
func (r *Recorder) Merged(into *rdma.Connection, side rdma.Side, from *rdma.Connection, was rdma.Side) {
	b, _ := from.Watched.(*conn)
	r.last, r.unstalled, from.Watched = nil, nil, over{}
	a := r.conn(into)
	if b == nil {
		return
	}
	r.left(b, false)
	if a == nil {
		r.drop(b, 0)
		r.drop(b, 1)
		return
	}
	// Only one side of from was known. Its answers as a responder could not be placed, so only
	// its requests and marks are moved.
	r.drop(b, was.Other())
	r.drop(a, side)
	d := &a.dirs[side]
	sends := d.Sends
	*d = b.dirs[was]
	d.Sends += sends
	if d.active {
		d.ep.From, d.ep.Connection = side, into
	}
	for seq := d.open.first; seq < d.open.next; seq++ {
		if o := d.open.at(seq); o != nil {
			o.From, o.Connection = side, into
		}
	}
	a.marks[side] = b.marks[was]
	a.out[side].merge(&b.out[was])
	for kind := range a.started[side] {
		a.started[side][kind] += b.started[was][kind]
	}
	for kind, g := range b.groups {
		if g != nil {
			r.group(a, rdma.WorkKind(kind)).merge(g, r.samples)
		}
	}
	if b.notices != nil {
		for i := range b.notices {
			a.notice(Notice(i)).merge(&b.notices[i])
		}
	}
	if !b.extra {
		r.made--
	}
	a.fatal += b.fatal
	a.inFlight = max(a.inFlight, b.inFlight)
	if a.hint == "" {
		a.hint = b.hint
	}
}

// Closed implements rdma.Watcher.
func (r *Recorder) Closed(c *rdma.Connection, ref rdma.Ref) {
	k, _ := c.Watched.(*conn)
	r.last, r.unstalled, c.Watched = nil, nil, over{}
	if k == nil {
		if c.Fabric == rdma.TCP || c.Fabric == rdma.UDP {
			return
		}
		k = r.newConn(c)
	}
	for side := range k.marks {
		if m := &k.marks[side]; m.lastCNP.Seen() { // the rate is that of sides that got CNPs
			r.after.reacted(m, m.newest)
		}
	}
	r.left(k, true)
	r.drop(k, 0)
	r.drop(k, 1)
	r.closed(k, ref)
}

// drop ends everything open in a direction, and frees its memory.
func (r *Recorder) drop(k *conn, side rdma.Side) {
	d := &k.dirs[side]
	r.giveUp(k, side, Unanswered)
	r.slots -= len(d.open.slots)
	d.open = ring{}
	r.abandon(k, side)
	d.stalls.reset(r)
}

// Totals count over all connections of RDMA.
type Totals struct {
	Packets       uint64 `json:"packets"`
	Bytes         uint64 `json:"bytes"` // as in the counters of connections
	Marked        uint64 `json:"marked"`
	CNPs          uint64 `json:"cnps"`
	UnmarkedCNPs  uint64 `json:"-"`
	Episodes      uint64 `json:"episodes"`
	NotRecovered  uint64 `json:"not_recovered"` // of Episodes: the sender had not caught up at the end
	Resent        uint64 `json:"resent"`        // packets
	ResentBytes   uint64 `json:"resent_bytes"`
	Needless      uint64 `json:"needless"`       // of Resent: had been acknowledged before
	Copies        uint64 `json:"copies"`         // packets that the network or the capture made twice: seen again sooner than any sender repeats
	Reordered     uint64 `json:"reordered"`      // packets that came late and were not sent again
	Overtaken     uint64 `json:"overtaken"`      // sequence NAKs without a loss: what they ask for had come late
	NotCaptured   uint64 `json:"not_captured"`   // packets (iWARP: holes in the stream) that were received and are not in the capture
	Unproven      uint64 `json:"unproven"`       // packets that are not in the capture, of directions without acknowledgements: nobody says whether they were received
	FatalNAKs     uint64 `json:"fatal_naks"`     // that end the connection
	NotOperations uint64 `json:"not_operations"` // operations counted by the connections that could not be followed
}

// FatalNAK is a NAK that ends a connection.
type FatalNAK struct {
	Connection *rdma.Connection
	From       rdma.Side
	PSN        uint32
	Code       string
	At         rdma.Ref
}

// group is operations that have something in common.
type group struct {
	count, completed, bytes, packets, again uint64
	inFlight                                int
	latency                                 latency.Sampler
	lost                                    Share
}

func (g *group) add(o *Operation, s *latency.Samplers) {
	g.count++
	g.bytes += o.Bytes
	g.packets += uint64(o.Packets)
	g.again += uint64(o.Again)
	g.inFlight = max(g.inFlight, o.InFlight)
	if o.Status == Completed {
		g.completed++
	}
	if d, ok := o.Latency(); ok {
		s.Add(&g.latency, int64(d))
		for c, n := range o.Lost {
			g.lost[c] += n
		}
	}
}

// include adds the contents of o, and leaves o unchanged.
func (g *group) include(o *group, s *latency.Samplers) {
	c := *o
	c.latency = latency.Sampler{}
	s.Include(&c.latency, &o.latency)
	g.merge(&c, s)
}

// merge moves the contents of o.
func (g *group) merge(o *group, s *latency.Samplers) {
	g.count += o.count
	g.completed += o.completed
	g.bytes += o.bytes
	g.packets += o.packets
	g.again += o.again
	g.inFlight = max(g.inFlight, o.inFlight)
	for c, n := range o.lost {
		g.lost[c] += n
	}
	s.Merge(&g.latency, &o.latency)
}

// sizeClasses are powers of two: class n holds up to 2^n bytes, class 0 none and one.
const sizeClasses = 33

func sizeClass(n uint32) int { return bits.Len32(max(n, 1) - 1) }

// count adds an operation to its groups.
func (r *Recorder) count(k *conn, o *Operation) {
	r.group(k, o.Kind).add(o, r.samples)
	k.inFlight = max(k.inFlight, o.InFlight)
	if o.Status == Completed {
		k.completed(o)
	}
	g := r.sizes[o.Kind][sizeClass(o.Length)]
	if g == nil {
		g = &group{}
		r.sizes[o.Kind][sizeClass(o.Length)] = g
	}
	g.add(o, r.samples)
}

// of is the groups of a service.
func (r *Recorder) of(s Service) *[5]group {
	list := r.services[s]
	if list == nil {
		if len(r.services) >= maxServices {
			s = unknown
			if list = r.services[s]; list != nil {
				return list
			}
		}
		list = &[5]group{}
		r.services[s] = list
	}
	return list
}

// noticeGroup sums up episodes.
type noticeGroup struct {
	count, unrecovered, naks, timeouts, resent, resentBytes, needless uint64
	goBackN, selective, partly                                        uint64
	time                                                              int64 // nanoseconds, of those that were recovered from
}

func (g *noticeGroup) add(e *Episode) {
	g.count++
	g.naks += uint64(e.NAKs) + uint64(e.RNRs)
	g.timeouts += uint64(e.Timeouts)
	g.resent += uint64(e.Resent)
	g.resentBytes += e.ResentBytes
	g.needless += uint64(e.Needless)
	switch e.Repeat {
	case GoBackN:
		g.goBackN++
	case Selective:
		g.selective++
	case Partly:
		g.partly++
	}
	if d, ok := e.Duration(); ok {
		g.time += int64(d)
	} else {
		g.unrecovered++
	}
}

func (g *noticeGroup) merge(o *noticeGroup) {
	g.count += o.count
	g.unrecovered += o.unrecovered
	g.naks += o.naks
	g.timeouts += o.timeouts
	g.resent += o.resent
	g.resentBytes += o.resentBytes
	g.needless += o.needless
	g.goBackN += o.goBackN
	g.selective += o.selective
	g.partly += o.partly
	g.time += o.time
}

// notice is where the episodes of a connection are summed up.
func (k *conn) notice(n Notice) *noticeGroup {
	if k.notices == nil {
		k.notices = new([numNotices]noticeGroup)
	}
	return &k.notices[n]
}

// episode takes an episode at its end.
func (r *Recorder) episode(k *conn, e *Episode) {
	r.totals.Episodes++
	if !e.CaughtUp.Seen() {
		r.totals.NotRecovered++
		k.unacknowledged(e)
	}
	r.notices[e.Notice].add(e)
	k.notice(e.Notice).add(e)
	if r.opt.Episode != nil {
		r.opt.Episode(e)
	}
	if r.opt.Top <= 0 {
		return
	}
	// Those without an end come first: the sender never caught up.
	if n := len(r.top); n >= r.opt.Top {
		if !longer(e, r.top[n-1]) {
			return
		}
		r.top = r.top[:n-1]
	}
	kept := *e
	kept.Lost = slices.Clone(e.Lost)
	i, _ := slices.BinarySearchFunc(r.top, &kept, func(a, b *Episode) int {
		if longer(b, a) {
			return 1
		}
		return -1
	})
	r.top = slices.Insert(r.top, i, &kept)
}

// longer orders episodes: those without an end first, then the longest, then the
// earliest.
func longer(a, b *Episode) bool {
	x, endsA := a.Duration()
	y, endsB := b.Duration()
	if endsA != endsB {
		return !endsA
	}
	return cmp.Or(cmp.Compare(y, x), cmp.Compare(a.Start().Number, b.Start().Number)) < 0
}

// connReport is what is kept of a connection that has ended.
type connReport struct {
	c        *rdma.Connection
	service  Service
	groups   [5]*group
	notices  *[numNotices]noticeGroup
	fatal    uint64
	inFlight int
}

// closed keeps what the report needs of a connection.
func (r *Recorder) closed(k *conn, _ rdma.Ref) {
	var seen, counted uint64
	for side := range k.c.Sent {
		n := &k.c.Sent[side]
		counted += n.Sends + n.Writes + n.Reads + n.Atomics
		seen += k.dirs[side].Sends
		for _, x := range k.started[side] {
			seen += x
		}
	}
	if counted > seen {
		r.totals.NotOperations += counted - seen
	}
	if r.opt.Lean {
		return
	}
	r.sent(k)
	if k.extra {
		r.lost++
		return
	}
	r.ended = append(r.ended, &connReport{k.c, k.service(r), k.groups, k.notices, k.fatal, k.inFlight})
}

// Totals are the counts so far.
func (r *Recorder) Totals() Totals { return r.totals }
