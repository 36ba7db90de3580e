package roce

import (
	"encoding/binary"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

const (
	// printsPerRequest is how many messages of a flow are remembered by their prints for each slot of its ring, and
	// maxPrints how many at most. Both are powers of two.
	printsPerRequest = 8
	maxPrints        = 1 << 10
	// maxLateStart is how many packets may be missing between a connection's setup and its first captured
	// packet. A larger difference is a contradiction.
	maxLateStart = 64
	// maxSilence is the time, in nanoseconds, after which nobody repeats what was acknowledged: a requester that has not received
	// the acknowledgement gives up much earlier.
	maxSilence = 60e9
	// maxCounted is how many PSNs may have been used since a setup for those before its first one not to have come round.
	maxCounted = 1 << 22
)

// print is what is remembered of a message to recognise a retransmission: the PSN of its first packet, and a
// hash of what a retransmission must have in common with it.
type print struct{ start, sum uint32 }

const printSize = 8

// printFactor is odd with well-spread bits. A peer that makes two messages alike only makes one of its own
// look like a retransmission.
const printFactor = 0x9e3779b97f4a7c15

// kindOf is the kind of message that a request packet belongs to.
func kindOf(p *Packet) requestKind {
	switch {
	case p.Opcode.IsSend():
		return sendRequest
	case p.Opcode.IsWrite():
		return writeRequest
	case p.Opcode.IsReadRequest():
		return readRequest
	}
	return atomicRequest
}

// printOf is the print of the message that p starts. For a Send it covers the first bytes and their number,
// for an RDMA operation the RETH; of that of a Read, what is left if it is asked again from its middle: key and end.
func printOf(p *Packet) uint32 {
	var h uint64
	switch kind := kindOf(p); kind {
	case sendRequest:
		return sendPrint(p.Payload, p.PayloadLen)
	case writeRequest, readRequest:
		h = uint64(p.RETH.DMALen)<<8 | uint64(kind)
		va := p.RETH.VA
		if kind == readRequest {
			h, va = uint64(kind), va+uint64(p.RETH.DMALen)
		}
		h = (h ^ va) * printFactor
		h = (h ^ h>>29 ^ uint64(p.RETH.RKey)) * printFactor
	default:
		return uint32(kind)
	}
	return uint32(h >> 32)
}

// sendPrint is printOf for a Send whose first packet has length bytes, of which b was captured.
func sendPrint(b []byte, length int) uint32 {
	h := uint64(length)<<8 | uint64(sendRequest)
	add := func(word []byte) { h = (h ^ h>>29 ^ binary.LittleEndian.Uint64(word)) * printFactor }
	if len(b) >= 24 { // nearly always
		add(b)
		add(b[8:])
		add(b[16:])
		return uint32(h >> 32)
	}
	for ; len(b) >= 8; b = b[8:] {
		add(b)
	}
	return uint32(h >> 32)
}

// adopt handles the first request of a flow whose setup was captured. If the two contradict each other, the
// traffic decides.
func (m *messages) adopt(fl *flow, psn uint32, ref rdma.Ref) {
	fl.announced = false
	if d := psnDiff(psn, fl.next); d < 0 || d > maxLateStart {
		if d < 0 {
			m.resync(fl, psn, ref)
		} else {
			// The capture may lack the packets in between; the current message is not suspect.
			m.restart(fl, psn)
			fl.c.Sent[fl.side].Resyncs++
		}
		fl.gone.add(psn-maxOvertaken, maxOvertaken)
		return
	}
	fl.floor = fl.next
}

// resync restarts tracking of a direction at psn, since what was known of its PSNs is wrong.
func (m *messages) resync(fl *flow, psn uint32, ref rdma.Ref) {
	m.restart(fl, psn)
	fl.c.Sent[fl.side].Resyncs++
	m.h.Event(fl.c.Connection, fl.side, rdma.EventResync, psn, ref)
}

// contradicts reports whether a request below the expected PSN cannot be a retransmission: it differs from
// what was seen with that PSN, or is older than anything that the peer can still ask for.
func (m *messages) contradicts(fl *flow, p *Packet) bool {
	psn := p.PSN
	if fl.opening && fl.below(psn) || fl.missing.has(psn, 1) {
		return false
	}
	if fl.gone.has(psn, 1) {
		// What was sent before the first of a flow comes soon, if it does.
		return !fl.opening && p.Opcode.Starts() && fl.pushed > maxOvertaken/2 && psnDiff(psn, fl.floor) < 0
	}
	starts, kind := p.Opcode.Starts(), kindOf(p)
	for _, a := range fl.sends {
		if d := a.indexOf(psn); d >= 0 && uint32(d) < a.count {
			return kind != sendRequest || d == 0 && starts && a.print != printOf(p)
		}
	}
	if r := fl.find(psn); r != nil {
		return r.contradicts(p, starts, kind)
	}
	if !starts {
		return false
	}
	if len(fl.prints) == 0 {
		// Everything since the beginning is in the ring.
		return fl.pushed > 0 && psnDiff(psn, fl.floor) < 0
	}
	before, older := fl.printed(psn)
	if !older {
		again := before.start == psn || kind == readRequest // or the Read is asked again from its middle
		return !again || before.sum != printOf(p)
	}
	if psnDiff(psn, fl.request(fl.oldest()).start) >= 0 {
		return false
	}
	// A sender whose ring has overflowed may have more under way than is
	// remembered. But it does not go back behind what was acknowledged by that much.
	return len(fl.ring) < m.rings.limits.Requests || fl.acked-fl.oldest() >= uint64(len(fl.ring))/2
}

// printed is the last of the requests remembered by their prints that begins at psn or before; older reports that there is none.
func (fl *flow) printed(psn uint32) (before print, older bool) {
	older = true
	for _, x := range fl.prints[:min(fl.pushed, uint64(len(fl.prints)))] {
		if d := psnDiff(psn, x.start); d >= 0 && (older || d < psnDiff(psn, before.start)) {
			before, older = x, false
		}
	}
	return before, older
}

// beginsAgain reports whether a request with an older PSN, which was acknowledged, comes so long after the newest request, or before it, that
// it is not a retransmission: the traffic was replayed, or the capture was appended to itself or to another one.
func (fl *flow) beginsAgain(psn uint32, ref rdma.Ref) bool {
	if fl.head == 0 || fl.missing.has(psn, 1) || fl.gone.has(psn, 1) { // those have not been seen yet
		return false
	}
	since := ref.Time - fl.newest().at
	if since > -straggle && since < maxSilence {
		return false
	}
	return fl.acked == fl.head || psnDiff(psn, fl.request(fl.acked).start) < 0
}

var workOf = [...]rdma.WorkKind{sendRequest: rdma.WorkSend, writeRequest: rdma.WorkWrite, readRequest: rdma.WorkRead, atomicRequest: rdma.WorkAtomic}

// reused reports a request that has a PSN of an earlier one, which it does not repeat: its sender has counted wrong. It says nothing if another
// connection may have taken over the queue pair, if a packet of either may be damaged, or if it is not certain how many PSNs the earlier one takes.
func (m *messages) reused(fl *flow, p *Packet, ref rdma.Ref) {
	c, r := fl.c, fl.find(p.PSN)
	switch {
	case r == nil || r.guess || !c.set() || c.State != rdma.Established || c.closed || fl.bad > 0:
		return
	case !r.contradicts(p, p.Opcode.Starts(), kindOf(p)):
		return
	case r.kind == readRequest && r.got < r.count && c.mtu != c.Setup[0].PathMTU:
		return
	}
	c.Reused[fl.side] = rdma.Reused{Kind: workOf[kindOf(p)], Of: workOf[r.kind], PSN: p.PSN, Start: r.start, Count: r.count}
	m.h.Event(c.Connection, fl.side, rdma.EventReused, p.PSN, ref)
}

// unsent reports an acknowledgement of a PSN that the requester, asked, cannot have used: one from before its first, or one that is as far from
// everything that it sent as from what was acknowledged before, which is before. A capture that lacks requests shows acknowledgements beyond them, but
// these go on from one another.
func (m *messages) unsent(fl, asked *flow, psn uint32, before uint32, first bool, ref rdma.Ref) {
	c := fl.c
	start, ok := c.Setup[fl.side].Start()
	if !ok || !c.set() || c.State != rdma.Established || c.closed || asked.announced || asked.unsure || asked.blind || fl.bad > 0 {
		return
	}
	sent := psnDiff(asked.next, start)
	if sent < 0 || sent >= maxCounted || c.Sent[0].Packets+c.Sent[1].Packets >= maxCounted {
		return // the numbers may have begun anew
	}
	if first {
		before = start
	}
	far := func(a, b uint32) bool { d := psnDiff(a, b); return d >= maxJump || d <= -maxJump }
	if psnDiff(psn, start) >= 0 && !(far(psn, asked.next) && far(psn, before)) {
		return
	}
	m.h.Event(c.Connection, fl.side, rdma.EventAckUnsent, psn, ref)
}

// contradicts reports whether a packet with one of r's PSNs cannot be its retransmission, which may resume in
// the middle.
func (r *request) contradicts(p *Packet, starts bool, kind requestKind) bool {
	d := uint64(psnDiff(p.PSN, r.start))
	switch {
	case r.unfinished() && d > 0:
		return false // its end is not certain
	case !starts:
		return kind != r.kind
	case d == 0:
		return r.print != printOf(p) || kind == readRequest && p.RETH.VA != r.op.Offset
	case kind != r.kind:
		return true
	case kind == sendRequest:
		return !r.resumes(p, d)
	case kind == writeRequest:
		return p.RETH.RKey != r.op.Handle || p.RETH.VA != r.op.Offset+d*uint64(r.mtu)
	case kind == readRequest:
		return p.RETH.RKey != r.op.Handle || p.RETH.VA <= r.op.Offset ||
			p.RETH.VA+uint64(p.RETH.DMALen) != r.op.Offset+uint64(r.op.Length)
	}
	return false
}

// resumes reports whether a First or Only packet may be the one at index d of a
// Send: it brings what is left of it.
func (r *request) resumes(p *Packet, d uint64) bool {
	if r.mtu == 0 {
		return true // its size is not known
	}
	mtu := int64(r.mtu)
	rest := int64(r.op.Length) - int64(d)*mtu
	if p.Opcode.Ends() {
		return int64(p.PayloadLen) == rest
	}
	return int64(p.PayloadLen) == mtu && rest > mtu
}
