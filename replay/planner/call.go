package planner

import (
	"slices"

	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// call is a transaction on its way into the plan.
type call struct {
	v          *rpc.View
	conn       *connection
	server     int
	start, end int64    // ns from the start of the plan; end is -1 without a reply
	granted    *blocked // NLM: the LOCK that this GRANTED is for
	outcome
	op      *plan.Op
	form    form
	deps    order.Deps
	reasons reasons
	about   description
	effects effects
	scratch []byte
}

// outcome is what a reply says about a procedure or operation.
type outcome struct {
	ok       bool   // it succeeded
	replied  bool   // its results are known
	executed bool   // NFSv4: it was, as far as that is known
	status   uint32 // if replied is set
}

// refusedWith reports whether it failed with the given status.
func (o *outcome) refusedWith(status uint32) bool { return o.replied && o.status == status }

// reasons say how a replayed call differs from the captured one.
type reasons []plan.Reason

func (r *reasons) add(class plan.Class, reason string) {
	if !slices.ContainsFunc(*r, func(x plan.Reason) bool { return x.Reason == reason }) {
		*r = append(*r, plan.Reason{Class: class, Reason: reason})
	}
}

// fh adds a file handle of the arguments and returns its object.
func (c *call) fh(n string, h []byte) *obj {
	o := c.effects.space.of(c.server, h)
	if o == nil {
		c.form.text(n, h)
		if len(h) > 0 {
			c.reasons.add(plan.Inferred, "a file handle that is not followed: sent as captured")
		}
		return nil
	}
	c.form.handle(n, c.effects.space.ref(o), h)
	c.effects.object(o)
	if c.replied {
		o.heard(c.status)
	}
	return o
}

// linkText adds the target of a symlink.
func (c *call) linkText(n string, d xdr.Data) {
	b := item(c.v, d, false)
	p := &plan.Payload{Length: d.Length, Source: plan.Captured}
	if len(b) < int(d.Length) {
		c.reasons.add(plan.Synthesised, "data missing from the capture: made up")
		p.Source = plan.Pattern
		for len(b) < int(d.Length) {
			b = append(b[:len(b):len(b)], 'x')
		}
	}
	p.Text = append([]byte{}, b...)
	p.Hash = plan.HashData(b)
	c.about.detail = "-> " + string(b)
	c.form.data(n, p, d)
}
