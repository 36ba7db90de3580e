package roce

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Nearly all packets are plain: the Send of one packet whose turn it is, or an acknowledgement, on a connection with nothing
// unusual. FastPacket does for them what connected would do, at once. The packets of a capture may take either way, which TestPlain and
// FuzzPlain compare.

// plainness is what a plain packet of a flow needs to know, and what may be plain: as it was in an epoch. Only what is not plain
// changes it, and ends the epoch: see Tracker.epoch.
type plainness struct {
	epoch       uint64
	known       *rdma.Connection
	sent        *rdma.Counters // in known
	peer        *flow
	sends, acks bool
	run         *rdma.Run // of the requests; nil if the watcher is to be told of them
}

// Fast is Packet for a packet of RoCEv2 on the fast path. Tap and tenant may differ from those of p if it was captured in a tunnel.
func (t *Tracker) Fast(p *capture.Packet, tap uint16, tenant uint64, l *FastPacket) *rdma.Connection {
	fl := t.flows.cached(l)
	if !fl.carries(l, tenant) {
		if fl = t.flows.fast(l, tenant); fl == nil {
			return t.unplain(p, tap, tenant, l)
		}
	}
	if fl.tap.Tap() != int32(tap) || l.Marked() {
		return t.unplain(p, tap, tenant, l)
	}
	if fl.plain.epoch != t.epoch && !t.examine(fl) {
		return t.unplain(p, tap, tenant, l)
	}
	known, sent := fl.plain.known, fl.plain.sent
	switch l.Opcode {
	case RCAcknowledge:
		// ack leaves the sets of PSNs alone as long as nothing is missing.
		if !fl.plain.acks || !l.Syndrome.IsACK() || fl.plain.peer.strange(l.PSN) {
			return t.unplain(p, tap, tenant, l)
		}
		ref := fl.took(p, l)
		if t.messages.tracer != nil {
			known.Header = l.header()
		}
		sent.Packets++
		sent.Bytes += uint64(BTHSize + AETHSize + l.rest())
		sent.Acks++
		fl.hasResp, fl.lastResp, fl.lastRefused = true, l.PSN, false
		peer := fl.plain.peer
		r := peer.waits(l.PSN)
		if r != nil { // as in ack
			peer.acked++
			if t.messages.tracer != nil {
				t.messages.traceAck(peer, r, ref)
			}
			t.h.SendAcked(known, peer.side, r.tag, ref)
		} else {
			t.messages.ack(peer, l.PSN, ref)
		}
		if t.messages.watch.runs != nil {
			if run := t.noted(peer); run != nil {
				run.Ack(l.PSN, ref)
			} else {
				t.messages.watch.plainAck(peer, r, l.PSN, ref)
			}
		}
	case RCSendOnly, RCSendOnlyInvalidate:
		if !fl.plain.sends || l.PSN != fl.next {
			return t.unplain(p, tap, tenant, l)
		}
		ref := fl.took(p, l)
		if t.messages.tracer != nil {
			known.Header = l.header()
		}
		sent.Packets++
		sent.Bytes += uint64(l.size())
		sent.Sends++
		t.numbers.Assign(known)
		fl.next, fl.strays = psnAdd(l.PSN, 1), 0
		s := &t.messages.send
		*s = rdma.Send{}
		s.From, s.Data, s.Length = fl.side, l.payload(p.Data), int(l.PayloadLen)
		s.First, s.Last, s.Packets, s.Solicited = ref, ref, 1, l.SE
		if l.Opcode == RCSendOnlyInvalidate {
			s.Invalidates, s.Handle = true, l.RKey
		}
		work := uint64(0)
		if t.messages.watch.runs != nil {
			work = fl.works
			fl.works++
			if run := fl.plain.run; run.Room(l.PSN) {
				run.Send(l.PSN, ref)
			} else {
				fl.plain.run = t.messages.watch.runs.NextSend(known, s, work, l.PSN)
			}
		}
		tag := t.h.Send(known, s)
		fl.carriesRPC(tag)
		r := t.messages.rings.push(fl, l.PSN, sendPrint(s.Data, s.Length))
		r.kind, r.count, r.tag, r.at, r.work, r.mtu = sendRequest, 1, tag, ref.Time, work, 0
		return known // it has a number
	default:
		return t.unplain(p, tap, tenant, l)
	}
	return numbered(known)
}

// FastWithin is FastPacket for a packet in a tunnel, the outermost of the frame; nil if it is in none.
func (t *Tracker) FastWithin(p *capture.Packet, tap uint16, tenant uint64, tunnel *link.Tunnel, l *FastPacket) *rdma.Connection {
	t.within = tunnel
	c := t.Fast(p, tap, tenant, l)
	t.within = nil
	return c
}

// numbered is the connection if it has a number, see connection.known.
func numbered(c *rdma.Connection) *rdma.Connection {
	if c.ID == 0 {
		return nil
	}
	return c
}

// carries reports whether a packet belongs to a flow, if there is one.
func (fl *flow) carries(l *FastPacket, tenant uint64) bool {
	return fl != nil && fl.route == l.Route && fl.key.qpn == l.DestQP && fl.key.tenant == tenant
}

// carriesRPC marks the flow as carrying RPC if the tag of a Send belongs to a transaction.
func (fl *flow) carriesRPC(tag rdma.Tag) {
	if tag.W0|tag.W1 != 0 {
		fl.rpc = true
	}
}

// took notes what each packet changes.
func (fl *flow) took(p *capture.Packet, l *FastPacket) rdma.Ref {
	ref := rdma.Ref{Time: p.Time, Number: p.Number}
	fl.tap.Took(ref.Time)
	fl.good++
	fl.port, fl.last = l.SrcPort, ref.Number
	fl.c.used, fl.plain.known.Last = true, ref
	return ref
}

// examine brings the plainness of a flow up to date. It returns false if nothing is plain.
func (t *Tracker) examine(fl *flow) bool {
	c := fl.c
	peer := fl.peer()
	if peer == nil || c.State != rdma.Established || c.closed || c.damaged || c.provisional > 0 || fl.copied || fl.respCopied || t.whole {
		return false
	}
	fl.plain = plainness{
		epoch: t.epoch, known: c.Connection, sent: &c.Sent[fl.side], peer: peer,
		acks:  peer.started && len(peer.missing.r) == 0 && len(peer.sends) == 0,
		sends: peer.last != 0 && fl.started && !fl.announced && !fl.blind && !fl.unsure && len(fl.sends) == 0,
	}
	return true
}

// unplain is FastPacket for a packet that is not plain.
func (t *Tracker) unplain(p *capture.Packet, tap uint16, tenant uint64, l *FastPacket) *rdma.Connection {
	t.epoch++
	t.tenant, t.tunnel = tenant, t.within
	ref := rdma.Ref{Time: p.Time, Number: p.Number}
	fl := t.flows.cached(l)
	if !fl.carries(l, tenant) {
		fl = t.flow(flowKey{l.Route.Src, l.Route.Dst, tenant, l.DestQP}, ref, int32(tap), rdma.RoCEv2)
		fl.route = l.Route
	}
	l.Packet(p.Data, &t.fast)
	if fl.last == 0 {
		t.fast.PKey = l.pkey(p.Data)
	}
	if t.messages.tracer != nil {
		l.traced(&t.fast)
	}
	return t.connected(fl, &arrival{ref: ref, p: &t.fast, tap: int32(tap), port: l.SrcPort, fabric: rdma.RoCEv2, marked: l.Marked(), icrc: Good})
}

// waits returns the only request that waits for an acknowledgement, if that is a Send of one packet, its PSN, and the last that was
// seen.
func (fl *flow) waits(psn uint32) *request {
	if fl.next != psnAdd(psn, 1) || fl.acked+1 != fl.head || fl.refused || fl.opening {
		return nil
	}
	if r := fl.request(fl.acked); r.start == psn && r.count == 1 && r.kind == sendRequest {
		return r
	}
	return nil
}
