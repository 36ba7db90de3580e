package check

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// usualResponse is usual for a packet of an RDMA Read Response: one that was not seen before.
func (c *Checker) usualResponse(s *conn, l *roce.Lean, ref rdma.Ref, from rdma.Side, h shape) bool {
	m, d := &s.marks[from&1], &s.requests[(from^1)&1]
	n, mtu := uint32(l.PayloadLen), s.c.Setup[0].PathMTU
	switch {
	case !m.like(l), m.sent && !reached(l.PSN, (m.top+1)&psnMask),
		!d.known || reached(l.PSN, d.high) || d.nak.open || d.reads.suspect.Seen(),
		!h.fits(n, mtu):
		return false
	}
	on, late := m.goesOn(h, l.PSN, ref.Time)
	if late {
		return false
	}
	a, length := d.follow(l.PSN, n, h&shapeStarts != 0, h&shapeEnds != 0)
	if length == lengthWrong {
		return false
	}
	m.sent, m.top = true, l.PSN
	m.moved(h, l.PSN, ref)
	d.answer = a
	d.reads.answered(l.PSN)
	if h&(shapeStarts|shapeEnds) != 0 && l.Syndrome.IsACK() && d.messages.based && (!d.acked.seen || reached(l.PSN, d.acked.psn)) {
		d.grant(l.Syndrome, l.MSN)
	}
	d.acknowledge(l.PSN)

	c.ok(ruleDSCP)
	if on {
		c.ok(ruleStalled)
	}
	if length == lengthRight {
		c.ok(ruleDMALength)
	}
	c.sized(h, mtu)
	return true
}
