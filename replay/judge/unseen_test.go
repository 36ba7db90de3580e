package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/expected"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestUnseen: a directory that the capture did not let go is removed here, since nobody knows what was in it. A server that removes
// one in which something is known to be is wrong.
func TestUnseen(t *testing.T) {
	handle := func(id int) plan.Field { return plan.Field{Kind: plan.FieldHandle, Ref: id} }
	name := func(id int) plan.Field { return plan.Field{Kind: plan.FieldName, Ref: id} }
	three := func(procedure uint32, args ...plan.Field) *plan.Op {
		return &plan.Op{ID: 1, Modifies: true, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: procedure, Args: args,
			Expect: &plan.Expect{Status: uint32(nfs3.NFS3ERR_NOTEMPTY)}}
	}
	rmdir := three(nfs3.NFSPROC3_RMDIR, handle(1), name(2))
	remove := &plan.Op{ID: 1, Modifies: true, Compound: &plan.Compound{Ops: []plan.CompoundOp{
		{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{handle(1)}}, {Op: uint32(nfs4.OP_REMOVE), Args: []plan.Field{name(2)}}}},
		Expect: &plan.Expect{Status: uint32(nfs4.NFS4ERR_NOTEMPTY), Ops: []uint32{0, uint32(nfs4.NFS4ERR_NOTEMPTY)}}}
	before := plan.Object{ID: 2, Type: "dir", Parent: 1, Name: "d", Origin: plan.Before}
	created, file := before, before
	created.Origin, file.Type = plan.Created, "file"
	denied := three(nfs3.NFSPROC3_RMDIR, handle(1), name(2))
	denied.Expect = &plan.Expect{Status: uint32(nfs3.NFS3ERR_ACCES)}
	for _, c := range []struct {
		name string
		op   *plan.Op
		o    plan.Object
		in   bool // something is in it
		want bool
	}{
		{"RMDIR", rmdir, before, false, true},
		{"REMOVE", remove, before, false, true},
		{"RENAME", three(nfs3.NFSPROC3_RENAME, handle(1), name(3), handle(1), name(2)), before, false, true},
		{"RENAME of it", three(nfs3.NFSPROC3_RENAME, handle(1), name(2), handle(1), name(3)), before, false, false},
		{"something is in it", rmdir, before, true, false},
		{"something is in it, REMOVE", remove, before, true, false},
		{"made by the workload", rmdir, created, false, false},
		{"a file", rmdir, file, false, false},
		{"another name", three(nfs3.NFSPROC3_RMDIR, handle(1), name(0)), before, false, false},
		{"another status", denied, before, false, false},
		{"another procedure", three(nfs3.NFSPROC3_MKDIR, handle(1), name(2)), before, false, false},
	} {
		load := &workload.Workload{}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir", Origin: plan.Before}, c.o, {ID: 3, Type: "file", Parent: 1, Name: "f", Origin: plan.Before}}
		j := New(load, Options{})
		j.history(0).expected.Link(expected.Name{Dir: 1, Name: "d"}, 2)
		if c.in {
			j.history(0).expected.Link(expected.Name{Dir: 2, Name: "x"}, 3)
		}
		var v verdict.Judgement
		v.Worsen(verdict.Different, verdict.Reason{Code: verdict.SucceedsWrongly})
		j.explain(&v, &Reply{Op: c.op}, false)
		if got := v.Verdict == verdict.Explained; got != c.want {
			t.Errorf("%s: %v %v", c.name, v.Verdict, v.Reasons)
		}
	}
}
