package roce

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/memory"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Limits bounds what a Tracker remembers. Zero fields take the defaults.
type Limits struct {
	Connections int // followed at once; the least recently used one is closed first (8192)
	SendBytes   int // of one Send that is assembled; the rest is counted but not kept (1 MiB)
	Requests    int // remembered per direction for retransmissions and matching (256)
	Assembly    int // bytes of all Sends in progress together (16 MiB)
	// Memory, if set, accounts for the memory in use and may be shared with others. Tracker.Evict frees some
	// of it.
	Memory *memory.Account
}

func (l *Limits) defaults() {
	if l.Connections <= 0 {
		l.Connections = 8192
	}
	if l.SendBytes <= 0 {
		l.SendBytes = 1 << 20
	}
	if l.Requests <= 0 {
		l.Requests = 256
	}
	l.Requests = max(l.Requests, 16)
	if l.Assembly <= 0 {
		l.Assembly = 16 << 20
	}
}

// flowKey identifies one direction. Only the destination queue pair is on the wire; the source has to be
// inferred.
type flowKey struct {
	src, dst netip.Addr
	tenant   uint64 // link.Frame.Tenant
	qpn      uint32
}

// flow is one direction of a connection: the requests of its sender, and the sender's responses to requests
// of the other direction.
type flow struct {
	key   flowKey
	route *Route // of the last packet that had one: as key has it
	plain plainness
	c     *connection
	side  rdma.Side // of the sender
	tap   rdma.TapFilter
	port  uint16 // last UDP source port

	lone         bool // in the chain of flows without a peer
	paired       bool // in the chain of those with one
	older, newer *flow
	rpc          bool   // a Send carried RPC
	suspect      *flow  // what may be its peer
	matches      int    // packets in a row that say so
	matchPSN     uint32 // of the last that was exact
	sole         int    // exact ones to its newest request; negative once another may be its peer, too
	parted       int    // how often it had been joined to a wrong one
	last         uint64 // number of its last packet

	// What it may be the answers to, in place of the peer there: see reconnected.
	instead    *flow
	proof      int    // what was found in a row that says so
	proofPSN   uint32 // of the last exact acknowledgement
	proofSince uint64 // number of the packet that was found first

	good, bad uint32 // ICRC verdicts

	// After a change of the capture point, packets seen at the former one appear again: requests before
	// copyNext, responses up to copyResp.
	copies, respCopies bool
	copyNext, copyResp uint32

	// A packet that was cut at the capture point where the flow is followed: see whole.
	cut     bool
	cutPSN  uint32
	cutSize int // how many bytes of its payload were captured

	// Request stream, in the sender's PSN space.
	started bool
	next    uint32 // PSN of the next new request
	// announced means that next comes from the connection setup and no request has been seen yet.
	announced bool
	// opening means that tracking started at floor, the lowest PSN seen. Until that is acknowledged, packets
	// before it may be retransmitted.
	opening bool
	floor   uint32
	blind   bool // next is a guess: the headers of a Read Request or Write were cut
	unsure  bool // next is a guess: it follows a Read Request of unknown packet count
	reached bool // next is where the flow was at the end of its connection
	refused bool // the peer has sent a NAK for refusedAt
	ended   bool // that NAK has ended the connection
	strays  int  // consecutive packets from before everything remembered
	// refusedAt is the PSN that the peer expects.
	refusedAt uint32
	// owed says that owedPSN was acknowledged before a request with it was seen.
	owed     bool
	owedPSN  uint32
	missing  psnSet
	gone     psnSet      // given up: acknowledged without having been seen, or older than the first one seen
	early    int         // in Tracker.early
	headless psnSet      // missing PSNs that were seen, but not the beginning of their message
	ring     []request   // the last requests, in the order of their PSNs: see request
	prints   []print     // of the last messages, in capture order: prints[pushed%len(prints)]
	pushed   uint64      // messages
	head     uint64      // position after the newest
	acked    uint64      // position of the oldest that has not been acknowledged
	held     uint64      // position of the oldest that was kept when the ring grew
	sends    []*assembly // Sends in progress with several packets, ordered by PSN

	// Response stream, in the peer's PSN space.
	respMissing psnSet
	hasResp     bool
	lastResp    uint32
	lastRefused bool // it was a NAK
	// The last Read Response whose request was not seen.
	hasUnrequested  bool
	lastUnrequested uint32

	ranges int // of all sets of PSNs that are counted

	works uint64 // operations that the watcher was told of
}

// connection joins two flows. While only one of them is known, the other is nil.
type connection struct {
	*rdma.Connection
	flows [2]*flow // by the side of the sender
	tap   int32    // where its first packet was captured, or its setup as a whole
	left  int32    // where it was captured before, but cut; NoTap if that is not so
	// provisional is how many more exact answers a join by few of them needs, and amiss how many in a row have answered nothing: see confirm.
	provisional, amiss int
	pkey               uint16 // of the REQ; 0 if it is not known
	// replyTap is where the REP behind Setup[1] was captured.
	replyTap int32
	// replied says that the REP was sent again.
	replied bool
	// told is how many bytes of the messages behind Setup were captured, of ibcm.DataSize; 0 if they are damaged.
	told  [2]uint8
	mtu   uint32  // 0 until known
	used  bool    // since the clock hand last passed
	index int     // in Tracker.all
	size  int     // bytes counted for it
	comm  [2]cmID // connection-management identities, if the setup was captured

	closed   bool  // reported to the Handler; stragglers may follow
	closedAt int64 // when it was closed, or when its end was requested
}

// Tracker follows RC, UC and XRC connections of RoCE and InfiniBand, and converts their packets to
// operations.
type Tracker struct {
	// Differing counts packets of Sends that were seen again with other bytes. The first ones count.
	Differing rdma.Given

	h       rdma.Handler
	hooks   rdma.Hooks
	tracer  rdma.Tracer     // of hooks
	watcher rdma.Watcher    // of hooks
	runs    rdma.RunWatcher // of hooks
	whole   bool            // a watcher or a tracer has to see each packet in full
	numbers *rdma.Numbers
	limits  Limits

	flows map[flowKey]*flow
	cache [flowSlots]*flow // of those with the same slot: the last one used
	epoch uint64           // lasts while all packets are plain: see plainness

	lone   map[addrPair]*flow // flows without a peer: the newest
	paired map[addrPair]*flow // those with one

	paths map[addrPair]pathUse

	all  []*connection
	hand int

	byID    map[cmID]*connection
	message ibcm.Message
	told    uint8 // bytes of message that were captured, 0 if they are damaged
	managed [managedHosts]checked

	used       int         // bytes of all that is held
	evicted    uint64      // connections
	requests   int         // in all rings
	assembling int         // bytes of Sends under way
	spare      []*assembly // for the next ones

	early     []earlyPacket // of all flows
	earlyAt   int           // the next to be used
	recalling bool          // packets of early are being taken

	// Emptied and then filled in field by field: a composite literal is made on the stack and copied in larger pieces than
	// it was written in, for which the processor has to wait (store forwarding).
	send rdma.Send
	frag rdma.Fragment
	fast Packet
	saw  rdma.Sighting // the packet at hand, for the watcher
	work rdma.Work     // for the watcher

	tenant uint64       // of the current packet
	tunnel *link.Tunnel // of the current packet: its outermost
	within *link.Tunnel // what FastWithin was told; nil otherwise
}

type addrPair struct {
	src, dst netip.Addr
	tenant   uint64
}

// NewTracker makes a tracker that reports to h and hooks.
func NewTracker(h rdma.Handler, hooks rdma.Hooks, numbers *rdma.Numbers, limits Limits) *Tracker {
	limits.defaults()
	tracer, watcher := hooks.Tracer, hooks.Watcher
	return &Tracker{
		h: h, hooks: hooks, tracer: tracer, watcher: watcher, runs: hooks.Runs, numbers: numbers, limits: limits,
		whole:  tracer != nil || watcher != nil && hooks.Runs == nil,
		epoch:  1, // not that of a new flow
		flows:  make(map[flowKey]*flow),
		lone:   make(map[addrPair]*flow),
		paired: make(map[addrPair]*flow),
		byID:   make(map[cmID]*connection),
		paths:  make(map[addrPair]pathUse),
	}
}

// Packet handles the next packet. f is its network part, p its InfiniBand headers. tenant is f.Tenant() or
// its substitute. It returns the connection that the packet belongs to, or nil.
func (t *Tracker) Packet(ref rdma.Ref, tap uint16, tenant uint64, fabric rdma.Fabric, f *link.Frame, p *Packet, icrc Verdict) *rdma.Connection {
	t.epoch++
	t.tenant, t.tunnel = tenant, f.Outermost()
	switch p.Opcode.Service() {
	case ServiceUD:
		if p.DestQP != 1 || t.damaged(f, icrc) {
			return nil
		}
		return t.mad(ref, int32(tap), fabric, f, p, icrc)
	case ServiceManufacturer1, ServiceManufacturer2:
		return nil
	}
	fl := t.flow(flowKey{f.Src, f.Dst, tenant, p.DestQP}, ref, int32(tap), fabric)
	return t.connected(fl, &arrival{ref: ref, p: p, tap: int32(tap), port: f.SrcPort, fabric: fabric, marked: f.ECN == ecnCE, icrc: icrc})
}

// Headless handles a packet whose extension headers the capture cut. It still shows that the PSN was sent.
func (t *Tracker) Headless(ref rdma.Ref, tap uint16, tenant uint64, fabric rdma.Fabric, f *link.Frame, p *Packet) *rdma.Connection {
	if p.Opcode.Service() != ServiceRC || p.Opcode.IsResponse() || p.Opcode.IsCNP() || !p.Opcode.IsDefined() {
		return nil
	}
	t.epoch++
	t.tenant, t.tunnel = tenant, f.Outermost()
	fl := t.flows[flowKey{f.Src, f.Dst, tenant, p.DestQP}]
	if fl == nil || !fl.started || fl.announced || fl.c.closed || fl.c.State != rdma.Established || fl.tap.Tap() != int32(tap) {
		return nil
	}
	c := fl.c
	c.used, c.Last = true, ref
	sent := &c.Sent[fl.side]
	sent.Packets++
	sent.Bytes += uint64(p.Opcode.HeaderSize() + p.PayloadLen + int(p.Pad) + ICRCSize)
	switch d := psnDiff(p.PSN, fl.next); {
	case d < 0:
		if !fl.missing.take(p.PSN) {
			sent.Retransmitted++
			return c.known()
		}
	case d >= maxJump:
		return c.known()
	default:
		if d > 0 && !fl.blind {
			t.miss(fl, fl.next, uint32(d))
		}
		fl.next = psnAdd(p.PSN, 1)
		fl.unsure = false
		// Its length is cut, too, so its end is unknown.
		fl.blind = p.Opcode.IsReadRequest() || p.Opcode.IsWrite() && !p.Opcode.Ends()
	}
	switch {
	case p.Opcode.IsReadRequest():
		sent.Reads++
	case p.Opcode.IsWrite() && p.Opcode.Starts():
		sent.Writes++
	case !p.Opcode.IsWrite() && !p.Opcode.IsSend():
		sent.Atomics++
	}
	return c.known()
}

// flow finds or makes the flow that a packet belongs to.
func (t *Tracker) flow(key flowKey, ref rdma.Ref, tap int32, fabric rdma.Fabric) *flow {
	slot := t.slot(&key)
	fl := *slot
	if fl == nil || fl.key != key {
		if fl = t.flows[key]; fl == nil {
			return t.newFlow(key, ref, tap, fabric)
		}
		*slot = fl
	}
	return fl
}

// arrival is a packet of a connected service, with what is known of it besides its headers.
type arrival struct {
	ref    rdma.Ref
	p      *Packet
	tap    int32
	port   uint16 // UDP source port
	fabric rdma.Fabric
	marked bool // its IP header is marked "congestion experienced"
	icrc   Verdict
}

// size is the length on the wire that is counted: from the BTH to the ICRC.
func (a *arrival) size() int {
	return a.p.Opcode.HeaderSize() + a.p.PayloadLen + int(a.p.Pad) + ICRCSize
}

// connected handles a packet of a connected service.
func (t *Tracker) connected(fl *flow, a *arrival) *rdma.Connection {
	if !t.here(fl, a) {
		return fl.c.known()
	}
	if c := fl.c; c.State != rdma.Established || c.closed {
		if fl = t.unsettled(fl, a); fl == nil {
			return c.known()
		}
	}
	p := a.p
	if len(p.Payload) < p.PayloadLen {
		fl.cutShort(p)
	}
	dropped := fl.dropped(a.icrc)
	t.came(fl, a)
	cnp := p.Opcode.IsCNP()
	response := p.Opcode.IsResponse()
	if !dropped && !cnp && p.Opcode.IsDefined() {
		elsewhere := false
		if peer := fl.peer(); peer == nil || fl.c.provisional > 0 || !response && (p.PSN != fl.next || peer.last == 0) { // seldom
			fl, elsewhere = t.owner(fl, a, response)
		}
		if elsewhere || (fl.copies || fl.respCopies) && fl.isCopy(p.PSN, response) {
			return fl.c.known()
		}
	}
	t.count(fl, a)
	c := fl.c
	switch {
	case dropped:
	case cnp:
		c.Sent[fl.side].CNPs++
		t.saw.Class = rdma.ClassCNP
		t.h.Event(c.Connection, fl.side, rdma.EventCNP, 0, a.ref)
	case response:
		t.response(fl, p, a.ref)
	case p.Opcode.IsDefined():
		t.numbers.Assign(c.Connection)
		t.request(fl, p, a.ref)
	}
	t.sets(fl)
	if peer := fl.peer(); peer != nil && response {
		t.sets(peer)
	}
	if t.watcher != nil {
		t.watcher.Saw(c.Connection, &t.saw)
	}
	return c.known()
}

// came notes that a packet of a flow has come.
func (t *Tracker) came(fl *flow, a *arrival) {
	if fl.last == 0 {
		t.notePath(fl.key.pair(), a.fabric, a.p.PKey)
	}
	fl.port, fl.last = a.port, a.ref.Number
}

// here reports whether a packet was captured where its flow is followed, and not somewhere else as well.
func (t *Tracker) here(fl *flow, a *arrival) bool {
	moved := fl.tap.Tap() != a.tap
	if moved {
		fl.tap.Alone(a.tap, fl.opposite())
		if fl.elsewhere(a.p) {
			fl.tap.Follow(a.tap)
			fl.c.tap = a.tap
		}
	}
	if !fl.tap.Accept(a.tap, fl.c.tap, a.ref.Time) {
		if fl.whole(a) {
			fl.tap.Follow(a.tap)
			fl.tap.Took(a.ref.Time)
			fl.c.tap = a.tap // the other direction comes along
			fl.expectCopies()
			return true
		}
		if n := fl.tap.Elsewhere; fl.lone && n >= alignAfter && n&(n-1) == 0 {
			t.align(fl, a.tap)
		}
		return false
	}
	if moved {
		fl.expectCopies()
	}
	return true
}

// maxCutBehind is how many PSNs a cut packet must be away from cutPSN to take its place.
const maxCutBehind = 64

// cutShort remembers a packet that was captured in part.
func (fl *flow) cutShort(p *Packet) {
	if d := psnDiff(p.PSN, fl.cutPSN); !fl.cut || d > maxCutBehind || d < -maxCutBehind {
		fl.cut, fl.cutPSN, fl.cutSize = true, p.PSN, len(p.Payload)
	}
}

// whole reports whether a packet that was captured elsewhere shows more of the packet that was cut where the flow is followed. The flow then
// moves to that capture point. Both directions must have been seen there, since the times of a transaction must come from one point.
func (fl *flow) whole(a *arrival) bool {
	p := a.p
	if !fl.cut || p.PSN != fl.cutPSN {
		return false
	}
	fl.cut = false
	peer := fl.peer()
	return len(p.Payload) > fl.cutSize && peer != nil && peer.tap.Copied(a.tap)
}

// elsewhere reports whether a packet that was not captured where the flow is followed is a part of it that only the
// other point shows: it is exactly the next one, and neither direction has been seen twice. A path moves from one
// link to another, a bond or a switch distributes packets, files of several interfaces are merged.
func (fl *flow) elsewhere(p *Packet) bool {
	if o := fl.opposite(); !fl.tap.Sole() || o != nil && o.Elsewhere > 0 {
		return false
	}
	if !p.Opcode.IsResponse() {
		return fl.started && p.PSN == fl.next && p.Opcode.IsDefined() && !p.Opcode.IsCNP()
	}
	peer := fl.peer()
	return (!fl.hasResp || psnDiff(p.PSN, fl.lastResp) > 0) && peer != nil && peer.started && psnDiff(p.PSN, peer.next) < 0
}

// dropped counts the verdict on a packet's ICRC, and reports whether the receiver silently drops the packet.
// A receiver drops what is damaged. But if most packets are damaged, something on the way to the capture
// damaged them.
func (fl *flow) dropped(icrc Verdict) bool {
	switch icrc {
	case Good:
		fl.good++
	case Bad:
		fl.bad++
		return uint64(fl.good) > 4*uint64(fl.bad)
	}
	return false
}

// owner finds the flow that a packet belongs to: fl, unless the packet shows that the queue pair is now part
// of another connection. elsewhere means that the packet must be ignored: the packet has shown which flow
// is the peer, and the connection is followed at another capture point.
func (t *Tracker) owner(fl *flow, a *arrival, response bool) (_ *flow, elsewhere bool) {
	switch {
	case !response:
		fl = t.requester(fl, a)
	case fl.c.provisional > 0:
		fl = t.confirm(fl, a)
	}
	if fl.peer() == nil && (t.pair(fl, a.p) || t.reconnected(fl, a.p, a.ref)) && fl.tap.Tap() != a.tap {
		return fl, true
	}
	if peer := fl.peer(); peer != nil && peer.last == 0 && !response {
		t.misnamed(fl, a.p, a.ref)
	}
	return fl, false
}

// requester finds the flow that a request belongs to.
func (t *Tracker) requester(fl *flow, a *arrival) *flow {
	p := a.p
	if fl.started && fl.astray(p.PSN) {
		fl = t.takeOver(fl, p.PSN, a.ref, a.tap, a.fabric)
	}
	if p.PSN != fl.next && len(t.lone) > 0 && p.Opcode.Starts() && fl.peer() != nil && t.moved(fl, p) {
		if fl.c.Terminated == "" {
			fl.c.Terminated = "queue pair connected to another"
		}
		fl = t.anew(fl, a.ref, a.tap, a.fabric)
	}
	return fl
}

// count counts a packet, and prepares what a Tracer and the Watcher get to know about it.
func (t *Tracker) count(fl *flow, a *arrival) {
	c := fl.c
	c.used = true
	c.Last = a.ref
	if t.tracer != nil {
		c.Header = headerOf(a.p)
	}
	size := a.size()
	if t.watcher != nil {
		// Field by field: to assign the whole costs several times as much. Those of TCP are never set.
		s := &t.saw
		s.Ref, s.From, s.Marked, s.Bytes, s.PSN = a.ref, fl.side, a.marked, uint32(size), a.p.PSN
		s.Class, s.Novelty, s.Read, s.Restarted, s.Syndrome, s.Count, s.Gap = 0, 0, false, false, 0, 0, 0
	}
	sent := &c.Sent[fl.side]
	sent.Packets++
	sent.Bytes += uint64(size)
	if a.marked {
		sent.ECN++
		t.h.Event(c.Connection, fl.side, rdma.EventECN, 0, a.ref)
	}
	if a.icrc == Bad {
		sent.BadCRC++
	}
}

// peer is the flow of the other direction, nil if unknown.
func (fl *flow) peer() *flow { return fl.c.flows[fl.side.Other()] }

// opposite is the filter of the other direction, nil if unknown.
func (fl *flow) opposite() *rdma.TapFilter {
	if peer := fl.peer(); peer != nil {
		return &peer.tap
	}
	return nil
}

// known is the connection once it has a number. A direction that has only answered so far has none: it
// usually turns out to be part of another connection.
func (c *connection) known() *rdma.Connection {
	return numbered(c.Connection)
}

// astray reports whether the flow cannot have reached the PSN of a request: the queue pair number now belongs
// to another connection, or the capture lacks a great deal.
func (fl *flow) astray(psn uint32) bool {
	d := psnDiff(psn, fl.next)
	return d >= maxJump || d <= -maxJump || d < 0 && fl.strays >= maxStrays
}

// expectCopies records that the capture point of a flow has changed.
func (fl *flow) expectCopies() {
	fl.copies, fl.copyNext = fl.started, fl.next
	fl.respCopies, fl.copyResp = fl.hasResp, fl.lastResp
}

// isCopy reports whether a packet has been seen at the former capture point.
func (fl *flow) isCopy(psn uint32, response bool) bool {
	switch {
	case response && fl.respCopies:
		d := psnDiff(psn, fl.copyResp)
		fl.respCopies = d <= 0 && d > -maxJump
		return fl.respCopies
	case !response && fl.copies:
		d := psnDiff(psn, fl.copyNext)
		fl.copies = d < 0 && d > -maxJump
		return fl.copies && !fl.missing.has(psn, 1)
	}
	return false
}

// unsettled handles a packet on a connection that is not established. It returns the flow that the packet
// belongs to, or nil if the packet is to be ignored: a straggler behind the end. A new request is none, because whoever
// has ended a connection sends nothing new on it (InfiniBand Architecture, volume 1, section
// 12.9.9). It contradicts the message that ended the connection. A stranger is none either: the capture lacks the setup of
// another connection.
func (t *Tracker) unsettled(fl *flow, a *arrival) *flow {
	c := fl.c
	if c.State == rdma.Connecting {
		c.State = rdma.Established // the RTU was lost; a packet implies it
		return fl
	}
	continues := a.p.Opcode.IsDefined() && !a.p.Opcode.IsCNP() && !a.p.Opcode.IsResponse() && fl.goesOnAt(a.p.PSN)
	since := a.ref.Time - c.closedAt
	late := since >= straggle || since <= -straggle
	switch {
	case c.closed && !late && !continues && !fl.stranger(a):
		return nil
	case !c.closed && !late:
		return fl
	case !c.closed && continues && fl.started:
		c.State, c.Terminated, c.Ended = rdma.Established, "", false
		c.Sent[fl.side].FalseEnds++
		return fl
	}
	return t.anew(fl, a.ref, a.tap, a.fabric)
}

// goesOnAt reports whether a request with that PSN is the next new one, or one behind it if the capture lacks some.
func (fl *flow) goesOnAt(psn uint32) bool {
	d := psnDiff(psn, fl.next)
	return d == 0 || d > 0 && d < maxJump && (fl.started || fl.reached) && !fl.unsure && !fl.blind
}

// stranger reports whether a packet cannot be of the connection of fl, which is closed: its PSN is too far from those that
// were sent.
func (fl *flow) stranger(a *arrival) bool {
	p, asked := a.p, fl
	if p.Opcode.IsResponse() {
		asked = fl.peer()
	}
	if asked == nil || !asked.reached || !p.Opcode.IsDefined() || p.Opcode.IsCNP() || a.icrc == Bad {
		return false
	}
	d := psnDiff(p.PSN, asked.next)
	return d >= maxJump || d <= -maxJump
}

// takenOver is why a connection ends whose queue pair turns out to be part of another.
const takenOver = "queue pair taken over by another connection, or a long gap in the capture"

// takeOver handles a request that is astray. It returns the flow to continue with.
func (t *Tracker) takeOver(fl *flow, psn uint32, ref rdma.Ref, tap int32, fabric rdma.Fabric) *flow {
	if fl.c.set() && fl.c.State == rdma.Established {
		// The setup of another connection would have been captured.
		t.resync(fl, psn, ref)
		return fl
	}
	if fl.c.Terminated == "" {
		fl.c.Terminated = takenOver
	}
	return t.anew(fl, ref, tap, fabric)
}

// anew drops the connection of a flow and starts another one with the same queue pair.
func (t *Tracker) anew(fl *flow, ref rdma.Ref, tap int32, fabric rdma.Fabric) *flow {
	key := fl.key
	t.forget(fl.c, ref)
	fl = t.newFlow(key, ref, tap, fabric)
	fl.tap.Follow(tap)
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

func (t *Tracker) newConnection(ref rdma.Ref, tap int32, fabric rdma.Fabric) *connection {
	if len(t.all) >= t.limits.Connections {
		t.evict(ref)
	}
	c := &connection{
		Connection: &rdma.Connection{Fabric: fabric, First: ref, Last: ref},
		tap:        tap, left: rdma.NoTap, used: true, index: len(t.all),
	}
	t.all = append(t.all, c)
	t.add(c, connectionSize)
	c.Tenant = t.tenant
	if t.tunnel != nil {
		c.Tunnel = rdma.Tunnel{Type: t.tunnel.Type.String(), Version: t.tunnel.Version, HasID: t.tunnel.HasID, ID: t.tunnel.ID}.From(0, t.tunnel.Src, t.tunnel.Dst)
	}
	return c
}

// addFlow makes the flow that side of c sends.
func (t *Tracker) addFlow(c *connection, side rdma.Side, key flowKey) *flow {
	fl := &flow{key: key, c: c, side: side}
	fl.tap.Follow(rdma.NoTap)
	c.flows[side] = fl
	t.flows[key], *t.slot(&key) = fl, fl
	t.add(c, flowSize)
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
		t.giveUp(c, "evicted: too many connections at once", ref)
		return
	}
}

// close reports the end of a connection. Its flows stay, without their memory, for stragglers.
func (t *Tracker) close(c *connection, ref rdma.Ref) {
	if c.closed {
		return
	}
	for _, fl := range c.flows {
		if fl == nil {
			continue
		}
		t.settleGaps(fl)
		c.Ports[fl.side] = fl.port
	}
	c.closed, c.closedAt = true, ref.Time
	t.unlike(c)
	t.numbers.Assign(c.Connection)
	t.h.Closed(c.Connection, ref)
	for _, fl := range c.flows {
		if fl == nil {
			continue
		}
		t.release(fl)
		fl.started, fl.announced, fl.reached = false, false, fl.started && !fl.announced
	}
}

// settleGaps reports what was under way, and counts what has not come.
func (t *Tracker) settleGaps(fl *flow) {
	for len(fl.sends) > 0 {
		t.flushSend(fl, 0)
	}
	fl.c.Sent[fl.side].Gaps += fl.missing.size()
	if d := psnDiff(fl.owedPSN, fl.next); fl.owed && d >= 0 && d < pairWindow {
		fl.c.Sent[fl.side].Gaps += uint64(d) + 1 // acknowledged behind the last request
	}
	fl.owed = false
}

// release takes back what a flow remembers.
func (t *Tracker) release(fl *flow) {
	t.requests -= len(fl.ring)
	t.add(fl.c, -len(fl.ring)*requestSize)
	t.add(fl.c, -len(fl.prints)*printSize)
	fl.prints, fl.pushed = nil, 0
	fl.ring, fl.head, fl.acked, fl.held = nil, 0, 0, 0
	fl.sends = nil
	fl.missing.r, fl.headless.r, fl.gone.r, fl.respMissing.r = nil, nil, nil, nil
	t.dropEarly(fl)
	t.sets(fl)
}

// unlist makes that a flow is not found any more.
func (t *Tracker) unlist(fl *flow) {
	t.dropLone(fl)
	t.dropPaired(fl)
	if t.flows[fl.key] == fl {
		delete(t.flows, fl.key)
	}
	if slot := t.slot(&fl.key); *slot == fl {
		*slot = nil
	}
}

// forget closes a connection and frees its memory.
func (t *Tracker) forget(c *connection, ref rdma.Ref) {
	t.close(c, ref)
	for _, fl := range c.flows {
		if fl == nil {
			continue
		}
		t.unlist(fl)
	}
	for _, id := range c.comm {
		if t.byID[id] == c {
			delete(t.byID, id)
		}
	}
	t.remove(c)
}

// flowSlots is the length of Tracker.cache.
const flowSlots = 1 << 10

// flowSlot is the place in Tracker.cache of a flow between two hosts.
func flowSlot(hash, qpn uint32) uint32 {
	return (hash ^ qpn*(golden>>32)) >> (32 - 10)
}

// slot is the cache entry of a flow.
func (t *Tracker) slot(key *flowKey) **flow {
	return &t.cache[flowSlot(routeHash(key.src, key.dst), key.qpn)]
}

func (t *Tracker) remove(c *connection) {
	t.add(c, -c.size)
	last := len(t.all) - 1
	t.all[c.index] = t.all[last]
	t.all[c.index].index = c.index
	t.all[last] = nil
	t.all = t.all[:last]
}

// Flush closes all connections at the end of the capture, in the order of
// their first packets.
func (t *Tracker) Flush(ref rdma.Ref) {
	t.epoch++
	all := slices.Clone(t.all)
	slices.SortFunc(all, func(a, b *connection) int { return cmp.Compare(a.First.Number, b.First.Number) })
	for _, c := range all {
		t.forget(c, ref)
	}
}
