package run

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestSpoilt: what follows from a CLONE that the server does not have is told
// from what does not.
func TestSpoilt(t *testing.T) {
	about := func(object int, op nfs4.NfsOpnum4) *plan.Op {
		return &plan.Op{ID: int(op), Modifies: op == nfs4.OP_CLONE, Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 3}}},
			{Op: uint32(nfs4.OP_SAVEFH)},
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: object}}},
			{Op: uint32(op)},
		}}}
	}
	load := &Workload{}
	load.Tables.Objects = []plan.Object{{ID: 1, Name: "copy"}, {ID: 2, Name: "dir"}, {ID: 3, Name: "original"}}
	w := newWorld(load, 0, "test")
	clone := about(1, nfs4.OP_CLONE)
	w.spoil(clone)
	v := newVerifier(load, VerifyAll, nil, false)
	read := func(object int) *plan.Op {
		return &plan.Op{ID: 99, Compound: &plan.Compound{Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: object}}}, {Op: uint32(nfs4.OP_READ)}}}}
	}
	const entry = `READDIR[2].resok4.reply."copy".attrs.size: 0, was 5`
	for _, c := range []struct {
		name      string
		op        *plan.Op
		different []string
		want      *plan.Op
	}{
		{"the copy", read(1), []string{"READ[1].resok4.eof: true, was false"}, clone},
		{"the original", read(3), []string{"READ[1].resok4.eof: true, was false"}, nil},
		{"its entry", read(2), []string{entry}, clone},
		{"its entry and another one", read(2), []string{entry, `READDIR[2].resok4.reply."other".attrs.size: 0, was 5`}, nil},
		{"its entry and something else", read(2), []string{entry, "GETATTR[1].resok4.obj_attributes.size: 0, was 5"}, nil},
		{"nothing", read(2), nil, nil},
	} {
		v.cmp.different = c.different
		if got := v.spoilt(&flight{op: c.op, world: w}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestCutBefore: what a cut capture does not show can only be missing after that.
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
		if got := (&Workload{Skips: c.skips}).cutBefore(&plan.Op{Time: 100}); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
