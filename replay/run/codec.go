package run

import (
	"errors"

	"github.com/rpcrdma/toolkit/decode/oncrpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/client"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/judge"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/transport"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// build encodes a call and prepares it for its reply.
func (e *engine) build(c *call) error {
	e.values = bindings.Values{World: c.world, Form: &c.form, Memory: c, Callback: e.probe.listener}
	if err := e.encode(c, &e.values); err != nil {
		return err
	}
	c.XID, c.Err, c.Layout = 0, nil, nil
	c.Timeout, c.Done, c.User = e.opt.Timeout, done, c
	asCaptured := e.opt.Layout && c.form.Op.Layout != nil && !c.relaid && !c.line.plain
	if err := room(c, asCaptured); err != nil {
		return err
	}
	if asCaptured {
		c.Layout = c.form.Op.Layout.Transport()
	}
	return nil
}

// encode makes the bytes of a call.
func (e *engine) encode(c *call, values plan.Resolver) error {
	o := c.form.Op
	h := oncrpc.Call{RPCVersion: oncrpc.Version, Program: o.Program, Version: o.Version, Procedure: o.Procedure}
	if o.Credential > 0 && o.Credential < len(e.creds) {
		h.Cred = e.creds[o.Credential]
	}
	c.stream = h.Append(c.stream[:0])
	c.head = len(c.stream)
	stream, items, err := c.world.Rewritten(&c.form).AppendArgs(c.stream, c.Items[:0], values)
	c.stream, c.Items = stream, items
	if err != nil {
		return err
	}
	c.Message = transport.Message{Stream: stream, Items: items}
	return nil
}

// sentArgs decodes the arguments of a call as it was sent, if they are to be judged.
func (e *engine) sentArgs(c *call) xdr.Message {
	if e.opt.Verify != judge.All {
		return nil
	}
	e.reduced = e.reduced[:0]
	for i := range c.Items {
		e.reduced = append(e.reduced, xdr.Reduced{Position: c.Items[i].Position, Length: uint32(len(c.Items[i].Data))})
	}
	return e.args.Decode(workload.Codec(c.form.Op), c.stream, c.head, e.reduced)
}

// decode decodes a reply. rpc is the outcome of the RPC layer.
func (e *engine) decode(c *call) (rpc string, res xdr.Message, err error) {
	res = e.results.Of(workload.Codec(c.form.Op))
	err = c.Decode(res)
	var denied *client.DeniedError
	if errors.As(err, &denied) {
		return denied.Status, nil, nil
	}
	return "", res, err
}

// learn stores the values that a reply provides.
func (e *engine) learn(c *call, res xdr.Message) {
	c.world.Learn(c.form.Op, res)
	for _, id := range c.world.TakeOpened() {
		s := &c.world.Sessions[id]
		e.freed = append(e.freed, s)
		if e.made == nil {
			e.made = map[*bindings.Session]*line{}
		}
		e.made[s] = c.line
	}
}
