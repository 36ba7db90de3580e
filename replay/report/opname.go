package report

import (
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/decode/nfs/nlm"
	"github.com/rpcrdma/toolkit/decode/nfs/ops"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// OpName is the kind of an op, as a report groups them: "nfs3 READ", "nfs4.1 OPEN". A
// COMPOUND is named after what it is for.
func OpName(o *plan.Op) string { return kindOf(o).name() }

// kind is the kind of an op in numbers.
type kind struct {
	compound         bool
	program, version uint32 // of a COMPOUND the version is the minor one
	number           uint32 // of the procedure or operation
}

// empty is the number of a COMPOUND without operations.
const empty = ^uint32(0)

func kindOf(o *plan.Op) kind {
	if o.Compound != nil {
		return kind{compound: true, version: o.Compound.Minor, number: mainOp(o.Compound)}
	}
	return kind{program: o.Program, version: o.Version, number: o.Procedure}
}

// mainOp is the operation that a COMPOUND is there for: the first of the most telling
// ones. LOOKUP counts as one of these here.
func mainOp(c *plan.Compound) uint32 {
	best, weight := empty, ops.Noise+1
	for i := range c.Ops {
		w := ops.Main
		if e := ops.Operation(c.Ops[i].Op); e != nil && e.Weight != ops.Look {
			w = e.Weight
		}
		if w < weight {
			best, weight = c.Ops[i].Op, w
		}
	}
	return best
}

func (k kind) name() string {
	if k.compound {
		name := "COMPOUND"
		if k.number != empty {
			name = nfs4.OpName(k.number)
		}
		return "nfs4." + digit(k.version) + " " + name
	}
	p := nfs.Lookup(k.program, k.version)
	if p == nil {
		return "program"
	}
	name := p.Name
	switch k.program {
	case nfs3.NFS_PROGRAM, nfsacl.NFS_ACL_PROGRAM, mount.MOUNT_PROGRAM, nlm.NLM_PROG:
		name += digit(k.version)
	}
	if proc := p.Procedure(k.number); proc != nil {
		return name + " " + proc.Name
	}
	return name
}

// digit is a version for a name; 9 stands for more.
func digit(v uint32) string { return string(rune('0' + min(v, 9))) }
