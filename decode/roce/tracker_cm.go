package roce

import (
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

// mad handles a connection management message. REQ, REP and RTU set up a connection; only they give both
// queue pair numbers with certainty.
func (t *Tracker) mad(ref rdma.Ref, tap int32, fabric rdma.Fabric, f *link.Frame, p *Packet) *rdma.Connection {
	m := &t.message
	if !ibcm.Decode(p.Payload, p.PayloadLen, m) {
		return nil
	}
	var c *connection
	switch m.Attribute {
	case ibcm.AttributeREQ:
		c = t.connectRequest(ref, tap, fabric, f, m)
	case ibcm.AttributeREP:
		c = t.connectReply(ref, tap, fabric, f, m)
	default:
		if c = t.byID[cmID{f.Dst, t.tenant, m.RemoteID}]; c == nil {
			c = t.byID[cmID{f.Src, t.tenant, m.LocalID}]
		}
		if c == nil && m.Attribute == ibcm.AttributeDREQ {
			if fl := t.flows[flowKey{f.Src, f.Dst, t.tenant, m.QPN}]; fl != nil {
				c = fl.c
			}
		}
		// A side that rejects a connection may have sent nothing else that shows at which capture point it is
		// followed.
		rejects := m.Attribute == ibcm.AttributeREJ && c != nil && c.State == rdma.Connecting
		if c == nil || c.closed || !rejects && !c.followed(f.Src, tap) {
			break
		}
		switch m.Attribute {
		case ibcm.AttributeRTU:
			c.State = rdma.Established
			if c.replied && t.watcher != nil {
				t.watcher.Saw(c.Connection, &rdma.Sighting{Ref: ref, Class: rdma.ClassReady})
			}
		case ibcm.AttributeREJ:
			if c.State != rdma.Connecting {
				// It comes too late to reject anything. What is sent decides whether it is the end.
				t.ends(c, "reject from "+link.AddrString(f.Src)+" after the setup", ref)
				break
			}
			c.State = rdma.Rejected
			c.Terminated = "connection rejected: " + m.Reason.String()
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
	if c == nil {
		return nil
	}
	c.used = true
	c.Last = ref
	return c.Connection
}

// ends notes that a message has ended c, which is not closed yet: stragglers may follow, and what is sent may contradict
// the message.
func (t *Tracker) ends(c *connection, why string, ref rdma.Ref) {
	if c.Terminated == "" {
		c.Terminated = why
	}
	c.State, c.closedAt = rdma.Closed, ref.Time
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

// connectRequest handles a REQ from side 0 of a new connection.
func (t *Tracker) connectRequest(ref rdma.Ref, tap int32, fabric rdma.Fabric, f *link.Frame, m *ibcm.Message) *connection {
	id := cmID{f.Src, t.tenant, m.LocalID}
	if old := t.byID[id]; old != nil {
		if s := &old.Setup[0]; old.comm[0] == id && s.Seen() && old.Ends[0].QPN == m.QPN && s.StartPSN == m.StartPSN {
			return old // retransmitted, or captured at another point
		}
		t.forget(old, ref)
	}
	if m.Transport == ibcm.TransportRD {
		return nil
	}
	c := t.newConnection(ref, tap, fabric)
	t.numbers.Assign(c.Connection)
	c.State = rdma.Connecting
	c.Setup[0] = setup(m, ref)
	c.Ends[0] = rdma.End{Addr: f.Src, QPN: m.QPN, Port: m.SrcPort}
	c.Ends[1] = rdma.End{Addr: f.Dst}
	if _, port, ok := m.ServiceID.IP(); ok {
		c.Ends[1].Port = port
	}
	c.mtu, c.MTU = m.PathMTU, m.PathMTU
	c.comm[0] = id
	t.byID[id] = c
	t.expect(c, 1, m, ref)
	return c
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
		// The copy from the capture point where the connection is followed has the better time.
		if tap == c.tap && c.replyTap != c.tap {
			c.Setup[1].Frame, c.replyTap = ref, tap
		} else if tap == c.replyTap && ref.Time-c.Setup[1].Frame.Time >= copyGap {
			c.replied = true
		}
		return c
	}
	c.Setup[1], c.replyTap = setup(m, ref), tap
	c.Ends[1].Addr, c.Ends[1].QPN = f.Src, m.QPN
	c.comm[1] = cmID{f.Src, t.tenant, m.LocalID}
	t.byID[c.comm[1]] = c
	t.expect(c, 0, m, ref)
	return c
}

// expect creates the flow that side of c will send, since m gives its destination queue pair. The starting
// PSN in a message is the one that its sender expects to receive.
func (t *Tracker) expect(c *connection, side rdma.Side, m *ibcm.Message, ref rdma.Ref) {
	if m.QPN == 0 || c.flows[side] != nil {
		return
	}
	key := flowKey{c.Ends[side].Addr, c.Ends[side.Other()].Addr, c.Tenant, m.QPN}
	if old := t.flows[key]; old != nil && old.c != c {
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
		t.addLone(fl)
	} else {
		t.dropLone(c.flows[side.Other()])
		t.addPaired(c.flows[side.Other()])
		t.addPaired(fl)
	}
}
