package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// wire is the request stream of one side on RoCE and InfiniBand: what is needed to check the next packet.
type wire struct {
	started   bool
	announced bool   // known only from the setup; no packet has been seen
	next      uint32 // next expected PSN
	open      uint8  // the current message: a base opcode, or none
	disturbed bool   // retransmission in progress: messages may restart in the middle
	at        int64
	left      uint64 // RDMA Write: bytes remaining
	va        uint64 // RDMA Write: address of the next byte
	counted   bool   // left is known
	acked     uint32 // the peer has acknowledged up to this PSN
	hasAck    bool
}

// proves reports whether packets up to psn, and at least one from psn on, have been seen and acknowledged.
// The decoder then knows which packets are missing.
func (w *wire) proves(psn uint32) bool {
	return w.started && !w.announced && w.hasAck && reached(w.acked, psn) && reached(w.next-1, psn)
}

// reached reports whether psn equals other or follows it.
func reached(psn, other uint32) bool { return (psn-other)&psnMask < 1<<23 }

const (
	openNone  uint8 = 0
	openSend        = uint8(kindSend)
	openWrite       = uint8(kindWrite)
)

// message is the message that a request is part of, if it may have several packets.
func (k kind) message() uint8 { return uint8(k & (kindSend | kindWrite)) }

// idle is how long, in nanoseconds, after its last packet a sender may have timed out waiting for an
// acknowledgement, so that it resumes in the middle of a message.
const idle = 2e6

const psnMask = 1<<24 - 1

// wirePacket checks one packet of RoCE or InfiniBand.
func (c *fabricRules) wirePacket(s *conn, p *packet) {
	kind := kinds[p.Opcode]
	if kind == 0 {
		return
	}
	p.kind = kind
	from, ok := s.sender(p)
	if !ok {
		return
	}
	if kind&kindCNP != 0 {
		c.cnp(s, p, from)
		return
	}
	if p.Marked() && !s.marks[from&1].marked.Seen() {
		s.marks[from&1].marked = p.ref
	}
	judged := !s.many && c.opt.Match == nil
	if kind&kindAck != 0 {
		if judged {
			c.ack(s, p, from)
		}
		to := (from ^ 1) & 1
		w := &s.wire[to]
		if !w.started {
			s.expect(to)
		}
		if p.Syndrome.IsACK() {
			if w.started && (p.PSN-w.next)&psnMask < 1<<16 {
				s.unseen(to, p)
			}
			w.acked, w.hasAck = p.PSN, true
		}
		return
	}
	c.marking(s, class{p.DSCP(), p.Priority(), p.VLAN() != 0}, p.ref, from)
	if judged {
		if kind&kindPayload != 0 {
			c.stalled(s, p, from)
		}
		if kind&kindRequest != 0 {
			c.request(s, p, from)
		} else {
			c.response(s, p, from)
		}
	}
	if s.first[from&1] == 0 && kind&kindRequest != 0 {
		s.first[from&1] = p.ref.Number
	}
	if s.many {
		return
	}
	if kind&kindPayload != 0 {
		c.size(s, p, from)
	}
	if kind&kindRequest != 0 {
		c.sequence(s, p, from)
	}
}

// sequence checks the place of a request in the stream of its sender, and in its message: at the beginning, in the middle or at the end.
func (c *fabricRules) sequence(s *conn, p *packet, from rdma.Side) {
	w, open := &s.wire[from&1], p.kind.message()
	starts, ends := p.kind&kindStarts != 0, p.kind&kindEnds != 0
	follows := false // it is the next one
	if w.started && !w.announced {
		if follows = p.PSN == w.next; !follows && int32((p.PSN-w.next)<<8) < 0 {
			w.disturbed = true // retransmitted
		}
	}
	if w.open != openNone && p.ref.Time-w.at > idle {
		w.disturbed = true
	}
	w.started, w.announced, w.at = true, false, p.ref.Time
	w.next = (p.PSN + 1) & psnMask

	before := open
	if starts {
		before = openNone
	}
	switch {
	case !follows || w.disturbed:
	case w.open != before:
		c.outOfPlace(s, w, p, from)
	default:
		c.ok(ruleOpcodeSequence)
	}

	if open == openWrite {
		c.writeLength(s, w, p, from, starts, ends, follows)
	}
	w.open = open
	if ends {
		w.disturbed, w.open = false, openNone
	}
	if p.kind&kindRead != 0 {
		n, known := s.responses(p.DMALen)
		w.next = (p.PSN + n) & psnMask
		w.started = known // else the end of its responses is unknown
	}
}

// outOfPlace reports a packet that begins a message within another one, or goes on with one that has not begun.
func (c *fabricRules) outOfPlace(s *conn, w *wire, p *packet, from rdma.Side) {
	if c.opt.Match != nil {
		return
	}
	c.breach(s, ruleOpcodeSequence, p.ref, from, func() (string, string) {
		return [...]string{"the beginning of a message", "Middle or Last of a Send", "Middle or Last of an RDMA Write"}[w.open],
			fmt.Sprintf("%v with PSN %d, right after PSN %d", p.Opcode, p.PSN, (p.PSN-1)&psnMask)
	})
}

// responses is how many packets respond to an RDMA Read Request for n bytes, if that is known.
func (s *conn) responses(n uint32) (count uint32, known bool) {
	mtu := s.c.Setup[0].PathMTU
	if mtu == 0 {
		mtu = s.c.MTU
	}
	switch {
	case n <= 256:
		return 1, true
	case mtu == 0:
		return 1, false
	}
	return uint32((uint64(n) + uint64(mtu) - 1) / uint64(mtu)), true
}

// expect initialises the request stream of a side from its setup, before any of it was seen.
func (s *conn) expect(side rdma.Side) {
	// The PSN in a setup message is the one that its sender expects to receive.
	if psn, ok := s.c.Setup[side.Other()].Start(); ok && !s.wire[side].started {
		w := &s.wire[side]
		w.next, w.started, w.announced = psn, true, true
	}
}

// unseen records an acknowledgement of packets that were not captured.
func (s *conn) unseen(side rdma.Side, p *packet) {
	w := &s.wire[side]
	s.cut[side]++
	w.next = (p.PSN + 1) & psnMask
	w.disturbed = true
	s.losses(p.ref.Time)
}

// writeLength compares the payload of an RDMA Write with its length.
func (c *fabricRules) writeLength(s *conn, w *wire, p *packet, from rdma.Side, starts, ends, follows bool) {
	switch {
	case starts:
		w.counted, w.left, w.va = true, uint64(p.DMALen), p.VA
	case !follows || w.disturbed:
		w.counted = false
	}
	if !w.counted {
		return
	}
	n := uint64(p.PayloadLen)
	if n <= w.left && (!ends || n == w.left) && (ends || n < w.left) {
		w.left -= n
		if ends {
			c.ok(ruleDMALength)
		}
		return
	}
	w.counted = false
	if c.opt.Match != nil {
		return
	}
	c.breach(s, ruleDMALength, p.ref, from, func() (string, string) {
		return fmt.Sprintf("%d bytes left of the Write", w.left),
			fmt.Sprintf("%v with %d bytes, offset 0x%x", p.Opcode, n, w.va)
	})
}

// size checks the payload of a packet against the path MTU.
func (c *fabricRules) size(s *conn, p *packet, from rdma.Side) {
	n, mtu := uint32(p.PayloadLen), s.c.Setup[0].PathMTU
	rule, bad := ruleFirstNotMTU, false
	switch {
	case p.kind&kindEnds == 0 && mtu != 0:
		bad = n != mtu
	case p.kind&kindEnds == 0:
		bad = n < 256 || n > roce.MaxMTU || n&(n-1) != 0
	case mtu == 0:
		c.skip(rulePayloadOverMTU, NoSetup)
		return
	default:
		rule, bad = rulePayloadOverMTU, n > mtu
	}
	if !bad {
		c.ok(rule)
		return
	}
	c.wrongSize(s, rule, p, from)
}

// wrongSize reports a packet whose payload does not fit.
func (c *fabricRules) wrongSize(s *conn, rule id, p *packet, from rdma.Side) {
	if c.opt.Match != nil {
		return
	}
	n, mtu := uint32(p.PayloadLen), s.c.Setup[0].PathMTU
	c.breach(s, rule, p.ref, from, func() (expected, seen string) {
		switch {
		case mtu == 0:
			expected = "256, 512, 1024, 2048 or 4096 bytes"
		case rule == ruleFirstNotMTU:
			expected = fmt.Sprintf("%d bytes, the path MTU", mtu)
		default:
			expected = fmt.Sprintf("at most %d bytes, the path MTU", mtu)
		}
		return expected, fmt.Sprintf("%v with %d bytes", p.Opcode, n)
	})
}

// sender is the side that sent a packet.
func (s *conn) sender(p *packet) (rdma.Side, bool) {
	switch p.Route {
	case s.routes[0]:
		return 0, true
	case s.routes[1]:
		return 1, true
	}
	return s.findSender(p)
}

// findSender is sender for a Route that was not seen before.
func (s *conn) findSender(p *packet) (rdma.Side, bool) {
	a, b := &s.c.Ends[0], &s.c.Ends[1]
	switch {
	case a.Addr == b.Addr:
		return s.senderAt(p)
	case p.Route.Src == a.Addr:
		return s.sends(p, 0), true
	case p.Route.Src == b.Addr:
		return s.sends(p, 1), true
	}
	return 0, false
}

// sends notes the Route of the packets that a side sends.
func (s *conn) sends(p *packet, side rdma.Side) rdma.Side {
	if p.Route != &p.route {
		s.routes[side] = p.Route
	}
	return side
}

// senderAt is sender if both sides have one address.
func (s *conn) senderAt(p *packet) (rdma.Side, bool) {
	a, b := &s.c.Ends[0], &s.c.Ends[1]
	switch {
	case a.QPN == b.QPN:
	case p.DestQP == b.QPN:
		return 0, true
	case p.DestQP == a.QPN:
		return 1, true
	}
	return 0, false
}
