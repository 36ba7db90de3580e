package run

import (
	"errors"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// codec turns ops into messages, or messages into results.
type codec struct {
	creds    []oncrpc.Auth // by number in the plan
	layout   bool          // calls are laid out as captured
	judged   bool          // arguments are compared, too
	timeout  time.Duration
	callback *callback.Listener // nil if callbacks make no difference

	results workload.Results // replies are decoded into these
	values  bindings.Values  // of the call that is encoded
	args    workload.Arguments
	reduced []xdr.Reduced // of the call that is judged
}

// build encodes a call and prepares it for its reply.
func (x *codec) build(c *call) error {
	x.values = bindings.Values{Clone: c.clone, Form: &c.form, Memory: c, Callback: x.callback}
	if err := x.encode(c, &x.values); err != nil {
		return err
	}
	c.XID, c.Err, c.Layout = 0, nil, nil
	c.Timeout, c.Done, c.User = x.timeout, done, c
	asCaptured := x.layout && c.form.Op.Layout != nil && !c.relaid && !c.line.plain
	if err := room(c, asCaptured); err != nil {
		return err
	}
	if asCaptured {
		c.Layout = c.form.Op.Layout.Transport()
	}
	return nil
}

// encode makes the bytes of a call.
func (x *codec) encode(c *call, values plan.Resolver) error {
	o := c.clone.Rewritten(&c.form)
	c.sent = workload.Codec(o)
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: o.Program, Version: o.Version, Procedure: o.Procedure}
	if o.Credential > 0 && o.Credential < len(x.creds) {
		h.Cred = x.creds[o.Credential]
	}
	c.stream = h.Append(c.stream[:0])
	c.head = len(c.stream)
	stream, items, err := o.AppendArgs(c.stream, c.Items[:0], values)
	c.stream, c.Items = stream, items
	if err != nil {
		return err
	}
	c.Message = transport.Message{Stream: stream, Items: items}
	return nil
}

// sentArgs decodes the arguments of a call as it was sent, if they are to be judged.
func (x *codec) sentArgs(c *call) xdr.Message {
	if !x.judged {
		return nil
	}
	x.reduced = x.reduced[:0]
	for i := range c.Items {
		x.reduced = append(x.reduced, xdr.Reduced{Position: c.Items[i].Position, Length: uint32(len(c.Items[i].Data))})
	}
	return x.args.Decode(c.sent, c.stream, c.head, x.reduced)
}

// decode decodes a reply. rpc is the outcome of the RPC layer.
func (x *codec) decode(c *call) (rpc string, res xdr.Message, err error) {
	res = x.results.Of(c.sent)
	err = c.Decode(res)
	var denied *client.DeniedError
	if errors.As(err, &denied) {
		return denied.Status, nil, nil
	}
	if r, ok := res.(*nfs3.READDIR3res); ok && c.form.Adapted&bindings.LacksReaddirplus != 0 {
		res = withoutPlus(r)
	}
	return "", res, err
}

// withoutPlus is a READDIR as a READDIRPLUS without handles and attributes of entries.
func withoutPlus(r *nfs3.READDIR3res) *nfs3.READDIRPLUS3res {
	p := &nfs3.READDIRPLUS3res{Status: r.Status, Resfail: nfs3.READDIRPLUS3resfail(r.Resfail)}
	p.Resok.DirAttributes, p.Resok.Cookieverf, p.Resok.Reply.Eof = r.Resok.DirAttributes, r.Resok.Cookieverf, r.Resok.Reply.Eof
	for _, e := range r.Resok.Reply.Entries {
		p.Resok.Reply.Entries = append(p.Resok.Reply.Entries, nfs3.Entryplus3{Fileid: e.Fileid, Name: e.Name, Cookie: e.Cookie})
	}
	return p
}
