package roce

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

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
	// Linger, if set, is how much time of the capture a connection is remembered after its end. Copies of its packets that come later, from
	// a capture point with another clock, count as a connection of their own.
	Linger time.Duration
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

// connection joins two flows. While only one of them is known, the other is nil.
type connection struct {
	*rdma.Connection
	flows [2]*flow // by the side of the sender
	tap   int32    // where its first packet was captured, or its setup as a whole
	left  int32    // where it was captured before, but cut; NoTap if that is not so
	// provisional is how many more exact answers a join by few of them needs, and amiss how many in a row have answered nothing: see confirm.
	provisional, amiss int
	pkey               uint16    // of the REQ; 0 if it is not known
	pkeys              [2]uint16 // of each side's first packet; 0 if it is not known
	// replyTap is where the REP behind Setup[1] was captured.
	replyTap int32
	// replied says that the REP was sent again.
	replied bool
	// captured is how many bytes of the messages behind Setup were captured, of ibcm.DataSize; 0 if they are damaged.
	captured [2]uint8
	damaged  bool    // one of them is 0, and nothing has shown yet whether all packets of its sender have wrong ICRCs
	mtu      uint32  // 0 until known
	used     bool    // since the clock hand last passed
	index    int     // in Tracker.all
	size     int     // bytes counted for it
	comm     [2]cmID // connection-management identities, if the setup was captured

	closed   bool  // reported to the Handler; stragglers may follow
	closedAt int64 // when it was closed, or when its end was requested
}

// Tracker follows RC, UC and XRC connections of RoCE and InfiniBand, and converts their packets to
// operations.
type Tracker struct {
	h       rdma.Handler
	whole   bool // a watcher has to see each packet in full
	numbers *rdma.Numbers
	limits  Limits

	account account
	clock   clock
	flows   flowTable
	pairing pairing
	epoch   uint64 // lasts while all packets are plain: see plainness
	evicted uint64 // connections

	byID     map[cmID]*connection
	message  ibcm.Message
	captured uint8 // bytes of message that were captured, 0 if they are damaged
	managed  managed
	paths    paths

	messages messages
	fast     Packet

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
	t := &Tracker{
		h: h, numbers: numbers, limits: limits,
		whole:   hooks.Watcher != nil && hooks.Runs == nil,
		epoch:   1, // not that of a new flow
		account: account{shared: limits.Memory},
		flows:   flowTable{byKey: make(map[flowKey]*flow)},
		pairing: pairing{unpaired: make(map[addrPair]*flow), paired: make(map[addrPair]*flow), h: h, findMemory: hooks.FindMemory},
		byID:    make(map[cmID]*connection),
		paths:   make(paths),
	}
	t.messages = messages{
		h: h, differs: hooks.Differs, tracer: hooks.Tracer,
		watch:     watch{watcher: hooks.Watcher, runs: hooks.Runs},
		rings:     rings{limits: &t.limits, account: &t.account},
		assembler: assembler{limits: &t.limits, account: &t.account},
		early:     earlyPackets{account: &t.account},
	}
	return t
}

// Packet handles the next packet. f is its network part, p its InfiniBand headers. tenant is f.Tenant() or
// its substitute. It returns the connection that the packet belongs to, or nil.
func (t *Tracker) Packet(ref rdma.Ref, tap uint16, tenant uint64, fabric rdma.Fabric, f *link.Frame, p *Packet, icrc Verdict) *rdma.Connection {
	t.epoch++
	t.tenant, t.tunnel = tenant, f.Outermost()
	switch p.Opcode.Service() {
	case ServiceUD:
		if p.DestQP != 1 || t.managed.dropped(f, tenant, icrc, &t.pairing) {
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
func (t *Tracker) Headless(ref rdma.Ref, tap uint16, tenant uint64, f *link.Frame, p *Packet) *rdma.Connection {
	if p.Opcode.Service() != ServiceRC || p.Opcode.IsResponse() || p.Opcode.IsCNP() || !p.Opcode.IsDefined() {
		return nil
	}
	t.epoch++
	t.tenant, t.tunnel = tenant, f.Outermost()
	fl := t.flows.byKey[flowKey{f.Src, f.Dst, tenant, p.DestQP}]
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
			t.messages.miss(fl, fl.next, uint32(d))
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
	if fl := t.flows.find(&key); fl != nil {
		return fl
	}
	return t.newFlow(key, ref, tap, fabric)
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
		if elsewhere || (fl.copied || fl.respCopied) && fl.isCopy(p.PSN, response) {
			return fl.c.known()
		}
	}
	t.count(fl, a)
	c := fl.c
	switch {
	case dropped:
	case cnp:
		c.Sent[fl.side].CNPs++
		t.messages.watch.saw.Class = rdma.ClassCNP
		t.h.Event(c.Connection, fl.side, rdma.EventCNP, 0, a.ref)
	case response:
		t.messages.response(fl, p, a.ref)
	case p.Opcode.IsDefined():
		t.numbers.Assign(c.Connection)
		t.messages.request(fl, p, a.ref)
	}
	t.account.sets(fl)
	if peer := fl.peer(); peer != nil && response {
		t.account.sets(peer)
	}
	if t.messages.watch.watcher != nil {
		t.messages.watch.watcher.Saw(c.Connection, &t.messages.watch.saw)
	}
	return c.known()
}

// came notes that a packet of a flow has come.
func (t *Tracker) came(fl *flow, a *arrival) {
	if fl.last == 0 {
		t.paths.note(fl.key.pair(), a.fabric, a.p.PKey)
		fl.c.pkeys[fl.side] = a.p.PKey
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
		if n := fl.tap.Elsewhere; fl.unpaired && n >= alignAfter && n&(n-1) == 0 {
			t.pairing.align(fl, a.tap)
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
		return uint64(fl.good) > 4*uint64(fl.bad-1)
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
	if fl.peer() == nil {
		paired := t.pair(fl, a.p)
		if !paired {
			if former := t.pairing.reconnected(fl, a.p, a.ref); former != nil {
				t.inherit(former, fl, a.ref)
				paired = true
			}
		}
		if paired && fl.tap.Tap() != a.tap {
			return fl, true
		}
	}
	if peer := fl.peer(); peer != nil && peer.last == 0 && !response {
		if other := t.pairing.misnamed(fl, a.p); other != nil {
			t.inherit(fl, other, a.ref)
		}
	}
	return fl, false
}

// requester finds the flow that a request belongs to.
func (t *Tracker) requester(fl *flow, a *arrival) *flow {
	p := a.p
	if fl.started && fl.astray(p.PSN) {
		fl = t.takeOver(fl, p.PSN, a.ref, a.tap, a.fabric)
	}
	if p.PSN != fl.next && len(t.pairing.unpaired) > 0 && p.Opcode.Starts() && fl.peer() != nil && t.pairing.moved(fl, p) {
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
	if t.messages.tracer != nil {
		c.Header = headerOf(a.p)
	}
	size := a.size()
	if t.messages.watch.watcher != nil {
		// Field by field: to assign the whole costs several times as much. Those of TCP are never set.
		s := &t.messages.watch.saw
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
	if c.damaged {
		c.undamaged(fl.side, a.icrc)
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

// expectCopies records that the capture point of a flow has changed.
func (fl *flow) expectCopies() {
	fl.copied, fl.copyNext = fl.started, fl.next
	fl.respCopied, fl.copyResp = fl.hasResp, fl.lastResp
}

// isCopy reports whether a packet has been seen at the former capture point.
func (fl *flow) isCopy(psn uint32, response bool) bool {
	switch {
	case response && fl.respCopied:
		d := psnDiff(psn, fl.copyResp)
		fl.respCopied = d <= 0 && d > -maxJump
		return fl.respCopied
	case !response && fl.copied:
		d := psnDiff(psn, fl.copyNext)
		fl.copied = d < 0 && d > -maxJump
		return fl.copied && !fl.missing.has(psn, 1)
	}
	return false
}

// unsettled handles a packet on a connection that is not established. It returns the flow that the packet
// belongs to, or nil if the packet is to be ignored: a straggler behind the end. A new request is not one, because whoever
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
		t.messages.resync(fl, psn, ref)
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
	t.pairing.addUnpaired(fl)
	return fl
}

func (t *Tracker) newConnection(ref rdma.Ref, tap int32, fabric rdma.Fabric) *connection {
	t.forgetEnded(ref)
	if len(t.clock.all) >= t.limits.Connections {
		t.giveUp(t.clock.unused(), "evicted: too many connections at once", ref)
	}
	c := &connection{
		Connection: &rdma.Connection{Fabric: fabric, First: ref, Last: ref},
		tap:        tap, left: rdma.NoTap, used: true,
	}
	t.clock.add(c)
	t.account.add(c, connectionSize)
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
	t.flows.add(fl)
	t.account.add(c, flowSize)
	return fl
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
		t.messages.settleGaps(fl)
		c.Ports[fl.side] = fl.port
	}
	c.closed, c.closedAt = true, ref.Time
	t.paths.unlike(c)
	t.numbers.Assign(c.Connection)
	t.h.Closed(c.Connection, ref)
	for _, fl := range c.flows {
		if fl == nil {
			continue
		}
		t.messages.release(fl)
		fl.started, fl.announced, fl.reached = false, false, fl.started && !fl.announced
	}
}

// unlist makes that a flow is not found any more.
func (t *Tracker) unlist(fl *flow) {
	t.pairing.dropUnpaired(fl)
	t.pairing.dropPaired(fl)
	t.flows.drop(fl)
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
	t.account.add(c, -c.size)
	t.clock.remove(c)
}

// forgetEnded forgets some of the connections that ended long ago. It looks at a few, so that a new connection takes the same time however many
// there are, and more than one, so that of all no more than a third ended long ago.
func (t *Tracker) forgetEnded(ref rdma.Ref) {
	if t.limits.Linger <= 0 {
		return
	}
	for range 4 {
		c := t.clock.sweep()
		if c != nil && (c.closed || c.State == rdma.Closed) && ref.Time-max(c.closedAt, c.Last.Time) >= int64(t.limits.Linger) {
			t.forget(c, ref)
		}
	}
}

// Flush closes all connections at the end of the capture, in the order of
// their first packets.
func (t *Tracker) Flush(ref rdma.Ref) {
	t.epoch++
	inOrder := func() []*connection {
		return slices.SortedFunc(slices.Values(t.clock.all), func(a, b *connection) int { return cmp.Compare(a.First.Number, b.First.Number) })
	}
	t.joinRest(inOrder())
	for _, c := range inOrder() {
		t.forget(c, ref)
	}
}
