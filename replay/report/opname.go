package report

import (
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// OpName is the kind of an op, as a report groups them: "nfs3 READ",
// "nfs4.1 OPEN". A COMPOUND is named after what it is for.
func OpName(o *plan.Op) string {
	if o.Compound != nil {
		v := "nfs4." + string(rune('0'+min(o.Compound.Minor, 9)))
		return v + " " + mainOp(o.Compound)
	}
	p := nfs.Lookup(o.Program, o.Version)
	if p == nil {
		return "program"
	}
	version := p.Name
	switch o.Program {
	case nfs3.NFS_PROGRAM, nfsacl.NFS_ACL_PROGRAM, mount.MOUNT_PROGRAM:
		version += string(rune('0' + min(o.Version, 9)))
	}
	if proc := p.Procedure(o.Procedure); proc != nil {
		return version + " " + proc.Name
	}
	return version
}

// mainOp is the operation that a COMPOUND is there for: the first of the most telling
// ones. LOOKUP counts as one of these here.
func mainOp(c *plan.Compound) string {
	best, weight := "COMPOUND", ops.Noise+1
	for i := range c.Ops {
		w := ops.Main
		if e := ops.Operation(c.Ops[i].Op); e != nil && e.Weight != ops.Look {
			w = e.Weight
		}
		if w < weight {
			best, weight = nfs4.OpName(c.Ops[i].Op), w
		}
	}
	return best
}
