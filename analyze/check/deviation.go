package check

import (
	"github.com/rpcrdma/toolkit/analyze/stack"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// deviation is a rule that a known implementation breaks.
type deviation struct {
	rule   id
	client bool
	most   int // the inline message is no longer than this; 0 for any
	text   string
}

// deviations are what the sources of implementations without RFC 8797 show: illumos-gate (clnt_rdma.c, svc_rdma.c), ntirpc (xdr_rdma.c)
// and libevpl (rpc2.c).
var deviations = map[stack.Stack][]deviation{
	stack.OpenSolaris: {
		{ruleBeforeFirstReply, true, 0, "clients know no limit before the first grant"},
		{ruleCallOverInline, true, 1024, "clients count the message alone against the threshold"},
		{ruleReplyOverInline, false, 1024, "servers count the message alone against the threshold"},
		{ruleReplyChunkIgnored, false, 1024, "servers count the message alone against the threshold"},
		{ruleReplyChunkNotReturned, false, 0, "servers leave out a Reply chunk that they do not use"},
		{ruleVersionAccepted, false, 0, "servers do not look at the version"},
	},
	stack.NTIRPC: {
		{ruleCallOverInline, true, 0, "clients send what fits into their own buffer, a page or more"},
		{ruleReplyOverInline, false, 0, "servers send what fits into their own buffer, a page or more"},
		{ruleWriteListCount, false, 0, "servers neither use Write chunks nor return them"},
	},
	stack.Libevpl: {
		{ruleBeforeFirstReply, true, 0, "clients ask for one credit and do not count their calls"},
		{ruleCreditsExceeded, true, 0, "clients ask for one credit and do not count their calls"},
		{ruleCallOverInline, true, 0, "clients do not look at the threshold"},
		{ruleReplyOverInline, false, 0, "servers reply in line if there is no Reply chunk, however long the reply is"},
		{ruleZeroGrant, false, 0, "servers of early versions grant 0"},
		{ruleWriteListCount, false, 0, "servers return the last Write chunk alone"},
	},
}

// deviation names the implementation that a side seems to be, if it is known to break the rule, and says how; empty otherwise. message is
// the size of the inline message at hand.
func (s *conn) deviation(r id, from rdma.Side, message int) string {
	k := s.c.Resolve()
	client, known := s.forward()
	if !known || !s.asks.said || !k.Declared(from) || k.Setup[from].Private.Present {
		return ""
	}
	kind, _ := stack.WithoutPrivate(&k.Setup[from], from == client, s.asks.Credits, s.grants.Credits)
	for _, d := range deviations[kind] {
		if d.rule == r && d.client == (from == client) && (d.most == 0 || message <= d.most) {
			return "probably " + kind.Name() + ": " + d.text
		}
	}
	if rule := &rules[r]; kind != stack.Libevpl && rule.Severity[RFC5666] < rule.Severity[RFC8166] {
		return "probably " + kind.Name() + ": RFC 5666 allows it"
	}
	return ""
}

// said is what an end has said of credits so far.
type said struct {
	stack.Credits
	said bool
}

// add takes the credits of a message; other is what the other end said last.
func (s *said) add(credits, other uint32) {
	n := uint64(credits)
	if !s.said {
		s.said, s.Credits = true, stack.Credits{Constant: true, Echo: true, Value: n}
	}
	s.Constant = s.Constant && n == s.Value
	s.Echo = s.Echo && credits == other
}
