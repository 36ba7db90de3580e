package latency

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// Counts are what is counted of the transactions of a group. A new count is a field, a line of add and a word of
// counters; saved states then have a new version: see SectionVersion.
type Counts struct {
	Count      uint64 `json:"count"`
	Backward   uint64 `json:"backward"`
	Complete   uint64 `json:"complete"`
	Incomplete uint64 `json:"incomplete"`
	NoReply    uint64 `json:"no_reply"`
	NoCall     uint64 `json:"no_call"`
	// OddClock counts transactions whose reply came before their call; no times are computed for them.
	OddClock uint64 `json:"odd_clock"`
	// Undivided counts transactions whose time cannot be divided into phases (transaction.Phases.Divided), UndividedTime is their latency.
	Undivided     uint64            `json:"undivided"`
	UndividedTime uint64            `json:"undivided_ns"`
	Errors        uint64            `json:"errors"`
	Statuses      map[string]uint64 `json:"errors_by_status"`

	CallBytes   uint64 `json:"call_bytes"`  // of RPC messages
	ReplyBytes  uint64 `json:"reply_bytes"` //
	ReadBytes   uint64 `json:"rdma_read_bytes"`
	WriteBytes  uint64 `json:"rdma_write_bytes"`
	Retransmits uint64 `json:"retransmits"`

	// PathKnown counts transactions whose path is known (transaction.Transaction.SurePath). PathPull, PathServer and PathPush are the
	// parts of these phases that are path.
	PathKnown  uint64 `json:"path_known"`
	PathPull   uint64 `json:"path_pull_ns"`
	PathServer uint64 `json:"path_server_ns"`
	PathPush   uint64 `json:"path_push_ns"`
}

// Path returns the time that packets were in transit.
func (c *Counts) Path() uint64 { return c.PathPull + c.PathServer + c.PathPush }

// path adds the path of a transaction.
func (c *Counts) path(tx *transaction.Transaction, p *transaction.Phases) {
	if in, ok := tx.SurePath(p); ok {
		c.PathKnown++
		c.PathPull += uint64(in.Pull)
		c.PathServer += uint64(in.Server)
		c.PathPush += uint64(in.Push)
	}
}

// add counts a transaction.
func (c *Counts) add(v *rpc.View, failed bool) {
	tx := v.Tx
	c.Count++
	if tx.Backward {
		c.Backward++
	}
	switch tx.State {
	case transaction.Complete:
		c.Complete++
	case transaction.Incomplete:
		c.Incomplete++
	case transaction.NoReply:
		c.NoReply++
	case transaction.NoCall:
		c.NoCall++
	}
	c.CallBytes += tx.Call.Bytes
	c.ReplyBytes += tx.Reply.Bytes
	c.ReadBytes += tx.ReadBytes
	c.WriteBytes += tx.WriteBytes
	c.Retransmits += uint64(tx.Retransmits)
	if failed {
		c.fail(failure(v))
	}
}

// failure is the status of a call that has failed: that its reply did not arrive, whatever it says, or what it says.
func failure(v *rpc.View) string {
	if tx := v.Tx; tx.ReplyLost() {
		return "reply_" + tx.ReplyDelivery().String()
	}
	return v.Status()
}

// fail counts an error. It returns the status if that is counted by itself, and not with others; empty otherwise.
func (c *Counts) fail(s string) string {
	c.Errors++
	if c.Statuses == nil {
		c.Statuses = make(map[string]uint64)
	}
	if _, ok := c.Statuses[s]; !ok && len(c.Statuses) >= maxStatuses {
		c.Statuses[otherName]++
		return ""
	}
	c.Statuses[s]++
	return s
}

// counters are all counts, without those of statuses. Merging and saving use them.
func (c *Counts) counters() []*uint64 {
	return []*uint64{
		&c.Count, &c.Backward, &c.Complete, &c.Incomplete, &c.NoReply, &c.NoCall, &c.OddClock, &c.Undivided, &c.UndividedTime, &c.Errors,
		&c.CallBytes, &c.ReplyBytes, &c.ReadBytes, &c.WriteBytes, &c.Retransmits, &c.PathKnown, &c.PathPull, &c.PathServer, &c.PathPush,
	}
}

// merge adds what another group counted. It reports whether a sum is too large: it is the largest number then.
func (c *Counts) merge(o *Counts) (overflow bool) {
	overflow = saturatedAll(c.counters(), o.counters())
	for s, n := range o.Statuses {
		if c.Statuses == nil {
			c.Statuses = make(map[string]uint64)
		}
		sum := c.Statuses[s]
		overflow = saturated(&sum, n) || overflow
		c.Statuses[s] = sum
	}
	return overflow
}
