package report

import (
	"github.com/rpcrdma/toolkit/decode/nfs"
	"github.com/rpcrdma/toolkit/decode/nfs/mount"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
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

// mainOp is the operation that a COMPOUND is there for: the first of those
// that are not about file handles, attributes and sessions, or else the last
// one that is there.
func mainOp(c *plan.Compound) string {
	best, rank := "COMPOUND", 0
	for i := range c.Ops {
		r := 3
		switch nfs4.NfsOpnum4(c.Ops[i].Op) {
		case nfs4.OP_SEQUENCE, nfs4.OP_PUTFH, nfs4.OP_PUTROOTFH, nfs4.OP_SAVEFH, nfs4.OP_RESTOREFH, nfs4.OP_GETFH:
			r = 1
		case nfs4.OP_GETATTR, nfs4.OP_ACCESS, nfs4.OP_COMMIT:
			r = 2
		}
		if r > rank {
			best, rank = nfs4.OpName(c.Ops[i].Op), r
		}
	}
	return best
}
