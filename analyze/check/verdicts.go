package check

import (
	"cmp"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// verdicts counts the decisions of the rules and emits the findings.
type verdicts struct {
	opt      Options
	emit     func(*Finding)
	on       [ruleCount]Severity // Off if not selected
	stats    *table              // of the current connection, if they are distinguished
	apart    apart
	audience audience
	pending  []pending
	view     rpc.View // of a transaction that is still open
}

func (c *verdicts) ok(r id) {
	if c.on[r] != Off {
		c.stats.kept[r]++
	}
}

func (c *verdicts) skip(r id, why Reason) {
	if c.on[r] != Off {
		c.stats.of(r).NotJudged[why]++
	}
}

// reportAll reports findings that come to light at the end, in the order of their packets.
func (c *verdicts) reportAll(list []*Finding) {
	slices.SortFunc(list, func(a, b *Finding) int {
		return cmp.Or(cmp.Compare(a.Ref.Number, b.Ref.Number), cmp.Compare(a.Seen, b.Seen))
	})
	for _, f := range list {
		c.report(f)
	}
}

// add counts a finding.
func (n *Count) add(f *Finding) {
	n.Judged++
	n.Found++
	if f.Known != "" {
		n.Known++
	}
	n.Worst = max(n.Worst, f.Severity)
	n.By[f.By]++
	if !n.First.Seen() || f.Ref.Number < n.First.Number {
		n.First = f.Ref
	}
}

// report counts a finding that holds in any case, and emits it if somebody reads it.
func (c *verdicts) report(f *Finding) {
	stats, total := c.apart.of(f)
	r := f.Rule.id
	if c.on[r] == Off {
		return
	}
	sev := c.severity(r, f.Known)
	f.Severity = sev
	stats.of(r).add(f)
	total[sev]++
	read := c.wanted(r, sev)
	c.apart.keep(f)
	if !read {
		c.audience.counted(f)
		return
	}
	c.emit(f)
}

// pending is a finding that holds only if no packets are missing from the capture, which is known once the
// current packet has been tracked.
type pending struct {
	f    *Finding
	c    *conn
	gaps [2]uint64 // values that the counters of both sides must still have
	side uint8     // sides that matter, one bit each
	// until is a time that the capture must have reached.
	until int64
	// If counter is not nil, the finding waits until a side's stream continues, which shows whether segments are missing. counter points to
	// the counter of its segments, was is the first value. late says that the Read Request came meanwhile.
	counter *uint64
	was     uint64
	late    bool
	part    openRead // the Read Response that came first
}

const (
	maxPending = 4096
	maxUntold  = 16 // findings that wait for a stream
)

// await defers a finding until the current packet has been tracked.
func (c *verdicts) await(p pending) {
	if len(c.pending) >= maxPending {
		c.skip(p.f.Rule.id, Limit)
		return
	}
	c.pending = append(c.pending, p)
}

// breach reports that a side broke a rule.
func (c *verdicts) breach(s *conn, r id, ref rdma.Ref, from rdma.Side, say wording) {
	switch {
	case c.on[r] == Off:
	case c.wanted(r, c.on[r]):
		f := s.finding(r, ref, from, s.role(from))
		f.Expected, f.Seen = say()
		c.report(f)
	default:
		c.report(c.audience.wordless(s.c, r, s.deviation(r, from, 0), ref, s.role(from)))
	}
}

// severity returns the severity of a finding in the profile that is checked. What a known implementation does is no error: others live with it.
func (c *verdicts) severity(r id, known string) Severity {
	switch {
	case known == "":
		return c.on[r]
	case c.opt.Profile == Linux:
		return Note
	}
	return min(c.on[r], Warning)
}

// named fills in what is known about a transaction that is still open.
func (c *verdicts) named(f *Finding, tx *transaction.Transaction) {
	c.view.Set(tx)
	f.HasXID, f.XID, f.Backward = true, tx.XID, tx.Backward
	f.CallFrame, f.ReplyFrame = tx.Call.Last.Number, tx.Reply.Last.Number
	f.Program, f.Operation = program(&c.view), text.Operation(&c.view)
}

// enter makes the rules count for a connection.
func (c *verdicts) enter(s *conn) {
	if !c.apart.on {
		return
	}
	if s.own != nil {
		c.stats = &s.own.stats
		return
	}
	c.stats = &c.apart.rest
}

// leave makes the rules count for no connection.
func (c *verdicts) leave() { c.stats = &c.apart.rest }
