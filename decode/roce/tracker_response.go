package roce

import (
	"strings"

	"github.com/rpcrdma/toolkit/decode/link"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// response handles an acknowledgement or a Read Response: fl answers requests of its peer.
func (m *messages) response(fl *flow, p *Packet, ref rdma.Ref) {
	before, first := fl.lastResp, !fl.hasResp
	fl.hasResp, fl.lastResp = true, p.PSN
	peer := fl.peer()
	sent := &fl.c.Sent[fl.side]
	op := p.Opcode.Operation()
	fl.lastRefused = op == RCAcknowledge && !p.AETH.Syndrome.IsACK()
	if op == RCAcknowledge {
		sent.Acks++
	}
	m.watch.answered(p)
	if peer == nil || !peer.started {
		return
	}
	switch op {
	case RCReadResponseFirst, RCReadResponseMiddle, RCReadResponseLast, RCReadResponseOnly:
		m.readResponse(fl, peer, p, ref)
	case RCAtomicAcknowledge:
		m.ack(peer, p.PSN, ref)
		m.watch.atomicDone(peer, peer.find(p.PSN), ref)
	case RCAcknowledge:
		switch p.AETH.Syndrome & syndromeKind {
		case 0:
			if peer.strange(p.PSN) {
				m.unsent(fl, peer, p.PSN, before, first, ref)
			}
			m.ack(peer, p.PSN, ref)
		case syndromeRNR:
			sent.RNRs++
			m.refuse(fl, peer, p.PSN, rdma.EventRNR, ref)
		case syndromeNAK:
			sent.NAKs++
			m.nak(fl, peer, p, ref)
		}
	}
}

// nak handles a negative acknowledgement. All except the one for a lost packet end the connection (IBTA
// volume 1, section 9.9.2.1).
func (m *messages) nak(fl, peer *flow, p *Packet, ref rdma.Ref) {
	e, why := rdma.EventNAKOther, strings.TrimPrefix(p.AETH.Syndrome.String(), "NAK ")
	switch p.AETH.Syndrome {
	case NAKPSNSequence:
		m.refuse(fl, peer, p.PSN, rdma.EventNAKSequence, ref)
		return
	case NAKInvalid:
		e = rdma.EventNAKInvalid
	case NAKRemoteAccess:
		e = rdma.EventNAKAccess
	case NAKRemoteOp:
		e = rdma.EventNAKOperation
	}
	if c := fl.c; c.Terminated == "" {
		c.Terminated = "NAK (" + why + ") from " + link.AddrString(fl.key.src)
		peer.ended = true
	}
	m.refuse(fl, peer, p.PSN, e, ref)
}

// refuse handles a NAK for psn: everything before it was received.
func (m *messages) refuse(fl, peer *flow, psn uint32, e rdma.Event, ref rdma.Ref) {
	m.ack(peer, psnAdd(psn, psnMask), ref)
	peer.refused, peer.refusedAt = true, psn
	m.h.Event(fl.c.Connection, fl.side, e, psn, ref)
}

// goesOn takes back that a NAK has ended the connection, since its sender acknowledges more. A responder that has ended it does not: its queue pair is in
// the error state (IBTA volume 1, section 9.9.3).
func (fl *flow) goesOn() {
	if fl.ended {
		fl.ended, fl.c.Terminated = false, ""
		fl.c.Sent[fl.side.Other()].FalseEnds++
	}
}

// ack handles the acknowledgement of all requests of fl up to psn.
func (m *messages) ack(fl *flow, psn uint32, ref rdma.Ref) {
	if fl.foreign(psn) {
		return
	}
	if fl.refused && psnDiff(psn, fl.refusedAt) >= 0 {
		fl.refused = false
		fl.goesOn()
	}
	if fl.opening && psnDiff(psn, fl.floor) >= 0 {
		fl.opening = false
	}
	// A Send that was received but is incomplete lacks packets that the capture lost; it will not be
	// retransmitted.
	for i := 0; i < len(fl.sends); {
		a := fl.sends[i]
		end := a.count // without its end, what follows was received
		if a.ended {
			end--
		}
		if psnDiff(psn, psnAdd(a.start, end)) >= 0 {
			m.flushSend(fl, i)
		} else {
			if m.tracer != nil {
				m.partAcked(fl, a, psn, ref)
			}
			i++
		}
	}
	for fl.acked < fl.head {
		r := fl.request(fl.acked)
		last := r.start
		if r.count > 1 {
			last = psnAdd(r.start, r.count-1)
		}
		if psnDiff(last, psn) > 0 {
			break
		}
		fl.acked++
		if m.tracer != nil {
			m.traceAck(fl, r, ref)
		}
		if m.watch.watcher != nil && r.kind != atomicRequest {
			m.watch.watcher.WorkAcked(fl.c.Connection, fl.side, r.work, ref)
		}
		if r.kind == sendRequest {
			m.h.SendAcked(fl.c.Connection, fl.side, r.tag, ref)
		}
	}
	if m.tracer != nil && fl.acked < fl.head {
		if r := fl.request(fl.acked); psnDiff(psn, r.start) >= 0 {
			m.traceAck(fl, r, ref)
		}
	}
	if len(fl.missing.r) == 0 || psnDiff(psn, fl.missing.r[0].start) < 0 {
		return
	}
	fl.giveUp(psn)
	fl.pierce(psn)
	seen := fl.headless.before(psn)
	if lost := fl.missing.before(psn); lost > seen {
		m.gap(fl, lost-seen, ref)
	}
}

// readResponse places a packet of a Read Response. Its offset follows from its PSN, so lost and retransmitted
// packets do no harm.
func (m *messages) readResponse(fl, peer *flow, p *Packet, ref rdma.Ref) {
	c := fl.c
	if p.Opcode.IsFirst() || p.Opcode.IsMiddle() && c.mtu == 0 {
		m.learnMTU(c, p)
	}
	r := peer.find(p.PSN)
	if r == nil || r.kind != readRequest {
		m.ofNoRead(fl, peer, r, p, ref)
		return
	}
	index := uint32(psnDiff(p.PSN, r.start))
	if !r.guess && r.got == 0 && p.Opcode.IsFirst() && uint32(p.PayloadLen) == c.mtu && c.mtu != r.mtu {
		m.resize(peer, r)
	}
	offset, ok := m.place(peer, r, index, p)
	if !ok {
		m.h.Event(c.Connection, fl.side, rdma.EventUnrequested, p.PSN, ref)
		return
	}
	again := false
	switch {
	case index == r.next:
		r.next++
	case index > r.next:
		fl.respMissing.add(psnAdd(r.start, r.next), index-r.next)
		m.watch.saw.Gap = index - r.next
		r.next = index + 1
	default:
		again = !fl.respMissing.take(p.PSN)
		m.watch.saw.Novelty = rdma.NoveltyLate
		if again {
			m.watch.saw.Novelty = rdma.NoveltyAgain
		}
	}
	length := uint32(p.PayloadLen)
	if again {
		c.Sent[fl.side].Retransmitted++
	} else {
		r.got++
		c.Sent[fl.side].ReadBytes += uint64(length)
	}
	// A requester that lacks a response requests it again. One that comes twice without
	// that was copied on its way.
	copied := again && !r.asked
	if !copied {
		r.op.Last = ref
	}
	f := &m.frag
	*f = rdma.Fragment{}
	f.Offset, f.Length = r.op.Offset+offset, length
	f.Data, f.Ref = p.Payload, ref
	f.Again, f.Acked, f.Last = again, copied, index+1 == r.count
	if m.watch.watcher != nil {
		m.watch.carried(peer, r.work, length, again, ref)
		if !again && r.got == r.count && !r.guess {
			m.watch.watcher.WorkDone(c.Connection, peer.side, r.work, r.op.Length, nil, ref)
		}
	}
	m.h.OpData(c.Connection, &r.op, f)
	// A response acknowledges earlier requests (IBTA volume 1, section 9.7.5.1.2), and at its end the Read
	// itself.
	if f.Last {
		m.ack(peer, p.PSN, ref)
	} else {
		m.ack(peer, psnAdd(r.start, psnMask), ref)
	}
}

// ofNoRead handles a Read Response that belongs to r, which is no Read Request, or nil.
func (m *messages) ofNoRead(fl, peer *flow, r *request, p *Packet, ref rdma.Ref) {
	if r != nil && r.kind == atomicRequest && p.Opcode.IsOnly() && p.PayloadLen == 0 {
		// A FLUSH and an ATOMIC WRITE are acknowledged by an empty Read Response (IBTA annex A19).
		m.watch.saw.Class, m.watch.saw.Syndrome = rdma.ClassAck, uint8(p.AETH.Syndrome)
		m.ack(peer, p.PSN, ref)
		m.watch.atomicDone(peer, r, ref)
		return
	}
	// The request was not captured. The PSNs of its responses are not those of lost requests; only its own is.
	if peer.missing.take(p.PSN) && p.Opcode.Starts() {
		peer.gone.add(p.PSN, 1)
		m.gap(peer, 1, ref)
	}
	m.unrequested(fl, p, ref)
}

// unrequested handles a Read Response whose request was not seen. It is reported once per run of consecutive
// packets.
func (m *messages) unrequested(fl *flow, p *Packet, ref rdma.Ref) {
	m.early.keep(fl, p, ref)
	if p.Opcode.Starts() || !fl.hasUnrequested || p.PSN != psnAdd(fl.lastUnrequested, 1) {
		m.h.Event(fl.c.Connection, fl.side, rdma.EventUnrequested, p.PSN, ref)
	}
	fl.hasUnrequested, fl.lastUnrequested = true, p.PSN
}

// place is the offset of a Read Response packet in its Read. It returns false if the packet cannot belong to
// it: all but the last carry as much as the path MTU allows.
func (m *messages) place(peer *flow, r *request, index uint32, p *Packet) (offset uint64, ok bool) {
	length, size := uint64(r.op.Length), uint64(p.PayloadLen)
	last := p.Opcode.Ends()
	if r.guess {
		switch {
		case index == 0:
			if last && size != length || size > length {
				return 0, false
			}
		case size >= length:
			r.count = min(r.count-1, index-1) + 1 // the request of this one was not captured
			return 0, false
		case last:
			mtu := (length - size) / uint64(index)
			if mtu < 256 || mtu > MaxMTU || mtu&(mtu-1) != 0 || size > mtu || mtu*uint64(index)+size != length {
				return 0, false
			}
			r.mtu = uint32(mtu)
		default:
			return 0, false
		}
		if last {
			m.settle(peer, r, index+1)
		}
		return uint64(index) * uint64(r.mtu), true
	}
	if index >= r.count {
		return 0, false
	}
	offset = uint64(index) * uint64(r.mtu)
	want := min(length-min(offset, length), uint64(r.mtu))
	if r.count == 1 {
		want = length
	}
	return offset, size == want && last == (index+1 == r.count)
}

// resize corrects the packet count of a Read that was requested when another path MTU was assumed.
func (m *messages) resize(peer *flow, r *request) {
	old := r.count
	r.mtu = peer.c.mtu
	r.count = min(packets(r.op.Length, r.mtu), psnHalf)
	peer.missing.remove(r.start, max(old, r.count))
	if r == peer.newest() && peer.next == psnAdd(r.start, old) {
		peer.next = psnAdd(r.start, r.count)
	}
}
