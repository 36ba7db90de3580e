package check

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/invariant"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// replyRules judge the contents of NFS replies, alone and against earlier replies, on every transport.
type replyRules struct {
	*verdicts
	invariants *invariant.Checker
	down       map[[16]byte]*down // by session
	exchange   invariant.Exchange
	reused     [2]int // connection and XID of the newest call without a reply that may have been sent again with other contents
}

// breachRules has the rule for each kind of breach.
var breachRules = [...]id{
	invariant.Contradiction: ruleReplyContradicts,
	invariant.CookieZero:    ruleCookies, invariant.CookieTwice: ruleCookies, invariant.NoEntries: ruleCookies,
	invariant.ChangeKept: ruleChangeAttribute, invariant.ChangeForeign: ruleChangeAttribute, invariant.ChangeBack: ruleChangeAttribute,
	invariant.TimeBack: ruleTimeBack,
	invariant.Moved:    ruleAttributeMoved, invariant.Replaced: ruleAttributeMoved,
	invariant.NotAsked: ruleNotAsked, invariant.NotSet: ruleNotAsked,
}

// selected reports whether one of the rules is checked.
func (c *replyRules) selected() bool {
	return c.on[ruleUndefined] != Off || c.on[ruleChannelDown] != Off || c.on[ruleResults] != Off || slices.ContainsFunc(breachRules[1:], func(r id) bool { return c.on[r] != Off })
}

// judge takes a transaction.
func (c *replyRules) judge(v *rpc.View) {
	tx := v.Tx
	if !tx.Reply.Seen() && len(tx.Notes) > 0 && sentAgain(tx) {
		c.reused = [2]int{tx.Connection.ID, int(tx.XID)}
	}
	if !c.selected() || !tx.Named || !tx.Call.Seen() || !tx.Reply.Seen() {
		return
	}
	args, result := v.Args(), v.Result()
	if c.on[ruleResults] != Off && args != nil && v.ArgsErr == nil {
		c.decodes(v)
	}
	if args == nil || result == nil || v.ArgsErr != nil || v.ResultErr != nil {
		return
	}
	if c.opt.Match == nil || c.opt.Match(v) {
		if c.on[ruleUndefined] != Off {
			c.defined(v, args, result)
		}
		if c.on[ruleChannelDown] != Off {
			c.channelState(v, args, result)
		}
	}
	server := tx.Server().Addr.As16()
	x := &c.exchange
	x.Server = (binary.BigEndian.Uint64(server[:8])*31+binary.BigEndian.Uint64(server[8:]))*31 + tx.Connection.Tenant
	x.Args, x.Result, x.Sent, x.Replied, x.Again = args, result, tx.Call.First.Time, tx.Reply.Last.Time, sentAgain(tx)
	if x.Bytes = tx.Reply.Bytes; v.Call().Cred.Flavor == oncrpc.RPCSecGSS {
		x.Bytes = 0
	}
	found := c.invariants.Judge(x)
	x.Args, x.Result = nil, nil
	if c.opt.Match != nil && !c.opt.Match(v) {
		return
	}
	c.kept(found)
	for i := range found {
		c.breach(v, &found[i])
	}
}

// kept counts the rules that were judged, but for those that were broken.
func (c *replyRules) kept(broken []invariant.Breach) {
	judged := c.invariants.Judged()
	for i := range broken {
		for k, r := range breachRules {
			if r == breachRules[broken[i].Kind] {
				judged &^= 1 << k
			}
		}
	}
	for ; judged != 0; judged &= judged - 1 {
		c.ok(breachRules[bits.TrailingZeros16(judged)])
	}
}

var errUnpadded = errors.New("the last item lacks its padding")

// decodes judges whether a reply without chunks can be decoded; other rules judge chunks.
func (c *replyRules) decodes(v *rpc.View) {
	m := &v.Tx.Reply
	if m.Transport && (m.Header.Type != rpcrdma.TypeMsg || len(m.Header.Writes) > 0 || m.Header.HasReply) {
		return
	}
	part, err := v.ReplyFault()
	if err == nil && m.PayloadLength&3 != 0 {
		part, err = rpc.PartResults, errUnpadded
	}
	if c.opt.Match != nil && !c.opt.Match(v) {
		return
	}
	if err == nil {
		c.ok(ruleResults)
		return
	}
	// A value that is not defined may be newer than this toolkit, and what is sent again may be another call.
	var x *xdr.Error
	if part == rpc.PartResults && (sentAgain(v.Tx) || c.reused == [2]int{v.Tx.Connection.ID, int(v.Tx.XID)} || errors.As(err, &x) && x.Kind == xdr.Value) {
		return
	}
	if f := c.finding(v, ruleResults, Responder); f != nil {
		f.Expected, f.Seen = "a whole reply", fmt.Sprintf("malformed %s: %v", part, err)
		c.report(f)
	}
}

// sentAgain reports whether the reply may be to an older copy of the call.
func sentAgain(tx *transaction.Transaction) bool {
	if tx.Retransmits > 0 {
		return true
	}
	for _, n := range tx.Notes {
		switch n.Kind {
		case transaction.ResentFrom, transaction.XIDReused, transaction.SecuredAgain:
			return true
		}
	}
	return false
}

func (c *replyRules) breach(v *rpc.View, b *invariant.Breach) {
	f := c.finding(v, breachRules[b.Kind], Responder)
	if f == nil {
		return
	}
	f.Expected, f.Seen = b.Expected(), b.Seen()
	if ops := v.Operations(); b.At >= 0 && b.At < len(ops) {
		f.Seen = ops[b.At].Name + ": " + f.Seen
	}
	c.report(f)
}

// finding is about, or nil if no consumer wants its words; then it was reported.
func (c *replyRules) finding(v *rpc.View, r id, by Party) *Finding {
	tx, ref := v.Tx, v.Tx.Reply.Last
	if by == Requester {
		ref = tx.Call.Last
	}
	if c.on[r] == Off {
		return nil
	}
	if !c.wanted(r, c.on[r]) {
		c.report(c.audience.wordless(tx.Connection, r, "", ref, by))
		return nil
	}
	return c.about(v, r, by)
}

// about is a finding about a call or a reply, as its sender has it.
func (c *replyRules) about(v *rpc.View, r id, by Party) *Finding {
	tx, ref, from := v.Tx, v.Tx.Reply.Last, v.Tx.From.Other()
	if by == Requester {
		ref, from = tx.Call.Last, tx.From
	}
	k := tx.Connection.Resolve()
	return &Finding{
		Rule: &rules[r], Ref: ref, Connection: k.ID, Fabric: k.Fabric,
		HasXID: true, XID: tx.XID, Backward: tx.Backward, Program: program(v), Operation: text.Operation(v),
		CallFrame: tx.Call.Last.Number, ReplyFrame: tx.Reply.Last.Number,
		By: by, From: k.Ends[from], To: k.Ends[from.Other()],
	}
}
