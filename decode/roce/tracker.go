package roce

import (
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Limits bounds what a Tracker remembers. Zero fields take the defaults.
type Limits struct {
	Connections int // followed at once; the one unused longest is closed first (8192)
	SendBytes   int // of one Send that is assembled; the rest is counted, not kept (1 MiB)
	Requests    int // remembered per direction for retransmissions and matching (256)
}

func (l *Limits) defaults() {
	if l.Connections <= 0 {
		l.Connections = 8192
	}
	if l.SendBytes <= 0 {
		l.SendBytes = 1 << 20
	}
	if l.Requests < 16 {
		l.Requests = 256
	}
}

// flowKey names one direction. Only the destination queue pair is on the
// wire; the source has to be found out.
type flowKey struct {
	src, dst netip.Addr
	qpn      uint32
}

// flow is one direction of a connection: the requests of its sender, and its
// sender's answers to the requests of the other direction.
type flow struct {
	key  flowKey
	c    *connection
	side rdma.Side // of the sender
	tap  rdma.TapFilter
	port uint16 // last UDP source port

	good, bad uint32 // ICRC verdicts

	// Request stream, in the sender's PSN space.
	started bool
	next    uint32 // PSN of the next new request
	unsure  bool   // next is a guess: a Read Request of unknown packet count went before
	missing psnSet
	ring    []request // the last requests, ring[pos%len]
	head    uint64    // position after the newest
	acked   uint64    // position of the oldest that has not been acknowledged
	asm     assembly

	// Response stream, in the peer's PSN space.
	respMissing psnSet
	hasResp     bool
	lastResp    uint32
}

// connection joins two flows. While only one of them is known, the other is
// nil.
type connection struct {
	*rdma.Connection
	flows [2]*flow // by the side of the sender
	tap   int32    // where its first packet was captured
	mtu   uint32   // 0 until known
	used  bool     // since the clock hand last passed
	index int      // in Tracker.all
	comm  [2]cmID  // connection-management identities, if the setup was captured

	closed   bool // the Handler knows; stragglers may follow
	closedAt int64
}

// Tracker follows RC, UC and XRC connections of RoCE and InfiniBand, and turns
// their packets into operations.
type Tracker struct {
	h       rdma.Handler
	numbers *rdma.Numbers
	limits  Limits

	flows map[flowKey]*flow
	cache [256]*flow // by queue pair number: the last flow used

	lone map[addrPair][]*flow // flows without a peer

	all  []*connection
	hand int

	byID    map[cmID]*connection
	message ibcm.Message

	send rdma.Send
	frag rdma.Fragment
}

type addrPair struct{ src, dst netip.Addr }

// NewTracker makes a tracker that reports to h.
func NewTracker(h rdma.Handler, numbers *rdma.Numbers, limits Limits) *Tracker {
	limits.defaults()
	return &Tracker{
		h: h, numbers: numbers, limits: limits,
		flows: make(map[flowKey]*flow),
		lone:  make(map[addrPair][]*flow),
		byID:  make(map[cmID]*connection),
	}
}

// Packet takes the next packet. f is its network part, p its InfiniBand
// headers. It returns the connection that the packet belongs to, or nil.
func (t *Tracker) Packet(ref rdma.Ref, tap uint16, fabric rdma.Fabric, f *link.Frame, p *Packet, icrc Verdict) *rdma.Connection {
	if p.Opcode.Service() == ServiceUD {
		if p.DestQP == 1 && icrc != Bad {
			return t.mad(ref, int32(tap), fabric, f, p)
		}
		return nil
	}
	key := flowKey{f.Src, f.Dst, p.DestQP}
	slot := t.slot(&key)
	fl := *slot
	if fl == nil || fl.key != key {
		fl = t.flows[key]
		if fl == nil {
			fl = t.newFlow(key, ref, int32(tap), fabric)
		}
		*slot = fl
	}
	if !fl.tap.Accept(int32(tap), fl.c.tap) {
		return fl.c.Connection
	}
	c := fl.c
	if c.State != rdma.Established || c.closed {
		if fl = t.unsettled(fl, ref, int32(tap), fabric); fl == nil {
			return c.Connection
		}
		c = fl.c
	}
	c.used = true
	c.Last = ref
	fl.port = f.SrcPort
	sent := &c.Sent[fl.side]
	sent.Packets++
	sent.Bytes += uint64(f.PayloadLen)
	if f.ECN == 3 {
		sent.ECN++
	}
	switch icrc {
	case Good:
		fl.good++
	case Bad:
		fl.bad++
		sent.BadCRC++
		// The receiver drops such a packet without a word. But where most
		// are bad, something on the way to the capture spoilt them.
		if fl.good > 4*fl.bad {
			return c.Connection
		}
	}
	if p.Opcode.Service() == ServiceCNP {
		sent.CNPs++
		t.h.Event(c.Connection, fl.side, rdma.EventCNP, 0, ref)
		return c.Connection
	}
	if c.flows[fl.side.Other()] == nil {
		if t.pair(fl, p, ref) {
			c = fl.c
		}
	}
	op := p.Opcode.Operation()
	if op >= RCReadResponseFirst && op <= RCAtomicAcknowledge {
		t.response(fl, p, ref)
	} else {
		t.request(fl, p, ref)
	}
	return c.Connection
}

// unsettled handles a packet on a connection that is not established. It
// returns the flow that the packet belongs to, nil if it is to be left out.
func (t *Tracker) unsettled(fl *flow, ref rdma.Ref, tap int32, fabric rdma.Fabric) *flow {
	c := fl.c
	switch {
	case !c.closed:
		if c.State == rdma.Connecting {
			c.State = rdma.Established // the RTU was lost; a packet implies it
		}
		return fl
	case ref.Time-c.closedAt < straggle:
		return nil
	}
	key := fl.key
	t.forget(c, ref)
	fl = t.newFlow(key, ref, tap, fabric)
	fl.tap.Follow(tap)
	*t.slot(&key) = fl
	return fl
}

func (t *Tracker) newFlow(key flowKey, ref rdma.Ref, tap int32, fabric rdma.Fabric) *flow {
	c := t.newConnection(ref, tap, fabric)
	c.Ends[0].Addr = key.src
	c.Ends[1].Addr = key.dst
	c.Ends[1].QPN = key.qpn
	fl := t.addFlow(c, 0, key)
	t.addLone(fl)
	return fl
}

func (t *Tracker) addLone(fl *flow) {
	pair := addrPair{fl.key.src, fl.key.dst}
	t.lone[pair] = append(t.lone[pair], fl)
}

func (t *Tracker) newConnection(ref rdma.Ref, tap int32, fabric rdma.Fabric) *connection {
	if len(t.all) >= t.limits.Connections {
		t.evict(ref)
	}
	c := &connection{Connection: t.numbers.New(fabric, ref), tap: tap, used: true, index: len(t.all)}
	t.all = append(t.all, c)
	return c
}

// addFlow makes the flow that side of c sends.
func (t *Tracker) addFlow(c *connection, side rdma.Side, key flowKey) *flow {
	fl := &flow{key: key, c: c, side: side}
	fl.tap.Follow(rdma.NoTap)
	c.flows[side] = fl
	t.flows[key] = fl
	return fl
}

// evict closes a connection that has not been used for a round of the clock.
func (t *Tracker) evict(ref rdma.Ref) {
	for {
		t.hand++
		if t.hand >= len(t.all) {
			t.hand = 0
		}
		c := t.all[t.hand]
		if c.used {
			c.used = false
			continue
		}
		if c.Terminated == "" {
			c.Terminated = "evicted: too many connections at once"
		}
		t.forget(c, ref)
		return
	}
}

// close reports the end of a connection. Its flows stay for stragglers.
func (t *Tracker) close(c *connection, ref rdma.Ref) {
	if c.closed {
		return
	}
	for _, fl := range c.flows {
		if fl != nil {
			t.flushSend(fl)
		}
	}
	c.closed, c.closedAt = true, ref.Time
	t.h.Closed(c.Connection, ref)
}

// forget closes a connection and frees its memory.
func (t *Tracker) forget(c *connection, ref rdma.Ref) {
	t.close(c, ref)
	for _, fl := range c.flows {
		if fl == nil {
			continue
		}
		t.dropLone(fl)
		if t.flows[fl.key] == fl {
			delete(t.flows, fl.key)
		}
		if slot := t.slot(&fl.key); *slot == fl {
			*slot = nil
		}
	}
	for _, id := range c.comm {
		if t.byID[id] == c {
			delete(t.byID, id)
		}
	}
	t.remove(c)
}

// slot is the place of a flow in the cache.
func (t *Tracker) slot(key *flowKey) **flow {
	return &t.cache[uint8(key.qpn)^key.src.As16()[15]]
}

func (t *Tracker) remove(c *connection) {
	last := len(t.all) - 1
	t.all[c.index] = t.all[last]
	t.all[c.index].index = c.index
	t.all[last] = nil
	t.all = t.all[:last]
}

func (t *Tracker) dropLone(fl *flow) {
	pair := addrPair{fl.key.src, fl.key.dst}
	l := t.lone[pair]
	for i := range l {
		if l[i] == fl {
			l = append(l[:i], l[i+1:]...)
			break
		}
	}
	if len(l) == 0 {
		delete(t.lone, pair)
	} else {
		t.lone[pair] = l
	}
}

// Flush closes all connections at the end of the capture, in the order of
// their numbers.
func (t *Tracker) Flush(ref rdma.Ref) {
	for len(t.all) > 0 {
		first := t.all[0]
		for _, c := range t.all[1:] {
			if c.ID < first.ID {
				first = c
			}
		}
		t.forget(first, ref)
	}
}
