package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

type requestKind uint8

const (
	sendRequest requestKind = iota + 1
	writeRequest
	readRequest
	atomicRequest
)

// request is a message that a sender has started: what is needed to place its further packets, responses,
// acknowledgement and retransmissions.
type request struct {
	kind  requestKind
	start uint32   // PSN
	print uint32   // see printOf
	count uint32   // packets
	guess bool     // Read: count is only a bound, or 0, since the path MTU is not known yet
	asked bool     // Read: requested again, in whole or in part
	mtu   uint32   // payload of its First packet; 0 of a Send whose end has not been seen, or of one packet
	next  uint32   // Read: index of the next response packet
	got   uint32   // Read: response packets seen
	at    int64    // time of its first packet; of a Send, of the copy that counts
	tag   rdma.Tag // Send: the Handler's
	work  uint64   // the watcher's: rdma.Work.Seq
	op    rdma.Op  // Write, Read; of a Send: Length
}

const (
	// maxJump is how far a PSN may be from the expected one. Beyond it, another connection has taken over the
	// queue pair number.
	maxJump = 1 << 16
	// maxStrays is how many consecutive packets may be older than everything remembered. More cannot be
	// retransmissions: a sender retransmits only what has not been acknowledged.
	maxStrays = 256
	// copyGap is the time, in nanoseconds, within which a repeated packet without a NAK counts as a copy made
	// by the network or the capture: no requester gives up so fast.
	copyGap = 100e3
	// maxOpening is how many packets may have been in flight when tracking of a flow started.
	maxOpening = 1024
	// maxRings bounds the requests that are remembered of all flows together.
	maxRings = 1 << 17
)

// place is where a request packet stands in the sequence of its flow.
type place uint8

const (
	placeNone  place = iota // nowhere: the packet is dealt with
	placeNext               // the next, or beyond a gap
	placeLate               // it was missing
	placeKnown              // it was missing for its message, but has been seen: see flow.headless
)

// late reports whether later packets have been seen before.
func (at place) late() bool { return at >= placeLate }

// known reports whether the packet itself has been seen before.
func (at place) known() bool { return at == placeKnown }

// request handles a packet of a request.
func (m *messages) request(fl *flow, p *Packet, ref rdma.Ref) {
	d := m.distance(fl, p, ref)
	m.watch.requested(p)
	if d >= 0 && (fl.blind || fl.unsure) {
		if fl.blind && fl.inBlindWrite(p) {
			return
		}
		fl.regain(p.PSN)
		d = 0
	}
	at := placeNext
	if d < 0 {
		if at = m.behind(fl, p, ref); at == placeNone {
			return
		}
	} else {
		if d > 0 {
			m.miss(fl, fl.next, uint32(d))
			m.watch.saw.Gap = uint32(d)
		}
		fl.next = psnAdd(p.PSN, 1)
	}
	fl.strays = 0
	switch p.Opcode.Operation() {
	case RCSendOnly, RCSendOnlyImmediate, RCSendOnlyInvalidate, RCSendFirst:
		m.sendStart(fl, p, ref, at)
	case RCSendMiddle, RCSendLast, RCSendLastImmediate, RCSendLastInvalidate:
		if a := fl.sending(p.PSN); a != nil {
			m.sendNext(fl, a, p, ref, at.known())
		} else {
			m.headless(fl, p, ref)
		}
	case RCWriteFirst, RCWriteOnly, RCWriteOnlyImmediate:
		m.writeStart(fl, p, ref, at)
	case RCWriteMiddle, RCWriteLast, RCWriteLastImmediate:
		if r := fl.find(p.PSN); r != nil && r.kind == writeRequest && r.mtu != 0 {
			m.writeData(fl, r, p, ref, false, at.known())
		} else {
			m.headless(fl, p, ref)
		}
	case RCReadRequest:
		m.readStart(fl, p, ref, at)
	case RCCompareSwap, RCFetchAdd, RCAtomicWrite, RCFlush:
		m.atomicStart(fl, p, ref)
	}
	if m.watch.watcher != nil && p.Opcode.Service() == ServiceUC && p.Opcode.Ends() {
		// Nobody acknowledges it (IBTA volume 1, section 9.8.2).
		if r := fl.find(p.PSN); r != nil {
			m.watch.watcher.WorkAcked(fl.c.Connection, fl.side, r.work, rdma.Ref{})
		}
	}
}

// distance is how far a request is from the next one expected. It settles first where the flow begins, or
// begins again.
func (m *messages) distance(fl *flow, p *Packet, ref rdma.Ref) int32 {
	if !fl.started {
		fl.started, fl.next = true, p.PSN
		fl.opening, fl.floor = true, p.PSN
		fl.gone.add(p.PSN-maxOvertaken, maxOvertaken)
	}
	if fl.announced {
		m.adopt(fl, p.PSN, ref)
	}
	d := psnDiff(p.PSN, fl.next)
	if d < 0 {
		again := fl.beginsAgain(p.PSN, ref)
		if again || m.contradicts(fl, p) {
			if !again {
				m.reused(fl, p, ref)
			}
			m.resync(fl, p.PSN, ref)
			d = 0
		}
	}
	return d
}

// regain accepts any PSN, since the next one was a guess.
func (fl *flow) regain(psn uint32) {
	if fl.blind {
		fl.blind, fl.next = false, psn
	}
	if fl.unsure { // after a Read Request of unknown size
		fl.unsure = false
		if r := fl.newest(); r.kind == readRequest && r.guess {
			r.count = uint32(psnDiff(psn, fl.next)) + 1 // at most: fl.next is after its first
		}
		fl.next = psn
	}
}

// behind places a packet whose PSN precedes the next one expected.
func (m *messages) behind(fl *flow, p *Packet, ref rdma.Ref) place {
	at := placeLate
	switch {
	case fl.opening && fl.below(p.PSN):
		m.miss(fl, psnAdd(p.PSN, 1), uint32(psnDiff(fl.floor, p.PSN))-1)
		fl.floor = p.PSN
	case !fl.missing.take(p.PSN) && !fl.overtaken(p.PSN) && !m.reveals(fl, p):
		m.again(fl, p, ref)
		return placeNone
	case fl.headless.take(p.PSN):
		at = placeKnown
	}
	m.watch.saw.Novelty = rdma.NoveltyLate
	if at.known() {
		m.watch.saw.Novelty = rdma.NoveltyAgain
		fl.c.Sent[fl.side].Retransmitted++
	}
	return at
}

// headless handles a Middle or Last packet of a message whose beginning has not been seen.
func (m *messages) headless(fl *flow, p *Packet, ref rdma.Ref) {
	m.behead(fl, p.PSN)
	m.untimely(fl, p.PSN, ref)
	m.early.keep(fl, p, ref)
}

// sendStart handles the First or Only packet of a Send, or one that continues a Send although it looks like that.
func (m *messages) sendStart(fl *flow, p *Packet, ref rdma.Ref, at place) {
	if len(fl.sends) > 0 {
		if a := fl.continues(p.PSN); a != nil {
			m.sendNext(fl, a, p, ref, at.known())
			return
		}
		m.border(fl, p.PSN)
	}
	if p.Opcode.IsFirst() {
		m.sendFirst(fl, p, ref)
		m.recallRequests(fl, p)
	} else {
		m.sendOnly(fl, p, ref)
	}
}

// writeStart handles the First or Only packet of a Write, or one that resumes a Write.
func (m *messages) writeStart(fl *flow, p *Packet, ref rdma.Ref, at place) {
	if r := fl.resumed(p, at.late()); r != nil {
		m.writeData(fl, r, p, ref, false, at.known())
		return
	}
	m.border(fl, p.PSN)
	fl.c.Sent[fl.side].Writes++
	m.writeFirst(fl, p, ref, at.late())
	m.recallRequests(fl, p)
}

// readStart handles a Read Request, or the copy of one that was taken for several lost packets.
func (m *messages) readStart(fl *flow, p *Packet, ref rdma.Ref, at place) {
	if at.late() {
		if r := fl.find(p.PSN); r != nil && r.kind == readRequest {
			r.asked = true
			m.watch.carried(fl, r.work, 0, true, ref)
			m.h.OpAgain(fl.c.Connection, &r.op, ref)
			return
		}
	}
	m.border(fl, p.PSN)
	fl.c.Sent[fl.side].Reads++
	m.readRequest(fl, p, ref, at.late())
}

// atomicStart handles an atomic operation or a FLUSH: requests of one packet without data that is followed.
func (m *messages) atomicStart(fl *flow, p *Packet, ref rdma.Ref) {
	m.border(fl, p.PSN)
	fl.c.Sent[fl.side].Atomics++
	r := m.rings.push(fl, p.PSN, printOf(p))
	r.kind, r.count, r.at = atomicRequest, 1, ref.Time
	r.work = m.watch.began(fl, rdma.WorkAtomic, p, ref)
}

// miss records that packets have not been seen.
func (m *messages) miss(fl *flow, start, count uint32) {
	if forgotten := fl.missing.add(start, count); forgotten > 0 {
		m.gap(fl, forgotten, rdma.Ref{})
		for _, a := range fl.sends {
			a.cutAt(int(a.mtu)) // the position of its holes is no longer known
		}
	}
}

// behead records a packet whose message lacks its beginning. It is reported once everything is retransmitted.
func (m *messages) behead(fl *flow, psn uint32) {
	m.miss(fl, psn, 1)
	fl.headless.add(psn, 1)
}

// gap counts packets that were sent and are not in the capture.
func (m *messages) gap(fl *flow, n uint32, ref rdma.Ref) {
	fl.c.Sent[fl.side].Gaps += uint64(n)
	if ref.Seen() {
		m.h.Event(fl.c.Connection, fl.side, rdma.EventGap, n, ref)
	}
}

// restart restarts tracking of a direction at psn.
func (m *messages) restart(fl *flow, psn uint32) {
	for len(fl.sends) > 0 {
		m.flushSend(fl, 0)
	}
	fl.c.Sent[fl.side].Gaps += fl.missing.size()
	fl.missing.reset()
	fl.headless.reset()
	fl.head, fl.acked, fl.held = 0, 0, 0
	fl.next, fl.unsure, fl.blind, fl.refused, fl.owed, fl.strays = psn, false, false, false, false, 0
	fl.copied = false
	m.watch.saw.Restarted = true
	fl.gone.reset()
	m.early.drop(fl)
	fl.opening, fl.floor, fl.announced = true, psn, false
	clear(fl.prints)
	fl.pushed = 0
	if peer := fl.peer(); peer != nil {
		peer.respMissing.reset()
	}
}

// again handles a packet whose PSN was already seen.
func (m *messages) again(fl *flow, p *Packet, ref rdma.Ref) {
	c := fl.c
	c.Sent[fl.side].Retransmitted++
	m.watch.saw.Novelty = rdma.NoveltyAgain
	for _, a := range fl.sends {
		if d := psnDiff(p.PSN, a.start); d >= 0 && uint32(d) < a.count {
			a.again++
			a.last = ref
			m.part(a, p, rdma.PartAgain, ref)
			if a.differs(int(d)*int(a.mtu), p.Payload) {
				m.changed(fl, p, ref)
			}
			m.watch.carried(fl, a.work, uint32(p.PayloadLen), true, ref)
			return
		}
	}
	r := fl.find(p.PSN)
	if r == nil {
		fl.strays++
		return
	}
	fl.strays = 0
	switch r.kind {
	case sendRequest:
		m.watch.carried(fl, r.work, uint32(p.PayloadLen), true, ref)
		if m.differs != nil && m.differs(c.Connection, fl.side, r.tag, int(psnDiff(p.PSN, r.start))*int(r.mtu), r.size(p), p.Payload) {
			m.changed(fl, p, ref)
		}
		last := p.PSN == psnAdd(r.start, r.count-1)
		if last {
			// Which copy did the receiver accept? If it asked for the packet, this one. If the packet was
			// repeated at once, the first.
			if gap := ref.Time - r.at; gap >= 0 && gap < copyGap && !(fl.refused && psnDiff(p.PSN, fl.refusedAt) >= 0) {
				last = false
			} else {
				r.at = ref.Time
			}
		}
		m.h.SendAgain(c.Connection, fl.side, r.tag, ref, last)
	case writeRequest:
		m.writeData(fl, r, p, ref, true, false)
	case readRequest:
		r.asked = true
		m.watch.carried(fl, r.work, 0, true, ref)
		m.h.OpAgain(c.Connection, &r.op, ref)
	case atomicRequest:
		m.watch.carried(fl, r.work, 0, true, ref)
	}
}

// size is the length of a Send of which p repeats a packet; 0 if it is not known.
func (r *request) size(p *Packet) int {
	switch {
	case r.mtu != 0:
		return int(r.op.Length)
	case r.count == 1 && p.Opcode.Ends():
		return p.PayloadLen
	}
	return 0
}

// changed reports a packet of a Send that was seen before with other bytes. No requester sends it: the memory of a Send must not change
// until the Send has completed. The bytes seen first count, since a responder drops a duplicate.
func (m *messages) changed(fl *flow, p *Packet, ref rdma.Ref) {
	m.differing.Add(rdma.Given{Count: 1, Bytes: uint64(p.PayloadLen), First: ref.Number})
	m.h.Event(fl.c.Connection, fl.side, rdma.EventDiffers, uint32(p.PayloadLen), ref)
}

// unfinished reports whether responses may still come.
func (r *request) unfinished() bool { return r.kind == readRequest && (r.got < r.count || r.guess) }

// learnMTU learns the path MTU from a packet that is always full: First or Middle.
func (m *messages) learnMTU(c *connection, p *Packet) {
	n := uint32(p.PayloadLen)
	if n == c.mtu || n < 256 || n > MaxMTU || n&(n-1) != 0 {
		return
	}
	first := c.mtu == 0
	c.mtu, c.MTU = n, n
	if !first {
		return
	}
	for _, fl := range c.flows {
		if fl == nil {
			continue
		}
		for pos := fl.oldest(); pos < fl.head; pos++ {
			if r := fl.request(pos); r.kind == readRequest && r.guess {
				r.mtu = n
				m.settle(fl, r, min(packets(r.op.Length, n), psnHalf))
			}
		}
	}
}

// reveals reports whether a packet shows that a Read of unknown packet count ends before it. It is not a
// retransmission of that Read, which would resume at a later address but have the same end.
func (m *messages) reveals(fl *flow, p *Packet) bool {
	r := fl.find(p.PSN)
	if r == nil || r.kind != readRequest || !r.guess {
		return false
	}
	d := uint32(psnDiff(p.PSN, r.start))
	if d == 0 || p.Opcode.IsReadRequest() && p.RETH.RKey == r.op.Handle &&
		p.RETH.VA > r.op.Offset && p.RETH.VA+uint64(p.RETH.DMALen) == r.op.Offset+uint64(r.op.Length) {
		return false
	}
	if r.count == 0 {
		return false
	}
	m.miss(fl, p.PSN, r.count-d)
	r.count = d // at most
	return fl.missing.take(p.PSN)
}

// settle sets the packet count of a Read that was requested before it could be known. PSNs between its end
// and the next request have not been seen.
func (m *messages) settle(fl *flow, r *request, count uint32) {
	bound, end := r.count, psnAdd(r.start, count)
	r.count, r.guess = count, false
	switch {
	case bound == 0: // nothing has followed
		fl.next, fl.unsure = end, false
	case count < bound:
		m.miss(fl, end, bound-count)
	}
}

// packets is how many packets a message of length bytes takes.
func packets(length, mtu uint32) uint32 {
	if length == 0 {
		return 1
	}
	return uint32((uint64(length) + uint64(mtu) - 1) / uint64(mtu))
}

// resumed finds the Write that a packet continues although it looks like a first packet: a sender that
// resumes in the middle may give the address that it has reached.
func (fl *flow) resumed(p *Packet, fill bool) *request {
	var r *request
	if fill {
		r = fl.find(p.PSN)
	} else if fl.head > 0 {
		r = fl.newest()
	}
	if r == nil || r.kind != writeRequest || r.op.Handle != p.RETH.RKey {
		return nil
	}
	d := psnDiff(p.PSN, r.start)
	if d < 0 || d == 0 && !fill || uint32(d) >= r.count || p.RETH.VA != r.op.Offset+uint64(d)*uint64(r.mtu) {
		return nil
	}
	return r
}

func (m *messages) writeFirst(fl *flow, p *Packet, ref rdma.Ref, fill bool) {
	mtu, count := uint32(p.PayloadLen), uint32(1)
	if p.Opcode.Operation() == RCWriteFirst {
		m.learnMTU(fl.c, p)
		if mtu > 0 {
			count = min(packets(p.RETH.DMALen, mtu), psnHalf)
		}
	}
	r := m.rings.push(fl, p.PSN, printOf(p))
	r.kind, r.count, r.mtu, r.at = writeRequest, count, mtu, ref.Time
	r.op = rdma.Op{
		Kind: rdma.Write, From: fl.side,
		Handle: p.RETH.RKey, Offset: p.RETH.VA, Length: p.RETH.DMALen,
		First: ref, Last: ref, Late: fill,
	}
	r.work = m.watch.began(fl, rdma.WorkWrite, p, ref)
	m.h.OpStart(fl.c.Connection, &r.op, ref)
	m.writeData(fl, r, p, ref, false, false)
}

// writeData reports the payload of a packet of r. Its place follows from the PSN alone: a retransmitted
// packet may have another opcode and its own address. again means that its bytes have been reported, seen
// that the packet arrived before they could be.
func (m *messages) writeData(fl *flow, r *request, p *Packet, ref rdma.Ref, again, seen bool) {
	index := uint32(psnDiff(p.PSN, r.start))
	acked := again && fl.answered(r)
	if !acked {
		r.op.Last = ref
	}
	f := &m.frag
	*f = rdma.Fragment{}
	f.Offset = r.op.Offset + uint64(index)*uint64(r.mtu)
	f.Length, f.Data, f.Ref = uint32(p.PayloadLen), p.Payload, ref
	f.Again, f.Acked, f.Last = again || seen, acked, index+1 == r.count
	if !again {
		fl.c.Sent[fl.side].WriteBytes += uint64(f.Length)
	}
	m.watch.carried(fl, r.work, f.Length, again, ref)
	m.h.OpData(fl.c.Connection, &r.op, f)
}

func (m *messages) readRequest(fl *flow, p *Packet, ref rdma.Ref, fill bool) {
	r := m.rings.push(fl, p.PSN, printOf(p))
	r.kind, r.mtu, r.next, r.got, r.guess, r.asked = readRequest, fl.c.mtu, 0, 0, false, false
	r.at = ref.Time
	r.op = rdma.Op{
		Kind: rdma.Read, From: fl.side,
		Handle: p.RETH.RKey, Offset: p.RETH.VA, Length: p.RETH.DMALen, First: ref, Late: fill,
	}
	switch {
	case p.RETH.DMALen <= 256:
		r.count = 1
	case fl.c.mtu != 0:
		r.count = min(packets(p.RETH.DMALen, fl.c.mtu), psnHalf)
	default:
		r.count, r.guess = 0, true
	}
	switch {
	case fill:
		// The PSNs of its responses were taken for lost requests.
		if r.guess {
			r.count = fl.room(p.PSN)
		}
		fl.missing.remove(p.PSN, r.count)
		fl.gone.remove(p.PSN, r.count)
	case r.guess:
		fl.unsure = true
	default:
		fl.next = psnAdd(p.PSN, r.count)
	}
	r.work = m.watch.began(fl, rdma.WorkRead, p, ref)
	m.watch.saw.Count = r.count
	m.h.OpStart(fl.c.Connection, &r.op, ref)
	m.recallResponses(fl, r)
}

// room is how many PSNs there are from psn to the next request seen.
func (fl *flow) room(psn uint32) uint32 {
	next := fl.next
	for pos := fl.head; pos > fl.oldest(); pos-- {
		start := fl.request(pos - 1).start
		if psnDiff(start, psn) <= 0 {
			break
		}
		next = start
	}
	return uint32(max(psnDiff(next, psn), 1))
}
