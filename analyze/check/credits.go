package check

import (
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// creditRules judge how many calls are sent for the credits that were granted.
type creditRules struct{ *verdicts }

// flow is the flow control of one requester on a connection.
type flow struct {
	seq       uint64
	out       uint32 // calls without a reply
	replied   bool   // there has been a reply
	granted   uint32
	requested uint32
	// former is a higher grant that still counts: when a grant is lowered, calls already in flight are not at
	// fault.
	former uint32
	excess []excess
	// base are the counters of missing packets when the calls were last within the limit, or when the oldest
	// open call was sent.
	base [2]uint64
}

// excess is a call that seems to exceed the grant. It really does if enough of the calls up to it are
// answered later. Calls whose reply is missing from the capture must not count.
type excess struct {
	seq       uint64
	limit     uint32
	confirmed uint32
	gaps      [2]uint64
	until     uint32 // PSN of the responder's last packet by which enough were confirmed
	f         *Finding
}

const maxExcess = 16

// limit is how many calls may be outstanding. A grant of zero is the responder's fault and counts as one,
// since the requester can do nothing else.
func (f *flow) limit() uint32 {
	n := max(f.granted, f.former)
	if f.requested > 0 {
		n = min(n, f.requested)
	}
	return max(n, 1)
}

// grant takes the credits that a reply grants.
func (f *flow) grant(credits uint32) {
	if credits < f.granted {
		f.former = max(f.former, f.granted)
	}
	f.granted = credits
	if f.out <= f.granted {
		f.former = 0
	}
}

// called counts a call.
func (c *creditRules) called(k *conn, st *callState, tx *transaction.Transaction, s *rdma.Send) {
	f := &k.flow[s.From]
	if f.out == 0 {
		f.base = k.misses()
	}
	f.seq++
	st.seq = f.seq
	f.out++
	h := &tx.Call.Header
	if h.Version != rpcrdma.Version1 {
		return
	}
	f.requested = h.Credits
	fwd, known := k.forward()
	if known && fwd == s.From {
		k.asks.add(h.Credits, f.granted)
	}
	rule := ruleCreditsExceeded
	limit := uint32(1)
	switch {
	case k.many:
		c.skip(rule, Ambiguous)
		return
	case f.replied:
		limit = f.limit()
	case !known || fwd != s.From:
		return
	case !k.began():
		c.skip(ruleBeforeFirstReply, NoSetup)
		return
	case k.missing(s.From.Other()) > 0:
		c.skip(ruleBeforeFirstReply, Gaps)
		return
	default:
		rule = ruleBeforeFirstReply
	}
	if f.out <= limit {
		f.base = k.misses()
		c.ok(rule)
		return
	}
	if c.on[rule] == Off {
		return
	}
	if len(f.excess) >= maxExcess {
		c.skip(rule, Limit)
		return
	}
	x := excess{seq: st.seq, limit: limit, gaps: f.base}
	x.f = k.finding(rule, s.Last, s.From, Requester)
	c.named(x.f, tx)
	if c.opt.Match != nil && !c.opt.Match(&c.view) {
		return
	}
	x.f.Expected = fmt.Sprintf("at most %d calls outstanding", limit)
	x.f.Seen = fmt.Sprintf("%d calls outstanding with this one; granted %d, requested %d", f.out, f.granted, f.requested)
	f.excess = append(f.excess, x)
}

// replied counts a reply.
func (c *creditRules) replied(k *conn, st *callState, tx *transaction.Transaction) {
	f := &k.flow[tx.From]
	if st.seq > 0 {
		if f.out > 0 {
			f.out--
		}
		for i := 0; i < len(f.excess); i++ {
			x := &f.excess[i]
			if st.seq > x.seq {
				continue
			}
			if why, ok := k.ordered(x, tx); !ok {
				c.skip(x.f.Rule.id, why)
				f.excess = append(f.excess[:i], f.excess[i+1:]...)
				i--
				continue
			}
			if x.confirmed++; x.confirmed == x.limit+1 {
				x.until = k.wire[tx.From.Other()].next - 1
			}
		}
		c.confirmed(k, tx.From)
	}
	h := &tx.Reply.Header
	if h.Version != rpcrdma.Version1 || h.Cut {
		return
	}
	f.replied = true
	if fwd, known := k.forward(); known && fwd == tx.From {
		k.grants.add(h.Credits, tx.Call.Header.Credits)
	}
	st.before = f.granted
	f.grant(h.Credits)
}

// confirmed reports the calls of a side that exceeded the grant. What the responder had sent when enough of them were answered must have been
// acknowledged: only then is it known which replies are missing from the capture.
func (c *creditRules) confirmed(k *conn, from rdma.Side) {
	f, w := &k.flow[from], &k.wire[from.Other()]
	f.excess = slices.DeleteFunc(f.excess, func(x excess) bool {
		switch {
		case x.confirmed <= x.limit:
			return false
		case k.missing(from.Other()) != x.gaps[from.Other()]:
			c.skip(x.f.Rule.id, Gaps)
			return true
		case k.c.Fabric != rdma.IWARP && !(w.hasAck && reached(w.acked, x.until)):
			return false
		}
		x.f.Reaction = "answered"
		c.report(x.f)
		return true
	})
}

// ordered reports whether the reply of tx really came after the call of x. It is not certain if an
// acknowledgement refers to packets that the capture has later or lacks, or if the two packets are
// neighbours, which a capture from several receive queues may swap.
func (s *conn) ordered(x *excess, tx *transaction.Transaction) (Reason, bool) {
	switch side := tx.From.Other(); {
	case s.missing(side) != x.gaps[side]:
		return Gaps, false
	case tx.Reply.Last.Number == x.f.Ref.Number+1:
		return Reordered, false
	}
	return 0, true
}

// unconfirmed checks calls that still seem to exceed the grant when their connection ends. The reason why
// replies are missing may be what broke the connection.
func (c *creditRules) unconfirmed(k *conn) {
	for side := range k.flow {
		f := &k.flow[side]
		c.confirmed(k, rdma.Side(side))
		for i := range f.excess {
			x := &f.excess[i]
			if k.ended && k.began() && k.misses() == [2]uint64{} && !k.many {
				x.f.Reaction = "no more replies"
				if k.c.Terminated != "" {
					x.f.Reaction = "connection ended: " + k.c.Terminated
				}
				c.report(x.f)
			} else {
				c.skip(x.f.Rule.id, Gaps)
			}
		}
		f.excess = nil
	}
}

// notReady handles an RNR NAK from a side.
func (c *creditRules) notReady(k *conn, from rdma.Side, ref rdma.Ref) {
	if c.opt.Match != nil {
		return
	}
	side, why := k.unready(from)
	f := k.finding(ruleRNR, ref, side, k.role(side))
	f.Expected = "a Receive posted for each message that may come"
	f.Seen = "RNR NAK with " + why
	f.Reaction = retries(&k.c.Setup[from])
	c.report(f)
}

// unready tells which side is at fault for a message that finds no Receive of a side, and why.
func (s *conn) unready(at rdma.Side) (rdma.Side, string) {
	peer := at.Other()
	in := &s.flow[peer] // calls that it receives
	switch limit := in.limit(); {
	case in.replied && in.out > limit:
		return peer, fmt.Sprintf("%d calls outstanding of %d granted", in.out, limit)
	case in.replied:
		return at, fmt.Sprintf("%d calls outstanding of %d granted: fewer Receives were posted", in.out, limit)
	default:
		return at, fmt.Sprintf("%d calls outstanding", in.out)
	}
}

// retries says how often the peer of the side that sent x tries again after an RNR NAK. Each side tells the other its count (IBTA volume
// 1, section 12.7); 7 stands for no limit.
func retries(x *rdma.Setup) string {
	switch n := x.RNRRetryCount; {
	case !x.Terms() || x.Message != rdma.SetupREQ && x.Message != rdma.SetupREP:
		return "the sender tries again, as often as its retry count allows"
	case n == 0:
		return "the sender does not try again: its RNR retry count is 0"
	case n == 7:
		return "the sender tries again, without end: its RNR retry count is 7"
	default:
		return fmt.Sprintf("the sender tries again: its RNR retry count is %d", n)
	}
}
