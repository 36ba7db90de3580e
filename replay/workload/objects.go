package workload

import (
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// ObjectAt is the object that operation at of an op works on, or creates; 0 if that
// is not known. at is -1 for an op that is not a COMPOUND.
func ObjectAt(o *plan.Op, at int) int {
	if o.Compound == nil {
		return ref(o.Args, plan.FieldHandle)
	}
	current, saved := 0, 0
	for i := 0; i <= at && i < len(o.Compound.Ops); i++ {
		c := &o.Compound.Ops[i]
		e := ops.Operation(c.Op)
		if e == nil {
			continue
		}
		switch e.Effect {
		case ops.Puts:
			current = ref(c.Args, plan.FieldHandle)
		case ops.PutsRoot, ops.PutsPublic, ops.Ascends:
			current = boundAfter(o, i)
		case ops.Descends:
			// An OPEN without a name opens the current object.
			if id, named := namedBy(o, c, i); named || c.Op != uint32(nfs4.OP_OPEN) {
				current = id
			}
		case ops.Saves:
			saved = current
		case ops.Restores:
			current = saved
		}
	}
	return current
}

// Objects are those that an op names, holds a state of, or gets a handle of.
func (w *Workload) Objects(o *plan.Op) (ids []int) {
	add := func(id int) {
		if id > 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	fields := func(list []plan.Field) {
		for i := range list {
			switch a := &list[i]; {
			case a.Ref <= 0:
			case a.Kind == plan.FieldHandle || a.Kind == plan.FieldName:
				add(a.Ref)
			case a.Kind == plan.FieldState:
				add(w.Tables.States[a.Ref-1].Object)
			}
		}
	}
	fields(o.Args)
	if o.Compound != nil {
		for i := range o.Compound.Ops {
			fields(o.Compound.Ops[i].Args)
		}
	}
	for i := range o.Binds {
		if o.Binds[i].Kind == plan.FieldHandle {
			add(o.Binds[i].Ref)
		}
	}
	return ids
}

// StateOf is the state that an operation's state id stands for; 0 if there is none.
func StateOf(c *plan.CompoundOp) int { return ref(c.Args, plan.FieldState) }

// namedBy is the object that an operation moves on to by name, and whether it has a
// name at all.
func namedBy(o *plan.Op, c *plan.CompoundOp, at int) (id int, named bool) {
	for k := range c.Args {
		if c.Args[k].Kind == plan.FieldName {
			if named = true; c.Args[k].Ref != 0 {
				return c.Args[k].Ref, true
			}
		}
	}
	if !named {
		return 0, false
	}
	return boundAfter(o, at), true
}

// boundAfter is the object whose handle the next GETFH returns.
func boundAfter(o *plan.Op, at int) int {
	for i := at + 1; i < len(o.Compound.Ops); i++ {
		switch e := ops.Operation(o.Compound.Ops[i].Op); {
		case e == nil || e.MovesFile():
			return 0
		case e.Gives.Has(ops.Handle):
			for k := range o.Binds {
				if o.Binds[k].At == i && o.Binds[k].Kind == plan.FieldHandle {
					return o.Binds[k].Ref
				}
			}
			return 0
		}
	}
	return 0
}

// ref is what the first field of a kind refers to.
func ref(args []plan.Field, kind plan.FieldKind) int {
	for i := range args {
		if args[i].Kind == kind {
			return args[i].Ref
		}
	}
	return 0
}

// Name is the name of an object in its directory, which may not be UTF-8.
func Name(o *plan.Object) string { return Text(o.Name, o.NameBytes) }

// Text is a text of a plan: raw if it is not UTF-8.
func Text(s string, raw []byte) string {
	if raw != nil {
		return string(raw)
	}
	return s
}

// FileName is the name under which an object is prepared: its own, or one made up if
// the capture does not show it.
func (w *Workload) FileName(id int) string {
	if n := Name(&w.Tables.Objects[id-1]); n != "" {
		return n
	}
	return fmt.Sprintf("rpcrdma-replay-object-%d", id)
}

// Below reports whether an object is the base or below it. An object without a known
// parent counts: its handle can only come from a reply about something below the
// base.
func (w *Workload) Below(id int) bool {
	for steps := 0; id > 0 && steps <= len(w.Tables.Objects); steps++ {
		o := &w.Tables.Objects[id-1]
		if o.Origin == plan.Above {
			return false
		}
		if o.Base || o.Parent == 0 {
			return true
		}
		id = o.Parent
	}
	return false
}

// Above reports whether an object is a directory above the base.
func (w *Workload) Above(id int) bool { return id > 0 && w.Tables.Objects[id-1].Origin == plan.Above }

// NeedsAbove reports whether the plan walks to its base from directories above it.
func (w *Workload) NeedsAbove() bool {
	if slices.ContainsFunc(w.Tables.Objects, func(o plan.Object) bool { return o.Origin == plan.Above }) {
		return true
	}
	return w.facts().root
}

// RootIsBase reports whether the captured base is the server's root.
func (w *Workload) RootIsBase() bool {
	for i := range w.Tables.Objects {
		if o := &w.Tables.Objects[i]; o.Base && o.Parent == 0 && Name(o) == "" {
			return !slices.ContainsFunc(w.Tables.Objects, func(o plan.Object) bool { return o.Origin == plan.Above })
		}
	}
	return false
}

// Has reports whether an op is a COMPOUND with an operation of that number.
func Has(o *plan.Op, number nfs4.NfsOpnum4) bool {
	return o.Compound != nil && slices.ContainsFunc(o.Compound.Ops, func(c plan.CompoundOp) bool { return c.Op == uint32(number) })
}
