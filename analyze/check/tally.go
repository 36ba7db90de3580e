package check

import (
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpcrdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// tally counts, of a connection, what breaks no rule. Checker.tallied adds it to the counts of the rules.
type tally struct {
	messages uint64 // calls and replies
	replies  uint64
	within   uint64 // calls for which there was a credit
	usual    uint64 // transactions that are usual, but for what calls and replies say
	accepted uint64 // those that were accepted
	limited  uint64 // those with known inline thresholds
	granted  uint64 // those whose reply granted as much as the one before
}

// tallied adds the tally of a connection to the counts of the rules. It is called at the end of the connection at the latest.
func (c *Checker) tallied(s *conn) {
	n := s.tally
	s.tally = tally{}
	c.answeredPlainly(s, n.usual)
	stats := c.statsOf(s)
	add := func(n uint64, list ...id) {
		for _, r := range list {
			if c.on[r] != Off {
				stats[r].Judged += n
			}
		}
	}
	add(n.messages, ruleHeaderMalformed, ruleDone, ruleRNR)
	add(n.replies, ruleReplyTwice)
	add(n.within, ruleCreditsExceeded)
	add(n.usual,
		ruleVersion,
		ruleMSGP, ruleMsgWithPositionZero, ruleMsgWithoutMessage, ruleWriteListNeedless, // call
		ruleXIDReused, ruleResentSame, ruleUnanswered, ruleHandleOpen,
		ruleZeroGrant, ruleMsgUsesReplyChunk, ruleMsgWithoutMessage, ruleReplyReadList, ruleChunksRefused) // reply
	add(n.accepted, ruleCallRefused)
	add(n.granted, ruleGrantChanged)
	add(n.limited, ruleCallOverInline, ruleReplyOverInline)
	for _, r := range [...]id{ruleCallOverInline, ruleReplyOverInline} {
		if c.on[r] != Off {
			stats[r].NotJudged[NoSetup] += n.usual - n.limited
		}
	}
}

// statsOf is where what concerns a connection counts.
func (c *Checker) statsOf(s *conn) *table {
	if s.own != nil {
		return &s.own.stats
	}
	return &c.apart.rest
}

// usual judges what nearly all transactions are: a forward call and its reply, each once, with headers without chunks, and
// accepted. It returns false, and has changed nothing, if any rule might have something to say. It counts what run would
// count: TestUsual and FuzzCheck compare them.
func (t *txCheck) usual() bool {
	v := t.v
	switch {
	case v.Usual():
	case v.CallErr != nil, v.ReplyErr != nil, v.Call().Cred.Flavor == oncrpc.RPCSecGSS, v.Reply().Stat != oncrpc.Accepted, v.Reply().Accept != oncrpc.Success:
		return false
	}
	if !t.k.usual(t.tx, &t.st) {
		return false
	}
	t.k.tally.accepted++
	return true
}

// usual judges the transport of a usual transaction. It returns false, and has changed nothing, if any rule might have something
// to say of it.
func (s *conn) usual(tx *transaction.Transaction, st *callState) bool {
	credits := tx.Reply.Header.Credits
	switch {
	case !tx.Usual() && !chunkless(tx), tx.Backward, tx.Reply.Invalidates, len(tx.Notes)|len(tx.Operations) != 0, st.again != 0, st.twice != nil, s.done,
		credits == 0, st.before != 0 && st.before != credits:
		return false
	}
	if fwd, known := s.forward(); !known || fwd != tx.From {
		return false
	}
	limited := false
	if x := tx.Connection.Resolve(); x.Declared(0) && x.Declared(1) {
		if max(tx.Call.SendBytes, tx.Reply.SendBytes) > rdma.DefaultInlineThreshold { // the least
			a, b := &x.Setup[tx.From&1].Private, &x.Setup[tx.From.Other()&1].Private
			if tx.Call.SendBytes > int(rdma.InlineThreshold(a, b)) || tx.Reply.SendBytes > int(rdma.InlineThreshold(b, a)) {
				return false
			}
		}
		limited = true
	}
	s.version = rpcrdma.Version1 + 1
	n := &s.tally
	n.usual++
	if limited {
		n.limited++
	}
	if st.before != 0 {
		n.granted++
	}
	return true
}

// chunkless reports whether both messages were captured with headers of version 1 of type RDMA_MSG with empty chunk lists (RFC 8166,
// section 4.1) and a message behind each.
func chunkless(tx *transaction.Transaction) bool {
	for _, m := range [...]*transaction.Message{&tx.Call, &tx.Reply} {
		h := &m.Header
		if !m.Seen() || !m.Transport || !h.Plain() || h.Version != rpcrdma.Version1 || h.Cut || h.Type != rpcrdma.TypeMsg || h.HasReply || h.PayloadLength <= 0 {
			return false
		}
	}
	return true
}
