package check

import (
	"fmt"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/internal/units"
)

// dropped is what a receiver that was not ready has dropped of a requester's packets: all from psn on.
type dropped struct {
	open      bool
	psn, high uint32 // high: behind the newest of then
	next      uint32 // the first that was not sent again
	aside     bool   // others were sent again before it
	ref       rdma.Ref
	last      rdma.Ref // the newest that was sent again
}

// drops notes an RNR NAK for a PSN.
func (d *requests) drops(psn uint32, ref rdma.Ref) {
	if !d.known || !reached(d.high, (psn+1)&psnMask) {
		return
	}
	d.dropped = dropped{open: true, psn: psn, high: d.high, next: psn, ref: ref}
}

// again takes a request that was sent before.
func (x *dropped) again(s *conn, p *packet) {
	if !x.open || !reached(p.PSN, x.psn) {
		return
	}
	if p.PSN != x.next {
		x.aside = x.aside || !reached(x.next, p.PSN)
		return
	}
	count := uint32(1)
	if p.Opcode.IsReadRequest() {
		n, known := s.responses(p.DMALen)
		if !known {
			x.open = false
			return
		}
		count = n
	}
	x.next, x.last = (p.PSN+count)&psnMask, p.ref
	x.open = !reached(x.next, x.high)
}

// notResumed reports a requester that sent again what an RNR NAK refused, but not what it had sent behind that.
func (c *fabricRules) notResumed(s *conn, from rdma.Side) {
	d := &s.requests[from]
	x := &d.dropped
	switch {
	case !x.ref.Seen():
		return
	case !x.open || x.next == x.psn || x.aside:
	case d.acked.seen && reached(d.acked.psn, x.next): // the receiver has more of it: the capture lacks the repetition
	case s.many:
		c.skip(ruleNotResumed, Ambiguous)
		return
	case s.misses() != [2]uint64{}:
		c.skip(ruleNotResumed, Gaps)
		return
	case s.c.Last.Time-x.last.Time < stall:
		c.skip(ruleNotResumed, NotAcked)
		return
	default:
		last := (x.high - 1) & psnMask
		c.breach(s, ruleNotResumed, x.last, from, func() (string, string) {
			return fmt.Sprintf("%s again: the RNR NAK in frame %d says that all were dropped", psns(x.psn, last), x.ref.Number),
				fmt.Sprintf("%s again, %s never", psns(x.psn, (x.next-1)&psnMask), psns(x.next, last))
		})
		return
	}
	c.ok(ruleNotResumed)
}

// numbered counts that a side used each PSN once, and acknowledged what was sent: the tracker tells of anything else.
func (c *fabricRules) numbered(s *conn, from rdma.Side) {
	switch {
	case s.c.Fabric == rdma.IWARP || s.c.Sent[from].Packets == 0:
	case s.began():
		c.ok(ruleReused)
		c.ok(ruleAckUnsent)
	default:
		c.skip(ruleReused, NoSetup)
		c.skip(ruleAckUnsent, NoSetup)
	}
}

// psns names the PSNs from one to another.
func psns(first, last uint32) string {
	if first == last {
		return fmt.Sprintf("PSN %d", first)
	}
	return fmt.Sprintf("PSN %d to %d", first, last)
}

// workName is an operation in a sentence.
func workName(k rdma.WorkKind) string {
	return [...]string{rdma.WorkSend: "a Send", rdma.WorkWrite: "an RDMA Write", rdma.WorkRead: "an RDMA Read", rdma.WorkAtomic: "an atomic operation"}[k]
}

// reused reports a request with a PSN of an earlier one.
func (c *fabricRules) reused(s *conn, from rdma.Side, ref rdma.Ref) {
	r := s.c.Reused[from]
	c.breach(s, ruleReused, ref, from, func() (string, string) {
		last := (r.Start + r.Count - 1) & psnMask
		return fmt.Sprintf("PSN %d or a later one: %s belongs to %s before (%s)", (last+1)&psnMask, psns(r.Start, last), workName(r.Of), units.Plural(int(r.Count), "packet")),
			fmt.Sprintf("%s with PSN %d", workName(r.Kind), r.PSN)
	})
}

// differs reports a packet of a Send that came again with other contents.
func (c *fabricRules) differs(s *conn, from rdma.Side, bytes uint32, ref rdma.Ref) {
	c.breach(s, ruleReused, ref, from, func() (string, string) {
		return "the same bytes, if a packet is sent again", fmt.Sprintf("a packet of a Send again, with %d bytes that are not those of the first time", bytes)
	})
}

// ackUnsent reports an acknowledgement of a PSN that was never sent.
func (c *fabricRules) ackUnsent(s *conn, from rdma.Side, psn uint32, ref rdma.Ref) {
	c.breach(s, ruleAckUnsent, ref, from, func() (string, string) {
		expected := "the PSN of a request"
		if d := &s.requests[from.Other()]; d.known {
			expected += fmt.Sprintf(", at most %d", (d.high-1)&psnMask)
		}
		return expected, fmt.Sprintf("ACK of PSN %d", psn)
	})
}
