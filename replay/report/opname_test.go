package report

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestOpName: a COMPOUND is named after the first operation that says most.
func TestOpName(t *testing.T) {
	compound := func(minor uint32, list ...nfs4.NfsOpnum4) *plan.Op {
		c := &plan.Compound{Minor: minor}
		for _, n := range list {
			c.Ops = append(c.Ops, plan.CompoundOp{Op: uint32(n)})
		}
		return &plan.Op{Compound: c}
	}
	for want, o := range map[string]*plan.Op{
		"nfs3 READ":       {Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_READ},
		"nfsacl3 GETACL":  {Program: nfsacl.NFS_ACL_PROGRAM, Version: 3, Procedure: nfsacl.ACLPROC3_GETACL},
		"nfs3":            {Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: 99},
		"program":         {Program: 7},
		"nfs4.1 OPEN":     compound(1, nfs4.OP_SEQUENCE, nfs4.OP_PUTFH, nfs4.OP_OPEN, nfs4.OP_GETFH, nfs4.OP_ACCESS, nfs4.OP_GETATTR),
		"nfs4.0 LOOKUP":   compound(0, nfs4.OP_PUTROOTFH, nfs4.OP_LOOKUP, nfs4.OP_GETFH),
		"nfs4.1 GETATTR":  compound(1, nfs4.OP_SEQUENCE, nfs4.OP_PUTFH, nfs4.OP_GETATTR),
		"nfs4.2 SEQUENCE": compound(2, nfs4.OP_SEQUENCE),
		"nfs4.9 COMPOUND": compound(77),
	} {
		if got := OpName(o); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestManyKinds: kinds that have one name are one row.
func TestManyKinds(t *testing.T) {
	r := NewRecorder(10)
	for program := range uint32(100) {
		r.Add(&Outcome{Op: &plan.Op{Program: program}})
	}
	var rep Report
	r.Fill(&rep)
	if len(rep.Ops) != 1 || rep.Ops[0].Count != 100 {
		t.Errorf("%+v", rep.Ops)
	}
}
