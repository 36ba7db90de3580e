package judge

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestUnhappened: consequences of a CLONE that the server does not support are distinguished from
// other differences.
func TestUnhappened(t *testing.T) {
	about := func(object int, op nfs4.NfsOpnum4) *plan.Op {
		return &plan.Op{ID: int(op), Modifies: op == nfs4.OP_CLONE, Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 3}}},
			{Op: uint32(nfs4.OP_SAVEFH)},
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: object}}},
			{Op: uint32(op)},
		}}}
	}
	load := &workload.Workload{}
	load.Tables.Objects = []plan.Object{{ID: 1, Name: "copy"}, {ID: 2, Name: "dir"}, {ID: 3, Name: "original"}}
	clone := about(1, nfs4.OP_CLONE)
	v := New(load, Options{})
	v.history(0).miss(load, clone)
	read := func(object int) *plan.Op {
		return &plan.Op{ID: 99, Compound: &plan.Compound{Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: object}}}, {Op: uint32(nfs4.OP_READ)}}}}
	}
	field := func(path string) verdict.Reason {
		return verdict.Reason{Code: verdict.FieldDiffers, At: verdict.Place{Path: path, Field: "size"}}
	}
	in := func(name string) verdict.Reason {
		r := field(`READDIR[2].resok4.reply."` + name + `".attrs.size`)
		r.At.Entry, r.At.Listed = name, true
		return r
	}
	eof := []verdict.Reason{field("READ[1].resok4.eof")}
	for _, c := range []struct {
		name      string
		op        *plan.Op
		different []verdict.Reason
		want      *plan.Op
	}{
		{"the copy", read(1), eof, clone},
		{"the original", read(3), eof, nil},
		{"its entry", read(2), []verdict.Reason{in("copy")}, clone},
		{"its entry and another one", read(2), []verdict.Reason{in("copy"), in("other")}, nil},
		{"its entry and something else", read(2), []verdict.Reason{in("copy"), field("GETATTR[1].resok4.obj_attributes.size")}, nil},
		{"nothing", read(2), nil, nil},
	} {
		v.cmp.different = c.different
		if got := v.unhappened(&Reply{Op: c.op}); (got == nil) != (c.want == nil) || got != nil && got.ID != c.want.ID {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestCutBefore: a cut call can only explain what is missing after it.
func TestCutBefore(t *testing.T) {
	skip := func(at int64, c plan.Class, reason string) *plan.Skip {
		return &plan.Skip{Time: at, Class: c, Reason: reason}
	}
	for _, c := range []struct {
		name  string
		skips []*plan.Skip
		want  bool
	}{
		{"nothing", nil, false},
		{"before", []*plan.Skip{skip(50, plan.Impossible, plan.ReasonCut)}, true},
		{"after", []*plan.Skip{skip(150, plan.Impossible, plan.ReasonCut)}, false},
		{"left out for another reason", []*plan.Skip{skip(50, plan.Exact, "MOUNT"), skip(60, plan.Impossible, "its arguments are malformed")}, false},
	} {
		if got := New(&workload.Workload{Skips: c.skips}, Options{}).CutBefore(&plan.Op{Time: 100}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestExplanations: which explanation is reported, and that an explanation of results does not
// explain a failure.
func TestExplanations(t *testing.T) {
	size := func(n uint64) *nfs3.GETATTR3res {
		r := &nfs3.GETATTR3res{}
		r.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Size: n}
		return r
	}
	failed := &nfs3.GETATTR3res{Status: nfs3.NFS3ERR_IO}
	cut := []*plan.Skip{{Class: plan.Impossible, Reason: plan.ReasonCut}}
	strange := []plan.Note{{Kind: plan.NoteChanged}}
	for name, c := range map[string]struct {
		role  plan.Role
		skips []*plan.Skip
		notes []plan.Note
		class plan.Class
		why   []string
		have  *nfs3.GETATTR3res
		want  verdict.Verdict
		codes []verdict.Code
	}{
		"nothing":              {have: size(5), want: verdict.Different, codes: []verdict.Code{verdict.FieldDiffers}},
		"same, whatever else":  {have: size(10), skips: cut, notes: strange, want: verdict.Same},
		"above the base":       {role: plan.Mounting, skips: cut, have: size(5), want: verdict.Equivalent, codes: []verdict.Code{verdict.AboveBase}},
		"strangers":            {notes: strange, skips: cut, have: size(5), want: verdict.Explained, codes: []verdict.Code{verdict.Strangers, verdict.FieldDiffers}},
		"the plan":             {class: plan.Inferred, why: []string{"because"}, have: size(5), want: verdict.Explained, codes: []verdict.Code{verdict.Planned, verdict.FieldDiffers}},
		"a cut capture":        {skips: cut, have: size(5), want: verdict.Explained, codes: []verdict.Code{verdict.Cut, verdict.FieldDiffers}},
		"failed":               {have: failed, want: verdict.Worse, codes: []verdict.Code{verdict.Fails}},
		"failed, cut":          {skips: cut, have: failed, want: verdict.Explained, codes: []verdict.Code{verdict.Cut, verdict.Fails}},
		"failed, strangers":    {notes: strange, have: failed, want: verdict.Worse, codes: []verdict.Code{verdict.Fails}},
		"failed, above":        {role: plan.Mounting, have: failed, want: verdict.Worse, codes: []verdict.Code{verdict.Fails}},
		"failed, the plan too": {class: plan.Inferred, why: []string{"because"}, have: failed, want: verdict.Worse, codes: []verdict.Code{verdict.Fails}},
	} {
		class := c.class
		if class == "" {
			class = plan.Exact
		}
		op := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_GETATTR, Role: c.role, Class: class, Reasons: c.why,
			Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}, Expect: &plan.Expect{Results: size(10).Append(nil)}}
		load := &workload.Workload{Ops: []*plan.Op{op}, Skips: c.skips}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file", Notes: c.notes}}
		v := New(load, Options{}).Judge(&Reply{Op: op, Result: c.have})
		var codes []verdict.Code
		for _, r := range v.Reasons {
			codes = append(codes, r.Code)
		}
		if v.Verdict != c.want || !slices.Equal(codes, c.codes) {
			t.Errorf("%s: %s %v, want %s %v", name, v.Verdict, codes, c.want, c.codes)
		}
	}
}

// TestBusy: a client whose state the plan has not ended cannot be destroyed; one without state can.
func TestBusy(t *testing.T) {
	op := &plan.Op{ID: 1, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{{Op: uint32(nfs4.OP_DESTROY_CLIENTID)}}}, Expect: &plan.Expect{Ops: []uint32{0}}}
	for _, c := range []struct {
		unended bool
		status  nfs4.Nfsstat4
		want    verdict.Verdict
	}{
		{true, nfs4.NFS4ERR_CLIENTID_BUSY, verdict.Explained},
		{false, nfs4.NFS4ERR_CLIENTID_BUSY, verdict.Worse},
		{true, nfs4.NFS4ERR_STALE_CLIENTID, verdict.Worse},
	} {
		r := &nfs4.CompoundRes{Status: c.status, Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(nfs4.OP_DESTROY_CLIENTID), Body: &nfs4.Status4res{Status: c.status}}}}}
		if v := New(&workload.Workload{}, Options{}).Judge(&Reply{Op: op, Result: r, Unended: c.unended}); v.Verdict != c.want {
			t.Errorf("%+v: %s %+v", c, v.Verdict, v.Reasons)
		}
	}
}

// TestCompletedBefore: RECLAIM_COMPLETE may come again only where the run has made the session, and sent one itself.
func TestCompletedBefore(t *testing.T) {
	reply := func(st nfs4.Nfsstat4) *nfs4.CompoundRes {
		return &nfs4.CompoundRes{Status: st, Operations: nfs4.Operations{Ops: []nfs4.Op{
			{Number: uint32(nfs4.OP_SEQUENCE), Body: &nfs4.SEQUENCE4res{}}, {Number: uint32(nfs4.OP_RECLAIM_COMPLETE), Body: &nfs4.RECLAIM_COMPLETE4res{RcrStatus: st}}}}}
	}
	for name, c := range map[string]struct {
		definedBy int
		completed bool
		have      nfs4.Nfsstat4
		want      verdict.Verdict
	}{
		"made by the run":               {0, false, nfs4.NFS4ERR_COMPLETE_ALREADY, verdict.Explained},
		"made by the plan":              {1, false, nfs4.NFS4ERR_COMPLETE_ALREADY, verdict.Worse},
		"made by the plan, sent before": {1, true, nfs4.NFS4ERR_COMPLETE_ALREADY, verdict.Explained},
		"made by the run, other code":   {0, false, nfs4.NFS4ERR_IO, verdict.Worse},
		"made by the run, not before":   {0, false, nfs4.NFS4_OK, verdict.Same},
	} {
		op := &plan.Op{ID: 2, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_SEQUENCE), Args: []plan.Field{{Kind: plan.FieldSession, Ref: 1}}}, {Op: uint32(nfs4.OP_RECLAIM_COMPLETE)}}},
			Expect: &plan.Expect{Ops: []uint32{0, 0}, Results: reply(nfs4.NFS4_OK).Append(nil)}}
		load := &workload.Workload{Ops: []*plan.Op{op}}
		load.Tables.Sessions = []plan.Session{{ID: 1, DefinedBy: c.definedBy}}
		if v := New(load, Options{}).Judge(&Reply{Op: op, Result: reply(c.have), Completed: c.completed}); v.Verdict != c.want {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
