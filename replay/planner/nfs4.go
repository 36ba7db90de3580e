package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// compound is the progress through a COMPOUND.
type compound struct {
	// Walk has the current and the saved file. to is the target of the current operation, if it
	// has a handle or a name.
	ops.Walk[*obj, walk4]
	to      *obj
	ops     []rpc.Operation
	at      int
	session *session
}

// nfs4 fills the op with a COMPOUND. A reason means that it is not replayed.
func (c *call) nfs4() string {
	a, ok := c.v.Args().(*nfs4.CompoundArgs)
	if !ok {
		return "no COMPOUND"
	}
	c.minor = a.Minorversion
	c.compound = compound{Walk: ops.Walk[*obj, walk4]{Space: walk4{c}}, ops: c.v.Operations()}
	if reason := c.recovery(); reason != "" {
		return reason
	}
	o := c.op
	o.Compound = &plan.Compound{Minor: a.Minorversion}
	o.Compound.Tag, o.Compound.TagBytes = text(string(a.Tag))
	o.Role = roleOf(a.Ops)
	whole := c.replied && c.v.ResultErr == nil
	p := &c.compound
	for p.at = range a.Ops {
		x := &p.ops[p.at]
		c.form.reset()
		if whole || x.Result != nil {
			c.replied, c.ok = true, x.Result != nil && x.Code == 0
		} else {
			c.replied, c.ok = false, false
		}
		c.operation(x)
		if !c.form.matches(x.Args, c.scratch) {
			c.form.reset()
			c.kept(x)
		}
		o.Compound.Ops = append(o.Compound.Ops, plan.CompoundOp{Op: x.Number, Name: x.Name, Args: c.form.fields})
	}
	c.replied = whole
	return ""
}

// roleOf is the role of a COMPOUND.
func roleOf(list []nfs4.Op) plan.Role {
	role := plan.Keepalive
	for i := range list {
		purpose := ops.Files
		if e := ops.Operation(list[i].Number); e != nil {
			purpose = e.Purpose
		}
		switch purpose {
		case ops.Clients:
			return plan.Sessions
		case ops.Mounting:
			return plan.Mounting
		case ops.Files:
			role = plan.Workload
		}
	}
	if len(list) == 0 {
		return plan.Workload
	}
	return role
}

// operation fills the form with the arguments of an operation, learns from its result and moves
// to the file that is current afterwards.
func (c *call) operation(x *rpc.Operation) {
	e := ops.Operation(x.Number)
	c.acts(e, x.Args)
	c.compound.to = nil
	known := false
	if n := x.Number; int(n) < len(operations4) && operations4[n] != nil {
		known = operations4[n](c, x)
	}
	if _, void := x.Args.(xdr.Void); !known && !void {
		c.form.raw("arguments", x.Args)
	}
	if e != nil {
		c.compound.Go(e.Effect, c.compound.to)
	}
}

// operations4 has the planner's method for each operation. Operations without one are sent as
// captured, which is correct if they hold no value that only the captured server could have given
// out.
var operations4 = joined(nameOps, openOps, stateOps, dataOps, clientOps)

// opTable are operations by number, as a file has them.
type opTable map[nfs4.NfsOpnum4]func(c *call, x *rpc.Operation) bool

func joined(tables ...opTable) (list []func(c *call, x *rpc.Operation) bool) {
	for _, t := range tables {
		for number, f := range t {
			for int(number) >= len(list) {
				list = append(list, nil)
			}
			list[number] = f
		}
	}
	return list
}

// op4 makes a table entry from a method. Its results are nil if the operation failed or has no
// readable result.
func op4[A, R any](f func(c *call, a *A, r *R)) func(*call, *rpc.Operation) bool {
	return func(c *call, x *rpc.Operation) bool {
		a, ok := any(x.Args).(*A)
		if !ok {
			return false
		}
		r, ok := any(x.Result).(*R)
		if !ok || !c.ok {
			r = nil
		}
		f(c, a, r)
		return true
	}
}

// void4 is op4 for an operation without arguments.
func void4[R any](f func(c *call, r *R)) func(*call, *rpc.Operation) bool {
	return func(c *call, x *rpc.Operation) bool {
		r, ok := any(x.Result).(*R)
		if !ok || !c.ok {
			r = nil
		}
		f(c, r)
		return true
	}
}

// kept4 is an operation whose symbols are not known.
func kept4(c *call, x *rpc.Operation) bool {
	c.kept(x)
	return true
}

// kept adds the arguments as they were captured.
func (c *call) kept(x *rpc.Operation) {
	c.form.raw("arguments", x.Args)
	c.worse(plan.Inferred, x.Name+" kept as it is: handles and state ids in it mean nothing to another server")
}

// executed reports whether the current operation was executed, as far as that is known.
func (c *call) executed() bool {
	return !c.replied || c.compound.ops[c.compound.at].Result != nil
}

// refusedWith reports whether the current operation failed with the given status.
func (c *call) refusedWith(status nfs4.Nfsstat4) bool {
	x := &c.compound.ops[c.compound.at]
	return x.Result != nil && x.Code == uint32(status)
}

// walk4 follows operations without arguments through the server's name space. Operations with a
// name or a handle state their target themselves.
type walk4 struct{ c *call }

func (w walk4) Handle(h []byte) *obj { return w.c.b.space.of(w.c.server, h) }

func (w walk4) Root() *obj { return w.c.b.space.root(w.c.server) }

func (w walk4) Public() *obj { return nil }

func (w walk4) Entry(dir *obj, name []byte) *obj { return w.c.b.space.find(dir, name, nil) }

func (w walk4) Attributes(*obj) *obj { return nil }

func (w walk4) Parent(o *obj) *obj {
	if d := o.real(); d != nil && d.now.dir != nil {
		return d.now.dir
	}
	return w.Handle(w.c.handleAfter())
}

// handleAfter is the current file handle that this operation has set, as a later operation shows
// it.
func (c *call) handleAfter() []byte {
	p := &c.compound
	for i := p.at + 1; i < len(p.ops); i++ {
		x := &p.ops[i]
		if x.Result == nil || x.Code != 0 {
			return nil
		}
		switch r := x.Result.(type) {
		case *nfs4.GETFH4res:
			return r.Resok4.Object
		case *nfs4.GETATTR4res:
			if f := &r.Resok4.ObjAttributes; f.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) && c.b.attrs.Decode(f) == nil {
				return c.b.attrs.Filehandle
			}
		}
		if e := ops.Operation(x.Number); e == nil || e.MovesFile() {
			return nil
		}
	}
	return nil
}
