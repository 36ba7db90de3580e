package scrub

import (
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// unwrap tells Options.Learn of the names in what Kerberos protects.
func (s *Scrubber) unwrap(tx *transaction.Transaction) {
	v := &s.view
	v.SetAll(tx)
	if v.Principal != "" {
		who := []byte(v.Principal)
		s.replace(xdr.Who, make([]byte, len(who)), who)
	}
	if v.Opening() == rpc.NotOpened || v.Opening() == rpc.Refused {
		return
	}
	c := v.Call()
	p := s.messagesOf(procedure{c.Program, c.Version, c.Procedure})
	if p == nil {
		return
	}
	args, full := v.ArgsData()
	s.learn(p.args, args, full, tx.Call.Header.ReducedCall, false)
	result, full := v.ResultData()
	s.learn(p.result, result, full, tx.Reply.Header.ReducedReply, true)
}

// learn goes through arguments or results, whose copy nobody needs.
func (s *Scrubber) learn(what xdr.Redactable, b []byte, full int, reduced func([]xdr.Reduced) []xdr.Reduced, reply bool) {
	x := &s.redactor
	x.ResetTo(s.zeros(len(b)), b, full)
	if s.reduced = reduced(s.reduced[:0]); reply {
		x.ReduceReply(s.reduced)
	} else {
		x.ReduceCall(s.reduced)
	}
	what.Redact(x)
}
