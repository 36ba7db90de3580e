package text

import (
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// Operations appends what a transaction does: View.AppendOperation.
func Operations(b []byte, v *rpc.View) []byte { return v.AppendOperation(b) }

// Operation is what a transaction is grouped by: View.OperationGroup.
func Operation(v *rpc.View) string { return v.OperationGroup() }

// compoundTag is the tag of a COMPOUND.
func compoundTag(v *rpc.View) []byte {
	switch a := v.Args().(type) {
	case *nfs4.CompoundArgs:
		return a.Tag
	case *nfs4.CbCompoundArgs:
		return a.Tag
	}
	return nil
}
