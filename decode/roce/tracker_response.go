package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

// response handles an acknowledgement or a Read Response: fl answers requests
// of its peer.
func (t *Tracker) response(fl *flow, p *Packet, ref rdma.Ref) {
	fl.hasResp, fl.lastResp = true, p.PSN
	peer := fl.c.flows[fl.side.Other()]
	sent := &fl.c.Sent[fl.side]
	op := p.Opcode.Operation()
	if op == RCAcknowledge {
		sent.Acks++
	}
	if peer == nil || !peer.started {
		return
	}
	switch op {
	case RCReadResponseFirst, RCReadResponseMiddle, RCReadResponseLast, RCReadResponseOnly:
		t.readResponse(fl, peer, p, ref)
	case RCAtomicAcknowledge:
		t.ack(peer, p.PSN, ref)
	case RCAcknowledge:
		switch p.AETH.Syndrome & 0x60 {
		case 0x00:
			t.ack(peer, p.PSN, ref)
		case 0x20:
			sent.RNRs++
			t.ack(peer, psnAdd(p.PSN, psnMask), ref)
			t.h.Event(fl.c.Connection, fl.side, rdma.EventRNR, p.PSN, ref)
		case 0x60:
			sent.NAKs++
			t.ack(peer, psnAdd(p.PSN, psnMask), ref)
			e := rdma.EventNAKOperation
			switch p.AETH.Syndrome & 0x1f {
			case 0:
				e = rdma.EventNAKSequence
			case 1:
				e = rdma.EventNAKInvalid
			case 2:
				e = rdma.EventNAKAccess
			}
			t.h.Event(fl.c.Connection, fl.side, e, p.PSN, ref)
		}
	}
}

// ack handles the acknowledgement of all requests of fl up to psn.
func (t *Tracker) ack(fl *flow, psn uint32, ref rdma.Ref) {
	if d := psnDiff(psn, fl.next); d >= 0 && !fl.unsure || d < -maxJump {
		return // of requests that were never seen
	}
	n := uint64(len(fl.ring))
	for fl.acked < fl.head {
		r := &fl.ring[fl.acked%n]
		last := r.start
		if r.count > 1 {
			last = psnAdd(r.start, r.count-1)
		}
		if psnDiff(last, psn) > 0 {
			break
		}
		if r.kind == sendRequest {
			t.h.SendAcked(fl.c.Connection, fl.side, r.tag, r.gen, ref)
		}
		fl.acked++
	}
	// What the receiver has acknowledged and the capture lacks was lost by
	// the capture; it does not come again.
	if len(fl.missing.r) == 0 || psnDiff(psn, fl.missing.r[0].start) < 0 {
		return
	}
	if a := &fl.asm; a.active && a.known && psnDiff(psn, psnAdd(a.start, a.count-1)) >= 0 {
		t.flushSend(fl)
	}
	if lost := fl.missing.before(psn); lost > 0 {
		fl.c.Sent[fl.side].Gaps += uint64(lost)
		t.h.Event(fl.c.Connection, fl.side, rdma.EventGap, lost, ref)
	}
}

// readResponse places a packet of a Read Response. Its offset follows from
// its PSN, so that lost and repeated packets do no harm.
func (t *Tracker) readResponse(fl, peer *flow, p *Packet, ref rdma.Ref) {
	c := fl.c
	if p.Opcode.Operation() == RCReadResponseFirst {
		t.learnMTU(c, p)
	}
	r := peer.find(p.PSN)
	if r == nil || r.kind != readRequest {
		return
	}
	if r.count == 0 {
		t.sizeRead(peer, r)
	}
	index := uint32(psnDiff(p.PSN, r.start))
	if r.count != 0 && index >= r.count {
		return
	}
	again := false
	switch {
	case index == r.next:
		r.next++
	case index > r.next:
		fl.respMissing.add(psnAdd(r.start, r.next), index-r.next)
		r.next = index + 1
	default:
		again = !fl.respMissing.take(p.PSN)
	}
	mtu := r.mtu
	if mtu == 0 {
		mtu = c.mtu
	}
	offset := uint64(index) * uint64(mtu)
	length := uint32(p.PayloadLen)
	if offset > uint64(r.op.Length) {
		return
	}
	if left := uint64(r.op.Length) - offset; uint64(length) > left {
		length = uint32(left)
	}
	data := p.Payload
	if len(data) > int(length) {
		data = data[:length]
	}
	if again {
		c.Sent[fl.side].Retransmitted++
	} else {
		c.Sent[fl.side].ReadBytes += uint64(length)
	}
	r.op.Last = ref
	f := &t.frag
	*f = rdma.Fragment{
		Offset: r.op.Offset + offset, Length: length, Data: data, Ref: ref,
		Again: again, Last: index+1 == r.count,
	}
	t.h.OpData(c.Connection, &r.op, f)
	// A response acknowledges what was requested before (IBTA volume 1,
	// section 9.7.5.1.2), and at its end the Read itself.
	if f.Last {
		t.ack(peer, p.PSN, ref)
	} else {
		t.ack(peer, psnAdd(r.start, psnMask), ref)
	}
}

// sizeRead sets the packet count of a Read that was requested before the path
// MTU was known.
func (t *Tracker) sizeRead(peer *flow, r *request) {
	if peer.c.mtu == 0 {
		return
	}
	r.mtu = peer.c.mtu
	r.count = min(packets(r.op.Length, r.mtu), psnHalf)
	if end := psnAdd(r.start, r.count); psnDiff(end, peer.next) > 0 {
		peer.next = end
		peer.unsure = false
	}
}
