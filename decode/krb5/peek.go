package krb5

import (
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Peek returns an Unwrapper for transactions that have not ended and may be ahead of those that create their
// contexts: it opens what it can with the contexts known so far, and records and learns nothing.
func (c *Contexts) Peek() rpc.Unwrapper { return peek{c} }

type peek struct{ c *Contexts }

func (p peek) Unwrap(v *rpc.View) {
	if v.Call().GSS.Handle == nil || v.Call().GSS.Proc != oncrpc.GSSData {
		return
	}
	p.c.mu.Lock()
	defer p.c.mu.Unlock()
	x := p.c.table.find(v.Tx, v.Call().GSS.Handle)
	if x == nil {
		return
	}
	if x, _, _ = choose(x, v); x.state != keyed {
		return
	}
	v.Principal = x.client
	x.body(&v.CallOpened, v.CallBody(), v.Call().Payload, initiator, v.Call().GSS.Sequence)
	if v.ReplyErr == nil {
		x.body(&v.ReplyOpened, v.ReplyBody(), v.Reply().Payload, acceptor, v.Call().GSS.Sequence)
	}
}
