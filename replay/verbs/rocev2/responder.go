package rocev2

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/replay/verbs"
)

// answer is the pending answer to requests: nothing, or a syndrome. Only the last one is
// kept, because each acknowledges all earlier requests.
type answer uint16

const (
	answerNone answer = iota
	answerACK  answer = 0x100 + answer(roce.ACKUnlimited)
	answerRNR  answer = 0x100 + 0x20 // plus timer
	answerSeq  answer = 0x100 + answer(roce.NAKPSNSequence)
)

// responder is the receiving half of a queue pair (IBTA volume 1, section
// 9.7).
type responder struct {
	rq   queue[verbs.RecvRequest]
	epsn uint32 // expected
	msn  uint32 // requests completed
	// deaf: a NAK has been sent, and all packets before the one that it asks for are
	// ignored.
	deaf bool
	rx   incoming

	answer    answer
	answerPSN uint32
	unacked   int  // packets since the last acknowledgement
	lazy      bool // an acknowledgement has been put off

	// The last Reads of the peer, as many as were negotiated: Reads under way, and
	// Reads that may be requested again.
	reads       []read
	nextRead    int
	activeReads int

	dying    bool // a NAK that ends the queue pair has to be sent
	fatal    answer
	fatalPSN uint32
	fatalEnd uint32 // behind the Read that it happened in, if it was one
	death    error
	deathRcv verbs.Status
}

// incoming is a message of several packets that is being received.
type incoming struct {
	active, write bool
	recv          bool // request has been taken from the queue
	request       verbs.RecvRequest
	at            uint32 // bytes received
	handle        uint32
	va            uint64
	left          uint32
}

// read is an RDMA Read of the peer.
type read struct {
	psn, packets uint32
	handle       uint32
	length       uint32
	va           uint64
	next         uint32 // the packet to be sent next
	first        uint32 // where this answer has started
	valid        bool
	active       bool
	replay       bool
}

func (r *responder) start(psn uint32, depth int) {
	r.epsn = psn & psnMask
	r.reads = make([]read, depth)
}

// repeatNAK answers a request to a queue pair that a NAK has ended: the NAK may
// have been lost.
func (c *Conn) repeatNAK(pkt *roce.Packet) {
	if c.fatal == answerNone || c.dying || pkt.Opcode.IsResponse() {
		return
	}
	b := newBatch(&c.outbound, false)
	c.answer, c.answerPSN = c.fatal, c.fatalPSN
	if pkt.Opcode.IsReadRequest() && psnDiff(pkt.PSN, c.fatalEnd) < 0 {
		c.answerPSN = pkt.PSN // its response was lost, and cannot be repeated
	}
	c.acknowledge(b)
	c.s.send(b, c.peer)
	b.free()
}

// nak ends the queue pair as soon as the peer has been told.
func (c *Conn) nak(s roce.Syndrome, op verbs.Op, status verbs.Status, detail string, args ...any) {
	c.answer, c.answerPSN, c.fatalEnd = 0x100+answer(s), c.epsn, c.epsn
	c.dying = true
	c.death = &verbs.StatusError{Op: op, Status: status, Detail: fmt.Sprintf(detail, args...)}
	c.deathRcv = verbs.StatusFlushed
}

func (c *Conn) die() {
	c.p.opt.logf("rocev2: %v, queue pair %d: %v", c.remote, c.qpn, c.death)
	c.dying = false
	c.failWith(c.death, verbs.StatusFlushed, c.deathRcv)
}

func (c *Conn) ackIf(pkt *roce.Packet) {
	c.epsn = psnAdd(c.epsn, 1)
	c.deaf = false
	c.unacked++
	if pkt.AckReq {
		c.answer, c.answerPSN = answerACK, pkt.PSN
	}
}

// patient reports whether there is nothing to send except an acknowledgement that can be
// delayed.
func (c *Conn) patient() bool {
	return c.answer == answerACK && c.unacked < 8 && c.activeReads == 0 && c.cur == c.sq.tail
}

// onRequest handles a packet of the peer's requester.
func (c *Conn) onRequest(pkt *roce.Packet) {
	switch d := psnDiff(pkt.PSN, c.epsn); {
	case d > 0:
		if !c.deaf {
			c.deaf = true
			c.answer, c.answerPSN = answerSeq, c.epsn
		}
		return
	case d < 0:
		c.onDuplicate(pkt)
		return
	}
	op := pkt.Opcode
	switch {
	case op.HasImmediate():
		c.nak(roce.NAKInvalid, verbs.OpRecv, verbs.StatusLocalQP, "the peer sent immediate data")
	case op.IsSend():
		c.onSend(pkt)
	case op.IsWrite():
		c.onWrite(pkt)
	case op.IsReadRequest():
		c.onRead(pkt)
	default:
		c.nak(roce.NAKInvalid, verbs.OpRecv, verbs.StatusLocalQP, "the peer sent opcode %v", op)
	}
}

// fits reports whether the length of a packet is valid for its place in the message.
func (c *Conn) fits(pkt *roce.Packet) bool {
	n := uint32(pkt.PayloadLen)
	switch op := pkt.Opcode; {
	case op.IsOnly():
		return n <= c.mtu
	case op.IsLast():
		return n >= 1 && n <= c.mtu
	}
	return n == c.mtu && pkt.Pad == 0
}

func (c *Conn) onSend(pkt *roce.Packet) {
	op, rx := pkt.Opcode, &c.rx
	if op.Starts() == rx.active || rx.active && rx.write {
		c.nak(roce.NAKInvalid, verbs.OpRecv, verbs.StatusLocalQP, "%v out of order", op)
		return
	}
	if !c.fits(pkt) {
		c.nak(roce.NAKInvalid, verbs.OpRecv, verbs.StatusLocalQP, "%v of %d bytes at a path MTU of %d", op, pkt.PayloadLen, c.mtu)
		return
	}
	if op.Starts() {
		if c.rq.len() == 0 {
			c.answer, c.answerPSN = 0x100+answer(c.rnrSyndrome), c.epsn
			c.deaf = true
			return
		}
		r := c.rq.at(c.rq.head)
		c.rq.head++
		*rx = incoming{active: true, recv: true, request: *r}
		*r = verbs.RecvRequest{}
	}
	if len(pkt.Payload) > len(rx.request.Buffer)-int(rx.at) {
		c.nak(roce.NAKInvalid, verbs.OpRecv, verbs.StatusLocalLength, "a Send is longer than its receive of %d bytes", len(rx.request.Buffer))
		c.deathRcv = verbs.StatusLocalLength
		return
	}
	rx.at += uint32(copy(rx.request.Buffer[rx.at:], pkt.Payload))
	if op.HasInvalidate() && !c.mem.invalidate(pkt.IETH, true) {
		c.nak(roce.NAKRemoteAccess, verbs.OpRecv, verbs.StatusRemoteAccess, "the peer invalidated handle %#x, which is not open", pkt.IETH)
		return
	}
	if op.Ends() {
		c.msn = psnAdd(c.msn, 1)
		c.cq.push(verbs.Completion{
			ID: rx.request.ID, Op: verbs.OpRecv, Length: rx.at, Time: c.now,
			Invalidated: op.HasInvalidate(), Handle: pkt.IETH,
		})
		*rx = incoming{}
	}
	c.ackIf(pkt)
}

func (c *Conn) onWrite(pkt *roce.Packet) {
	op, rx := pkt.Opcode, &c.rx
	if op.Starts() == rx.active || rx.active && !rx.write {
		c.nak(roce.NAKInvalid, verbs.OpWrite, verbs.StatusLocalQP, "%v out of order", op)
		return
	}
	n := uint32(pkt.PayloadLen)
	if op.Starts() {
		h := &pkt.RETH
		if h.DMALen > 0 && !c.mem.reaches(h.RKey, h.VA, h.DMALen, verbs.RemoteWrite) {
			c.nak(roce.NAKRemoteAccess, verbs.OpWrite, verbs.StatusRemoteAccess,
				"the peer wrote %d bytes at %#x of handle %#x, which is not open for it", h.DMALen, h.VA, h.RKey)
			return
		}
		*rx = incoming{active: true, write: true, handle: h.RKey, va: h.VA, left: h.DMALen}
	}
	if !c.fits(pkt) || n > rx.left || op.Ends() != (n == rx.left) {
		c.nak(roce.NAKInvalid, verbs.OpWrite, verbs.StatusLocalQP, "%v of %d bytes where %d remain", op, n, rx.left)
		return
	}
	if n > 0 && !c.mem.write(rx.handle, rx.va, pkt.Payload) {
		c.nak(roce.NAKRemoteAccess, verbs.OpWrite, verbs.StatusRemoteAccess, "handle %#x was closed during a Write", rx.handle)
		return
	}
	rx.va += uint64(n)
	rx.left -= n
	if op.Ends() {
		c.msn = psnAdd(c.msn, 1)
		*rx = incoming{}
	}
	c.ackIf(pkt)
}

// packets returns how many packets n bytes take.
func (c *Conn) packets(n uint32) uint32 { return max(1, (n+c.mtu-1)/c.mtu) }

func (c *Conn) onRead(pkt *roce.Packet) {
	h := &pkt.RETH
	if c.rx.active || pkt.PayloadLen != 0 || h.DMALen > 1<<31 {
		c.nak(roce.NAKInvalid, verbs.OpRead, verbs.StatusLocalQP, "%v within a message, with payload, or of more than 2^31 bytes", pkt.Opcode)
		return
	}
	if len(c.reads) == 0 || c.reads[c.nextRead].active && !c.reads[c.nextRead].replay {
		c.nak(roce.NAKInvalid, verbs.OpRead, verbs.StatusLocalQP, "more than %d Reads at a time", len(c.reads))
		return
	}
	if h.DMALen > 0 && !c.mem.reaches(h.RKey, h.VA, h.DMALen, verbs.RemoteRead) {
		c.nak(roce.NAKRemoteAccess, verbs.OpRead, verbs.StatusRemoteAccess,
			"the peer read %d bytes at %#x of handle %#x, which is not open for it", h.DMALen, h.VA, h.RKey)
		return
	}
	if c.reads[c.nextRead].active {
		c.activeReads-- // asked for again by a late copy: the peer has had it
	}
	n := c.packets(h.DMALen)
	c.reads[c.nextRead] = read{psn: pkt.PSN, packets: n, handle: h.RKey, length: h.DMALen, va: h.VA, valid: true, active: true}
	c.nextRead = (c.nextRead + 1) % len(c.reads)
	c.activeReads++
	c.epsn = psnAdd(c.epsn, n)
	c.msn = psnAdd(c.msn, 1)
	c.deaf = false
	// Its response acknowledges what came before.
	if c.answer == answerACK || c.answer == answerSeq {
		c.answer = answerNone
	}
}

// onDuplicate handles a request that has been executed.
func (c *Conn) onDuplicate(pkt *roce.Packet) {
	if !pkt.Opcode.IsReadRequest() {
		if pkt.Opcode.IsSend() || pkt.Opcode.IsWrite() {
			if c.answer == answerNone {
				c.answer, c.answerPSN = answerACK, psnAdd(c.epsn, psnMask)
			}
		}
		return
	}
	h := &pkt.RETH
	for i := range c.reads {
		r := &c.reads[i]
		if !r.valid {
			continue
		}
		d := psnDiff(pkt.PSN, r.psn)
		if d < 0 || uint32(d) >= r.packets {
			continue
		}
		// The same Read, or its rest.
		off := uint64(d) * uint64(c.mtu)
		if h.RKey != r.handle || h.VA != r.va+off || uint64(h.DMALen) != uint64(r.length)-off {
			return
		}
		if !r.active {
			r.active, r.replay = true, true
			c.activeReads++
			r.next, r.first = uint32(d), uint32(d)
		} else if r.next > uint32(d) {
			r.next, r.first = uint32(d), uint32(d)
		}
		return
	}
}

// respond puts packets of the oldest Read into the batch. The peer's memory is
// locked.
func (c *Conn) respond(b *batch, budget *int) {
	var r *read
	ref := 0
	for i := range c.reads {
		if x := &c.reads[i]; x.active && (r == nil || psnDiff(x.psn, r.psn) < 0) {
			r, ref = x, i
		}
	}
	for !b.full() && *budget > 0 {
		off := r.next * c.mtu
		n := min(r.length-off, c.mtu)
		var data []byte
		if n > 0 {
			if data = c.mem.at(r.handle, r.va+uint64(off), n, verbs.RemoteRead); data == nil {
				// The memory was closed. If the Read was answered once already,
				// the request may be a late copy, whose answer the peer ignores;
				// then nothing is wrong.
				switch {
				case r.replay && c.dying:
				case r.replay:
					c.answer, c.answerPSN = 0x100+answer(roce.NAKRemoteAccess), psnAdd(r.psn, r.next)
				default:
					c.nak(roce.NAKRemoteAccess, verbs.OpRead, verbs.StatusRemoteAccess, "handle %#x was closed during a Read", r.handle)
					c.answerPSN, c.fatalEnd = psnAdd(r.psn, r.next), psnAdd(r.psn, r.packets)
					clear(c.reads)
					c.activeReads = 0
					return
				}
				r.active, r.replay = false, false
				c.activeReads--
				return
			}
		}
		last := r.next+1 == r.packets
		op := roce.RCReadResponseMiddle
		switch first := r.next == r.first; {
		case first && last:
			op = roce.RCReadResponseOnly
		case first:
			op = roce.RCReadResponseFirst
		case last:
			op = roce.RCReadResponseLast
		}
		size := roce.BTHSize
		if op != roce.RCReadResponseMiddle {
			size += roce.AETHSize
		}
		h := b.header(size)
		c.bth(h, op, psnAdd(r.psn, r.next), n)
		if size > roce.BTHSize {
			a := roce.AETH(h[roce.BTHSize:])
			a.SetSyndrome(roce.ACKUnlimited)
			a.SetMSN(c.msn)
		}
		b.payload(data)
		b.finish(kindResponse, uint32(ref), r.next, 1)
		*budget -= int(n)
		r.next++
		if last {
			r.active, r.replay = false, false
			c.activeReads--
			return
		}
	}
}

// unrespond takes a packet of a response back.
func (c *Conn) unrespond(s *segment) {
	r := &c.reads[s.ref]
	if !r.active {
		r.active = true
		c.activeReads++
	}
	r.next = s.index
}

// acknowledge puts the answer to requests into the batch, if one is due.
func (c *Conn) acknowledge(b *batch) {
	if c.answer == answerNone {
		return
	}
	if c.dying {
		c.fatal, c.fatalPSN = c.answer, c.answerPSN
	}
	c.unacked = 0
	h := b.header(roce.BTHSize + roce.AETHSize)
	c.bth(h, roce.RCAcknowledge, c.answerPSN, 0)
	a := roce.AETH(h[roce.BTHSize:])
	a.SetSyndrome(roce.Syndrome(c.answer))
	a.SetMSN(c.msn)
	b.finish(kindAck, uint32(c.answer), c.answerPSN, 1)
	c.answer = answerNone
}

// bth fills in a base transport header for n bytes of payload.
func (c *Conn) bth(h []byte, op roce.Opcode, psn, n uint32) {
	h[0] = byte(op)
	h[1] = 0x40 | byte(-n&3)<<4 // migration state, pad
	h[2], h[3] = 0xff, 0xff
	h[5], h[6], h[7] = byte(c.peerQPN>>16), byte(c.peerQPN>>8), byte(c.peerQPN)
	h[9], h[10], h[11] = byte(psn>>16), byte(psn>>8), byte(psn)
}
