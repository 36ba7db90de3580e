package check

import (
	"math"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
)

// calm is the requests of a side while nothing but Sends of one packet and their acknowledgements comes, each the one that has
// to be next. Then all that changes is in its Calm: requests, marking and wire, and the counts of rules, are brought up to
// date by Checker.stir before anything else is looked at.
type calm struct {
	roce.Calm
	streak uint8     // usual Sends since something was not usual, while it is not on
	known  uint64    // Calm.Sends before any was noted
	gaps   [2]uint64 // of the connection
}

const (
	// longEnough is the streak from which on it pays to expect that the next packet is usual, too.
	longEnough = 8
	endsKept   = len(messages{}.ends)
)

var _ [endsKept - roce.CalmKnown]struct{} // what a Calm knows, messages knows

// expected judges a packet if it is the one that had to be next. If it returns false, nothing has changed. What it counts is what
// usual would count, and so wirePacket: TestUsual and FuzzCheck compare them. The tracker need not show more such packets, unless
// others have to be seen one by one.
func (c *Checker) expected(s *conn, v *decode.OrdinaryView) bool {
	l, k := v.Lean, s.c
	ack := l.Opcode == roce.RCAcknowledge
	side := v.From
	if ack {
		side ^= 1
	}
	q := &s.calm[side&1]
	if !q.On || k.Sent[0].Gaps != q.gaps[0] || k.Sent[1].Gaps != q.gaps[1] || k.Sent[0].BadCRC|k.Sent[1].BadCRC != 0 ||
		s.mostPayload() != q.Most || int64(s.ackTimeout()) != q.Timeout {
		return false
	}
	switch {
	case ack:
		if !l.Syndrome.IsACK() || l.Marked() || !q.Ack(v.Packet, l) {
			return false
		}
	case l.Opcode != roce.RCSendOnly && l.Opcode != roce.RCSendOnlyInvalidate:
		return false
	case !q.Send(v.Packet, l):
		return false
	}
	v.Calm = &q.Calm
	return true
}

// mostPayload is how many bytes of payload a packet may have, as far as that is known.
func (s *conn) mostPayload() uint32 {
	if mtu := s.c.Setup[0].PathMTU; mtu != 0 {
		return mtu
	}
	return math.MaxUint32
}

// settle is told of a usual Send. After enough of them it has expected judge the packets that follow, if all is known
// that they have to be.
func (s *conn) settle(l *roce.Lean, from rdma.Side, seen *roce.Seen) {
	q, d := &s.calm[from], &s.requests[from]
	if q.streak++; q.streak < longEnough {
		return
	}
	q.streak = 0
	m := &d.messages
	if s.taps[0] != s.taps[1] || s.misses() != s.gaps || !m.based || !d.acked.seen || d.acked.again || d.reads.n > 0 || d.reads.suspect.Seen() || d.nak.open || d.dropped.open {
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
	shift := m.number() - d.high
	*q = calm{
		Calm: roce.Calm{
			On: true, Asked: d.asked.open, Limited: d.limited, Traffic: l.Traffic, Syndrome: roce.Unacknowledged, Tap: s.taps[0],
			Most: s.mostPayload(), Next: d.high, Shift: shift, Acked: d.acked.psn, Room: d.limit - shift - d.acked.psn,
			Timeout: int64(s.ackTimeout()), Sends: uint64(known), Last: d.asked.ref, Seen: seen,
		},
		known: uint64(known), gaps: [2]uint64{s.c.Sent[0].Gaps, s.c.Sent[1].Gaps},
	}
}

// stir brings up to date what the rules know of a connection, for something that may be unusual.
func (c *Checker) stir(s *conn) {
	if s.stretch.on {
		c.halt(s)
	}
	c.stirred(s, 0)
	c.stirred(s, 1)
}

// stirred is stir for the requests of a side.
func (c *Checker) stirred(s *conn, side rdma.Side) {
	if s.calm[side].On {
		c.wake(s, side)
	}
}

// wake ends what is calm.
func (c *Checker) wake(s *conn, side rdma.Side) {
	q, d, w, mark := s.calm[side], &s.requests[side], &s.wire[side], &s.marks[side]
	s.calm[side] = calm{}
	sends := q.Sends - q.known
	if sends > 0 {
		m := &d.messages
		n := uint32(min(sends, uint64(endsKept)))
		m.count += uint32(sends) - n
		m.next += int(sends - uint64(n))
		for psn := q.Next - n; psn != q.Next; psn++ {
			m.ended(psn & psnMask)
		}
		last := (q.Next - 1) & psnMask
		d.high, d.repeating = q.Next, false
		d.asked.psn, d.asked.ref = last, q.Last
		mark.inside, mark.last, mark.lastPSN = false, q.Last, last
		w.at, w.next = q.Last.Time, q.Next
	}
	d.asked.open, d.limited, d.limit = q.Asked, q.Limited, (q.Acked+q.Shift+q.Room)&psnMask
	if q.Acks > 0 {
		d.acked.psn, d.reads.unknown = q.Acked, false
		w.acked, w.hasAck = q.Acked, true
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
	judged(ruleDSCP, sends)
	judged(ruleOpcodeSequence, sends)
	judged(ruleNoCredit, q.Credited)
	if q.Most == math.MaxUint32 {
		skipped(rulePayloadOverMTU, sends)
	} else {
		judged(rulePayloadOverMTU, sends)
	}
	judged(ruleAckWentBack, q.Acks)
	judged(ruleMSN, q.Acks)
	if q.Timeout == 0 {
		skipped(ruleAckLate, q.Prompt)
	} else {
		judged(ruleAckLate, q.Prompt)
	}
}
