package latency

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Options selects what a Recorder collects. The zero value groups by operation.
type Options struct {
	By       []Key         // nil: by operation; empty: all in one group
	Interval time.Duration // of the time series; 0 chooses one that suits the capture
	Top      int           // slowest transactions to keep
	Inline   []uint32      // inline thresholds to try, in bytes
	// Unordered means that transactions arrive in the order they end, not in the order of their calls. The
	// report then has no time series and no calls in flight.
	Unordered bool
	// Memory is approximately how many bytes groups and histograms may take: 64 MiB by default. With less
	// there are fewer groups, and histograms lose digits earlier.
	Memory int
	// Ran asks for what ran in each interval: see Slot.Ran.
	Ran bool
	// Draw, if set, appends a drawing of a transaction: Slow.Drawing. It is called for each transaction that
	// is among the 100 slowest of Top at its time; of one that is not among them in the end it is dropped.
	Draw func(b []byte, v *rpc.View) []byte
}

// DefaultMemory is the default of Options.Memory.
const DefaultMemory = 64 << 20

// DefaultInline are useful thresholds: the default of RFC 8166, those of Linux, and larger ones.
var DefaultInline = []uint32{1024, 4096, 16384, 65536}

// Recorder collects the contents of a Report. Add must be called from one goroutine; Closed and the methods
// of the observer (see Observer) may be called from another at the same time.
type Recorder struct {
	opt       Options
	mem       memory
	maxGroups int
	groups    map[string]*group
	order     []*group
	byOp      bool                   // groups are formed by operation alone
	kinds     *compound.Kinds        // made when it is needed
	ofKind    [compound.Most]grouped // if byOp
	other     *group
	key       []byte
	names     *rpc.Names

	groupsLost  uint64 // transactions in "other"
	series      series
	flows       map[int]*flow
	recentFlows [64]recentFlow
	flowsLost   bool
	all         level   // calls of all connections
	events      int     // remaining room in the heaps
	slow        slowest // without those of setup
	setup       slowest // Slow.Setup
	drawn       slowest // those of slow that have drawings
	text        []byte  // scratch
	troubles    [numTroubles]trouble
	again       counts // troubles of transactions over time
	unlisted    uint64 // transactions with more kinds of trouble than they list

	wire wire
}

// wire records what the decoding goroutine reports.
type wire struct {
	sync.Mutex
	closed        []ended
	retransmitted uint64 // of connections that are not in closed any more
	lost          uint64
	events        counts
	kinds         [numTroubles]uint64
}

// New makes a Recorder.
func New(opt Options) *Recorder {
	if opt.By == nil {
		opt.By = []Key{ByOperation}
	}
	opt.Top = min(max(opt.Top, 0), maxTop)
	opt.Inline = opt.Inline[:min(len(opt.Inline), maxThresholds)]
	if opt.Memory <= 0 {
		opt.Memory = DefaultMemory
	}
	r := &Recorder{
		opt: opt, mem: memory{limit: opt.Memory / 2}, maxGroups: min(max(opt.Memory/(DefaultMemory/maxGroups), 16), maxGroups),
		groups: make(map[string]*group), flows: make(map[int]*flow), events: maxEvents,
		slow: newSlowest(opt.Top), setup: newSlowest(opt.Top), drawn: newSlowest(min(2*opt.Top, maxDrawn)),
	}
	r.byOp = len(opt.By) == 1 && opt.By[0] == ByOperation
	r.series = series{spans: newSpans(opt.Interval), mem: &r.mem}
	r.again.spans = newSpans(opt.Interval)
	r.wire.events.spans = newSpans(opt.Interval)
	return r
}

// Add records a transaction. It keeps nothing of the view except v.Names. It returns the index of the
// transaction's group in Groups.
func (r *Recorder) Add(v *rpc.View) int {
	tx := v.Tx
	r.names = v.Names
	g := r.group(v)
	failed := v.Failed()
	g.add(v, failed)
	set := troublesOf(tx)
	var p transaction.Phases
	ok := tx.SetPhases(&p)
	if ok && p.Total < 0 {
		g.OddClock++
		ok = false
	}
	inFlight := 0
	var s *slot
	if !r.opt.Unordered {
		inFlight = r.follow(tx)
		s = r.series.at(tx.First().Time)
		s.add(tx, failed)
	}
	if tx.State == transaction.Complete && tx.Call.Transport && tx.Reply.Transport {
		g.addChunks(tx, r.opt.Inline)
	}
	g.waited(tx)
	if !ok {
		if set != 0 {
			r.addTrouble(g, tx, set, -1)
		}
		if s != nil && r.opt.Ran {
			r.ran(s, g, v, 0)
		}
		return g.index
	}
	g.time(&p, &r.mem)
	if !p.Divided() {
		g.Undivided++
		g.UndividedTime += uint64(p.Total)
	}
	g.path(tx, &p)
	g.blame(tx, &p)
	if s != nil {
		r.series.took(int64(p.Total))
	}
	if s != nil && r.opt.Ran {
		r.ran(s, g, v, int64(p.Total))
	}
	if set == 0 {
		g.clean.count++
		g.clean.sum += float64(p.Total)
	} else {
		r.addTrouble(g, tx, set, int64(p.Total))
	}
	r.slowIf(v, &p, set, inFlight)
	return g.index
}

// slowIf keeps a transaction if it is among the slowest.
func (r *Recorder) slowIf(v *rpc.View, p *transaction.Phases, set uint16, inFlight int) {
	if !r.slow.wants(int64(p.Total)) {
		return
	}
	of := &r.slow
	if r.text = text.Operations(r.text[:0], v); SetsUp(string(r.text)) {
		if of = &r.setup; !of.wants(int64(p.Total)) {
			return
		}
	}
	x := slow(v, p, set, inFlight)
	if r.opt.Draw != nil {
		r.draw(x, v)
	}
	of.add(x)
}

// draw draws a transaction that is among the slowest of the slowest.
func (r *Recorder) draw(x *Slow, v *rpc.View) {
	if !r.drawn.wants(x.Total) {
		return
	}
	x.Drawing = r.opt.Draw(nil, v)
	if len(r.drawn.heap) == r.drawn.n {
		r.drawn.heap[0].Drawing = nil
	}
	r.drawn.add(x)
}

// ran records what runs in an interval.
func (r *Recorder) ran(s *slot, g *group, v *rpc.View, total int64) {
	if s.ran == nil {
		s.ran = &ran{}
	}
	s.ran.add(g.index, 1, total)
	if x := &s.ran.slow; total > x.Total {
		tx := v.Tx
		*x = Ran{
			XID: tx.XID, Connection: tx.Connection.ID, CallFrame: tx.Call.First.Number, ReplyFrame: tx.Reply.Last.Number,
			Operation: operationName(v), Total: total,
		}
	}
}

// grouped is the group of calls of a kind.
type grouped struct {
	stamp uint64 // of the compound.Kind
	group *group
}

// group finds the group of a transaction.
func (r *Recorder) group(v *rpc.View) *group {
	if !r.byOp {
		return r.groupOf(v)
	}
	if r.kinds == nil {
		r.kinds = new(compound.Kinds)
	}
	k := r.kinds.Of(v)
	if k == nil {
		return r.groupOf(v)
	}
	if x := &r.ofKind[k.Slot]; x.stamp == k.Stamp {
		return x.group
	}
	g := r.groupOf(v)
	if g != r.other {
		r.ofKind[k.Slot] = grouped{k.Stamp, g}
	}
	return g
}

// groupOf finds the group of a transaction by its whole key.
func (r *Recorder) groupOf(v *rpc.View) *group {
	b := r.key[:0]
	for _, k := range r.opt.By {
		at := len(b)
		b = append(b, 0, 0)
		b = appendKey(b, k, v)
		if n := len(b) - at - 2; n > maxLabel {
			// It may be as long as a message: use its beginning and a checksum.
			sum := crc32.ChecksumIEEE(b[at+2:])
			b = binary.LittleEndian.AppendUint32(b[:at+2+maxLabel], sum)
		}
		binary.LittleEndian.PutUint16(b[at:], uint16(len(b)-at-2))
	}
	r.key = b
	g := r.groups[string(b)]
	if g == nil {
		g = r.newGroup(v)
	}
	if g == r.other {
		r.groupsLost++
	}
	return g
}

func (r *Recorder) newGroup(v *rpc.View) *group {
	if len(r.groups) >= r.maxGroups {
		if r.other == nil {
			r.other = &group{index: len(r.order), inline: make([]Inline, len(r.opt.Inline)), filePart: -1}
			for range r.opt.By {
				r.other.labels = append(r.other.labels, otherName)
			}
			r.order = append(r.order, r.other)
		}
		return r.other
	}
	g := &group{index: len(r.order), key: string(r.key), tenant: v.Tx.Connection.Tenant, inline: make([]Inline, len(r.opt.Inline)), filePart: -1}
	for i, k := range r.opt.By {
		g.labels = append(g.labels, label(k, v))
		if f := v.File(); k == ByFile && f != nil && f.Handle != nil && !f.Unnamed && len(f.Handle) <= maxLabel && len(v.AppendPath(nil)) == 0 {
			g.handle, g.server, g.filePart = append([]byte(nil), f.Handle...), rpc.ServerOf(v.Tx), i
		}
	}
	if len(r.opt.By) == 1 && r.opt.By[0] == BySize {
		g.size = sizeClass(v)
	}
	r.groups[g.key] = g
	r.order = append(r.order, g)
	return g
}

// ended is a connection at its end, with the side that sends forward calls.
type ended struct {
	rdma.Connection
	client rdma.Side
}

// Closed records a connection at its end, or at the end of the capture.
func (r *Recorder) Closed(c *rdma.Connection) {
	if c.MergedInto != nil {
		return
	}
	w := &r.wire
	w.Lock()
	defer w.Unlock()
	if len(w.closed) >= maxAudited {
		w.lost++
		return
	}
	client, _ := transaction.ClientOf(c)
	w.closed = append(w.closed, ended{c.Copy(), client})
}

// Observer returns what counts each event of a connection once, and records connections at their end.
func (r *Recorder) Observer() decode.Observer {
	return decode.Observer{Event: r.event, Closed: r.Closed}
}

func (r *Recorder) event(_ *rdma.Connection, _ rdma.Side, what rdma.Event, _ uint32, ref rdma.Ref) {
	k, ok := troubleOf(what)
	if !ok {
		return
	}
	w := &r.wire
	w.Lock()
	w.kinds[k]++
	w.events.add(ref.Time, k)
	w.Unlock()
}
