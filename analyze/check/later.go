package check

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// later is what Decoded counts, which may run beside all else.
type later struct {
	recalls  bool   // something was recalled
	executed uint64 // calls, of which nothing else is to be said
	stats    table
	total    totals
	audience audience
}

// found reports a finding of Decoded.
func (n *later) found(c *Checker, f *Finding) { c.found(f, &n.stats, &n.total, &n.audience) }

// sumLater adds what Decoded has counted to all else.
func (c *Checker) sumLater() {
	if c.on[ruleCallRefused] != Off {
		c.later.stats[ruleCallRefused].Judged += c.later.executed
	}
	c.apart.rest.merge(&c.later.stats, first)
	c.apart.total.merge(&c.later.total)
	c.audience.merge(&c.later.audience)
	c.later = later{recalls: c.later.recalls}
}

// Usual judges, of a transaction that has ended, what does not depend on the RPC messages, if that is usual: it may be called in place of
// Transaction, as Alone of the Options of the Decoder. If it returns true, Decoded has to be called, which may be in parallel with
// all else (Options.Concurrent) but Transaction, if Options.Await is set. If it returns false, nothing has changed, and Transaction has
// to be called, once Decoded has returned for all transactions before.
func (c *Checker) Usual(tx *transaction.Transaction) bool {
	p := tx.Call.Payload
	if !c.sums || !tx.Times.Ack.Seen() || tx.Named && tx.Program >= nfs4.NFS4_CALLBACK ||
		len(p) <= flavorAt+4 || oncrpc.Flavor(be32(p[flavorAt:])) == oncrpc.RPCSecGSS {
		return false
	}
	st := c.calls.Of(tx)
	if st == nil {
		return false
	}
	k := st.k
	if k.c.MergedInto != nil || !k.usual(tx, st) {
		return false
	}
	c.calls.End(tx)
	c.settled(tx, k)
	return true
}

// flavorAt is where a call names the flavor of its credential (RFC 5531, section 9).
const flavorAt = 24

// Executed may be called in place of Decoded for a transaction that was executed, and whose messages have no errors (rpc.Brief.Set),
// unless there are Recalls.
func (c *Checker) Executed() { c.later.executed++ }

// Recalls reports whether something was recalled, so that Decoded has to be told of what is returned.
func (c *Checker) Recalls() bool { return c.later.recalls }

// Decoded judges what is left of a transaction that Usual has accepted.
func (c *Checker) Decoded(v *rpc.View) {
	if c.Recalls() {
		c.returned(v, func(f *Finding) { c.later.found(c, f) })
	}
	if !v.Usual() && (v.ReplyErr != nil || v.Reply().Stat != oncrpc.Accepted) {
		return
	}
	if v.Usual() || v.Reply().Accept != oncrpc.GarbageArgs && v.Reply().Accept != oncrpc.SystemErr {
		c.Executed()
		return
	}
	t := &c.tc
	*t = txCheck{c: c, v: v, tx: v.Tx, k: &conn{c: v.Tx.Connection}, call: &v.Tx.Call.Header, reply: &v.Tx.Reply.Header, later: true}
	t.executed()
	*t = txCheck{c: c}
}
