package roce

import "github.com/rpcrdma/toolkit/decode/rdma"

type requestKind uint8

const (
	sendRequest requestKind = iota + 1
	writeRequest
	readRequest
	atomicRequest
)

// request is a message that a sender has started: what is needed to place its
// further packets, its responses, its acknowledgement and its repetitions.
type request struct {
	kind  requestKind
	start uint32 // PSN
	count uint32 // packets; 0 for a Read whose path MTU is not known yet
	mtu   uint32 // payload of its First packet
	next  uint32 // Read: index of the next response packet
	tag   any    // Send: the Handler's
	gen   uint64
	op    rdma.Op // Write, Read
}

// maxJump is how far a PSN may be from the expected one. Beyond it, the queue
// pair number has been taken over by another connection.
const maxJump = 1 << 16

// assembly collects a Send of several packets.
type assembly struct {
	active  bool
	known   bool // the Last packet has been seen
	start   uint32
	count   uint32 // packets up to the highest seen
	seen    int    // packets
	again   int
	mtu     uint32
	length  int // up to the end of the highest packet
	cut     int // where the captured bytes end, because of a snaplen
	buf     []byte
	first   rdma.Ref
	last    rdma.Ref
	inv     bool
	handle  uint32
	solicit bool
}

func (t *Tracker) request(fl *flow, p *Packet, ref rdma.Ref) {
	fill := false
	if !fl.started {
		fl.started, fl.next = true, p.PSN
	}
	d := psnDiff(p.PSN, fl.next)
	if fl.unsure {
		// After a Read Request of unknown size, take what comes.
		if d >= 0 && d < maxJump {
			fl.next, d = p.PSN, 0
		}
		fl.unsure = false
	}
	switch {
	case d == 0:
	case d > 0 && d < maxJump:
		fl.missing.add(fl.next, uint32(d))
	case d < 0 && d > -maxJump:
		if !fl.missing.take(p.PSN) {
			t.again(fl, p, ref)
			return
		}
		fill = true
	default:
		t.restart(fl, p.PSN)
	}
	if !fill {
		fl.next = psnAdd(p.PSN, 1)
	}
	sent := &fl.c.Sent[fl.side]
	switch p.Opcode.Operation() {
	case RCSendOnly, RCSendOnlyImmediate, RCSendOnlyInvalidate:
		t.sendOnly(fl, p, ref)
	case RCSendFirst:
		t.sendFirst(fl, p, ref)
	case RCSendMiddle, RCSendLast, RCSendLastImmediate, RCSendLastInvalidate:
		t.sendNext(fl, p, ref, fill)
	case RCWriteFirst, RCWriteOnly, RCWriteOnlyImmediate:
		if fill {
			if r := fl.find(p.PSN); r != nil && r.kind == writeRequest && r.op.Handle == p.RETH.RKey {
				t.writeData(fl, r, p, ref, false)
				return
			}
		}
		sent.Writes++
		t.writeFirst(fl, p, ref)
	case RCWriteMiddle, RCWriteLast, RCWriteLastImmediate:
		r := fl.find(p.PSN)
		if r == nil || r.kind != writeRequest {
			t.orphan(fl, p, fill)
			return
		}
		t.writeData(fl, r, p, ref, false)
	case RCReadRequest:
		if fill {
			if r := fl.find(p.PSN); r != nil && r.kind == readRequest {
				t.h.OpAgain(fl.c.Connection, &r.op, ref)
				return
			}
		}
		sent.Reads++
		t.readRequest(fl, p, ref, fill)
	case RCCompareSwap, RCFetchAdd, RCAtomicWrite, RCFlush:
		sent.Atomics++
		r := fl.push()
		r.kind, r.start, r.count = atomicRequest, p.PSN, 1
	}
}

// restart takes up a direction anew at psn.
func (t *Tracker) restart(fl *flow, psn uint32) {
	t.flushSend(fl)
	fl.missing.reset()
	fl.respMissing.reset()
	fl.head, fl.acked = 0, 0
	fl.next = psn
	if peer := fl.c.flows[fl.side.Other()]; peer != nil {
		peer.respMissing.reset()
	}
}

// orphan is a Middle or Last packet whose beginning is not known. It counts
// as not seen, so that it is taken when the whole message is sent again.
func (t *Tracker) orphan(fl *flow, p *Packet, fill bool) {
	if !fill {
		fl.missing.add(p.PSN, 1)
	}
}

// again handles a packet whose PSN has been seen.
func (t *Tracker) again(fl *flow, p *Packet, ref rdma.Ref) {
	c := fl.c
	c.Sent[fl.side].Retransmitted++
	if a := &fl.asm; a.active {
		if d := psnDiff(p.PSN, a.start); d >= 0 && uint32(d) < a.count {
			a.again++
			a.last = ref
			return
		}
	}
	r := fl.find(p.PSN)
	if r == nil {
		return
	}
	switch r.kind {
	case sendRequest:
		t.h.SendAgain(c.Connection, fl.side, r.tag, r.gen, ref, p.PSN == psnAdd(r.start, r.count-1))
	case writeRequest:
		t.writeData(fl, r, p, ref, true)
	case readRequest:
		t.h.OpAgain(c.Connection, &r.op, ref)
	}
}

// push makes room for a request in the ring.
func (fl *flow) push() *request {
	if n := uint64(len(fl.ring)); fl.head-fl.acked >= n || n == 0 {
		fl.grow()
	}
	r := &fl.ring[fl.head%uint64(len(fl.ring))]
	fl.head++
	return r
}

// grow doubles the ring while it holds what has not been acknowledged, up to
// the limit; then the oldest is forgotten.
func (fl *flow) grow() {
	n := len(fl.ring)
	if n >= maxRequests {
		fl.acked = fl.head - uint64(n) + 1
		return
	}
	size := 2 * n
	if size == 0 {
		size = 16
	}
	ring := make([]request, size)
	from := uint64(0)
	if fl.head > uint64(n) {
		from = fl.head - uint64(n)
	}
	for pos := from; pos < fl.head; pos++ {
		ring[pos%uint64(size)] = fl.ring[pos%uint64(n)]
	}
	fl.ring = ring
}

const maxRequests = 256

// find returns the newest request that psn belongs to.
func (fl *flow) find(psn uint32) *request {
	n := uint64(len(fl.ring))
	if n == 0 {
		return nil
	}
	oldest := uint64(0)
	if fl.head > n {
		oldest = fl.head - n
	}
	for pos := fl.head; pos > oldest; pos-- {
		r := &fl.ring[(pos-1)%n]
		d := psnDiff(psn, r.start)
		if d >= 0 && (uint32(d) < r.count || r.count == 0) {
			return r
		}
	}
	return nil
}

func (t *Tracker) sendOnly(fl *flow, p *Packet, ref rdma.Ref) {
	s := &t.send
	*s = rdma.Send{
		From: fl.side, Data: p.Payload, Length: p.PayloadLen,
		First: ref, Last: ref, Packets: 1,
		Solicited: p.SE,
	}
	if p.Opcode.Operation() == RCSendOnlyInvalidate {
		s.Invalidates, s.Handle = true, p.IETH
	}
	t.deliver(fl, s, p.PSN, 1)
}

func (t *Tracker) deliver(fl *flow, s *rdma.Send, start, count uint32) {
	fl.c.Sent[fl.side].Sends++
	tag, gen := t.h.Send(fl.c.Connection, s)
	r := fl.push()
	r.kind, r.start, r.count, r.tag, r.gen = sendRequest, start, count, tag, gen
}

func (t *Tracker) sendFirst(fl *flow, p *Packet, ref rdma.Ref) {
	t.flushSend(fl)
	t.learnMTU(fl.c, p)
	a := &fl.asm
	*a = assembly{
		active: true, start: p.PSN, count: 1, seen: 1, mtu: uint32(p.PayloadLen),
		length: p.PayloadLen, cut: -1, buf: a.buf[:0], first: ref, last: ref,
	}
	t.assemble(a, 0, p)
}

func (t *Tracker) sendNext(fl *flow, p *Packet, ref rdma.Ref, fill bool) {
	a := &fl.asm
	d := psnDiff(p.PSN, a.start)
	if !a.active || a.mtu == 0 || d <= 0 || d >= 1<<14 || a.known && uint32(d) >= a.count {
		t.orphan(fl, p, fill)
		return
	}
	a.seen++
	a.last = ref
	offset := int(d) * int(a.mtu)
	t.assemble(a, offset, p)
	if uint32(d) >= a.count {
		a.count = uint32(d) + 1
		a.length = offset + p.PayloadLen
	}
	switch p.Opcode.Operation() {
	case RCSendLastInvalidate:
		a.inv, a.handle = true, p.IETH
		fallthrough
	case RCSendLast, RCSendLastImmediate:
		a.known = true
		a.solicit = p.SE
	}
	if a.known && !fl.missing.has(a.start, a.count) {
		t.flushSend(fl)
	}
}

// assemble puts a packet's payload in its place.
func (t *Tracker) assemble(a *assembly, offset int, p *Packet) {
	if len(p.Payload) < p.PayloadLen {
		if end := offset + len(p.Payload); a.cut < 0 || end < a.cut {
			a.cut = end
		}
	}
	end := offset + len(p.Payload)
	if end > t.limits.SendBytes {
		if offset < t.limits.SendBytes && (a.cut < 0 || t.limits.SendBytes < a.cut) {
			a.cut = t.limits.SendBytes
		}
		return
	}
	if end <= len(a.buf) {
		copy(a.buf[offset:], p.Payload)
		return
	}
	for len(a.buf) < offset {
		a.buf = append(a.buf, make([]byte, offset-len(a.buf))...)
	}
	a.buf = append(a.buf[:offset], p.Payload...)
}

// flushSend delivers what has been assembled, complete or not.
func (t *Tracker) flushSend(fl *flow) {
	a := &fl.asm
	if !a.active {
		return
	}
	a.active = false
	end := len(a.buf)
	if a.cut >= 0 && a.cut < end {
		end = a.cut
	}
	length := a.length
	if fl.missing.has(a.start, a.count) {
		for _, g := range fl.missing.r {
			if d := psnDiff(g.start, a.start); d >= 0 && uint32(d) < a.count {
				if hole := int(d) * int(a.mtu); hole < end {
					end = hole
				}
			}
		}
	}
	if !a.known {
		// At least one more packet was sent.
		length++
	}
	s := &t.send
	*s = rdma.Send{
		From: fl.side, Data: a.buf[:end:end], Length: length,
		First: a.first, Last: a.last, Packets: a.seen, Again: a.again,
		Invalidates: a.inv, Handle: a.handle, Solicited: a.solicit,
	}
	t.deliver(fl, s, a.start, a.count)
	if cap(a.buf) > 64<<10 && cap(a.buf) > 4*length {
		a.buf = nil
	}
}

// learnMTU takes the path MTU from a First packet, which is always full.
func (t *Tracker) learnMTU(c *connection, p *Packet) {
	if n := uint32(p.PayloadLen); n != c.mtu && n >= 256 && n <= 4096 && n&(n-1) == 0 {
		c.mtu, c.MTU = n, n
	}
}

// packets is how many packets a message of length bytes takes.
func packets(length, mtu uint32) uint32 {
	if length == 0 {
		return 1
	}
	return uint32((uint64(length) + uint64(mtu) - 1) / uint64(mtu))
}

func (t *Tracker) writeFirst(fl *flow, p *Packet, ref rdma.Ref) {
	mtu, count := uint32(p.PayloadLen), uint32(1)
	if p.Opcode.Operation() == RCWriteFirst {
		t.learnMTU(fl.c, p)
		if mtu > 0 {
			count = packets(p.RETH.DMALen, mtu)
		}
		if count > psnHalf {
			count = psnHalf
		}
	}
	r := fl.push()
	r.kind, r.start, r.count, r.mtu = writeRequest, p.PSN, count, mtu
	r.op = rdma.Op{
		Kind: rdma.Write, From: fl.side,
		Handle: p.RETH.RKey, Offset: p.RETH.VA, Length: p.RETH.DMALen,
		First: ref, Last: ref,
	}
	t.h.OpStart(fl.c.Connection, &r.op, ref)
	t.writeData(fl, r, p, ref, false)
}

// writeData reports the payload of a packet of r. Its place follows from the
// PSN alone: a repeated packet may carry another opcode and an address of its
// own.
func (t *Tracker) writeData(fl *flow, r *request, p *Packet, ref rdma.Ref, again bool) {
	index := uint32(psnDiff(p.PSN, r.start))
	r.op.Last = ref
	f := &t.frag
	*f = rdma.Fragment{
		Offset: r.op.Offset + uint64(index)*uint64(r.mtu),
		Length: uint32(p.PayloadLen), Data: p.Payload, Ref: ref,
		Again: again, Last: index+1 == r.count,
	}
	if !again {
		fl.c.Sent[fl.side].WriteBytes += uint64(f.Length)
	}
	t.h.OpData(fl.c.Connection, &r.op, f)
}

func (t *Tracker) readRequest(fl *flow, p *Packet, ref rdma.Ref, fill bool) {
	r := fl.push()
	r.kind, r.start, r.mtu, r.next = readRequest, p.PSN, fl.c.mtu, 0
	r.op = rdma.Op{
		Kind: rdma.Read, From: fl.side,
		Handle: p.RETH.RKey, Offset: p.RETH.VA, Length: p.RETH.DMALen, First: ref,
	}
	switch {
	case p.RETH.DMALen <= 256:
		r.count = 1
	case fl.c.mtu != 0:
		r.count = packets(p.RETH.DMALen, fl.c.mtu)
		if r.count > psnHalf {
			r.count = psnHalf
		}
	default:
		r.count = 0
	}
	switch {
	case fill:
		// Its responses' PSNs were taken for lost requests.
		fl.missing.remove(p.PSN, r.count)
	default:
		if r.count == 0 {
			fl.unsure = true
		} else {
			fl.next = psnAdd(p.PSN, r.count)
		}
	}
	t.h.OpStart(fl.c.Connection, &r.op, ref)
}
