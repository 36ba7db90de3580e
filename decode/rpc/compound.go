package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Operation is one operation of a COMPOUND with what it contains.
type Operation struct {
	Step
	Args   xdr.Message // nil if only the reply has the operation
	Result xdr.Message // nil if only the call has it
	// Answer names the operation that the reply has in its place, if that is another one; the Result is of that.
	Answer string
}

// Steps lists the operations of an NFSv4 COMPOUND in order as Operations does, for those who do not ask what they contain: then that is
// not decoded. It is valid until the next Set, and must not be changed.
func (v *View) Steps() []Step {
	if v.clean != nil {
		if !v.compound {
			return nil
		}
		return v.projection.listed(v.Tx)
	}
	v.steps = v.steps[:0]
	for _, o := range v.Operations() {
		v.steps = append(v.steps, o.Step)
	}
	return v.steps
}

// CompoundKind identifies the operations and the minor version of a COMPOUND that is Clean. It is 0 for all other transactions. No other View
// uses the number for anything else.
func (v *View) CompoundKind() uint64 {
	if !v.compound || v.clean == nil {
		return 0
	}
	return v.projection.compoundKind()
}

// Operations lists the operations of an NFSv4 COMPOUND in order; empty for
// all other procedures. It is valid until the next Set.
func (v *View) Operations() []Operation {
	if !v.opsDone {
		v.listOperations()
	}
	return v.ops
}

// Numbers returns the operation numbers of a COMPOUND that decoded without a problem, in call order, or nil for any other transaction. They are valid until the
// next Set.
func (v *View) Numbers() []uint32 {
	if v.clean == nil || !v.compound {
		return nil
	}
	return v.clean.outline.args.Numbers
}

// MoreOperations reports whether a COMPOUND has operations that Operations does not list: the message that would name them is cut, or
// malformed, before them.
func (v *View) MoreOperations() bool {
	if v.clean != nil || !v.compound {
		return false
	}
	v.Operations()
	return v.opsMore
}

// more is MoreOperations for a COMPOUND of which the given number of operations is known.
func more(args, res *nfs4.Operations, known int) bool {
	if args == nil || args.Incomplete && args.Count == 0 { // only the reply says how many there are
		args = res
	}
	return args != nil && args.Incomplete && uint64(args.Count) > uint64(known)
}

func (v *View) listOperations() {
	v.opsDone, v.opsMore = true, false
	v.ops = v.ops[:0]
	if !v.compound {
		return
	}
	if k := v.Tx.Kernel; k != nil {
		for _, x := range k.Executed {
			v.ops = append(v.ops, Operation{Step: Step{Name: opName(x.Operation, false), Number: x.Operation, Status: nfs4.StatusName(x.Status), Code: x.Status}})
		}
		return
	}
	args, res, callback := v.compounds()
	n := 0
	if args != nil {
		n = len(args.Ops)
	}
	if res != nil {
		n = max(n, len(res.Ops))
	}
	for i := range n {
		var o Operation
		if args != nil && i < len(args.Ops) {
			o.Number, o.Args = args.Ops[i].Number, args.Ops[i].Body
		}
		if res != nil && i < len(res.Ops) {
			r := &res.Ops[i]
			if o.Args == nil {
				o.Number = r.Number
			} else if r.Number != o.Number {
				o.Answer = opName(r.Number, callback)
			}
			o.Result = r.Body
			if code, symbol, ok := r.Status(); ok {
				o.Code, o.Status = code, xdr.EnumString(code, symbol)
			}
		}
		o.Name = opName(o.Number, callback)
		v.ops = append(v.ops, o)
	}
	// An operation that could not be decoded still has a name.
	if args != nil && args.Incomplete && args.FailedOp != 0 && args.FailedAt >= n {
		v.ops = append(v.ops, Operation{Step: Step{Number: args.FailedOp, Name: opName(args.FailedOp, callback)}})
	}
	v.opsMore = more(args, res, len(v.ops))
}

// compounds returns the two arrays of operations; either may be nil.
func (v *View) compounds() (args, res *nfs4.Operations, callback bool) {
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		args = &a.Operations
	case *nfs4.CbCompoundArgs:
		args, callback = &a.Operations, true
	}
	switch r := v.Result().(type) {
	case *nfs4.CompoundRes:
		res = &r.Operations
	case *nfs4.CbCompoundRes:
		res, callback = &r.Operations, true
	}
	return args, res, callback
}

// MinorVersion returns the minor version of an NFSv4 COMPOUND; false for all other calls, and if it could not be read: the call
// was not captured so far, or is malformed before it.
func (v *View) MinorVersion() (uint32, bool) {
	if !v.compound {
		return 0, false
	}
	return v.minorVersion()
}

func (v *View) minorVersion() (uint32, bool) {
	if v.clean != nil {
		return v.projection.Minor, true
	}
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		return a.Minorversion, !a.NoMinorversion
	case *nfs4.CbCompoundArgs:
		return a.Minorversion, !a.NoMinorversion
	}
	return 0, false
}

// Compound reports whether the call is a COMPOUND of NFSv4, or one of its callbacks. How much of it could be read is another question.
func (v *View) Compound() bool { return v.compound }

// Contradiction says how the results contradict the call, or themselves; it is empty if they do not. The server executes the
// operations of a COMPOUND in order and stops at the first failure. The COMPOUND has the status of the last operation executed (RFC 8881, section
// 16.2.3). See also ops.Disagreement.
func (v *View) Contradiction() string {
	if v.clean != nil || v.CallErr != nil || v.ReplyErr != nil || v.ArgsErr != nil || v.ResultErr != nil {
		return ""
	}
	if !v.compound {
		return ops.Disagreement(v.Args(), v.Result())
	}
	args, res, callback := v.compounds()
	if args == nil || res == nil || v.status == nil {
		return ""
	}
	status, _ := v.status.StatusCode()
	last := uint32(0)
	for i := range res.Ops {
		r := &res.Ops[i]
		name := opName(r.Number, callback)
		switch {
		case i >= len(args.Ops):
			return "result of " + name + ", an operation that the call does not have"
		case r.Number != args.Ops[i].Number && r.Number != uint32(nfs4.OP_ILLEGAL): // that answers numbers that a server does not know
			return "result of " + name + " for " + opName(args.Ops[i].Number, callback)
		case last != 0:
			return "result of " + name + " behind a failed operation"
		}
		if code, _, ok := r.Status(); ok {
			last = code
		}
		if why := ops.Disagreement(args.Ops[i].Body, r.Body); why != "" {
			return name + ": " + why
		}
	}
	switch {
	case status == 0 && len(res.Ops) < len(args.Ops):
		return "success without a result of " + opName(args.Ops[len(res.Ops)].Number, callback)
	case len(res.Ops) > 0 && status != last:
		return "status is not that of the last operation"
	}
	return ""
}
