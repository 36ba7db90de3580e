package check

import (
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// usual judges the packets that nearly all are: the request that is the next, what responds to a Read, and an acknowledgement, of a
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
	switch h := shapes[l.Opcode]; {
	case h&shapeRequest != 0:
		c.stirred(s, from)
		if !c.usualRequest(s, l, ref, from, h) {
			return false
		}
		if h&(shapeWrite|shapeEnds) == shapeWrite {
			s.begin(v, from, h)
		}
		if l.Opcode == roce.RCSendOnly || l.Opcode == roce.RCSendOnlyInvalidate {
			if v.Plain && v.From == from {
				s.settle(l, from, &c.seen)
			}
			return true
		}
	case h&shapeReadResponse != 0:
		c.stir(s)
		if !c.usualResponse(s, l, ref, from, h) {
			return false
		}
		if h&shapeEnds == 0 {
			s.begin(v, from, h)
		}
	case l.Opcode == roce.RCAcknowledge:
		c.stirred(s, from.Other())
		return c.usualAck(s, l, ref, from.Other())
	default:
		return false
	}
	s.calm[0].streak, s.calm[1].streak = 0, 0
	return true
}

// usualAck is usual for an acknowledgement of what the requester, to, has sent.
func (c *Checker) usualAck(s *conn, l *roce.Lean, ref rdma.Ref, to rdma.Side) bool {
	d, w := &s.requests[to&1], &s.wire[to&1]
	a, m := &d.acked, &d.messages
	switch {
	case !l.Syndrome.IsACK(), !d.known || reached(l.PSN, d.high) || d.reads.suspect.Seen() || d.nak.open || d.dropped.open,
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
	d.reads.answered(l.PSN)
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
