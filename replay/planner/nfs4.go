package planner

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// compound puts a COMPOUND into the plan, operation by operation.
type compound struct {
	*call
	// Walk has the current and the saved file. to is the target of the current operation, if it
	// has a handle or a name.
	ops.Walk[*obj, walk4]
	to      *obj
	ops     []rpc.Operation
	at      int
	ids     identifiers
	space   *space
	states  *states
	content *content
	attrs   *nfs4.Attrs // decoded last
}

// newCompound begins with a call that has operations.
func newCompound(c *call, a *nfs4.CompoundArgs, b *Builder) *compound {
	x := &b.compound
	*x = compound{call: c, ops: c.v.Operations(), space: &b.space, states: &b.states, content: &b.content, attrs: &b.attrs}
	x.Walk.Space = walk4{x}
	x.ids = identifiers{sender: sender{c.server, c.conn.id, c.v.Tx.Client().Addr.String(), a.Minorversion, nil}, outcome: &c.outcome, states: &b.states,
		op: c.op, form: &c.form, deps: &c.deps, reasons: &c.reasons}
	if len(x.ops) > 0 {
		x.ids.sequence, _ = x.ops[0].Args.(*nfs4.SEQUENCE4args)
	}
	return x
}

// fill fills the op. A reason means that the COMPOUND is not replayed.
func (c *compound) fill(a *nfs4.CompoundArgs) string {
	if len(c.ops) > 0 {
		if reason := (&restart{c.ops, &c.ids, c.space}).reason(); reason != "" {
			return reason
		}
	}
	o := c.op
	o.Compound = &plan.Compound{Minor: a.Minorversion}
	o.Compound.Tag, o.Compound.TagBytes = text(string(a.Tag))
	o.Role = roleOf(a.Ops)
	whole := c.replied && c.v.ResultErr == nil
	for c.at = range a.Ops {
		x := &c.ops[c.at]
		c.form.reset()
		c.outcome = outcome{replied: whole || x.Result != nil, ok: x.Result != nil && x.Code == 0, status: x.Code}
		c.executed = !c.replied || x.Result != nil
		if x.Result == nil {
			c.status = uint32(nfs4.NFS4ERR_DELAY) // says nothing
		}
		c.operation(x)
		if !c.form.matches(x.Args, c.scratch) {
			c.form.reset()
			kept(c, x)
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
func (c *compound) operation(x *rpc.Operation) {
	e := ops.Operation(x.Number)
	c.op.Modifies = c.op.Modifies || modifies(e, x.Args)
	c.to = nil
	known := false
	if n := x.Number; int(n) < len(operations4) && operations4[n] != nil {
		known = operations4[n](c, x)
	}
	if _, void := x.Args.(xdr.Void); !known && !void {
		c.form.raw("arguments", x.Args)
	}
	if e != nil {
		c.Go(e.Effect, c.to)
	}
}

// operations4 has the planner's function for each operation. Operations without one are sent as
// captured, which is correct if they hold no value that only the captured server could have given
// out.
var operations4 = joined(nameOps, openOps, stateOps, dataOps, clientOps)

// opTable are operations by number, as a file has them.
type opTable map[nfs4.NfsOpnum4]func(c *compound, x *rpc.Operation) bool

func joined(tables ...opTable) (list []func(c *compound, x *rpc.Operation) bool) {
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

// op4 makes a table entry from a function. Its results are nil if the operation failed or has no
// readable result.
func op4[A, R any](f func(c *compound, a *A, r *R)) func(*compound, *rpc.Operation) bool {
	return func(c *compound, x *rpc.Operation) bool {
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
func void4[R any](f func(c *compound, r *R)) func(*compound, *rpc.Operation) bool {
	return func(c *compound, x *rpc.Operation) bool {
		r, ok := any(x.Result).(*R)
		if !ok || !c.ok {
			r = nil
		}
		f(c, r)
		return true
	}
}

// kept4 is an operation whose symbols are not known.
func kept4(c *compound, x *rpc.Operation) bool {
	kept(c, x)
	return true
}

// kept adds the arguments as they were captured.
func kept(c *compound, x *rpc.Operation) {
	c.form.raw("arguments", x.Args)
	c.reasons.add(plan.Inferred, x.Name+" kept as it is: handles and state ids in it mean nothing to another server")
}

// walk4 follows operations without arguments through the server's name space. Operations with a
// name or a handle state their target themselves.
type walk4 struct{ c *compound }

func (w walk4) Handle(h []byte) *obj { return w.c.space.of(w.c.server, h) }

func (w walk4) Root() *obj { return w.c.space.root(w.c.server) }

func (w walk4) Public() *obj { return nil }

func (w walk4) Entry(dir *obj, name []byte) *obj { return w.c.space.find(dir, name, nil) }

func (w walk4) Attributes(*obj) *obj { return nil }

func (w walk4) Parent(o *obj) *obj {
	if d := o.real(); d != nil && d.now.dir != nil {
		return d.now.dir
	}
	return w.Handle(w.c.handleAfter())
}

// handleAfter is the current file handle that this operation has set, as a later operation shows
// it.
func (c *compound) handleAfter() []byte {
	for i := c.at + 1; i < len(c.ops); i++ {
		x := &c.ops[i]
		if x.Result == nil || x.Code != 0 {
			return nil
		}
		switch r := x.Result.(type) {
		case *nfs4.GETFH4res:
			return r.Resok4.Object
		case *nfs4.GETATTR4res:
			if f := &r.Resok4.ObjAttributes; f.Attrmask.Has(nfs4.FATTR4_FILEHANDLE) && c.attrs.Decode(f) == nil {
				return c.attrs.Filehandle
			}
		}
		if e := ops.Operation(x.Number); e == nil || e.MovesFile() {
			return nil
		}
	}
	return nil
}
