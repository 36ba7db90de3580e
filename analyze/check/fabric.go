package check

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/units"
)

// fabricRules judge the packets of RoCE and InfiniBand.
type fabricRules struct{ *verdicts }

// requests is what a side requests on RoCE or InfiniBand and how it is answered, as far as the rules of the
// fabric need it.
type requests struct {
	known bool
	high  uint32 // PSN behind the newest request

	messages messages
	acked    acked
	nak      nak
	reads    reads
	asked    asked
	answer   reply
	dropped  dropped
	// repeating means that the newest request was one that had been sent before.
	repeating bool

	limited bool   // the responder grants credits
	limit   uint32 // number of the last message that it has credits for
}

// messages counts requests that the responder counts too, by the MSN of its AETH.
type messages struct {
	based bool   // base is known
	base  uint32 // MSN of the responder minus count
	start uint32 // PSN from which on every packet was seen
	count uint32 // messages that ended since start
	ends  [64]struct{ psn, count uint32 }
	next  int
}

// ended notes the PSN that ends a message, or that of a Read Request.
func (m *messages) ended(psn uint32) {
	m.count++
	e := &m.ends[uint(m.next)%uint(len(m.ends))]
	e.psn, e.count = psn, m.count
	m.next++
}

// restart forgets what was counted: packets before psn are unknown.
func (m *messages) restart(psn uint32) { *m = messages{start: psn} }

// upTo is how many messages ended at psn or before it.
func (m *messages) upTo(psn uint32) (n uint32, ok bool) {
	if !reached((psn+1)&psnMask, m.start) {
		return 0, false
	}
	for i := m.next - 1; i >= 0 && i >= m.next-len(m.ends); i-- {
		if e := &m.ends[uint(i)%uint(len(m.ends))]; reached(psn, e.psn) {
			return e.count, true
		}
	}
	return 0, m.next <= len(m.ends)
}

// acked is the newest acknowledgement.
type acked struct {
	seen  bool
	psn   uint32
	again bool // requests were repeated since
}

// nak is the newest NAK of a sequence error.
type nak struct {
	seen    bool
	psn     uint32
	ref     rdma.Ref
	open    bool // the requester has not gone back yet
	passed  bool // it has sent later packets again instead
	suspect rdma.Ref
	instead uint32
}

// reads are the Reads and atomic operations under way.
type reads struct {
	unknown bool // more than can be followed
	last    [64]uint32
	asked   [64]extent
	head, n int
	suspect rdma.Ref // a request beyond the depth, if the oldest was still open
	oldest  uint32   // its last PSN
	open    int
}

// extent is what a request asks for: nothing, if it is an atomic operation.
type extent struct {
	psn   uint32 // of the request
	bytes uint32
	read  bool
}

// reply is the response to a Read, as far as it was followed from its first packet.
type reply struct {
	open bool
	next uint32 // PSN
	left uint32 // bytes
}

// asked is the newest request for an acknowledgement.
type asked struct {
	open bool
	psn  uint32
	ref  rdma.Ref
}

// marking is what the IP and VLAN headers of a side said, and its burst.
type marking struct {
	seen                       bool
	dscp, priority             uint8
	dscpReported, prioReported bool
	number                     uint64

	last    rdma.Ref // the packet before within a message
	lastPSN uint32
	inside  bool
	sent    bool   // Read Responses
	top     uint32 // PSN of the newest

	cnpLast     int64
	cnps        uint64
	cnpFast     uint64
	cnpFirst    rdma.Ref
	cnpLeast    int64
	cnpReported bool
	marked      rdma.Ref // first packet that was marked
}

const (
	// cnpInterval is the N of DCQCN in nanoseconds: the least time between two CNPs of a flow.
	cnpInterval = 50_000
	// stall is how long, in nanoseconds, a sender may be silent within a message. Watchdogs of PFC act after 100
	// to 400 ms.
	stall = 100e6
	// farBehind is by how many PSNs, of 2^24, a NAK is over.
	farBehind = 1 << 20
	// samePacket is how late a copy of a packet that the network made may come.
	samePacket = 1e6
)

// request handles a request of side from.
func (c *fabricRules) request(s *conn, p *packet, from rdma.Side) {
	d := &s.requests[from&1]
	if !d.known {
		d.known, d.high = true, p.PSN
		d.messages.restart(p.PSN)
		if psn, ok := s.c.Setup[from.Other()].Start(); ok && psn == p.PSN && s.c.Setup[from].Seen() {
			d.messages.based = true // the responder has counted nothing yet
		}
	}
	if p.PSN != d.high {
		if int32((p.PSN-d.high)<<8) < 0 {
			c.again(s, d, p, from)
			return
		}
		d.messages.restart(p.PSN)
		d.reads.unknown = true
	}
	d.repeating = false
	count := uint32(1)
	if p.kind&kindRead != 0 {
		if n, ok := s.responses(p.DMALen); ok {
			count = n
		} else {
			d.known, d.reads.unknown = false, true
		}
	}
	d.high = (p.PSN + count) & psnMask
	if d.limited && d.messages.based && p.kind&(kindSend|kindStarts) == kindSend|kindStarts {
		c.credit(s, d, p, from)
	}
	if p.kind&(kindRead|kindAtomic) != 0 {
		c.depth(s, d, extent{p.PSN, p.DMALen, p.kind&kindRead != 0}, p.ref, from)
	}
	if p.kind&kindEnds != 0 {
		d.messages.ended(p.PSN)
	}
	d.asked.open, d.asked.psn, d.asked.ref = p.AckReq && count == 1, p.PSN, p.ref
}

// again handles a request that was sent before, or comes late.
func (c *fabricRules) again(s *conn, d *requests, p *packet, from rdma.Side) {
	d.acked.again, d.asked.open, d.repeating = true, false, true
	d.dropped.again(s, p)
	n := &d.nak
	switch {
	case !n.open:
	case p.PSN == n.psn || p.Opcode.IsReadRequest() && reached(n.psn, p.PSN):
		n.open = false
		if !n.passed || p.ref.Time-n.suspect.Time < samePacket {
			c.ok(ruleNotGoneBack)
			break
		}
		f := s.finding(ruleNotGoneBack, n.suspect, from, s.role(from))
		f.Expected = fmt.Sprintf("PSN %d, which the NAK in frame %d asks for", n.psn, n.ref.Number)
		f.Seen = fmt.Sprintf("PSN %d sent again first", n.instead)
		f.Reaction = fmt.Sprintf("PSN %d came %v later in frame %d", n.psn, time.Duration(p.ref.Time-n.suspect.Time), p.ref.Number)
		c.report(f)
	case reached(p.PSN, n.psn) && !n.passed:
		n.passed, n.suspect, n.instead = true, p.ref, p.PSN
	}
}

// ack handles an acknowledgement of requests of the side other than from.
func (c *fabricRules) ack(s *conn, p *packet, from rdma.Side) {
	d := &s.requests[(from^1)&1]
	if !d.known {
		return
	}
	newest, isNAK := p.PSN, !p.Syndrome.IsACK()
	if isNAK {
		newest = (p.PSN - 1) & psnMask // it acknowledges all before
	}
	c.answered(s, d, p, newest, from)
	a := &d.acked
	back := a.seen && !reached(newest, a.psn)
	if !isNAK {
		if a.seen && !a.again { // a repeated request is acknowledged again
			if back {
				c.wentBack(s, d, p, from)
			} else {
				c.ok(ruleAckWentBack)
			}
		}
		if d.answers(p.PSN) {
			c.inTime(s, d, p, from)
		}
	} else if p.Syndrome == roce.NAKPSNSequence {
		c.refusedAgain(s, d, p, from)
	}
	if !back { // that of an old PSN counts what was completed later, too
		c.count(s, d, p, newest, from)
	}
	d.acknowledge(newest)
}

// response handles a response to a Read of the side other than from.
func (c *fabricRules) response(s *conn, p *packet, from rdma.Side) {
	d := &s.requests[(from^1)&1]
	if !d.known {
		return
	}
	c.readLength(s, d, p, from)
	c.answered(s, d, p, p.PSN, from)
	// The AETH of a Read Response grants credits, too (IBTA volume 1, section 9.7.7.2).
	if p.Opcode.HasAETH() && p.Syndrome.IsACK() && d.messages.based && (!d.acked.seen || reached(p.PSN, d.acked.psn)) {
		d.grant(p.Syndrome, p.MSN)
	}
	d.acknowledge(p.PSN)
}

// answered handles a response to all requests up to newest.
func (c *fabricRules) answered(s *conn, d *requests, p *packet, newest uint32, from rdma.Side) {
	if int32((newest-d.high)<<8) >= 0 {
		// The capture lacks requests, or has them after their acknowledgement.
		d.high = (newest + 1) & psnMask
		d.messages.restart(d.high)
		d.reads.unknown = true
	}
	if d.reads.suspect.Seen() {
		c.depthDone(s, d, p, newest, from.Other())
	}
	d.reads.answered(newest)
	if d.nak.open && reached(newest, d.nak.psn) {
		d.nak.open = false
		c.skip(ruleNotGoneBack, Gaps) // the packet was not seen again, but received
	}
}

func (d *requests) acknowledge(psn uint32) {
	if !d.acked.seen || reached(psn, d.acked.psn) && psn != d.acked.psn {
		d.acked.seen, d.acked.psn, d.acked.again = true, psn, false
	}
	if d.asked.open && reached(psn, d.asked.psn) {
		d.asked.open = false
	}
	if n := &d.nak; n.seen && int32((psn-n.psn)<<8)>>8 > farBehind {
		n.seen = false // its PSN will come again
	}
}

// refusedAgain handles a NAK of a sequence error.
func (c *fabricRules) refusedAgain(s *conn, d *requests, p *packet, from rdma.Side) {
	n := &d.nak
	if n.seen && n.psn == p.PSN && p.ref.Time-n.ref.Time > samePacket {
		c.breach(s, ruleNAKRepeated, p.ref, from, func() (string, string) {
			return fmt.Sprintf("one NAK for PSN %d, as in frame %d, until it comes", p.PSN, n.ref.Number),
				fmt.Sprintf("another NAK for PSN %d", p.PSN)
		})
		return
	}
	c.ok(ruleNAKRepeated)
	*n = nak{seen: true, psn: p.PSN, ref: p.ref, open: !d.repeating}
}

// wentBack judges an acknowledgement of less than was acknowledged before.
func (c *fabricRules) wentBack(s *conn, d *requests, p *packet, from rdma.Side) {
	a := &d.acked
	// An overtaken acknowledgement was made earlier, and counts fewer messages.
	older, ok := d.messages.upTo(p.PSN)
	newer, known := d.messages.upTo(a.psn)
	if !ok || !known || older == newer || p.MSN != (d.messages.base+newer)&psnMask || !d.messages.based {
		c.skip(ruleAckWentBack, Reordered)
		return
	}
	c.breach(s, ruleAckWentBack, p.ref, from, func() (string, string) {
		return fmt.Sprintf("PSN %d or a later one: it is acknowledged", a.psn), fmt.Sprintf("acknowledgement of PSN %d", p.PSN)
	})
}

// inTime checks that an acknowledgement came before the requester's timeout.
func (c *fabricRules) inTime(s *conn, d *requests, p *packet, from rdma.Side) {
	a := &d.asked
	limit := s.ackTimeout()
	if limit == 0 {
		c.skip(ruleAckLate, NoSetup)
		return
	}
	if took := time.Duration(p.ref.Time - a.ref.Time); took > limit {
		c.breach(s, ruleAckLate, p.ref, from, func() (string, string) {
			return fmt.Sprintf("an acknowledgement within %v", limit),
				fmt.Sprintf("%v after PSN %d asked for it in frame %d", took, p.PSN, a.ref.Number)
		})
		return
	}
	c.ok(ruleAckLate)
}

// answers reports whether it is known which request an acknowledgement of psn answers: the newest, which asked for it. If
// others were sent since, it is not.
func (d *requests) answers(psn uint32) bool {
	return d.asked.open && d.asked.psn == psn && d.high == (psn+1)&psnMask
}

// ackTimeout is how long a requester waits for an acknowledgement; 0 if that is not known.
func (s *conn) ackTimeout() time.Duration {
	m := &s.c.Setup[0]
	if !m.Seen() || m.AckTimeout == 0 {
		return 0
	}
	return 4096 * time.Nanosecond << (m.AckTimeout & 31)
}

// count checks the number of messages that a responder has completed, and takes its credits.
func (c *fabricRules) count(s *conn, d *requests, p *packet, newest uint32, from rdma.Side) {
	m := &d.messages
	n, ok := m.upTo(newest)
	switch {
	case !ok:
		c.skip(ruleMSN, Gaps)
		return
	case !m.based:
		m.based, m.base = true, (p.MSN-n)&psnMask
	case (m.base+n)&psnMask == p.MSN:
		c.ok(ruleMSN)
	default:
		c.breach(s, ruleMSN, p.ref, from, func() (string, string) {
			return fmt.Sprintf("MSN %d up to PSN %d", (m.base+n)&psnMask, newest), fmt.Sprintf("MSN %d", p.MSN)
		})
		m.base = (p.MSN - n) & psnMask
	}
	if p.Syndrome.IsACK() {
		d.grant(p.Syndrome, p.MSN)
	}
}

// grant takes the credits of an acknowledgement.
func (d *requests) grant(syndrome roce.Syndrome, msn uint32) {
	credits, limited := syndrome.Credits()
	d.limited, d.limit = limited, (msn+credits)&psnMask
}

// number returns the MSN of the next message.
func (m *messages) number() uint32 { return (m.base + m.count + 1) & psnMask }

// credited reports whether the responder has granted a credit for the next Send. One request beyond the limit is
// allowed, to ask for new credits.
func (d *requests) credited() bool { return reached((d.limit+1)&psnMask, d.messages.number()) }

// credit checks that the responder has granted a credit for a Send, if it grants any.
func (c *fabricRules) credit(s *conn, d *requests, p *packet, from rdma.Side) {
	m := &d.messages
	if d.credited() {
		c.ok(ruleNoCredit)
		return
	}
	c.breach(s, ruleNoCredit, p.ref, from, func() (string, string) {
		return fmt.Sprintf("no Send beyond message %d, the last with a credit, and one more", d.limit),
			fmt.Sprintf("message %d with PSN %d", m.number(), p.PSN)
	})
}

// depth checks how many Reads are outstanding. The newest one is x.
func (c *fabricRules) depth(s *conn, d *requests, x extent, ref rdma.Ref, from rdma.Side) {
	m := &s.c.Setup[from.Other()]
	r, last := &d.reads, d.high-1
	if r.n == len(r.last) {
		r.unknown = true
	}
	switch {
	case !m.Seen() || m.ResponderDepth == 0: // 0 is also that of a cut message
		c.skip(ruleReadDepth, NoSetup)
	case r.unknown:
		c.skip(ruleReadDepth, Gaps)
	case r.n < int(m.ResponderDepth):
		c.ok(ruleReadDepth)
	case !r.suspect.Seen():
		r.suspect, r.open = ref, r.n+1
		r.oldest = last
		if r.n > 0 {
			r.oldest = r.last[r.head]
		}
	}
	if r.n < len(r.last) {
		at := (r.head + r.n) % len(r.last)
		r.last[at], r.asked[at] = last&psnMask, x
		r.n++
	}
}

// What is known of the length of a packet that responds to a Read.
const (
	lengthUnknown = iota // or others follow
	lengthRight
	lengthWrong
)

// follow compares the payload of a response with what its Read asks for, if it was seen from its beginning. What is asked for again
// from the middle on is not judged. It returns what has to follow.
func (d *requests) follow(psn, n uint32, starts, ends bool) (a reply, length int) {
	r, a := &d.reads, d.answer
	if starts {
		a.open = false
		for i := 0; i < r.n && !a.open; i++ {
			if x := &r.asked[(r.head+i)%len(r.asked)]; x.read && x.psn == psn {
				a = reply{true, psn, x.bytes}
			}
		}
	}
	switch {
	case !a.open || psn != a.next:
		a.open = false
	case n == a.left && ends:
		return reply{false, (psn + 1) & psnMask, 0}, lengthRight
	case n < a.left && !ends:
		a.next, a.left = (psn+1)&psnMask, a.left-n
	default:
		a.open = false
		return a, lengthWrong
	}
	return a, lengthUnknown
}

// readLength judges the length of a packet that responds to a Read.
func (c *fabricRules) readLength(s *conn, d *requests, p *packet, from rdma.Side) {
	a, length := d.follow(p.PSN, uint32(p.PayloadLen), p.kind&kindStarts != 0, p.kind&kindEnds != 0)
	d.answer = a
	switch length {
	case lengthRight:
		c.ok(ruleDMALength)
	case lengthWrong:
		c.breach(s, ruleDMALength, p.ref, from, func() (string, string) {
			return fmt.Sprintf("%d bytes left of the Read", a.left), fmt.Sprintf("%v with %d bytes", p.Opcode, uint32(p.PayloadLen))
		})
	}
}

// depthDone handles a response while it is not known yet whether there were too many Reads.
func (c *fabricRules) depthDone(s *conn, d *requests, p *packet, newest uint32, from rdma.Side) {
	r := &d.reads
	if !reached(newest, r.oldest) {
		return
	}
	// If the oldest is answered only now, it was outstanding. If a later one is answered, the
	// capture lacks the end of the oldest.
	if p.PSN == r.oldest && (p.kind&kindReadResponse != 0 || p.Opcode.IsAtomic()) {
		c.breach(s, ruleReadDepth, r.suspect, from, func() (string, string) {
			return fmt.Sprintf("at most %d Reads at once, as its peer announced", s.c.Setup[from.Other()].ResponderDepth),
				fmt.Sprintf("%d under way", r.open)
		})
	} else {
		c.skip(ruleReadDepth, Gaps)
	}
	r.suspect = rdma.Ref{}
}

// answered forgets the Reads that ended at psn or before it.
func (r *reads) answered(psn uint32) {
	for r.n > 0 && reached(psn, r.last[r.head]) {
		r.head, r.n = (r.head+1)%len(r.last), r.n-1
	}
	if r.n == 0 {
		r.unknown = false
	}
}

// stalled checks that a message continues once it has begun.
func (c *fabricRules) stalled(s *conn, p *packet, from rdma.Side) {
	m := &s.marks[from&1]
	// Only packets seen for the first time: recovery has its own times.
	first := true
	switch {
	case p.kind&kindReadResponse != 0:
		if first = !m.sent || reached(p.PSN, (m.top+1)&psnMask); first {
			m.sent, m.top = true, p.PSN
		}
	case p.kind&(kindStarts|kindEnds) != kindStarts|kindEnds:
		d := &s.requests[from&1]
		first = (!d.known || reached(p.PSN, d.high)) && !(d.nak.seen && d.nak.ref.Number > m.last.Number)
	}
	if m.inside && first && p.kind&kindStarts == 0 && p.PSN == (m.lastPSN+1)&psnMask {
		if took := p.ref.Time - m.last.Time; took >= stall {
			c.breach(s, ruleStalled, p.ref, from, func() (string, string) {
				return "a message that goes on once it has begun",
					fmt.Sprintf("%v without a packet after frame %d, and nothing was lost", time.Duration(took), m.last.Number)
			})
		} else {
			c.ok(ruleStalled)
		}
	}
	m.inside, m.last, m.lastPSN = first && p.kind&kindEnds == 0, p.ref, p.PSN
}

// marking checks that a side's packets have one priority.
func (c *fabricRules) marking(s *conn, x class, ref rdma.Ref, from rdma.Side) {
	m := &s.marks[from]
	if !m.seen {
		m.seen, m.dscp, m.priority, m.number = true, x.dscp, x.priority, ref.Number
		return
	}
	switch {
	case c.opt.Match != nil:
		return
	case s.many: // routers change the one, and switches remove the other
		c.skip(ruleDSCP, Ambiguous)
		return
	}
	if x.dscp == m.dscp {
		c.ok(ruleDSCP)
	} else if !m.dscpReported {
		m.dscpReported = true
		c.breach(s, ruleDSCP, ref, from, func() (string, string) {
			return fmt.Sprintf("DSCP %d, as in frame %d", m.dscp, m.number), fmt.Sprintf("DSCP %d", x.dscp)
		})
	}
	if !x.tagged && x.priority == 0 && m.priority == 0 {
		return
	}
	if x.priority == m.priority {
		c.ok(rulePriority)
	} else if !m.prioReported {
		m.prioReported = true
		c.breach(s, rulePriority, ref, from, func() (string, string) {
			return fmt.Sprintf("priority %d, as in frame %d", m.priority, m.number), fmt.Sprintf("priority %d", x.priority)
		})
	}
}

// cnp checks a congestion notification packet.
func (c *fabricRules) cnp(s *conn, p *packet, from rdma.Side) {
	if c.opt.Match != nil {
		return
	}
	m := &s.marks[from]
	q, wrong := p.cnp, ""
	switch {
	case !q.BECN || q.FECN:
		wrong = "BECN clear or FECN set"
	case p.PSN != 0:
		wrong = fmt.Sprintf("PSN %d", p.PSN)
	case p.AckReq || q.SE:
		wrong = "AckReq or SE set"
	case q.Pad != 0 || q.PayloadLen != cnpReserved:
		wrong = fmt.Sprintf("%d bytes behind the BTH", q.PayloadLen+int(q.Pad))
	default:
		for _, b := range q.Payload {
			if b != 0 {
				wrong = "reserved bytes that are not zero"
			}
		}
	}
	if wrong == "" {
		c.ok(ruleCNPFormat)
	} else if !m.cnpReported {
		m.cnpReported = true
		c.breach(s, ruleCNPFormat, p.ref, from, func() (string, string) {
			return "BECN set, PSN 0, and 16 reserved bytes of zero", wrong
		})
	}
	m.cnps++
	if m.cnps > 1 && !s.many {
		if gap := p.ref.Time - m.cnpLast; gap < cnpInterval {
			if m.cnpFast == 0 || gap < m.cnpLeast {
				m.cnpLeast = gap
			}
			if m.cnpFast++; m.cnpFast == 1 {
				m.cnpFirst = p.ref
			}
		}
	}
	m.cnpLast = p.ref.Time
}

// cnpReserved is the length of what follows the BTH of a CNP.
const cnpReserved = 16

// fabricHealth reports the findings made once for each connection.
func (c *fabricRules) fabricHealth(s *conn) {
	for side := range rdma.Side(2) {
		m := &s.marks[side]
		c.notResumed(s, side)
		c.numbered(s, side)
		switch {
		case m.cnpFast > 0:
			c.breach(s, ruleCNPRate, m.cnpFirst, side, func() (string, string) {
				return fmt.Sprintf("at least %v between CNPs", time.Duration(cnpInterval)),
					fmt.Sprintf("%d of %d sooner, the soonest after %v", m.cnpFast, m.cnps, time.Duration(m.cnpLeast))
			})
		case m.cnps > 1:
			c.ok(ruleCNPRate)
		}
		if s.c.Fabric == rdma.IWARP || !m.marked.Seen() {
			continue
		}
		if other := side.Other(); s.c.Sent[other].CNPs > 0 {
			c.ok(ruleNoCNP)
		} else {
			c.breach(s, ruleNoCNP, m.marked, other, func() (string, string) {
				return "CNPs", fmt.Sprintf("none, for %s marked “congestion experienced”", units.Plural(int(s.c.Sent[side].ECN), "packet"))
			})
		}
	}
}
