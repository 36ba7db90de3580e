package judge

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfsacl"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestNoACLKept: a server without access control lists returns none, not even the entries of the mode.
func TestNoACLKept(t *testing.T) {
	list := func(kinds ...uint32) *nfsacl.GETACL3res {
		m := &nfsacl.GETACL3res{}
		m.Resok.Acl.Mask = nfsacl.NA_ACL | nfsacl.NA_ACLCNT
		m.Resok.Acl.Aclcnt = uint32(len(kinds))
		for _, k := range kinds {
			m.Resok.Acl.Aclent = append(m.Resok.Acl.Aclent, nfsacl.Aclent{Type: k, Perm: 6})
		}
		return m
	}
	mode := []uint32{nfsacl.NA_USER_OBJ, nfsacl.NA_GROUP_OBJ, nfsacl.NA_CLASS_OBJ, nfsacl.NA_OTHER_OBJ}
	more := append([]uint32{nfsacl.NA_USER}, mode...)
	for _, c := range []struct {
		name       string
		want, have []uint32
		verdict    verdict.Verdict
		code       verdict.Code
	}{
		{"the mode", mode, nil, verdict.Equivalent, verdict.ModeOnly},
		{"more than the mode", more, nil, verdict.Explained, verdict.NoACLKept},
		{"less than there was", more, mode, verdict.Different, verdict.FieldDiffers},
		{"the same", more, more, verdict.Same, verdict.None},
	} {
		op := &plan.Op{ID: 1, Program: nfsacl.NFS_ACL_PROGRAM, Version: 3, Procedure: nfsacl.ACLPROC3_GETACL, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}},
			Expect: &plan.Expect{Results: list(c.want...).Append(nil)}}
		load := &workload.Workload{Ops: []*plan.Op{op}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
		v := New(load, Options{}).Judge(&Reply{Op: op, Result: list(c.have...), Data: noData{}})
		if v.Verdict != c.verdict || c.code != verdict.None && !slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return r.Code == c.code }) {
			t.Errorf("%s: %+v, want %s", c.name, v, c.verdict)
		}
	}
}

// TestNoACL: a server without NFSACL says so to calls that the captured one could not read, too.
func TestNoACL(t *testing.T) {
	for _, was := range []string{"", "GARBAGE_ARGS"} {
		op := &plan.Op{ID: 1, Program: nfsacl.NFS_ACL_PROGRAM, Version: 3, Procedure: nfsacl.ACLPROC3_GETACL, Expect: &plan.Expect{RPC: was}}
		v := New(&workload.Workload{Ops: []*plan.Op{op}}, Options{}).Judge(&Reply{Op: op, RPC: "PROG_UNAVAIL"})
		if v.Verdict != verdict.Explained || len(v.Reasons) != 1 || v.Reasons[0].Code != verdict.NoACL {
			t.Errorf("%q: %+v", was, v)
		}
	}
}
