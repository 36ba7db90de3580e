package check

import (
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// usual judges the packets that nearly all are: the Send of one packet that is the next, and an acknowledgement, of a
// connection with nothing unusual. It returns false, and has changed nothing, if anything else has to be looked at. It counts
// what wirePacket would count: TestUsual and FuzzCheck compare the two.
func (c *Checker) usual(s *conn, v *decode.OrdinaryView, ref rdma.Ref) bool {
	l := v.Lean
	if s.many || c.opt.Match != nil || l.Marked() {
		return false
	}
	var from rdma.Side
	switch a, b := &s.c.Ends[0].Addr, &s.c.Ends[1].Addr; {
	case *a == *b:
		return false
	case l.Route.Src == *a:
	case l.Route.Src == *b:
		from = 1
	default:
		return false
	}
	switch l.Opcode {
	case roce.RCSendOnly, roce.RCSendOnlyInvalidate:
		c.stirred(s, from)
		if !c.usualSend(s, l, ref, from) {
			return false
		}
		if v.Plain && v.From == from {
			s.settle(l, from, &c.seen)
		}
		return true
	case roce.RCAcknowledge:
		c.stirred(s, from.Other())
		return c.usualAck(s, l, ref, from.Other())
	}
	return false
}

// usualSend is usual for a Send.
func (c *Checker) usualSend(s *conn, l *roce.Lean, ref rdma.Ref, from rdma.Side) bool {
	m, d, w := &s.marks[from], &s.requests[from], &s.wire[from]
	mtu := s.c.Setup[0].PathMTU
	limited := d.limited && d.messages.based
	switch {
	case !m.seen || m.dscp != l.DSCP() || m.priority != 0 || l.Tag != 0,
		!d.known || d.high != l.PSN || limited && !d.credited(),
		!w.started || w.announced || w.disturbed || w.open != openNone || w.next != l.PSN,
		mtu != 0 && uint32(l.PayloadLen) > mtu:
		return false
	}
	next := (l.PSN + 1) & psnMask
	m.inside, m.last, m.lastPSN = false, ref, l.PSN
	d.repeating, d.high = false, next
	d.messages.ended(l.PSN)
	d.asked.open, d.asked.psn, d.asked.ref = l.AckReq, l.PSN, ref
	if s.first[from] == 0 {
		s.first[from] = ref.Number
	}
	w.at, w.next = ref.Time, next

	c.ok(ruleDSCP)
	if limited {
		c.ok(ruleNoCredit)
	}
	if mtu == 0 {
		c.skip(rulePayloadOverMTU, NoSetup)
	} else {
		c.ok(rulePayloadOverMTU)
	}
	c.ok(ruleOpcodeSequence)
	return true
}

// usualAck is usual for an acknowledgement of what the requester, to, has sent.
func (c *Checker) usualAck(s *conn, l *roce.Lean, ref rdma.Ref, to rdma.Side) bool {
	d, w := &s.requests[to], &s.wire[to]
	a, m := &d.acked, &d.messages
	switch {
	case !l.Syndrome.IsACK(), !d.known || reached(l.PSN, d.high) || d.reads.n > 0 || d.reads.suspect.Seen() || d.nak.open,
		a.seen && (a.again || !reached(l.PSN, a.psn)),
		!w.started || (l.PSN-w.next)&psnMask < 1<<16:
		return false
	}
	n, ok := m.upTo(l.PSN)
	if !ok || m.based && (m.base+n)&psnMask != l.MSN {
		return false
	}
	prompt := d.answers(l.PSN)
	limit := s.ackTimeout()
	if prompt && limit != 0 && ref.Time-d.asked.ref.Time > int64(limit) {
		return false
	}
	d.reads.unknown = false
	if a.seen {
		c.ok(ruleAckWentBack)
	}
	switch {
	case !prompt:
	case limit == 0:
		c.skip(ruleAckLate, NoSetup)
	default:
		c.ok(ruleAckLate)
	}
	if m.based {
		c.ok(ruleMSN)
	} else {
		m.based, m.base = true, (l.MSN-n)&psnMask
	}
	d.grant(l.Syndrome, l.MSN)
	d.acknowledge(l.PSN)
	w.acked, w.hasAck = l.PSN, true
	return true
}
