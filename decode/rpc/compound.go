package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
)

// Operation is one operation of a COMPOUND.
type Operation struct {
	Name   string
	Number uint32
	Status string // empty if the reply does not have it
	Code   uint32
	Args   xdr.Message // nil if only the reply has the operation
	Result xdr.Message // nil if only the call has it
}

// Operations lists the operations of an NFSv4 COMPOUND in order; empty for
// all other procedures. It is valid until the next Set.
func (v *View) Operations() []Operation {
	if !v.opsDone {
		v.listOperations()
	}
	return v.ops
}

func (v *View) listOperations() {
	v.opsDone = true
	v.ops = v.ops[:0]
	if !v.compound {
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
			}
			o.Result = r.Body
			if code, symbol, ok := r.Status(); ok {
				o.Code, o.Status = code, xdr.EnumString(code, symbol)
			}
		}
		if callback {
			o.Name = nfs4.CbOpName(o.Number)
		} else {
			o.Name = nfs4.OpName(o.Number)
		}
		v.ops = append(v.ops, o)
	}
	// An operation that could not be decoded still has a name.
	if args != nil && args.Incomplete && args.FailedOp != 0 && args.FailedAt >= n {
		o := Operation{Number: args.FailedOp, Name: nfs4.OpName(args.FailedOp)}
		if callback {
			o.Name = nfs4.CbOpName(o.Number)
		}
		v.ops = append(v.ops, o)
	}
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

// MinorVersion returns the minor version of an NFSv4 COMPOUND.
func (v *View) MinorVersion() (uint32, bool) {
	if !v.compound {
		return 0, false
	}
	return v.minorVersion()
}

func (v *View) minorVersion() (uint32, bool) {
	if v.usual != nil {
		return v.brief.Minor, true
	}
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		return a.Minorversion, true
	case *nfs4.CbCompoundArgs:
		return a.Minorversion, true
	}
	return 0, false
}
