package latency

import (
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// calm sums up the calm transactions of a group (transaction.Transaction.Calm). Most are. What the
// group counts of each of them follows from a few numbers: settle adds it.
type calm struct {
	// What changes with each of them comes first, so that it is in few lines of the cache.
	n                     uint64 // without those whose times are kept
	kept, acked           uint   // times in late and acks
	callBytes, replyBytes uint64
	// inline are those over RDMA without chunks that would fit all inline thresholds; sent are the bytes of their Sends.
	inline, sent uint64
	time         int64 // sum of the latencies of those known to have lost no time; clean does not have it yet
	// again counts failures with the same status as the one counted before, which Counts knows.
	again  uint64
	status string
	// late are the latencies of the last ones, which neither took nor the interval has yet, and acks the times to their acknowledgements,
	// of those that have one above 0. waiting says that the series is to ask for them.
	late, acks [lateCalm]int64
	waiting    bool

	atOnce   uint64 // acknowledgements that took no time
	unknown  uint64 // those that may have lost time: nobody knows
	backward uint64

	took dist // the latency, all of it the server's time
}

// lateCalm is how many times of calm transactions a group, or an interval, counts together.
const lateCalm = 32

// addCalm is the part of Add that concerns the group.
func (g *group) addCalm(v *rpc.View, took int64, failed bool, opt *Options, least uint64) {
	tx, c := v.Tx, &g.calm
	if tx.Backward {
		c.backward++
	}
	c.callBytes += tx.Call.Bytes
	c.replyBytes += tx.Reply.Bytes
	if failed {
		g.failCalm(v.Status())
	}
	if call := &tx.Call.Header; tx.Call.Transport && tx.Reply.Transport {
		if len(call.Reads)|len(call.Call)|len(call.Writes) == 0 && !call.HasReply && max(tx.Call.Bytes, tx.Reply.Bytes) <= least {
			c.inline++
			c.sent += uint64(tx.Call.SendBytes) + uint64(tx.Reply.SendBytes)
		} else {
			g.addChunks(tx, opt.Inline)
		}
	}
	if tx.Blame != nil {
		c.time += took
	} else {
		c.unknown++
		g.clean.sum += float64(took)
	}
}

// times keeps the times of a calm transaction; acked is below 0 if no acknowledgement was seen. It returns true if there is no room for
// more, and countCalm has to count them.
func (c *calm) times(took, acked int64) (full bool) {
	if acked > 0 {
		c.acks[c.acked%lateCalm] = acked
		c.acked++
	} else if acked == 0 {
		c.atOnce++
	}
	c.late[c.kept%lateCalm] = took
	c.kept++
	return c.kept == lateCalm
}

// failCalm is fail for a calm transaction: most failures of a group are the same.
func (g *group) failCalm(s string) {
	switch c := &g.calm; {
	case s == "" || s != c.status:
		g.settleFailures()
		c.status = g.fail(s)
	default:
		c.again++
	}
}

// settleFailures counts the same failures as the one before.
func (g *group) settleFailures() {
	if c := &g.calm; c.again > 0 {
		g.Errors += c.again
		g.Statuses[c.status] += c.again
		c.again = 0
	}
}

// countCalm counts the times of the last calm transactions, which are of one interval, and gives the latencies to that.
func (g *group) countCalm(s *series) {
	c := &g.calm
	list := c.late[:c.kept]
	if len(list) == 0 {
		return
	}
	for _, v := range list {
		c.took.add(v, s.mem)
	}
	s.give(list)
	for _, v := range c.acks[:c.acked] {
		g.phases[transaction.PhaseAck].add(v, s.mem)
	}
	c.n += uint64(c.kept)
	c.kept, c.acked = 0, 0
}

// leastInline is the longest message that fits all thresholds.
func leastInline(inline []uint32) uint64 {
	least := uint64(1<<64 - 1)
	for _, t := range inline {
		least = min(least, max(uint64(t), plainHeader)-plainHeader)
	}
	return least
}

// settleCalm adds what follows from the calm transactions, of which no times may be kept.
func (g *group) settleCalm(m *memory) {
	c := &g.calm
	if c.n == 0 {
		return
	}
	g.clean.count += c.n
	g.clean.sum += float64(c.time)
	g.Count += c.n
	g.Complete += c.n
	g.Backward += c.backward
	g.settleFailures()
	g.CallBytes += c.callBytes
	g.ReplyBytes += c.replyBytes
	g.chunks.Transactions += c.inline
	g.chunks.InlineCalls += c.inline
	g.chunks.InlineReplies += c.inline
	g.chunks.SendBytes += c.sent
	for i := range g.inline {
		x := &g.inline[i]
		x.Calls += c.inline
		x.Replies += c.inline
		x.Both += c.inline
	}
	g.zeros[transaction.PhaseAck] += c.atOnce
	for _, ph := range [...]transaction.Phase{
		transaction.PhaseCall, transaction.PhasePull, transaction.PhasePush, transaction.PhaseReply, transaction.PhaseWait,
	} {
		g.zeros[ph] += c.n
	}
	if quiet := c.n - c.unknown; quiet > 0 {
		if g.lost == nil {
			g.lost = new(lost)
		}
		l := g.lost
		l.n += quiet
		l.time += c.time
		l.sums[transaction.PhaseServer][rdma.CauseRest] += c.time
		l.touched[rdma.CauseRest] += quiet
	}
	took := c.took.clone(m)
	g.total.merge(&took, m)
	g.phases[transaction.PhaseServer].merge(&c.took, m)
	*c = calm{}
}
