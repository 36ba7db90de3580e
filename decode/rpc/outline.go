package rpc

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
)

// outline is what a Brief reads of a COMPOUND.
type outline struct {
	args, results nfs4.Outline
}

func newOutline(callback bool) *outline {
	return &outline{args: nfs4.Outline{Callback: callback}, results: nfs4.Outline{Callback: callback, Results: true}}
}

// operation is the operation that View.OperationGroup names, empty if there is none. It is false if the reply has
// operations that the call does not have.
func (o *outline) operation() (name string, ok bool) {
	all := o.args.Numbers
	if len(o.results.Numbers) > len(all) {
		return "", false
	}
	if len(all) == 0 {
		return "", true
	}
	best := all[0]
	top := weighNumber(best, o.args.Callback)
	for _, n := range all[1:] {
		if w := weighNumber(n, o.args.Callback); w > top || top == noise && w == noise {
			best, top = n, w
		}
	}
	if o.args.Callback {
		return nfs4.CbOpName(best), true
	}
	return nfs4.OpName(best), true
}

// weighNumber takes the weight of an operation from the table that all share.
func weighNumber(number uint32, callback bool) weight {
	e := ops.Operation(number)
	if callback {
		e = ops.Callback(number)
	}
	if e == nil {
		return heavy
	}
	return heavy - weight(e.Weight)
}
