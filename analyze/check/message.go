package check

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/iwarp"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// callState is what a Checker remembers of an open transaction. With the transaction it fills a cache line.
type callState struct {
	k      *conn
	seq    uint64    // sequence number of the call among those of its requester; 0 if not seen
	gaps   [2]uint64 // missing packets when the call began
	twice  *Finding  // memory that another open call offers
	again  uint64    // number of the packet with which the call was retransmitted on the same connection; 0 if it was not
	before uint32    // credits granted before the reply
	// overtaken means that operations for the call precede it in the capture.
	overtaken bool
}

// Message is decode.Observer.Message.
func (c *Checker) Message(tx *transaction.Transaction, reply bool, s *rdma.Send) {
	if f := tx.Connection.Fabric; f == rdma.TCP || f == rdma.UDP {
		return
	}
	k := c.conns.of(tx.Connection)
	if !k.rpc {
		k.rpc = true
		if fwd, ok := k.forward(); ok && k.c.Fabric == rdma.IWARP {
			c.attempts.learn(k.c.Ends[fwd.Other()].Port)
		}
	}
	c.ok(ruleHeaderMalformed)
	c.ok(ruleDone)
	c.ok(ruleRNR)
	st := c.calls.Of(tx)
	if st == nil {
		st = c.calls.Begin(tx)
		st.k, st.gaps = k, k.misses()
	} else if !reply && s.First == tx.Call.First {
		// The capture has the call after its reply.
		st.overtaken = true
		c.unmatched.answeredAhead(k, tx)
		c.memory.offered(k, st, tx)
		c.memory.mem.answered(k, tx)
		return
	} else if !reply {
		if st.again == 0 {
			st.again = s.First.Number
		}
		return
	}
	if reply {
		c.ok(ruleReplyTwice)
		if !tx.Call.Header.Plain() {
			c.memory.mem.answered(k, tx)
		}
		c.credits.replied(k, st, tx)
		return
	}
	if len(k.repeats) > 0 {
		c.unmatched.answeredAhead(k, tx)
	}
	if tx.Call.Header.Cut {
		k.clipped[s.From] = s.First.Time
	}
	c.credits.called(k, st, tx, s)
	if !tx.Call.Header.Plain() {
		c.memory.offered(k, st, tx)
	}
}

// Unmatched is decode.Observer.Unmatched. It checks Sends that belong to no transaction.
func (c *Checker) Unmatched(k *rdma.Connection, s *rdma.Send) {
	if k.Fabric == rdma.TCP || k.Fabric == rdma.UDP || s.Length == 0 {
		return
	}
	n := c.conns.of(k)
	if !n.rpc || n.isDamaged(s.First.Number, s.Last.Number) {
		return
	}
	var h rpcrdma.Header
	switch {
	case rpcrdma.Plausible(s.Data, s.Length), rpcrdma.PlausibleV0(s.Data, s.Length), rpcrdma.PlausibleV2(s.Data, s.Length):
		err := h.Decode(s.Data, s.Length)
		switch {
		case h.Type == rpcrdma.TypeDone:
			c.unmatched.done(n, s, &h)
		case h.Cut || err != nil || h.Version == rpcrdma.Version2:
		default:
			c.unmatched.repeated(n, s, &h)
		}
	case len(s.Data) < s.Length:
		n.clipped[s.From] = s.First.Time // it may have been a call
		c.skip(ruleHeaderMalformed, Cut)
	default:
		err := h.Decode(s.Data, s.Length)
		c.unmatched.malformed(n, s, &h, err)
	}
}

// unmatchedRules judge Sends that belong to no transaction.
type unmatchedRules struct{ *verdicts }

// done handles an RDMA_DONE.
func (c *unmatchedRules) done(k *conn, s *rdma.Send, h *rpcrdma.Header) {
	if h.Version != rpcrdma.Version1 {
		return
	}
	c.alone(k, s, ruleDone, h, "no RDMA_DONE", "RDMA_DONE", Requester)
}

// repeated handles a reply to a call that was already answered.
func (c *unmatchedRules) repeated(k *conn, s *rdma.Send, h *rpcrdma.Header) {
	to := s.From.Other()
	if why, ok := k.whole(to, s.First.Time); !ok {
		c.skip(ruleReplyTwice, why)
		return
	}
	if len(k.repeats) >= maxRepeats {
		c.skip(ruleReplyTwice, Limit)
		return
	}
	k.repeats = append(k.repeats, repeat{*s, *h})
	k.repeats[len(k.repeats)-1].s.Data, k.repeats[len(k.repeats)-1].s.Parts = nil, nil
}

// repeat is a reply without an open call: the call was already answered, or comes later in the capture.
type repeat struct {
	s rdma.Send
	h rpcrdma.Header
}

const maxRepeats = 16

// reportRepeats reports second replies, once their call has not followed within a few packets; with all set, it reports all of
// them at once. now is the number of the current packet.
func (c *unmatchedRules) reportRepeats(k *conn, now uint64, all bool) {
	for len(k.repeats) > 0 && (all || k.repeats[0].s.Last.Number+maxOvertaken < now) {
		r := k.repeats[0]
		k.repeats = slices.Delete(k.repeats, 0, 1)
		c.alone(k, &r.s, ruleReplyTwice, &r.h, "one reply to each call", "another "+r.h.Type.String()+" for a call that has been answered", Responder)
	}
}

// answeredAhead drops the suspicion of a reply that came before its call.
func (c *unmatchedRules) answeredAhead(k *conn, tx *transaction.Transaction) {
	k.repeats = slices.DeleteFunc(k.repeats, func(r repeat) bool {
		ahead := r.h.XID == tx.XID && r.s.From != tx.From
		if ahead {
			c.skip(ruleReplyTwice, Reordered)
		}
		return ahead
	})
}

// alone reports a Send that belongs to no transaction.
func (c *unmatchedRules) alone(k *conn, s *rdma.Send, r id, h *rpcrdma.Header, expected, seen string, by Party) {
	if c.on[r] == Off || c.opt.Match != nil {
		return
	}
	f := k.finding(r, s.Last, s.From, by)
	f.HasXID, f.XID = true, h.XID
	f.Expected, f.Seen = expected, seen
	c.report(f)
}

// malformed is a Send that could not be parsed and should be answered with ERR_CHUNK.
type malformed struct {
	xid  uint32
	from rdma.Side
	ref  rdma.Ref
	gaps [2]uint64
}

const (
	maxMalformed = 16
	minHeader    = 28 // RFC 8166, section 4.5: shorter messages are dropped
)

func (c *unmatchedRules) malformed(k *conn, s *rdma.Send, h *rpcrdma.Header, err error) {
	if c.opt.Match == nil {
		f := k.finding(ruleHeaderMalformed, s.Last, s.From, k.role(s.From))
		f.Expected = "an RPC-over-RDMA message"
		f.Seen = fmt.Sprintf("a Send of %d bytes", s.Length)
		if err != nil {
			f.Seen += ": " + err.Error()
		} else if fault, at := h.Fault(); fault != rpcrdma.NoFault {
			f.Seen += fmt.Sprintf(": %s, at offset %d", fault, at)
		}
		if len(s.Data) >= 8 {
			f.HasXID, f.XID = true, be32(s.Data)
		}
		c.report(f)
	}
	if fwd, ok := k.forward(); !ok || fwd != s.From || s.Length < minHeader || be32(s.Data[4:]) != rpcrdma.Version1 {
		return
	}
	if len(k.malformed) >= maxMalformed {
		c.skip(ruleMalformedNotRefused, Limit)
		return
	}
	k.malformed = append(k.malformed, malformed{be32(s.Data), s.From, s.Last, k.misses()})
}

// refused handles an answer to a call that was not recognised as one.
func (c *unmatchedRules) refused(k *conn, tx *transaction.Transaction) bool {
	for i := range k.malformed {
		m := &k.malformed[i]
		if m.xid != tx.XID || m.from != tx.From {
			continue
		}
		if h := &tx.Reply.Header; h.Type == rpcrdma.TypeError && h.Error == rpcrdma.ErrChunk {
			c.ok(ruleMalformedNotRefused)
		} else {
			c.notRefused(k, m, "replied "+h.Type.String())
		}
		k.malformed = append(k.malformed[:i], k.malformed[i+1:]...)
		return true
	}
	return false
}

// unrefused checks what was not answered when a connection ends.
func (c *unmatchedRules) unrefused(k *conn) {
	for i := range k.malformed {
		m := &k.malformed[i]
		switch {
		case k.misses() != m.gaps:
			c.skip(ruleMalformedNotRefused, Gaps)
		case k.many:
			c.skip(ruleMalformedNotRefused, Ambiguous)
		default:
			c.notRefused(k, m, "no reply")
		}
	}
	k.malformed = nil
}

func (c *unmatchedRules) notRefused(k *conn, m *malformed, seen string) {
	if c.opt.Match != nil {
		return
	}
	f := k.finding(ruleMalformedNotRefused, m.ref, m.from.Other(), Responder)
	f.HasXID, f.XID = true, m.xid
	f.Expected, f.Seen = "RDMA_ERROR with ERR_CHUNK", seen
	c.report(f)
}

// Event implements decode.Observer.
func (c *Checker) Event(k *rdma.Connection, from rdma.Side, e rdma.Event, value uint32, ref rdma.Ref) {
	if k.Fabric == rdma.TCP || k.Fabric == rdma.UDP {
		return
	}
	s := c.conns.of(k)
	switch e {
	case rdma.EventGap:
		s.losses(ref.Time)
	case rdma.EventNAKSequence:
		s.wire[from.Other()].disturbed = true
	case rdma.EventRNR:
		s.wire[from.Other()].disturbed = true
		s.requests[from.Other()].drops(value, ref)
		if s.rpc {
			c.credits.notReady(s, from, ref)
		}
	case rdma.EventReused:
		c.fabric.reused(s, from, ref)
	case rdma.EventDiffers:
		if k.Fabric != rdma.IWARP {
			c.fabric.differs(s, from, value, ref)
		}
	case rdma.EventAckUnsent:
		c.fabric.ackUnsent(s, from, value, ref)
	case rdma.EventNAKInvalid, rdma.EventNAKAccess, rdma.EventNAKOperation, rdma.EventNAKOther, rdma.EventTerminate:
		c.fatal(s, fatal{from: from, event: e, value: value, ref: ref})
	}
}

var fatalNames = map[rdma.Event]string{
	rdma.EventNAKInvalid: "NAK: invalid request", rdma.EventNAKAccess: "NAK: remote access error",
	rdma.EventNAKOperation: "NAK: remote operational error", rdma.EventNAKOther: "NAK: invalid RD request or a reserved code",
	rdma.EventTerminate: "Terminate",
}

// fatal is a NAK or a Terminate message that ends a connection.
type fatal struct {
	from   rdma.Side
	event  rdma.Event
	value  uint32
	ref    rdma.Ref
	resume uint64 // how often the connection had gone on before
	// Of a Terminate message for lack of a Receive: what it is about, and which side is at fault.
	why string
	at  rdma.Side
}

// noReceive reports whether a Terminate message says that nothing was there for an untagged message: a Receive, or room for one more Read.
func (f *fatal) noReceive() bool {
	t := iwarp.Terminate(binary.BigEndian.AppendUint32(nil, f.value))
	return f.event == rdma.EventTerminate && t.Layer() == iwarp.LayerDDP && t.EType() == 2 && t.Code() == 2
}

// maxFatal bounds those that wait for the end of a connection. One that is not contradicted is the last.
const maxFatal = 16

// fatal keeps a refusal until the connection is over: whether the refusal has ended it is known only then.
func (c *Checker) fatal(s *conn, f fatal) {
	if c.opt.Match != nil {
		return
	}
	if f.resume, f.at = s.resumed(), f.from.Other(); s.rpc && s.c.Sent[f.at].Reads == 0 && f.noReceive() {
		f.at, f.why = s.unready(f.from)
	}
	if c.conns.all[s.c] == s && len(s.fatals) < maxFatal {
		s.fatals = append(s.fatals, f)
		return
	}
	c.refusal(s, &f, "")
}

// resumed is how often a connection went on after something had ended it.
func (s *conn) resumed() uint64 { return s.c.Sent[0].FalseEnds + s.c.Sent[1].FalseEnds }

// fatals reports the refusals of a connection that is over.
func (c *Checker) fatals(s *conn) {
	for i := range s.fatals {
		f := &s.fatals[i]
		if s.resumed() > f.resume {
			c.refusal(s, f, "the connection goes on all the same")
		} else {
			c.refusal(s, f, "the connection ends")
		}
	}
	s.fatals = nil
}

func (c *Checker) refusal(s *conn, x *fatal, then string) {
	f := s.finding(ruleFatalNAK, x.ref, x.at, s.role(x.at))
	f.Expected = "operations that the peer can execute"
	f.Seen = fatalNames[x.event]
	if x.event == rdma.EventTerminate {
		f.Seen += ": " + iwarp.Terminate(binary.BigEndian.AppendUint32(nil, x.value)).String()
		if x.why != "" {
			f.Expected, f.Seen = "a Receive posted for each message that may come", f.Seen+", with "+x.why
		}
	} else {
		f.Seen += fmt.Sprintf(" for PSN %d", x.value)
	}
	f.Reaction = then
	c.report(f)
}

func be32(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}
