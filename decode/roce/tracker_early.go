package roce

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	// maxEarlyPackets is how many packets of all flows are kept that arrived before the beginning of their
	// message: reordering spans few packets.
	maxEarlyPackets = 64
	// maxOvertaken is how many packets before the first one of a flow are accepted if they arrive later.
	maxOvertaken = 16
)

// earlyPacket is a packet that arrived before the beginning of its message, or a Read Response that arrived
// before its Read Request.
type earlyPacket struct {
	fl     *flow // nil: free
	p      Packet
	ref    rdma.Ref
	header rdma.Header // for a tracer
	data   []byte
}

// earlyPackets keeps packets of all flows until the message that they belong to has begun.
type earlyPackets struct {
	list      []earlyPacket
	at        int  // the next to be used
	recalling bool // packets are being taken
	account   *account
}

// keep keeps a copy of p until the beginning of its message arrives. If there is no room, the oldest is
// dropped.
func (e *earlyPackets) keep(fl *flow, p *Packet, ref rdma.Ref) {
	if e.recalling || len(p.Payload) > MaxMTU {
		return
	}
	if e.list == nil {
		if !e.account.fits(maxEarlyPackets * earlyPacketSize) {
			return
		}
		e.list = make([]earlyPacket, maxEarlyPackets)
		e.account.add(nil, maxEarlyPackets*earlyPacketSize)
	}
	x := &e.list[e.at]
	if more := len(p.Payload) - cap(x.data); more > 0 {
		if !e.account.fits(more) {
			return
		}
		e.account.add(nil, -cap(x.data))
		x.data = make([]byte, 0, len(p.Payload))
		e.account.add(nil, cap(x.data))
	}
	if e.at++; e.at == len(e.list) {
		e.at = 0
	}
	if x.fl != nil {
		x.fl.early--
	}
	x.data = append(x.data[:0], p.Payload...)
	x.fl, x.p, x.ref, x.header = fl, *p, ref, fl.c.Header
	x.p.Payload = x.data
	fl.early++
}

// drop drops the kept packets of a flow.
func (e *earlyPackets) drop(fl *flow) {
	if fl.early == 0 {
		return
	}
	for i := range e.list {
		if x := &e.list[i]; x.fl == fl {
			x.fl = nil
		}
	}
	fl.early = 0
}

// find appends the kept packets of a flow with a PSN of count from start, in their order.
func (e *earlyPackets) find(found []*earlyPacket, fl *flow, start, count uint32, responses bool) []*earlyPacket {
	for i := range e.list {
		x := &e.list[i]
		if d := psnDiff(x.p.PSN, start); x.fl == fl && x.p.Opcode.IsResponse() == responses && d >= 0 && uint32(d) < count {
			found = append(found, x)
		}
	}
	slices.SortStableFunc(found, func(a, b *earlyPacket) int { return int(psnDiff(a.p.PSN, b.p.PSN)) })
	return found
}

// recall processes kept packets of fl, up to count of them from PSN start, because the beginning of their
// message has arrived. Those of another message stay.
func (m *messages) recall(fl *flow, start, count uint32, responses bool) {
	var list [maxEarlyPackets]*earlyPacket
	found := m.early.find(list[:0], fl, start, count, responses)
	if len(found) == 0 {
		return
	}
	m.early.recalling = true
	header, saw := fl.c.Header, m.watch.saw // of the packet at hand
	for _, e := range found {
		if e.fl != fl || !responses && !fl.headless.take(e.p.PSN) && !fl.gone.has(e.p.PSN, 1) {
			continue // it has come again
		}
		e.fl = nil
		fl.early--
		fl.c.Header = e.header
		if responses {
			m.readResponse(fl, fl.peer(), &e.p, e.ref)
		} else {
			m.request(fl, &e.p, e.ref)
		}
		if e.p.Opcode.Ends() {
			break
		}
	}
	fl.c.Header, m.watch.saw = header, saw
	m.early.recalling = false
}

// recallRequests recalls the packets that arrived before the First packet p.
func (m *messages) recallRequests(fl *flow, p *Packet) {
	if fl.early > 0 && p.Opcode.IsFirst() {
		m.recall(fl, psnAdd(p.PSN, 1), maxSendPackets, false)
	}
}

// recallResponses recalls the Read Responses that arrived before their request.
func (m *messages) recallResponses(fl *flow, r *request) {
	peer := fl.peer()
	if peer == nil || peer.early == 0 {
		return
	}
	count := r.count
	if count == 0 {
		count = maxSendPackets
	}
	m.recall(peer, r.start, count, true)
}

// giveUp marks missing PSNs up to psn as given up: they are accepted if they arrive, but no longer expected.
func (fl *flow) giveUp(psn uint32) {
	for _, g := range fl.missing.r {
		d := psnDiff(psn, g.start)
		if d < 0 {
			break
		}
		fl.gone.add(g.start, min(g.count, uint32(d)+1))
	}
	for _, g := range fl.headless.r {
		if d := psnDiff(psn, g.start); d >= 0 {
			fl.gone.remove(g.start, min(g.count, uint32(d)+1))
		}
	}
}

// overtaken reports whether a packet that was given up arrived after all. It was counted as missing if it was
// sent after tracking of the flow had started.
func (fl *flow) overtaken(psn uint32) bool {
	if !fl.gone.take(psn) {
		return false
	}
	if n := &fl.c.Sent[fl.side].Gaps; *n > 0 && psnDiff(psn, fl.floor) >= 0 {
		*n--
	}
	return true
}
