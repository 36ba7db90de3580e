package check

import (
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// calm is the requests of a side while nothing but Sends of one packet and their acknowledgements comes, each the one that has
// to be next. Then all that changes is in here: requests, marking and wire, and the counts of rules, are brought up to
// date by Checker.stir before anything else is looked at. See docs/design/0102-what-is-usual-changes-counters.md.
type calm struct {
	on      bool
	asked   bool  // the newest Send asks for an acknowledgement
	traffic uint8 // type of service of the Sends
	streak  uint8 // usual Sends since something was not usual, while it is not on
	known   uint8 // so many of the newest PSNs are each that of a message: at most as many as messages has ends

	gaps  [2]uint64 // of the connection
	tap   int32
	mtu   uint32
	next  uint32   // PSN of the next Send
	shift uint32   // MSN minus PSN, of messages and of acknowledgements
	acked uint32   // PSN
	last  rdma.Ref // newest Send

	sends    uint64
	credited uint64 // Sends for which there had to be a credit
	acks     uint64
	timely   uint64 // acknowledgements that came in time
	untimed  uint64 // those of which it is not known when they had to come
}

const (
	// longEnough is the streak from which on it pays to expect that the next packet is usual, too.
	longEnough = 8
	endsKept   = len(messages{}.ends)
)

// expected judges a packet if it is the one that had to be next. If it returns false, nothing has changed. What it counts is what
// usual would count, and so wirePacket: TestUsual and FuzzCheck compare them.
func (s *conn) expected(v *decode.OrdinaryView) bool {
	l, k := v.Lean, s.c
	ack := l.Opcode == roce.RCAcknowledge
	side := v.From
	if ack {
		side ^= 1
	}
	q := &s.calm[side&1]
	if !q.on || int32(v.Packet.Tap) != q.tap || k.Sent[0].Gaps != q.gaps[0] || k.Sent[1].Gaps != q.gaps[1] || k.Sent[0].BadCRC|k.Sent[1].BadCRC != 0 {
		return false
	}
	d := &s.requests[side&1]
	if ack {
		return s.expectedAck(q, d, l, v.Packet.Time)
	}
	switch {
	case l.PSN != q.next, l.Opcode != roce.RCSendOnly && l.Opcode != roce.RCSendOnlyInvalidate, l.Traffic != q.traffic, l.Tag != 0,
		k.Setup[0].PathMTU != q.mtu, q.mtu != 0 && uint32(l.PayloadLen) > q.mtu:
		return false
	}
	if d.limited {
		if !reached((d.limit+1)&psnMask, (l.PSN+q.shift)&psnMask) {
			return false
		}
		q.credited++
	}
	q.next, q.asked = (l.PSN+1)&psnMask, l.AckReq
	q.last.Time, q.last.Number = v.Packet.Time, v.Packet.Number
	q.sends++
	if q.known < uint8(endsKept) {
		q.known++
	}
	return true
}

// expectedAck is expected for an acknowledgement.
func (s *conn) expectedAck(q *calm, d *requests, l *roce.Lean, now int64) bool {
	behind := (q.next - l.PSN) & psnMask // 1: it acknowledges all
	switch {
	case !l.Syndrome.IsACK(), l.Marked(), behind-1 >= uint32(q.known), l.MSN != (l.PSN+q.shift)&psnMask, !reached(l.PSN, q.acked):
		return false
	}
	if q.asked && behind == 1 {
		switch limit := s.ackTimeout(); {
		case limit == 0:
			q.untimed++
		case now-q.last.Time > int64(limit):
			return false
		default:
			q.timely++
		}
		q.asked = false
	}
	q.acked = l.PSN
	q.acks++
	d.grant(l.Syndrome, l.MSN)
	return true
}

// settle is told of a usual Send. After enough of them it has expected judge the packets that follow, if all is known
// that they have to be.
func (s *conn) settle(l *roce.Lean, from rdma.Side) {
	q, d := &s.calm[from], &s.requests[from]
	if q.streak++; q.streak < longEnough {
		return
	}
	q.streak = 0
	m := &d.messages
	if s.taps[0] != s.taps[1] || s.misses() != s.gaps || !m.based || !d.acked.seen || d.acked.again || d.reads.n > 0 || d.reads.suspect.Seen() || d.nak.open {
		return
	}
	known := 0
	for known < min(m.next, endsKept) {
		if e := &m.ends[uint(m.next-1-known)%uint(endsKept)]; e.psn != (d.high-1-uint32(known))&psnMask || e.count != m.count-uint32(known) {
			break
		}
		known++
	}
	if known == 0 {
		return
	}
	*q = calm{
		on: true, asked: d.asked.open, traffic: l.Traffic, known: uint8(known), mtu: s.c.Setup[0].PathMTU,
		gaps: [2]uint64{s.c.Sent[0].Gaps, s.c.Sent[1].Gaps}, tap: s.taps[0],
		next: d.high, shift: m.number() - d.high, acked: d.acked.psn, last: d.asked.ref,
	}
}

// stir brings up to date what the rules know of a connection, for something that may be unusual.
func (c *Checker) stir(s *conn) {
	c.stirred(s, 0)
	c.stirred(s, 1)
}

// stirred is stir for the requests of a side.
func (c *Checker) stirred(s *conn, side rdma.Side) {
	if s.calm[side].on {
		c.wake(s, side)
	}
}

// wake ends what is calm.
func (c *Checker) wake(s *conn, side rdma.Side) {
	q, d, w, mark := s.calm[side], &s.requests[side], &s.wire[side], &s.marks[side]
	s.calm[side] = calm{}
	if q.sends > 0 {
		m := &d.messages
		n := uint32(min(q.sends, uint64(endsKept)))
		m.count += uint32(q.sends) - n
		m.next += int(q.sends - uint64(n))
		for psn := q.next - n; psn != q.next; psn++ {
			m.ended(psn & psnMask)
		}
		last := (q.next - 1) & psnMask
		d.high, d.repeating = q.next, false
		d.asked.psn, d.asked.ref = last, q.last
		mark.inside, mark.last, mark.lastPSN = false, q.last, last
		w.at, w.next = q.last.Time, q.next
	}
	d.asked.open = q.asked
	if q.acks > 0 {
		d.acked.psn, d.reads.unknown = q.acked, false
		w.acked, w.hasAck = q.acked, true
	}
	stats := c.statsOf(s)
	judged := func(r id, n uint64) {
		if c.on[r] != Off {
			stats[r].Judged += n
		}
	}
	skipped := func(r id, n uint64) {
		if c.on[r] != Off {
			stats[r].NotJudged[NoSetup] += n
		}
	}
	judged(ruleDSCP, q.sends)
	judged(ruleOpcodeSequence, q.sends)
	judged(ruleNoCredit, q.credited)
	if q.mtu == 0 {
		skipped(rulePayloadOverMTU, q.sends)
	} else {
		judged(rulePayloadOverMTU, q.sends)
	}
	judged(ruleAckWentBack, q.acks)
	judged(ruleMSN, q.acks)
	judged(ruleAckLate, q.timely)
	skipped(ruleAckLate, q.untimed)
}
