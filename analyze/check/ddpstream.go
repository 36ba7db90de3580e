package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// streamRules judge the DDP streams of iWARP connections.
type streamRules struct{ *verdicts }

// ddpStreams are the DDP streams of an iWARP connection, by sender.
type ddpStreams [2]ddpStream

// ddpStream is one direction of an iWARP connection: what is needed to check the next segment.
type ddpStream struct {
	begun    bool
	segments uint64
	queues   [queueCount]struct {
		known, used bool   // used: there was a message
		next        uint32 // MSN of the next message, or of the one under way
	}
	// The message under way.
	open      bool
	op        iwarp.Opcode
	queue     uint32
	offset    uint64 // MO or TO of the next segment
	stag      uint32
	reads     openReads
	ended     rdma.Ref // its Terminate
	continued bool     // … and that it went on behind it
	marker    bool     // a wrong marker was reported
	largest   int      // FPDU in bytes, without markers
	longest   rdma.Ref // its packet
	payload   int      // the largest TCP payload in bytes
}

// queueCount is the number of queues for untagged messages.
const queueCount = iwarp.QueueAtomicResponse + 1

// openReads are the Read Requests of a side without their whole response.
type openReads struct {
	ring    [128]openRead // the most that Linux allows
	next, n uint64        // number of the next one; how many are open
	// unsure says that requests before number sureFrom, or responses, may be missing.
	unsure   bool
	sureFrom uint64
	holes    bool // there were any
	full     bool // more than are kept

	suspect rdma.Ref // a request beyond the depth, if the oldest was still open
	oldest  uint64
	open    uint64
}

type openRead struct {
	stag, size, got uint32
	to              uint64
}

// holds reports whether a Read Request asks for a part.
func (x *openRead) holds(part *openRead) bool {
	at := part.to - x.to
	return part.stag == x.stag && at <= uint64(x.size) && uint64(part.size) <= uint64(x.size)-at
}

func (r *openReads) at(n uint64) *openRead { return &r.ring[n%uint64(len(r.ring))] }

// Segment is decode.Observer.Segment.
func (c *Checker) Segment(k *rdma.Connection, g *rdma.Segment) {
	s := c.conns.used(k)
	if s == nil {
		s = c.conns.of(k)
	}
	c.enter(s)
	if s.many || c.opt.Match != nil {
		return
	}
	if s.ddp == nil {
		s.ddp = new(ddpStreams)
	}
	d, other := &s.ddp[g.From], &s.ddp[g.From.Other()]
	d.segments++
	if g.Damaged {
		s.damage(g.First, g.Last)
		d.restart()
		other.reads.unsure, other.reads.holes = true, true
		return
	}
	if g.Malformed {
		c.breach(s, ruleSegmentMalformed, g.Last, g.From, func() (string, string) {
			return "a DDP segment, where the FPDU before it ended",
				fmt.Sprintf("%d bytes with %v", g.Length, iwarp.FaultOf(g.Data, g.Length))
		})
		return
	}
	c.ok(ruleSegmentMalformed)
	if !g.Follows {
		d.restart()
		other.reads.unsure, other.reads.holes = true, true
	}
	c.streams.marker(s, d, g)
	if n := iwarp.FPDULen(g.Length); n > d.largest {
		d.largest, d.longest = n, g.First
	}
	if d.ended.Seen() && !d.continued {
		d.continued = true
		c.breach(s, ruleTerminate, g.First, g.From, func() (string, string) {
			return fmt.Sprintf("nothing after the Terminate message in frame %d", d.ended.Number),
				iwarp.ULPDU(g.Data).Control().Opcode().String()
		})
	}
	u := iwarp.ULPDU(g.Data)
	first := !d.begun && g.Follows
	d.begun = true
	if op := u.Control().Opcode(); op.Tagged() {
		c.streams.taggedSegment(s, d, g, op)
	} else {
		c.streams.untaggedSegment(s, d, g, op, first)
	}
}

// restart forgets what was under way: segments may be missing.
func (d *ddpStream) restart() {
	d.open = false
	for i := range d.queues {
		d.queues[i].known, d.queues[i].used = false, true
	}
	d.begun = true
	d.reads.unsure, d.reads.holes, d.reads.sureFrom = true, true, d.reads.next
}

// taggedSegment checks a segment of an RDMA Write or a Read Response.
func (c *streamRules) taggedSegment(s *conn, d *ddpStream, g *rdma.Segment, op iwarp.Opcode) {
	u := iwarp.Tagged(g.Data)
	length := g.Length - iwarp.TaggedLen
	switch {
	case !d.open:
		c.ok(ruleSegmentOrder)
	case op != d.op:
		c.interleaved(s, d, g, op)
	case u.STag() != d.stag || u.TO() != d.offset:
		c.breach(s, ruleSegmentOrder, g.Last, g.From, func() (string, string) {
			return fmt.Sprintf("the next part of the %v: handle 0x%08x, offset 0x%x", op, d.stag, d.offset),
				fmt.Sprintf("handle 0x%08x, offset 0x%x", u.STag(), u.TO())
		})
	default:
		c.ok(ruleSegmentOrder)
	}
	d.open, d.op, d.stag, d.offset = !u.Control().Last(), op, u.STag(), u.TO()+uint64(length)
	if op == iwarp.OpReadResponse {
		c.readResponse(s, g, u, uint32(length))
	}
}

// untaggedSegment checks a segment of any other message. first says that it is the first one of its stream.
func (c *streamRules) untaggedSegment(s *conn, d *ddpStream, g *rdma.Segment, op iwarp.Opcode, first bool) {
	u := iwarp.Untagged(g.Data)
	length := g.Length - iwarp.UntaggedLen
	msn, mo := u.MSN(), uint64(u.MO())
	number := op.Queue()
	// MPA's ready-to-receive message (RFC 6581, section 9.2): nobody says whether it counts.
	ready := first && (op.IsSend() && length == 0 || op == iwarp.OpReadRequest && emptyRead(g.Data))
	q := &d.queues[number]
	continues := d.open && op == d.op && number == d.queue && msn == q.next
	switch {
	case d.open && !continues && op != d.op:
		c.interleaved(s, d, g, op)
	case continues && mo != d.offset, !continues && (d.open || q.known || first) && mo != 0:
		c.breach(s, ruleSegmentOrder, g.Last, g.From, func() (expected, seen string) {
			expected = "message offset 0 at the beginning"
			if continues {
				expected = fmt.Sprintf("message offset %d", d.offset)
			}
			return expected, fmt.Sprintf("message offset %d of message %d in queue %d", mo, msn, number)
		})
	default:
		c.ok(ruleSegmentOrder)
	}
	if !continues {
		c.streamMSN(s, d, g, op, ready)
	}
	if last := u.Control().Last(); last {
		d.open, q.next = false, msn+1
	} else {
		d.open, d.op, d.queue, d.offset, q.next = true, op, number, mo+uint64(length), msn
	}
	q.known, q.used = !ready, true
	switch {
	case op == iwarp.OpReadRequest && len(g.Data) >= iwarp.UntaggedLen+iwarp.ReadRequestLen:
		c.readRequest(s, d, g, iwarp.ReadRequest(g.Data[iwarp.UntaggedLen:]))
	case op == iwarp.OpReadRequest:
		d.reads.full = true // cut: it is not known what is read
	case op == iwarp.OpTerminate && u.Control().Last():
		c.terminated(s, d, g)
	}
}

// emptyRead reports whether a Read Request asks for no bytes.
func emptyRead(u []byte) bool {
	return len(u) == iwarp.UntaggedLen+iwarp.ReadRequestLen && iwarp.ReadRequest(u[iwarp.UntaggedLen:]).Size() == 0
}

// streamMSN checks the number of a message that begins. ready says that it is MPA's ready-to-receive message.
func (c *streamRules) streamMSN(s *conn, d *ddpStream, g *rdma.Segment, op iwarp.Opcode, ready bool) {
	number, msn := op.Queue(), iwarp.Untagged(g.Data).MSN()
	q := &d.queues[number]
	want := q.next
	switch {
	case d.open && !op.Tagged() && number == d.queue:
		want++ // the message under way was not finished
	case !q.used && s.began() && !d.reads.holes:
		q.known, want = true, 1
	}
	switch {
	case ready:
	case !q.known:
		c.skip(ruleStreamMSN, Gaps)
	case msn == want:
		c.ok(ruleStreamMSN)
	default:
		c.breach(s, ruleStreamMSN, g.Last, g.From, func() (string, string) {
			return fmt.Sprintf("message sequence number %d in queue %d", want, number), fmt.Sprintf("%d: %v", msn, op)
		})
	}
}

// interleaved reports a message within another.
func (c *streamRules) interleaved(s *conn, d *ddpStream, g *rdma.Segment, op iwarp.Opcode) {
	c.breach(s, ruleSegmentOrder, g.Last, g.From, func() (string, string) {
		return fmt.Sprintf("the rest of the %v", d.op), op.String()
	})
	d.open = false
}

// readRequest takes a Read Request.
func (c *streamRules) readRequest(s *conn, d *ddpStream, g *rdma.Segment, q iwarp.ReadRequest) {
	r := &d.reads
	limit := uint64(s.c.Setup[g.From.Other()].ResponderDepth)
	switch {
	case limit == 0: // not announced: the setup is missing, or not that of revision 2
		c.skip(ruleReadDepth, NoSetup)
	case limit == iwarp.MPADepthUnlimited:
	case r.holes || r.full:
		c.skip(ruleReadDepth, Gaps)
	case r.n < limit:
		c.ok(ruleReadDepth)
	case !r.suspect.Seen():
		r.suspect, r.open, r.oldest = g.First, r.n+1, r.next-r.n
	}
	if r.n == uint64(len(r.ring)) {
		r.full = true
		return
	}
	x := openRead{stag: q.SinkSTag(), to: q.SinkTO(), size: q.Size()}
	*r.at(r.next) = x
	for i := range c.pending {
		if p := &c.pending[i]; p.counter == &d.segments && x.holds(&p.part) {
			p.late = true
		}
	}
	r.next++
	r.n++
}

// readResponse takes a segment of a Read Response, which has to be the next part of what the oldest open
// Read Request asks for.
func (c *streamRules) readResponse(s *conn, g *rdma.Segment, u iwarp.Tagged, length uint32) {
	r := &s.ddp[g.From.Other()].reads
	requester := g.From.Other()
	switch {
	case r.full:
		c.skip(ruleReadResponse, Limit)
		return
	case !s.began():
		c.skip(ruleReadResponse, MidStream)
		return
	}
	if r.unsure && !r.resume(u, length) || r.n == 0 && s.missing(requester) > 0 {
		c.skip(ruleReadResponse, Gaps)
		r.unsure = true // its request may come later
		return
	}
	if r.n == 0 {
		r.unsure = true
		f := s.finding(ruleReadResponse, g.Last, g.From, s.role(g.From))
		f.Expected, f.Seen = "a Read Response only to a Read Request", fmt.Sprintf("%d bytes, and no Read Request is open", length)
		// The request may be late in the capture, or lost: its stream tells when it goes on.
		segments := &s.ddp[requester].segments
		c.await(pending{
			f: f, c: s, gaps: s.misses(), side: 1 << requester, counter: segments, was: *segments, part: openRead{stag: u.STag(), to: u.TO(), size: length},
		})
		return
	}
	at := r.next - r.n
	x := r.at(at)
	last := u.Control().Last()
	switch {
	case u.STag() != x.stag || u.TO() != x.to+uint64(x.got):
		f := s.finding(ruleReadResponse, g.Last, g.From, s.role(g.From))
		f.Expected = fmt.Sprintf("handle 0x%08x, offset 0x%x: %d bytes left for the oldest Read Request", x.stag, x.to+uint64(x.got), x.size-x.got)
		f.Seen = fmt.Sprintf("handle 0x%08x, offset 0x%x", u.STag(), u.TO())
		c.await(pending{f: f, c: s, gaps: s.misses(), side: 1 << requester})
		r.unsure, r.sureFrom = true, 0
		return
	case length > x.size-x.got, last != (x.got+length == x.size):
		c.breach(s, ruleReadResponse, g.Last, g.From, func() (string, string) {
			return fmt.Sprintf("%d bytes left for the oldest Read Request", x.size-x.got),
				fmt.Sprintf("%d bytes, last segment of the message: %t", length, last)
		})
		if !last {
			r.unsure, r.sureFrom = true, 0
			return
		}
	default:
		c.ok(ruleReadResponse)
		x.got += length
	}
	if !last {
		return
	}
	if r.suspect.Seen() && at == r.oldest {
		// If the oldest is answered only now, it was under way.
		if g.First.Number > r.suspect.Number && !r.holes && s.missing(g.From) == 0 {
			c.breach(s, ruleReadDepth, r.suspect, requester, func() (string, string) {
				return fmt.Sprintf("at most %d Reads at once, as its peer announced", s.c.Setup[g.From].ResponderDepth),
					fmt.Sprintf("%d under way", r.open)
			})
		} else {
			c.skip(ruleReadDepth, Reordered)
		}
		r.suspect = rdma.Ref{}
	}
	r.n--
}

// resume finds the Read Request that a response belongs to, after a hole. It reports whether the ones behind
// it are known.
func (r *openReads) resume(u iwarp.Tagged, length uint32) bool {
	for at := r.next - r.n; at < r.next; at++ {
		x := r.at(at)
		if !x.holds(&openRead{stag: u.STag(), to: u.TO(), size: length}) {
			continue
		}
		x.got = uint32(u.TO() - x.to)
		r.n = r.next - at
		r.unsure = at < r.sureFrom
		return !r.unsure
	}
	return false
}

// terminated checks a Terminate message.
func (c *streamRules) terminated(s *conn, d *ddpStream, g *rdma.Segment) {
	d.ended = g.Last
	b := g.Data[iwarp.UntaggedLen:]
	wrong := ""
	switch {
	case len(b) < g.Length-iwarp.UntaggedLen:
		c.skip(ruleTerminate, Cut)
		return
	case len(b) < iwarp.TerminateLen:
		wrong = fmt.Sprintf("%d bytes", len(b))
	case !iwarp.Terminate(b).Defined():
		wrong = iwarp.Terminate(b).String()
	case !iwarp.Terminate(b).Complete():
		wrong = "headers announced that are not there"
	}
	if wrong == "" {
		c.ok(ruleTerminate)
		return
	}
	c.breach(s, ruleTerminate, g.Last, g.From, func() (string, string) {
		return "an error that is defined, and the headers that its flags announce", wrong
	})
}

// marker checks the markers within an FPDU.
func (c *streamRules) marker(s *conn, d *ddpStream, g *rdma.Segment) {
	switch {
	case !s.c.Setup[g.From.Other()].Markers:
	case !g.HasPointer:
		c.ok(ruleMarker)
	case !d.marker:
		d.marker = true
		c.breach(s, ruleMarker, g.Last, g.From, func() (string, string) {
			return "markers that point to the beginning of their FPDU", fmt.Sprintf("a marker that points %d bytes back", g.Pointer)
		})
	}
}

// streamHealth makes the findings that an iWARP connection can have only once.
func (c *streamRules) streamHealth(s *conn) {
	if s.c.Fabric != rdma.IWARP {
		return
	}
	if ask, answer := &s.c.Setup[0], &s.c.Setup[1]; ask.Seen() && answer.Seen() && ask.MPARevision >= 2 && answer.MPARevision >= 2 &&
		ask.ResponderDepth != 0 && ask.ResponderDepth != iwarp.MPADepthUnlimited && answer.InitiatorDepth != iwarp.MPADepthUnlimited {
		if answer.InitiatorDepth <= ask.ResponderDepth {
			c.ok(ruleDepthAgreed)
		} else {
			c.breach(s, ruleDepthAgreed, answer.Frame, 1, func() (string, string) {
				return fmt.Sprintf("an ORD of at most %d, the IRD in the MPA Request", ask.ResponderDepth),
					fmt.Sprintf("ORD %d", answer.InitiatorDepth)
			})
		}
	}
	if s.ddp == nil {
		return
	}
	for side := range rdma.Side(2) {
		d := &s.ddp[side]
		if d.largest == 0 || d.payload == 0 {
			continue
		}
		if d.largest <= d.payload {
			c.ok(ruleFPDUSize)
			continue
		}
		f := s.finding(ruleFPDUSize, d.longest, side, s.role(side))
		f.Expected = fmt.Sprintf("FPDUs of at most %d bytes, the largest TCP segment", d.payload)
		f.Seen = fmt.Sprintf("%d bytes", d.largest)
		f.Known = rules[ruleFPDUSize].Known
		c.report(f)
	}
}
