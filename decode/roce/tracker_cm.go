package roce

import (
	"encoding/binary"
	"math/bits"
	"net/netip"

	"github.com/rpcrdma/toolkit/decode/ibcm"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// cmID is a communication ID with the address of the node that chose it: only together do they identify one
// end of a connection.
type cmID struct {
	addr   netip.Addr
	tenant uint64
	id     uint32
}

// straggle is how long, in nanoseconds, packets after a connection's end count as stragglers. Later ones
// belong to another connection that reuses the queue pair number.
const straggle = 2e9

// managedHosts is how many pairs of hosts are distinguished.
const managedHosts = 64

// checked counts the verdicts on the ICRCs of messages between two hosts, in both directions.
type checked struct {
	hosts     addrPair
	good, bad uint32
}

// managed has the verdicts on messages of connection management, by their hosts.
type managed [managedHosts]checked

// dropped counts the verdict on the ICRC of a message of connection management between two hosts, and reports whether the
// receiver drops the message: most others were whole. If they were not, something on the way to the capture has changed
// all packets, as for flows: see flow.dropped. Messages are few, and so half of them must be bad, not a fifth.
func (v *managed) dropped(f *link.Frame, tenant uint64, icrc Verdict, flows *pairing) bool {
	hosts := addrPair{f.Src, f.Dst, tenant}
	if f.Dst.Less(f.Src) {
		hosts.src, hosts.dst = f.Dst, f.Src
	}
	a, b := hosts.src.As16(), hosts.dst.As16()
	slot := tenant
	for i := 0; i < len(a); i += 8 {
		slot = (slot ^ binary.LittleEndian.Uint64(a[i:]) ^ bits.RotateLeft64(binary.LittleEndian.Uint64(b[i:]), 32)) * golden
	}
	c := &v[slot>>(64-6)]
	if c.hosts != hosts { // another two share its place
		*c = checked{hosts: hosts}
	}
	switch icrc {
	case Good:
		c.good++
	case Bad:
		c.bad++
		good, bad := c.good, c.bad
		for _, p := range [2]addrPair{hosts, {hosts.dst, hosts.src, hosts.tenant}} {
			for _, fl := range [2]*flow{flows.paired[p], flows.unpaired[p]} {
				if fl != nil {
					good, bad = good+uint32(fl.good), bad+uint32(fl.bad)
				}
			}
		}
		return good >= bad
	}
	return false
}

// why is what a REJ gives as its reason.
func why(m *ibcm.Message) string {
	if !m.ReasonKnown() {
		return "the reason was cut"
	}
	return m.Reason.String()
}

// mad handles a connection management message. REQ, REP and RTU set up a connection; only they give both
// queue pair numbers with certainty.
func (t *Tracker) mad(ref rdma.Ref, tap int32, fabric rdma.Fabric, f *link.Frame, p *Packet, icrc Verdict) *rdma.Connection {
	m := &t.message
	if !ibcm.Decode(p.Payload, p.PayloadLen, m) || !m.IDsKnown() {
		return nil // without them, nobody knows which connection it is about
	}
	t.captured = uint8(len(m.Data))
	pkey := partition(m)
	if icrc == Bad {
		t.captured = 0 // what any other copy says counts more
	} else {
		t.paths.note(addrPair{f.Src, f.Dst, t.tenant}, fabric, pkey)
	}
	var c *connection
	switch m.Attribute {
	case ibcm.AttributeREQ:
		c = t.connectRequest(ref, tap, fabric, f, m)
		c.asked(tap, icrc, pkey)
	case ibcm.AttributeREP:
		c = t.connectReply(ref, tap, fabric, f, m)
	default:
		if c = t.byID[cmID{f.Dst, t.tenant, m.RemoteID}]; c == nil {
			c = t.byID[cmID{f.Src, t.tenant, m.LocalID}]
		}
		if c == nil && m.Attribute == ibcm.AttributeDREQ {
			if fl := t.flows.byKey[flowKey{f.Src, f.Dst, t.tenant, m.QPN}]; fl != nil {
				c = fl.c
			}
		}
		// A side that rejects a connection may have sent nothing else that shows at which capture point it is
		// followed.
		rejects := m.Attribute == ibcm.AttributeREJ && c != nil && c.State == rdma.Connecting
		if c == nil || c.closed || !rejects && !c.followed(f.Src, tap) {
			break
		}
		t.advance(c, m, f, ref)
	}
	if c == nil {
		return nil
	}
	c.damaged = c.damaged || icrc == Bad && (m.Attribute == ibcm.AttributeREQ || m.Attribute == ibcm.AttributeREP)
	c.used = true
	c.Last = ref
	return c.Connection
}

// advance takes in a message that ends a connection's setup, or the connection.
func (t *Tracker) advance(c *connection, m *ibcm.Message, f *link.Frame, ref rdma.Ref) {
	switch m.Attribute {
	case ibcm.AttributeRTU:
		c.State = rdma.Established
		if c.replied && t.messages.watch.watcher != nil {
			t.messages.watch.watcher.Saw(c.Connection, &rdma.Sighting{Ref: ref, Class: rdma.ClassReady})
		}
	case ibcm.AttributeREJ:
		if c.State != rdma.Connecting {
			// It comes too late to reject anything. What is sent decides whether it is the end.
			t.ends(c, "reject from "+link.AddrString(f.Src)+" after the setup", ref)
			break
		}
		c.State = rdma.Rejected
		c.Terminated = "connection rejected: " + why(m)
		c.Last = ref
		t.close(c, ref)
	case ibcm.AttributeDREQ:
		t.ends(c, "disconnect request from "+link.AddrString(f.Src), ref)
	case ibcm.AttributeDREP:
		if c.State != rdma.Closed {
			t.ends(c, "disconnect reply from "+link.AddrString(f.Src), ref) // nobody has asked
			break
		}
		c.Last = ref
		t.close(c, ref)
	}
}

// pathUse is how a host sends to another: with which fabrics, by bit, and the P_Key of its queue pairs there and of those that it asked for.
type pathUse struct {
	fabrics uint8
	pkey    uint16
	several bool // P_Keys
}

// partition returns the P_Key of a REQ, or 0 if m is something else or was cut.
func partition(m *ibcm.Message) uint16 {
	if m.Attribute != ibcm.AttributeREQ || !m.TermsKnown {
		return 0
	}
	return ibcm.REQ(m.Data).PKey()
}

// maxPaths is how many are remembered: the first.
const maxPaths = 4096

// paths has how hosts send to one another.
type paths map[addrPair]pathUse

// note notes how a host sends to another; pkey is 0 if it is not known.
func (x paths) note(hosts addrPair, fabric rdma.Fabric, pkey uint16) {
	u, ok := x[hosts]
	if !ok && len(x) >= maxPaths {
		return
	}
	u.fabrics |= 1 << fabric
	u.several = u.several || u.pkey != 0 && pkey != 0 && u.pkey != pkey
	if u.pkey == 0 {
		u.pkey = pkey
	}
	x[hosts] = u
}

// unlike notes in a request that got no answer, or in packets of one side without any of the other, how their sender and its peer differ. Two
// P_Keys match if they name one partition, of which at least one of the two is a full member (IBTA volume 1, section 10.9.3).
func (x paths) unlike(c *connection) {
	const member, full = 0x7fff, 0x8000
	from := rdma.Side(0)
	if c.Sent[0].Packets == 0 && c.Sent[1].Packets > 0 {
		from = 1
	}
	if c.Sent[from.Other()].Packets > 0 {
		return
	}
	peer := x[addrPair{c.Ends[from.Other()].Addr, c.Ends[from].Addr, c.Tenant}]
	a, b := c.pkeys[from], peer.pkey
	if c.State == rdma.Connecting {
		a = c.pkey
	}
	if c.Setup[1].Seen() {
		b = c.pkey // both use that of the REQ
	} else {
		c.OtherVersion = peer.fabrics != 0 && peer.fabrics&(1<<c.Fabric) == 0
		if peer.several {
			b = 0
		}
	}
	if a != 0 && b != 0 && (a&member != b&member || (a|b)&full == 0) {
		c.PKeys = [2]uint16{a, b}
	}
}

// asked counts a REQ, at the capture point at which the connection is followed. c may be nil: the REQ began none.
func (c *connection) asked(tap int32, icrc Verdict, pkey uint16) {
	if c == nil || tap != c.tap {
		return
	}
	c.pkey = pkey
	c.Requests++
	if icrc == Bad {
		c.BadRequests++
	}
}

// ends notes that a message has ended c, which is not closed yet: stragglers may follow, and what is sent may contradict
// the message.
func (t *Tracker) ends(c *connection, why string, ref rdma.Ref) {
	if c.Terminated == "" {
		c.Terminated = why
	}
	c.State, c.closedAt, c.Ended = rdma.Closed, ref.Time, true
}

func setup(m *ibcm.Message, ref rdma.Ref) rdma.Setup {
	s := rdma.Setup{
		Message: rdma.SetupREQ, Cut: !m.TermsKnown, Frame: ref, StartPSN: m.StartPSN, PathMTU: m.PathMTU,
		ResponderDepth: uint16(m.ResponderResources), InitiatorDepth: uint16(m.InitiatorDepth),
		RetryCount: m.RetryCount, RNRRetryCount: m.RNRRetryCount, AckTimeout: m.AckTimeout,
		ServiceID: uint64(m.ServiceID), Private: m.RDMA,
	}
	if m.Attribute == ibcm.AttributeREP {
		s.Message = rdma.SetupREP
	}
	s.PrivateBytesLen = uint8(copy(s.PrivateBytes[:], m.Private))
	return s
}

// followed reports whether packets of the node at addr on c are followed at tap.
func (c *connection) followed(addr netip.Addr, tap int32) bool {
	if tap == c.tap {
		return true
	}
	for side, fl := range c.flows {
		if fl != nil && c.Ends[side].Addr == addr {
			return fl.tap.Shown(tap)
		}
	}
	return false
}

// undamaged compares the setup message that a side has sent, if it is damaged, with the first other packet of that side. If that is
// whole, the message was dropped: what its receiver got is not in the capture. Otherwise something on the way has changed all packets.
func (c *connection) undamaged(side rdma.Side, icrc Verdict) {
	s := &c.Setup[side]
	if !s.Seen() || c.captured[side] > 0 {
		return
	}
	if icrc == Good {
		*s = rdma.Setup{Message: s.Message, Frame: s.Frame, Cut: true}
		if side == 0 {
			c.mtu, c.MTU = 0, 0
		}
	}
	c.captured[side] = 1
	c.damaged = c.Setup[side.Other()].Seen() && c.captured[side.Other()] == 0
}

// connectRequest handles a REQ from side 0 of a new connection.
func (t *Tracker) connectRequest(ref rdma.Ref, tap int32, fabric rdma.Fabric, f *link.Frame, m *ibcm.Message) *connection {
	id := cmID{f.Src, t.tenant, m.LocalID}
	if old := t.byID[id]; old != nil {
		if old.comm[0] == id && old.requested(m) && !old.outlived(ref, tap) { // retransmitted, or captured at another point
			if t.capturedMore(old, 0) {
				t.fillIn(old, 0, ref, tap, m)
			}
			return old
		}
		t.forget(old, ref)
	}
	if m.Transport == ibcm.TransportRD {
		return nil
	}
	c := t.newConnection(ref, tap, fabric)
	t.numbers.Assign(c.Connection)
	c.State = rdma.Connecting
	c.Ends[0], c.Ends[1] = rdma.End{Addr: f.Src}, rdma.End{Addr: f.Dst}
	c.request(m, ref)
	c.captured[0] = t.captured
	c.comm[0] = id
	t.byID[id] = c
	t.expect(c, 1, m, ref)
	return c
}

// request notes what a REQ says.
func (c *connection) request(m *ibcm.Message, ref rdma.Ref) {
	c.Setup[0] = setup(m, ref)
	c.Ends[0].QPN, c.Ends[0].Port = m.QPN, m.SrcPort
	if _, port, ok := m.ServiceID.IP(); ok {
		c.Ends[1].Port = port
	}
	c.mtu, c.MTU = m.PathMTU, m.PathMTU
}

// requested reports whether m may be the REQ of c once more: what both copies have of the queue pair and its first PSN is
// equal. One point may cut its packets shorter than another. A copy without the queue pair says nothing about a
// connection that has ended.
func (c *connection) requested(m *ibcm.Message) bool {
	s := &c.Setup[0]
	if !s.Seen() {
		return false
	}
	if c.Ends[0].QPN == 0 || m.QPN == 0 {
		return c.State == rdma.Connecting || c.State == rdma.Established || c.Ends[0].QPN == m.QPN
	}
	start, known := s.Start()
	return c.Ends[0].QPN == m.QPN && (!m.StartKnown || !known || start == m.StartPSN)
}

// outlived reports whether a REQ comes too late to be that of c once more: nobody repeats one that was answered. Traffic that was replayed,
// or a capture that was appended to another one, has setups of other connections with the same IDs; then time may go back. Another point may
// have another clock.
func (c *connection) outlived(ref rdma.Ref, tap int32) bool {
	return tap == c.tap && c.State != rdma.Connecting &&
		(ref.Time-c.Setup[0].Frame.Time >= straggle || ref.Time-c.Last.Time <= -straggle)
}

// capturedMore reports whether more of the message at hand was captured than of the copy that Setup is made of.
func (t *Tracker) capturedMore(c *connection, side rdma.Side) bool {
	return t.captured > c.captured[side] && !c.closed
}

// fillIn completes what the capture cut of the setup that side has sent, from a copy of the message of which more was
// captured. If a REQ is, at another point, packets are cut less there, and the connection is followed there, unless
// queue pairs have been seen already. That point need not show both directions: only the REP tells, see connectReply.
func (t *Tracker) fillIn(c *connection, side rdma.Side, ref rdma.Ref, tap int32, m *ibcm.Message) {
	frame := c.Setup[side].Frame
	if side == 0 && tap != c.tap && c.unseen() {
		c.left, c.tap, frame = c.tap, tap, ref
		for _, fl := range c.flows {
			if fl != nil {
				fl.tap.Follow(tap)
			}
		}
	}
	if side == 0 {
		c.request(m, frame)
	} else {
		c.reply(m, frame)
	}
	c.captured[side] = t.captured
	if fl := c.flows[side.Other()]; fl == nil {
		t.expect(c, side.Other(), m, ref)
	} else if m.StartKnown && !fl.started {
		fl.started, fl.next, fl.announced = true, m.StartPSN, true
	}
}

// unseen reports whether no packet of either queue pair has been seen.
func (c *connection) unseen() bool {
	for _, fl := range c.flows {
		if fl != nil && (fl.tap.Shown(fl.tap.Tap()) || fl.tap.Elsewhere > 0) {
			return false
		}
	}
	return true
}

// connectReply takes a REP from side 1.
func (t *Tracker) connectReply(ref rdma.Ref, tap int32, fabric rdma.Fabric, f *link.Frame, m *ibcm.Message) *connection {
	c := t.byID[cmID{f.Dst, t.tenant, m.RemoteID}]
	if c == nil || c.comm[0].addr != f.Dst || c.comm[0].id != m.RemoteID {
		if t.byID[cmID{f.Src, t.tenant, m.LocalID}] != nil {
			return nil
		}
		// The REQ was not captured.
		c = t.newConnection(ref, tap, fabric)
		t.numbers.Assign(c.Connection)
		c.State = rdma.Connecting
		c.Ends[0] = rdma.End{Addr: f.Dst}
		if t.tunnel != nil {
			c.Tunnel = rdma.Tunnel{Type: t.tunnel.Type.String(), Version: t.tunnel.Version, HasID: t.tunnel.HasID, ID: t.tunnel.ID}.From(1, t.tunnel.Src, t.tunnel.Dst)
		}
		c.comm[0] = cmID{f.Dst, t.tenant, m.RemoteID}
		t.byID[c.comm[0]] = c
	}
	switch {
	case c.closed:
		return c
	case c.Setup[1].Seen():
		if (c.Ends[1].QPN == m.QPN || c.Ends[1].QPN == 0) && t.capturedMore(c, 1) {
			t.fillIn(c, 1, ref, tap, m)
		}
		if c.left != rdma.NoTap && (tap == c.tap) != (c.replyTap == c.tap) {
			other := tap
			if tap == c.tap {
				other = c.replyTap
			}
			for _, fl := range c.flows {
				if fl != nil {
					fl.tap.Left(c.left, other)
				}
			}
		}
		// The copy from the capture point where the connection is followed has the better time.
		if tap == c.tap && c.replyTap != c.tap {
			c.Setup[1].Frame, c.replyTap = ref, tap
		} else if tap == c.replyTap && ref.Time-c.Setup[1].Frame.Time >= copyGap {
			c.replied = true
		}
		return c
	}
	c.replyTap = tap
	c.Ends[1].Addr = f.Src
	c.reply(m, ref)
	c.captured[1] = t.captured
	c.comm[1] = cmID{f.Src, t.tenant, m.LocalID}
	t.byID[c.comm[1]] = c
	t.expect(c, 0, m, ref)
	return c
}

// reply notes what a REP says.
func (c *connection) reply(m *ibcm.Message, ref rdma.Ref) {
	c.Setup[1] = setup(m, ref)
	c.Ends[1].QPN = m.QPN
}

// expect creates the flow that side of c will send, since m gives its destination queue pair. The starting
// PSN in a message is the one that its sender expects to receive.
func (t *Tracker) expect(c *connection, side rdma.Side, m *ibcm.Message, ref rdma.Ref) {
	if m.QPN == 0 || c.flows[side] != nil {
		return
	}
	key := flowKey{c.Ends[side].Addr, c.Ends[side.Other()].Addr, c.Tenant, m.QPN}
	if old := t.flows.byKey[key]; old != nil && old.c != c {
		if old.c.Terminated == "" {
			old.c.Terminated = "queue pair taken over by a new connection"
		}
		t.forget(old.c, ref)
	}
	fl := t.addFlow(c, side, key)
	fl.tap.Follow(c.tap)
	if m.StartKnown {
		fl.started, fl.next, fl.announced = true, m.StartPSN, true
	}
	if c.flows[side.Other()] == nil {
		t.pairing.addUnpaired(fl)
	} else {
		t.pairing.dropUnpaired(c.flows[side.Other()])
		t.pairing.addPaired(c.flows[side.Other()])
		t.pairing.addPaired(fl)
	}
}
