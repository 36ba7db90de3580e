package diagnosis

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"maps"
	"math"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/adapter"
	"github.com/rpcrdma/toolkit/analyze/compound"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// batchCalls is how many calls are looked at together. A longer capture is looked at in pieces, and the causes add up.
const batchCalls = 1 << 14

// manyCalls is from how many calls on room is made for a whole batch.
const manyCalls = 1 << 10

// Limits of what is remembered.
const (
	maxNames    = 1 << 14 // operations, addresses
	maxConns    = 8192
	maxFindings = 1024 // those that cost least are left out
)

// Options of a Recorder.
type Options struct {
	File string // name of the input, for evidence and for what to do next; empty if there are several
	// Live keeps the latest interval for Interval, and forgets connections that have ended: see Roll.
	Live bool
	// Calls is the number of calls evaluated together: 16,384, or fewer.
	Calls int
	// Connections is the number of connections followed: 8192, or fewer.
	Connections int

	kept bool // the calls stay, to be joined with those of other capture points
}

func (o *Options) defaults() {
	if !o.kept && (o.Calls <= 0 || o.Calls > batchCalls) {
		o.Calls = batchCalls
	}
	if o.Connections <= 0 || o.Connections > maxConns {
		o.Connections = maxConns
	}
}

// Recorder takes the transactions of a capture.
type Recorder struct {
	opt   Options
	watch *watcher
	calls []call

	mu    sync.Mutex
	ended []ended
	holes map[int]uint64 // in the streams of TCP of a connection; of others, the packets that were acknowledged and are not in the capture

	names     names
	kinds     []kind // of names
	compounds compound.Kinds
	numbered  [compound.Most]numbered // of compounds
	conns     map[int]*conn
	order     []*conn // by ID

	sum map[causeKey]*finding
	p99 []int64
	few map[uint16]bool // clients whose sessions have no more slots than they asked for
	figures
	interval interval // with Options.Live
	traffic  *traffic // instead of watch
	adapters *adapter.Recorder
	points   *points // nil: the packets of all capture points are followed together
	final    bool    // it is a copy, made for a Report
}

// note counts a call that asks to wait, or recalls.
func (f *figures) note(x *call) {
	f.waits += b2i(x.asksToWait())
	f.recalls += b2i(x.kind == recalling)
}

// figures are counts of all calls.
type figures struct {
	total int64 // of all latencies, as the applications saw them
	open  int64 // time in which a call was under way
	first int64
	last  int64
	count int

	waits   int // replies that ask to wait
	recalls int

	unanswered int   // calls without a reply
	hanging    int64 // how long the oldest of them had waited when the last packet of a call or reply came
	beyond     uint64
	mixed      bool // copies of packets are distinguished by their order only
	events     bool // a kernel has recorded calls: of the network it says nothing
	unsure     bool // and it is not clear which are copies

	gaps, packets uint64   // of connections that were forgotten
	doubtful      bool     // one of them
	earlier       []string // their ends
}

// Beyond is how many calls were left out, since they belong to connections or hosts beyond the number that is looked at.
func (r *Recorder) Beyond() uint64 { return r.beyond }

type causeKey struct {
	code  Code
	where string
}

// call is what is kept of a transaction. Times are nanoseconds since 1970.
type call struct {
	conn           *conn
	client, server uint16 // in names
	op             uint16
	xid            uint32
	frame          uint64
	place          *place // where it was captured; nil: see Options.File
	stamp          int64  // of its first packet, by the clock of that place
	sent           int64  // first, on whatever connection
	from           int    // connection on which that was
	start, end     int64  // first packet of the call, last of the reply; end is 0 without one
	callEnd        int64
	act            int64 // first that the server did after it had the call: read, write, or reply
	firstRead      int64
	lastRead       int64
	answer         int64 // first RDMA Write, or first packet of the reply
	done           int64 // when the client had all
	wayS, wayC     int64 // transport round trips between the server, or the client, and the capture point farthest from it; -1 unknown
	nearS, nearC   int64 // and the nearest one: the same if there is only one
	forth, back    int64 // what the call and the reply took from one capture point to the other
	pulled         int64 // from the first Read Request to the last response, at the capture point nearest the client
	bytes          uint32
	reads          uint16
	credits, slots int64
	slotLimit      uint32
	lost           [rdma.NumCauses]int64
	granted        uint32
	asked          uint32
	rawGrant       uint32
	thing          uint64 // what the call is about: a sum of handle and name
	status         status
	kind           kind
	pushed         bool // RDMA Writes carry data of the reply
	resent         bool // packets of it came again
	opaque         bool // its time is known as a whole only: the server and the way to it are not distinguished
	told           bool // a kernel has measured how long it waited for a credit, or for a thread
	backward       bool

	asked1  int64 // when the server was asked first, if it asked the client to wait
	again   bool  // the call was sent again, under another number or on another connection: that one counts
	guessed bool  // sent is not seen

	// What the causes find out.
	hidden bool   // its acknowledgement says nothing of the way to the server
	ahead  int32  // calls that the server had when it came
	work   uint32 // number of its work
	group  uint32 // of the operation of its server
	app    int64  // latency as the application saw it
	left   int64  // of it that no cause has taken
}

type status uint8

const (
	okay status = iota
	wait        // JUKEBOX, DELAY
	grace
	failed
	unanswered
)

type kind uint8

const (
	other kind = iota
	opening
	recalling
	returning
	settingUp // a mount
	askingFew // that creates a session with no more slots than the client asked for
)

// conn is a connection.
type conn struct {
	id      int
	place   int // in Recorder.order
	key     string
	fabric  rdma.Fabric
	timeout int64 // of the transport's acknowledgement, as announced; 0 unknown
	calls   []*call
	ways    [2]int64 // median round trip to the server, to the client
	floor   [2]int64 // least round trips: what distance makes of them, without queues
	near    [2]int64 // the same between each side and the capture point nearest it
	spread  [2]int64 // of the middle half of them
	bunch   [2]int64 // the same of the quick ones of TCP
	samples [2]int
	hosts   [2]host // of both sides
	pair    int     // of hosts: its number in the batch
	client  rdma.Side
	depth   int   // RDMA Reads of the server at once, as announced; 0 unknown
	shallow Side  // whose setup allows the fewest RDMA Reads at once
	after   int64 // of calls sent again here: when the last of them was sent first
	left    int64 // when its calls were sent again elsewhere, it was after this
	paused  bool  // frames of flow control explain where its path stands still
	queued  bool  // what its calls waited for has been found: what is left is no work of the server
	gaps    uint64
	packets uint64

	// Of an interval: whether its round trips differ on the whole, and the least of them; 0 or less if that is not known.
	unsteady bool
	known    [2]int64

	behindReads bool     // much of the latency is waiting for the Read depth
	answersLate bool     // its client's acknowledgements are late, though the path carries what it sends
	slots       *finding // of it

	both  *both // nil: it is followed at one capture point
	shown place // of a capture point
	same  int   // of a capture point: its number in the whole
}

// numbered is the name of the operation of a compound.Kind.
type numbered struct {
	stamp uint64
	name  uint16
}

// host is an address, and its number in names.
type host struct {
	addr netip.Addr
	name uint16
}

// names numbers strings.
type names struct {
	list []string
	at   map[string]uint16
}

func (n *names) of(s []byte) uint16 {
	if i, ok := n.at[string(s)]; ok {
		return i
	}
	if len(n.list) >= maxNames {
		return 0
	}
	if n.at == nil {
		n.at = make(map[string]uint16)
		n.list = append(n.list, "others")
	}
	n.list = append(n.list, string(s))
	n.at[string(s)] = uint16(len(n.list) - 1)
	return uint16(len(n.list) - 1)
}

func (n *names) name(i uint16) string { return n.list[i] }

// adopt gives a call with the numbers of other names those of n.
func (n *names) adopt(x *call, other *names) {
	for _, i := range [...]*uint16{&x.client, &x.server, &x.op} {
		*i = n.of([]byte(other.name(*i)))
	}
}

// New makes a Recorder.
func New(opt Options) *Recorder {
	opt.defaults()
	return &Recorder{opt: opt, conns: make(map[int]*conn), sum: make(map[causeKey]*finding), adapters: adapter.New()}
}

// conn is what is known of a connection; nil if there are too many.
func (r *Recorder) conn(tx *transaction.Transaction) *conn {
	c := tx.Connection.Resolve()
	k := r.conns[c.ID]
	if k == nil {
		if len(r.conns) >= r.opt.Connections {
			return nil
		}
		k = &conn{id: c.ID, place: len(r.order), fabric: c.Fabric, ways: [2]int64{-1, -1}, floor: [2]int64{-1, -1}, near: [2]int64{-1, -1}, key: string(rpc.AppendConnectionKey(nil, c))}
		r.conns[c.ID] = k
		r.order = append(r.order, k)
	}
	if k.timeout == 0 {
		for i := range c.Setup {
			if s := &c.Setup[i]; s.Message == rdma.SetupREQ && s.AckTimeout != 0 {
				k.timeout = 4096 << (s.AckTimeout & 31)
			}
		}
	}
	if !tx.Backward {
		k.client = tx.From
	}
	if k.shallow == "" && !tx.Backward {
		k.shallow = Server
		a, z := &c.Setup[tx.From], &c.Setup[tx.From.Other()]
		if a.Depths() && (!z.Depths() || a.ResponderDepth <= z.InitiatorDepth) {
			k.shallow = Client
		}
		if a.Depths() && z.Depths() {
			k.depth = int(min(a.ResponderDepth, z.InitiatorDepth))
		}
	}
	k.gaps = max(k.gaps, missingOf(c))
	k.packets = c.Sent[0].Packets + c.Sent[1].Packets
	return k
}

// segmentSize is the approximate size of a TCP segment: gaps of TCP are counted in bytes.
const segmentSize = 1460

// missingOf estimates how many packets of a connection are missing from the capture.
func missingOf(c *rdma.Connection) uint64 {
	n := c.Sent[0].Gaps + c.Sent[1].Gaps
	if c.Fabric >= rdma.IWARP {
		n = (n + segmentSize - 1) / segmentSize
	}
	return n
}

// ended is a connection that has ended.
type ended struct {
	id          int
	hosts       [2]netip.Addr
	first, last int64
	sends       uint64
	rejected    bool
	gaps        uint64
	packets     uint64
	doubtful    bool // what was sent contradicts itself: whether packets are missing is not certain
	key         string
	frame       uint64 // its first packet
}

// Closed takes what is known of a connection at its end. It may be called while another goroutine calls other methods.
func (r *Recorder) Closed(c *rdma.Connection) {
	if c.MergedInto == nil && c.Fabric != rdma.UDP {
		r.gone(c, c.State == rdma.Rejected)
	}
}

func (r *Recorder) attempt(c *rdma.Connection, a decode.Asked) {
	if a.Connections == 0 { // it was refused
		r.gone(c, true)
	}
}

// event counts the places where the capture lacks bytes of TCP, or packets that were acknowledged.
func (r *Recorder) event(c *rdma.Connection, _ rdma.Side, e rdma.Event, n uint32, _ rdma.Ref) {
	if e != rdma.EventGap {
		return
	}
	if c.Fabric >= rdma.IWARP {
		n = 1
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.holes) < maxConns {
		if r.holes == nil {
			r.holes = make(map[int]uint64)
		}
		r.holes[c.ID] += uint64(n)
	}
}

func (r *Recorder) gone(c *rdma.Connection, rejected bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	holes := r.holes[c.ID]
	delete(r.holes, c.ID)
	if len(r.ended) >= maxConns {
		return
	}
	e := ended{
		id: c.ID, hosts: [2]netip.Addr{c.Ends[0].Addr, c.Ends[1].Addr}, first: c.First.Time, last: c.Last.Time, sends: c.Sent[0].Sends + c.Sent[1].Sends,
		key: string(rpc.AppendConnectionKey(nil, c)), frame: c.First.Number, rejected: rejected, gaps: missingOf(c), packets: c.Sent[0].Packets + c.Sent[1].Packets,
		doubtful: c.Sent[0].Resyncs+c.Sent[1].Resyncs > 0,
	}
	switch {
	case c.Fabric < rdma.IWARP:
		e.gaps = min(e.gaps, holes) // others may have been lost before the capture point, and would have been sent again after its end
	case holes == 1 && !c.Setup[0].Seen() && !c.Setup[1].Seen():
		e.gaps = 0 // it may have been sent before the capture began, behind something that was lost
	}
	if e.hosts[1].Less(e.hosts[0]) {
		e.hosts[0], e.hosts[1] = e.hosts[1], e.hosts[0]
	}
	r.ended = append(r.ended, e)
}

// Transaction takes a transaction.
func (r *Recorder) Transaction(v *rpc.View) {
	tx := v.Tx
	if !tx.Call.Seen() || tx.Connection.Fabric == rdma.UDP {
		return
	}
	k := r.conn(tx)
	client, server := r.host(k, tx, tx.From), r.host(k, tx, tx.From.Other())
	if client == 0 || server == 0 { // who is not known is somebody else
		r.beyond++
		return
	}
	if n := len(r.calls); n == r.opt.Calls {
		if r.opt.kept { // nobody has fetched them
			r.beyond++
			return
		}
		r.flush()
	} else if n == manyCalls && !r.opt.kept {
		r.calls = slices.Grow(r.calls, max(r.opt.Calls-manyCalls, 0))
	}
	r.calls = append(r.calls, call{})
	x := &r.calls[len(r.calls)-1]
	x.conn, x.client, x.server, x.backward, x.resent = k, client, server, tx.Backward, tx.Retransmits > 0
	x.xid, x.frame, x.sent, x.from = tx.XID, tx.Call.Last.Number, tx.FirstSent(), tx.FirstOn()
	x.start, x.stamp, x.callEnd = tx.Call.First.Time, tx.Call.First.Time, tx.Call.Last.Time
	x.credits, x.slots, x.slotLimit = int64(tx.Credits), int64(tx.Slots), tx.SlotLimit
	x.bytes, x.reads = uint32(min(tx.ReadBytes+tx.WriteBytes, 1<<31)), uint16(min(tx.Reads, 1<<15))
	x.rawGrant, x.asked = tx.Reply.Credits(), tx.Call.Credits()
	x.granted = max(x.rawGrant, 1)
	if tx.Reply.Header.Cut && x.rawGrant == 0 {
		x.rawGrant, x.granted = math.MaxUint32, math.MaxUint32 // the capture may end before the grant
	}
	x.op = r.operation(v)
	x.kind = r.kindOf(tx, x.op)
	if x.kind == recalling {
		r.recalls++
	}
	w := tx.Ways()
	x.wayS, x.wayC = int64(w.Server), int64(w.Client)
	if tx.Kernel != nil {
		r.told(x, tx.Kernel)
		if tx.Reply.Seen() {
			r.adapters.Call(tx.Reply.Last.Time, tx.Reply.Last.Time-tx.Call.First.Time)
		}
	}
	x.nearS, x.nearC = x.wayS, x.wayC
	if _, ok := tx.Took(); ok {
		r.replied(x, v)
	} else {
		x.status = unanswered
	}
	if r.waits > 0 || r.recalls > 0 {
		x.thing = r.thing(v, x.op)
	}
	if r.opt.Live {
		r.interval.add(x)
	}
}

// operation is the number of the name of a transaction's operation.
func (r *Recorder) operation(v *rpc.View) uint16 {
	k := r.compounds.Of(v)
	if k != nil && r.numbered[k.Slot].stamp == k.Stamp {
		return r.numbered[k.Slot].name
	}
	var b [128]byte
	name := r.names.of(v.AppendOperation(b[:0]))
	if k != nil {
		r.numbered[k.Slot] = numbered{k.Stamp, name}
	}
	return name
}

// told takes what a kernel knows of its own calls.
func (r *Recorder) told(x *call, k *transaction.Kernel) {
	r.events = true
	if !k.Server {
		x.opaque, x.credits, x.told = true, max(int64(k.CreditWait), 0), k.CreditWait >= 0
		return
	}
	x.wayS, x.credits = 0, 0 // it is where the server is, and does not see the grants
	if k.Wakeup >= 0 {
		x.told = true // the call was there before a thread took it up, at callEnd
		x.sent -= int64(k.Wakeup)
		x.start -= int64(k.Wakeup)
	}
}

// replied notes what a call with a reply has in addition.
func (r *Recorder) replied(x *call, v *rpc.View) {
	tx := v.Tx
	x.end, x.done = tx.Reply.Last.Time, tx.DataDone().Time
	if a := tx.Times.Ack; x.resent && a.Seen() && a.Time < x.end && !tx.Times.FirstPush.Seen() {
		x.end, x.done = tx.Reply.First.Time, max(tx.Reply.First.Time, min(x.done, a.Time)) // what came later is a copy
	}
	x.firstRead, x.lastRead = tx.Times.FirstRead.Time, tx.Times.LastRead.Time
	x.pulled = x.lastRead - x.firstRead
	x.answer = tx.Reply.First.Time
	if p := tx.Times.FirstPush; p.Seen() && p.Time < x.answer {
		x.answer, x.pushed = p.Time, true
	}
	x.act = x.answer
	if x.firstRead != 0 && x.firstRead < x.act {
		x.act = x.firstRead
	}
	if bl := tx.Blame; bl != nil && !bl.Clean {
		for i := range x.lost {
			x.lost[i] = int64(bl.Of(rdma.Cause(i)))
		}
	}
	if !v.Failed() {
		if x.kind == settingUp && asksFew(v) {
			x.kind = askingFew
		}
		return
	}
	switch s := v.Status(); {
	case strings.HasSuffix(s, "ERR_DELAY") || strings.HasSuffix(s, "ERR_JUKEBOX"):
		x.status = wait
		r.waits++
	case strings.HasSuffix(s, "ERR_GRACE"):
		x.status = grace
		r.waits++
	default:
		x.status = failed
	}
}

// asksFew reports whether a session was created that has as many slots as its client asked for: it is the client that limits itself.
func asksFew(v *rpc.View) bool {
	return slices.ContainsFunc(v.Operations(), func(o rpc.Operation) bool {
		a, _ := o.Args.(*nfs4.CREATE_SESSION4args)
		r, _ := o.Result.(*nfs4.CREATE_SESSION4res)
		return a != nil && r != nil && a.CsaForeChanAttrs.CaMaxrequests <= r.CsrResok4.CsrForeChanAttrs.CaMaxrequests
	})
}

// thing is a sum of what a call is about: calls of the same operation on the same file have the same.
func (r *Recorder) thing(v *rpc.View, op uint16) uint64 {
	f := v.File()
	if f == nil {
		return 0
	}
	var b [8]byte
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.names.name(op)))
	_, _ = h.Write(f.Handle)
	_, _ = h.Write(f.Name)
	_, _ = h.Write(binary.BigEndian.AppendUint64(b[:0], f.Offset))
	return h.Sum64()
}

// host is the name of the address of a side of a connection; 0 if there are too many.
func (r *Recorder) host(k *conn, tx *transaction.Transaction, side rdma.Side) uint16 {
	if k == nil {
		return 0
	}
	h, addr := &k.hosts[side&1], tx.Connection.Ends[side&1].Addr
	if h.name == 0 || h.addr != addr {
		*h = host{addr, r.names.of([]byte(addr.String()))}
	}
	return h.name
}

// kindOf tells the calls apart that a cause asks for.
func (r *Recorder) kindOf(tx *transaction.Transaction, op uint16) kind {
	for len(r.kinds) <= int(op) {
		r.kinds = append(r.kinds, kindNamed(r.names.name(uint16(len(r.kinds)))))
	}
	if k := r.kinds[op]; (k == recalling) == tx.Backward {
		return k
	}
	return other
}

// kindNamed is the kind of calls of an operation.
func kindNamed(op string) kind {
	switch {
	case strings.Contains(op, "CB_RECALL"):
		return recalling
	case strings.Contains(op, "DELEGRETURN"):
		return returning
	case strings.Contains(op, "OPEN"), strings.Contains(op, "SETATTR"), strings.Contains(op, "REMOVE"), strings.Contains(op, "RENAME"):
		return opening
	case latency.SetsUp(op):
		return settingUp
	}
	return other
}

// flush looks for causes in the calls that have come.
func (r *Recorder) flush() {
	if len(r.calls) == 0 && (r.points == nil || !r.final) {
		return
	}
	if r.points != nil {
		r.points.join(r)
	}
	if earlier := func(i, j int) bool { return r.calls[i].start < r.calls[j].start }; !sort.SliceIsSorted(r.calls, earlier) {
		sort.SliceStable(r.calls, earlier)
	}
	for _, k := range r.order {
		k.calls, k.after, k.left = k.calls[:0], 0, 0
		k.queued, k.paused, k.behindReads, k.answersLate = false, false, false, false
	}
	for i := range r.calls {
		x := &r.calls[i]
		x.conn.calls = append(x.conn.calls, x)
	}
	b := &batch{Recorder: r, inLine: make(map[uint16]bool), busy: make(map[uint16]float64)}
	b.causes()
	r.calls = r.calls[:0]
	r.least()
}

// least drops the least costly findings if there are too many.
func (r *Recorder) least() {
	if len(r.sum) <= maxFindings {
		return
	}
	list := make([]*finding, 0, len(r.sum))
	for _, f := range r.sum {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *finding) int {
		return cmp.Or(cmp.Compare(b.time, a.time), cmp.Compare(a.code, b.code), cmp.Compare(a.place(), b.place()))
	})
	for _, f := range list[maxFindings/2:] {
		delete(r.sum, causeKey{f.code, f.place()})
	}
}

// copied returns a copy of the Recorder that may be changed.
func (r *Recorder) copied() *Recorder {
	c := &Recorder{
		opt: r.opt, watch: r.watch, traffic: r.traffic, points: r.points, final: true, names: r.names, kinds: r.kinds, figures: r.figures, sum: make(map[causeKey]*finding, len(r.sum)),
		calls: slices.Clone(r.calls), p99: slices.Clone(r.p99), few: maps.Clone(r.few), order: make([]*conn, len(r.order)),
	}
	list := make([]conn, len(r.order))
	for i, k := range r.order {
		list[i], c.order[i] = *k, &list[i]
		list[i].calls = nil
	}
	for i := range c.calls {
		c.calls[i].conn = c.order[c.calls[i].conn.place]
	}
	for key, f := range r.sum {
		x := *f
		x.worst, x.on = slices.Clone(f.worst), slices.Clone(f.on)
		c.sum[key] = &x
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c.ended = slices.Clone(r.ended)
	return c
}

func median(list []int64) int64 {
	if len(list) == 0 {
		return -1
	}
	return nth(list, len(list)/2)
}

// nth is the n-th least of a list. It changes the order of the list.
func nth(list []int64, n int) int64 {
	for len(list) > 16 {
		// What is less than the middle one of three goes before it, what is more behind it.
		mid := middle(list[0], list[len(list)/2], list[len(list)-1])
		i, j := 0, len(list)-1
		for i <= j {
			for list[i] < mid {
				i++
			}
			for list[j] > mid {
				j--
			}
			if i <= j {
				list[i], list[j] = list[j], list[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			list = list[:j+1]
		case n >= i:
			list, n = list[i:], n-i
		default:
			return mid
		}
	}
	slices.Sort(list)
	return list[n]
}

// middle is the second least of three.
func middle(a, b, c int64) int64 { return max(min(a, b), min(max(a, b), c)) }
