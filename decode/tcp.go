package decode

import (
	"cmp"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/tcp"
)

// TCPLimits bounds what is remembered about TCP. Zero fields select the defaults.
type TCPLimits struct {
	Connections int // followed at once, those of no interest included (4096)
	Record      int // bytes of an RPC message that are kept (oncrpc.DefaultRecordLimit)
}

// patience is how many segments with payload a connection may have before it counts as neither iWARP nor RPC.
const patience = 64

// tcpDemux separates TCP connections and determines which carry iWARP, and which RPC with record marking.
type tcpDemux struct {
	h      rdma.Handler
	tracer rdma.Tracer
	iwarp  *iwarp.Tracker
	pool   *tcp.Pool
	limit  TCPLimits
	conns  map[tcpKey]*tcpConn
	order  []*tcpConn
	hand   int
	last   *tcpConn // of the current packet; nil if it has none

	doubtful  []waitingConn // by time, from overdueAt on
	overdueAt int

	memory  *memory.Account
	used    int // of it by TCP
	idle    int // of used by what is kept for later
	evicted uint64

	differing rdma.Given // segments
	displaced rdma.Given // directions of connections of RPC
	mismarked rdma.Given // records
	sealed    rdma.Given // directions of connections of RPC

	tlsRefused rdma.Given

	refused    rdma.Given // attempts to connect
	unanswered Asked
	attempt    func(*rdma.Connection, Asked) // see Observer.Attempt
}

// tcpKey holds the two ends in ascending order.
type tcpKey struct {
	low, high netip.AddrPort
	tenant    uint64
}

type tcpConn struct {
	*rdma.Connection
	key     tcpKey
	swapped bool // direction 0 starts at key.high
	tap     int32
	taps    [2]rdma.TapFilter
	used    bool
	index   int
	size    int // bytes counted for it

	places  [2]tcpPlace
	cuts    *cuts // nil: none
	doubts  *doubts
	waiting bool // in tcpDemux.doubtful

	iwarp *iwarp.Conn
	rpc   *oncrpc.TCPTracker
	vain  int // segments with payload that were not recognised
	// early are packets, and their bytes, from before the connection was recognised.
	early, earlyBytes uint64
	ignored           bool
	attempt           attempt
}

// numbered gives a connection its number once something is found on it: most TCP connections of a capture are
// of no interest.
type numbered struct {
	rdma.Handler
	numbers *rdma.Numbers
	differs *rdma.Given // what EventDiffers reported
}

// Event implements rdma.Handler.
func (n *numbered) Event(c *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	if e == rdma.EventDiffers {
		n.differs.Add(rdma.Given{Count: 1, Bytes: uint64(value), First: ref.Number})
	}
	n.Handler.Event(c, from, e, value, ref)
}

func (n *numbered) Send(c *rdma.Connection, s *rdma.Send) rdma.Tag {
	n.numbers.Assign(c)
	return n.Handler.Send(c, s)
}

func (n *numbered) OpStart(c *rdma.Connection, op *rdma.Op, ref rdma.Ref) {
	n.numbers.Assign(c)
	n.Handler.OpStart(c, op, ref)
}

func (n *numbered) Closed(c *rdma.Connection, ref rdma.Ref) {
	n.numbers.Assign(c)
	n.Handler.Closed(c, ref)
}

func (t *tcpDemux) init(h rdma.Handler, hooks rdma.Hooks, numbers *rdma.Numbers, limit TCPLimits, live bool, m *memory.Account) {
	t.memory = m
	if limit.Connections <= 0 {
		limit.Connections = 4096
	}
	t.h, t.tracer = &numbered{h, numbers, &t.differing}, hooks.Tracer
	if show := hooks.Segment; show != nil {
		hooks.Segment = func(c *rdma.Connection, s *rdma.Segment) {
			numbers.Assign(c)
			show(c, s)
		}
	}
	t.limit = limit
	t.pool = tcp.NewPool(tcp.Options{Total: min(16<<20, m.Limit()/4)})
	t.iwarp = iwarp.NewTracker(t.h, iwarp.Options{Pool: t.pool, Hooks: hooks, Live: live})
	t.conns = make(map[tcpKey]*tcpConn)
}

func (t *tcpDemux) packet(ref rdma.Ref, tap uint16, tenant uint64, f *link.Frame) *rdma.Connection {
	src, dst := netip.AddrPortFrom(f.Src, f.SrcPort), netip.AddrPortFrom(f.Dst, f.DstPort)
	key, fromHigh := tcpKey{src, dst, tenant}, false
	if dst.Compare(src) < 0 {
		key, fromHigh = tcpKey{dst, src, tenant}, true
	}
	t.last = nil
	if t.overdueAt < len(t.doubtful) {
		t.overdue(ref)
	}
	c := t.conns[key]
	if c == nil {
		if f.PayloadLen == 0 && f.TCPFlags&tcp.SYN == 0 {
			return nil // nothing to be learnt from it
		}
		c = t.begin(key, fromHigh, f, ref, int32(tap))
	}
	t.last = c
	dir := 0
	if fromHigh != c.swapped {
		dir = 1
	}
	if c.taps[dir].Tap() != int32(tap) {
		switch {
		case c.elsewhere(dir, f):
			c.taps[dir].Follow(int32(tap))
			c.tap = int32(tap)
		case c.cuts != nil && c.taps[1-dir].Copied(int32(tap)) && c.cuts.more(dir, f):
			c.move(int32(tap))
			return c.known()
		}
	}
	if !c.taps[dir].Accept(int32(tap), c.tap, ref.Time) {
		return c.known()
	}
	c.used = true
	if len(f.Payload) < f.PayloadLen {
		c.cut(dir, f)
	}
	if c.cuts != nil && c.cuts.moved[dir] && c.shown(dir, f) {
		return c.known()
	}
	c = t.segment(c, dir, f, ref, int32(tap))
	if c.attempt.open || f.TCPFlags&tcp.SYN != 0 {
		t.attempted(c, dir, f, ref)
	}
	t.last = c
	t.count(c)
	return c.known()
}

// elsewhere reports whether a segment that was not captured where its direction is followed is a part of the stream
// that only the other point shows: it is exactly the next one, and neither direction has been seen twice.
func (c *tcpConn) elsewhere(dir int, f *link.Frame) bool {
	own, peer := &c.places[dir], &c.places[1-dir]
	if !c.taps[dir].Sole() || c.taps[1-dir].Elsewhere > 0 || !own.known || f.TCPSeq != own.next || f.TCPFlags&(tcp.SYN|tcp.RST) != 0 {
		return false
	}
	return f.PayloadLen > 0 || f.TCPFlags&tcp.FIN != 0 ||
		f.TCPFlags&ackFlag != 0 && (!own.ackKnown || after(f.TCPAck, own.ack)) && peer.known && !after(f.TCPAck, peer.next)
}

// cuts are the segments of a connection that the followed capture point shows in part, the latest of each direction. If another point shows more of one,
// and has shown the other direction, too, that is followed from there on.
type cuts struct {
	list  [2][maxCuts]cutSegment
	at    [2]uint8
	moved [2]bool // the point was changed, and has shown nothing new since then
}

// cutSegment is a segment of n bytes, of which fewer were captured.
type cutSegment struct {
	seq         uint32
	n, captured int32
}

// maxCuts is how many segments a point with less of them may be ahead.
const maxCuts = 16

const cutsSize = int(unsafe.Sizeof(cuts{}))

// cut notes a segment of which a part was captured.
func (c *tcpConn) cut(dir int, f *link.Frame) {
	if c.cuts == nil {
		c.cuts = new(cuts)
	}
	x := c.cuts
	x.list[dir][x.at[dir]] = cutSegment{f.TCPSeq, int32(min(f.PayloadLen, 1<<30)), int32(len(f.Payload))}
	x.at[dir] = (x.at[dir] + 1) % maxCuts
}

// more reports whether a segment is the copy of one of which less was captured.
func (x *cuts) more(dir int, f *link.Frame) bool {
	for i := range x.list[dir] {
		if s := &x.list[dir][i]; s.n > 0 && s.seq == f.TCPSeq && int(s.n) == f.PayloadLen && int(s.captured) < len(f.Payload) {
			return true
		}
	}
	return false
}

// move follows both directions at another capture point.
func (c *tcpConn) move(tap int32) {
	c.taps[0].Follow(tap)
	c.taps[1].Follow(tap)
	c.tap = tap
	c.cuts.list, c.cuts.moved = [2][maxCuts]cutSegment{}, [2]bool{true, true}
}

// shown reports whether a segment has nothing that the point which was followed before has not shown. It is not a retransmission.
func (c *tcpConn) shown(dir int, f *link.Frame) bool {
	own := &c.places[dir]
	c.cuts.moved[dir] = f.TCPFlags&(tcp.SYN|tcp.FIN|tcp.RST) == 0 && own.known && !after(f.TCPSeq+uint32(f.PayloadLen), own.next)
	return c.cuts.moved[dir]
}

// count accounts for the memory of a connection, and for what is kept for later ones.
func (t *tcpDemux) count(c *tcpConn) {
	n := tcpConnSize
	if c.doubts != nil {
		n += doubtsSize
	}
	if c.cuts != nil {
		n += cutsSize
	}
	switch {
	case c.rpc != nil:
		n += c.rpc.Memory()
	case c.iwarp != nil:
		n += c.iwarp.Memory()
	}
	t.add(n - c.size)
	c.size = n
	t.countIdle()
}

func (t *tcpDemux) countIdle() {
	idle := t.pool.Idle() + t.iwarp.Idle()
	t.add(idle - t.idle)
	t.idle = idle
}

func (t *tcpDemux) add(n int) {
	if n != 0 {
		t.used += n
		t.memory.Add(n)
	}
}

// doubtsSize is the memory of the doubts of a connection.
const doubtsSize = int(unsafe.Sizeof(doubts{}))

// tcpConnSize is the memory of a connection, with the copy of its description that goes with its
// transactions.
const tcpConnSize = int(unsafe.Sizeof(tcpConn{})+2*unsafe.Sizeof(rdma.Connection{})+unsafe.Sizeof(tcpKey{})) + 3*8 + memory.MapEntry

// fromHigh reports whether direction dir is from the higher end of the key to the lower.
func (c *tcpConn) fromHigh(dir int) bool { return (dir == 1) != c.swapped }

// known is the connection if it carries something of interest.
func (c *tcpConn) known() *rdma.Connection {
	if c.ID == 0 {
		return nil
	}
	return c.Connection
}

// feed reports false if the segment opens another connection.
func (t *tcpDemux) feed(c *tcpConn, dir int, f *link.Frame, ref rdma.Ref) bool {
	c.Stamp = rdma.Stamp{Present: f.HasTimestamps, Value: f.TSVal, Echo: f.TSEcr, Twice: f.DSACK}
	if c.rpc != nil {
		return c.rpc.Segment(f, ref)
	}
	if c.ignored {
		return f.TCPFlags&tcp.SYN == 0
	}
	if c.iwarp != nil {
		if !c.iwarp.Segment(dir, f, ref) {
			return false
		}
		if c.iwarp.Verdict() == iwarp.Yes {
			return true
		}
	}
	if f.PayloadLen == 0 {
		return true
	}
	if oncrpc.StartsRecord(f.Payload) {
		c.iwarp.Close("", ref) // gives its buffers back; it has reported nothing
		c.iwarp = nil
		c.Fabric = rdma.TCP
		c.Sent = [2]rdma.Counters{}
		c.rpc = oncrpc.NewTCPTracker(c.Connection, t.h, t.tracer, t.pool, t.limit.Record)
		return c.rpc.Segment(f, ref)
	}
	if c.iwarp.Verdict() == iwarp.No {
		if c.vain++; c.vain > patience {
			c.iwarp.Close("", ref) // gives its buffers back
			c.ignored, c.iwarp = true, nil
		}
	}
	return true
}

func (t *tcpDemux) begin(key tcpKey, swapped bool, f *link.Frame, ref rdma.Ref, tap int32) *tcpConn {
	if len(t.order) >= t.limit.Connections {
		t.evict(ref)
	}
	c := &tcpConn{
		Connection: &rdma.Connection{Fabric: rdma.TCP, First: ref, Last: ref},
		key:        key, swapped: swapped, tap: tap, used: true, index: len(t.order),
	}
	c.Ends[0] = rdma.End{Addr: f.Src, Port: f.SrcPort}
	c.Ends[1] = rdma.End{Addr: f.Dst, Port: f.DstPort}
	c.Tenant = key.tenant
	if o := f.Outermost(); o != nil {
		c.Tunnel = rdma.Tunnel{Type: o.Type.String(), Version: o.Version, HasID: o.HasID, ID: o.ID}.From(0, o.Src, o.Dst)
	}
	c.taps[0].Follow(rdma.NoTap)
	c.taps[1].Follow(rdma.NoTap)
	c.iwarp = t.iwarp.New(c.Connection)
	t.conns[key] = c
	t.order = append(t.order, c)
	return c
}

// end closes a connection and forgets it.
func (t *tcpDemux) end(c *tcpConn, ref rdma.Ref) {
	if c.attempt.open {
		a := c.asked()
		t.unanswered.Add(a)
		if t.attempt != nil {
			t.attempt(c.Connection, a)
		}
	}
	t.shut(c, "", ref)
	c.doubts = nil
	t.add(-c.size)
	c.size = 0
	last := len(t.order) - 1
	t.order[c.index] = t.order[last]
	t.order[c.index].index = c.index
	t.order[last] = nil
	t.order = t.order[:last]
	delete(t.conns, c.key)
}

func (t *tcpDemux) shut(c *tcpConn, why string, ref rdma.Ref) {
	t.settle(c, ref)
	switch {
	case c.rpc != nil:
		c.rpc.Close(ref)
		t.displaced.Add(c.rpc.Displaced())
		t.mismarked.Add(c.rpc.Given())
		t.sealed.Add(c.rpc.Sealed())
		t.tlsRefused.Add(c.rpc.Alert())
	case c.iwarp != nil:
		c.iwarp.Close(why, ref)
	}
}

// evict drops a connection that has not been used for a round of the clock.
func (t *tcpDemux) evict(ref rdma.Ref) {
	for {
		t.hand++
		if t.hand >= len(t.order) {
			t.hand = 0
		}
		c := t.order[t.hand]
		if c.used {
			c.used = false
			continue
		}
		t.giveUp(c, ref)
		return
	}
}

// giveUp ends a connection for lack of room.
func (t *tcpDemux) giveUp(c *tcpConn, ref rdma.Ref) {
	if c.ID != 0 { // else it is of no interest, as far as is known
		t.evicted++
		if c.Terminated == "" {
			c.Terminated = "evicted: too many connections, or they hold too much memory"
		}
	}
	t.end(c, ref)
	t.countIdle()
}

// shed frees something: memory kept for later, or else one of the next connections of the clock, the largest
// of those unused for a round.
func (t *tcpDemux) shed(ref rdma.Ref) bool {
	if t.idle > 0 {
		t.pool.Drop()
		t.iwarp.Drop()
		t.countIdle()
		return true
	}
	var victim *tcpConn
	worth := 0
	for range min(glance, len(t.order)) {
		if t.hand++; t.hand >= len(t.order) {
			t.hand = 0
		}
		c := t.order[t.hand]
		if c.rpc != nil && c.size > trimmed {
			before := c.size
			c.rpc.Trim()
			if t.count(c); c.size < before {
				return true
			}
		}
		weight := c.size
		if !c.used {
			weight *= 16
		}
		c.used = false
		if victim == nil || weight > worth {
			victim, worth = c, weight
		}
	}
	if victim == nil {
		return false
	}
	t.giveUp(victim, ref)
	return true
}

const (
	glance  = 8         // connections that are compared to find one to give up
	trimmed = 128 << 10 // bytes of a connection that are looked through first
)

// flush closes all connections in the order in which they began.
func (t *tcpDemux) flush(ref rdma.Ref) {
	all := slices.Clone(t.order)
	slices.SortFunc(all, func(a, b *tcpConn) int { return cmp.Compare(a.First.Number, b.First.Number) })
	for _, c := range all {
		t.end(c, ref)
	}
}
