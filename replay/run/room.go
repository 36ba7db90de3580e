package run

import (
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// room borrows memory for the reply's data, and returns how long the rest may become. asCaptured
// says that the call is laid out as captured.
func room(c *call, asCaptured bool) (err error) {
	o := c.form.Op
	size := slack
	if o.Expect != nil {
		size += len(o.Expect.Results)
	}
	c.Results = nil
	add := func(e *ops.Entry, args []plan.Field) {
		if e == nil || err != nil {
			return
		}
		r := &e.Reply
		size += r.Room + int(bound(args, r.Rest))
		if r.Item != "" {
			err = lend(c, bound(args, r.Item))
		}
	}
	if o.Compound == nil {
		add(ops.Procedure(o.Program, o.Version, o.Procedure), o.Args)
	} else {
		for i := range o.Compound.Ops {
			add(ops.Operation(o.Compound.Ops[i].Op), o.Compound.Ops[i].Args)
		}
	}
	if asCaptured && err == nil {
		size, err = captured(c, size)
	}
	c.MaxReply = size
	return err
}

const (
	// slack is how much longer in bytes any reply may be than the captured one.
	slack = 1024
	// replyHeader is the size in bytes of the header of an accepted reply whose
	// verifier is empty (RFC 5531, section 9).
	replyHeader = 24
	// handleSlack is how much longer in bytes a file handle may be here than in the capture
	// (NFS4_FHSIZE less the usual length).
	handleSlack = 64
)

// bound is the value of the argument of that name, which limits something in bytes; 0 if there is
// none.
func bound(args []plan.Field, name string) uint64 {
	if name == "" {
		return 0
	}
	for i := range args {
		if args[i].N == name && args[i].Kind == plan.FieldU32 {
			return min(args[i].Value, bindings.MaxIO)
		}
	}
	return 0
}

// lend borrows memory for data of the reply.
func lend(c *call, n uint64) error {
	b, err := c.Borrow(int(min(n, bindings.MaxIO)))
	if err == nil {
		c.Results = append(c.Results, b)
	}
	return err
}

// captured fits the memory for the reply to the captured chunks, and returns how long
// the rest of the reply may become.
func captured(c *call, size int) (int, error) {
	o := c.form.Op
	for i, w := range o.Layout.Writes {
		var n uint64
		for _, l := range w {
			n += uint64(l)
		}
		if i >= len(c.Results) {
			if err := lend(c, n); err != nil {
				return 0, err
			}
		} else if n > uint64(len(c.Results[i])) {
			b, err := c.Borrow(int(min(n, bindings.MaxIO)))
			if err != nil {
				return 0, err
			}
			c.Results[i] = b
		}
	}
	if len(o.Layout.Writes) < len(c.Results) {
		// It came inline or in the Reply chunk.
		for _, r := range c.Results[len(o.Layout.Writes):] {
			size += len(r)
		}
		c.Results = c.Results[:len(o.Layout.Writes)]
	}
	if n := expectedReply(o); n > 0 {
		size = n
	}
	return size, nil
}

// expectedReply is the length of the reply in bytes, without data in Write chunks, if it is like the
// captured one; 0 if unknown.
func expectedReply(o *plan.Op) int {
	x := o.Expect
	if x == nil || x.Results == nil || x.Partial {
		return 0
	}
	n := replyHeader + len(x.Results)
	for i := range x.Data {
		if i >= len(o.Layout.Writes) {
			n += int(x.Data[i].Length+3) &^ 3
		}
	}
	for i := range o.Binds {
		if o.Binds[i].Kind == plan.FieldHandle {
			n += handleSlack
		}
	}
	return n
}
