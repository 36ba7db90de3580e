package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

// plain is connected for the packets that nearly all are: the Send of one packet whose turn it is, and the
// acknowledgement, both on a connection with nothing unusual. It returns false, and has changed nothing, if anything else has
// to be looked at. What it does is what connected would do: the packets of a capture may take either way, which
// TestLean and FuzzLean of package decode compare.
func (t *Tracker) plain(fl *flow, ref rdma.Ref, tap int32, l *Lean, data []byte) bool {
	c, side := fl.c, fl.side&1 // &1: no check of the bounds below
	known, peer := c.Connection, c.flows[side^1]
	if peer == nil || fl.tap.Tap() != tap || known.State != rdma.Established || c.closed || fl.copies || fl.respCopies ||
		l.Marked() || t.whole {
		return false
	}
	response := l.Opcode == RCAcknowledge
	switch {
	case response:
		// ack leaves the sets of PSNs alone as long as nothing is missing.
		if !l.Syndrome.IsACK() || !peer.started || len(peer.missing.r) > 0 {
			return false
		}
	case l.Opcode == RCSendOnly || l.Opcode == RCSendOnlyInvalidate:
		if peer.last == 0 || l.PSN != fl.next || !fl.started || fl.announced || fl.blind || fl.unsure || len(fl.sends) > 0 {
			return false
		}
	default:
		return false
	}
	fl.tap.Accept(tap, c.tap, ref.Time)
	fl.good++
	fl.port, fl.last = l.SrcPort, ref.Number
	c.used, known.Last = true, ref
	sent := &known.Sent[side]
	sent.Packets++
	sent.Bytes += uint64(l.size())
	if response {
		sent.Acks++
		fl.hasResp, fl.lastResp = true, l.PSN
		t.ack(peer, l.PSN, ref)
		t.plainAck(fl, l.PSN, ref)
		return true
	}
	sent.Sends++
	t.numbers.Assign(known)
	fl.next, fl.strays = psnAdd(l.PSN, 1), 0
	s := &t.send
	*s = rdma.Send{}
	s.From, s.Data, s.Length = side, l.payload(data), int(l.PayloadLen)
	s.First, s.Last, s.Packets, s.Solicited = ref, ref, 1, l.SE
	if l.Opcode == RCSendOnlyInvalidate {
		s.Invalidates, s.Handle = true, l.RKey
	}
	work := t.plainSend(fl, s, l.PSN)
	tag := t.h.Send(known, s)
	fl.rpc = fl.rpc || tag.W0|tag.W1 != 0
	r := t.push(fl, l.PSN, sendPrint(s.Data, s.Length))
	r.kind, r.count, r.tag, r.at, r.work, r.mtu = sendRequest, 1, tag, ref.Time, work, 0
	return true
}
