package check

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// usualRequest is usual for a packet of a Send or of an RDMA Write, and for an RDMA Read Request: the one that has to be next.
func (c *Checker) usualRequest(s *conn, l *roce.Lean, ref rdma.Ref, from rdma.Side, h shape) bool {
	m, d, w := &s.marks[from&1], &s.requests[from&1], &s.wire[from&1]
	limited := h&(shapeSend|shapeStarts) == shapeSend|shapeStarts && d.limited && d.messages.based
	switch {
	case !m.like(l), !d.known || d.high != l.PSN || limited && !d.credited(),
		!w.started || w.announced || w.disturbed || w.open != h.before() || w.next != l.PSN:
		return false
	}
	next := (l.PSN + 1) & psnMask
	answered := next // PSN behind the responses
	if h&shapeRead == 0 {
		if !c.usualPayload(s, l, ref, from, h) {
			return false
		}
	} else {
		n, known := s.responses(l.DMALen)
		if !known {
			return false
		}
		answered = (l.PSN + n) & psnMask
	}
	d.repeating, d.high = false, answered
	if h&shapeRead != 0 {
		c.depth(s, d, extent{l.PSN, l.DMALen, true}, ref, from)
	}
	if h&shapeEnds != 0 {
		d.messages.ended(l.PSN)
	}
	d.asked.open, d.asked.psn, d.asked.ref = l.AckReq && answered == next, l.PSN, ref
	if s.first[from&1] == 0 {
		s.first[from&1] = ref.Number
	}
	w.at, w.next, w.open = ref.Time, answered, h.open()

	c.ok(ruleDSCP)
	if limited {
		c.ok(ruleNoCredit)
	}
	c.ok(ruleOpcodeSequence)
	return true
}

// usualPayload is usualRequest for the payload of a packet.
func (c *Checker) usualPayload(s *conn, l *roce.Lean, ref rdma.Ref, from rdma.Side, h shape) bool {
	m, w, n, mtu := &s.marks[from&1], &s.wire[from&1], uint32(l.PayloadLen), s.c.Setup[0].PathMTU
	if !h.fits(n, mtu) {
		return false
	}
	if h&(shapeStarts|shapeEnds) != shapeStarts|shapeEnds {
		on, late := m.goesOn(h, l.PSN, ref.Time)
		nak := &s.requests[from&1].nak
		if late || w.open != openNone && ref.Time-w.at > idle || nak.seen && nak.ref.Number > m.last.Number {
			return false
		}
		if h&shapeWrite != 0 && w.lacks(h, l) {
			return false
		}
		if on {
			c.ok(ruleStalled)
		}
	} else if h&shapeWrite != 0 && n != l.DMALen {
		return false
	}
	if h&shapeWrite != 0 {
		c.wrote(w, l, h)
	}
	m.moved(h, l.PSN, ref)
	c.sized(h, mtu)
	return true
}

// lacks reports whether a packet of an RDMA Write has more bytes than are left of it, or fewer and is the last, or as many and is not the last.
func (w *wire) lacks(h shape, l *roce.Lean) bool {
	left, n := w.left, uint64(l.PayloadLen)
	switch {
	case h&shapeStarts != 0:
		left = uint64(l.DMALen)
	case !w.counted:
		return false
	}
	if h&shapeEnds != 0 {
		return n != left
	}
	return n >= left
}

// wrote notes a packet of an RDMA Write.
func (c *Checker) wrote(w *wire, l *roce.Lean, h shape) {
	if h&shapeStarts != 0 {
		w.counted, w.left, w.va = true, uint64(l.DMALen), l.VA
	}
	if !w.counted {
		return
	}
	w.left -= uint64(l.PayloadLen)
	if h&shapeEnds != 0 {
		c.ok(ruleDMALength)
	}
}
