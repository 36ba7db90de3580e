package latency

import (
	"encoding/binary"
	"hash/crc32"
	"sync"
	"time"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
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
	recent    [64]*group // by recentOf: the map costs several times as much
	byOp      bool       // groups are formed by operation alone
	// leastInline is the longest message that fits all of Options.Inline.
	recentOps [64]recentOp
	called    [64]called
	other     *group
	key       []byte
	names     *rpc.Names

	groupsLost  uint64 // transactions in "other"
	series      series
	flows       map[int]*flow
	lastFlow    *flow
	lastID      int
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
	closed []ended
	lost   uint64
	events counts
	kinds  [numTroubles]uint64
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

// operation is what distinguishes groups that are formed by operation, as appendKey says.
type operation struct {
	program, version, minor uint32
	hasMinor, named         bool
	name                    string
}

// recentOp is a group that was found lately. Its key is compared as it is, without being put together.
type recentOp struct {
	operation
	g        *group // nil: none
	compound *group // the same, if that is of usual COMPOUNDs
}

// remembered is what is kept of the group of an operation.
func (x *operation) remembered(g *group) recentOp {
	if x.hasMinor && x.named {
		return recentOp{*x, g, g}
	}
	return recentOp{operation: *x, g: g}
}

// called is the group of a procedure whose calls consist of no operations. It was found lately. Programs of callbacks share their
// procedures, and have numbers of their own.
type called struct {
	procedure *xdr.Procedure // nil: none
	program   uint32
	g         *group
}

// of reports whether a transaction calls it. That has a Procedure.
func (x *called) of(v *rpc.View) bool { return x.procedure == v.Procedure && x.program == v.Tx.Program }

// calledBy is the place of the procedure that a transaction calls.
func (r *Recorder) calledBy(v *rpc.View) *called {
	return &r.called[v.Tx.Procedure%uint32(len(r.called))]
}

// operationOf is what distinguishes the operation of a transaction.
func operationOf(v *rpc.View) operation {
	tx := v.Tx
	x := operation{program: tx.Program, version: tx.Version, named: tx.Named, name: text.Operation(v)}
	x.minor, x.hasMinor = v.MinorVersion()
	return x
}

// place is a number below 64 that differs for the names of most operations of a workload.
func place(name string) int {
	n := uint(len(name))
	if n == 0 {
		return 0
	}
	return int((uint(name[n-1])*7 + uint(name[n-(n+3)/4])*3 + n) & 63)
}

// compoundOf is the group of a usual COMPOUND, if it was found lately; else nil.
func (r *Recorder) compoundOf(v *rpc.View) *group {
	minor, compound := v.MinorVersion()
	if !compound {
		return nil
	}
	tx, name := v.Tx, v.OperationGroup()
	if x := &r.recentOps[place(name)]; x.program == tx.Program && x.version == tx.Version && x.minor == minor && x.name == name {
		return x.compound
	}
	return nil
}

// group finds the group of a transaction.
func (r *Recorder) group(v *rpc.View) *group {
	if !r.byOp {
		return r.groupOf(v)
	}
	// A usual transaction has a procedure, and operations only if it is a COMPOUND.
	if !v.Clean() && (v.Procedure == nil || !v.Tx.Named || len(v.Steps()) > 0) {
		return r.groupByOperation(v)
	}
	if v.Compound() {
		if v.Clean() {
			if g := r.compoundOf(v); g != nil {
				return g
			}
		}
		return r.groupByOperation(v)
	}
	recent := r.calledBy(v)
	if v.Procedure != nil && recent.of(v) {
		return recent.g
	}
	g := r.groupByOperation(v)
	if g != r.other && v.Clean() { // so it is not a COMPOUND, and none that could not be decoded
		*recent = called{v.Procedure, v.Tx.Program, g}
	}
	return g
}

// groupByOperation finds the group of a transaction by the operation that counts for most.
func (r *Recorder) groupByOperation(v *rpc.View) *group {
	x := operationOf(v)
	recent := &r.recentOps[place(x.name)]
	if recent.g != nil && recent.operation == x {
		return recent.g
	}
	g := r.groupOf(v)
	if g != r.other {
		*recent = x.remembered(g)
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
	recent := &r.recent[recentOf(b)]
	if g := *recent; g != nil && g.key == string(b) {
		return g
	}
	g := r.groups[string(b)]
	if g == nil {
		g = r.newGroup(v)
	}
	if g == r.other {
		r.groupsLost++
		return g
	}
	*recent = g
	return g
}

// recentOf is a number below 64 that differs for most of the groups of a workload.
func recentOf(key []byte) int {
	n := len(key)
	if n == 0 {
		return 0
	}
	return (int(key[n-1])*7 + int(key[n-(n+3)/4])*3 + n) & 63
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
