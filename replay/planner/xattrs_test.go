package planner

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestListxattrs: a listing of extended attributes continues where this server's ended.
func TestListxattrs(t *testing.T) {
	s := newScene(t)
	list := func(file string, cookie, next uint64, end bool) {
		s.compound(2, sequence("session", 0, 1), putfh(file), step{nfs4.OP_LISTXATTRS, &nfs4.LISTXATTRS4args{LxaCookie: cookie, LxaMaxcount: 64},
			&nfs4.LISTXATTRS4res{LxrValue: nfs4.LISTXATTRS4resok{LxrCookie: next, LxrNames: [][]byte{{byte('a' + next)}}, LxrEof: end}}})
	}
	list("one", 0, 7, false)
	list("two", 0, 8, false)
	list("one", 7, 9, false)
	list("one", 9, 10, true)
	list("two", 7, 9, true) // a cookie that the server has not given for this file
	l := s.plan()
	for i, want := range []plan.Field{
		{Kind: plan.FieldU64}, {Kind: plan.FieldU64}, {Kind: plan.FieldCookie, Op: 1}, {Kind: plan.FieldCookie, Op: 3}, {Kind: plan.FieldU64, Value: 7},
	} {
		f := l.ops[i].Compound.Ops[2].Args[0]
		if f.Kind != want.Kind || f.Op != want.Op || f.Kind == plan.FieldU64 && f.Value != want.Value || f.Kind == plan.FieldCookie && !f.Zero {
			t.Errorf("call %d: %+v, want %+v", i+1, f, want)
		}
		if f.Kind == plan.FieldCookie && !l.reaches(i+1, f.Op) {
			t.Errorf("call %d does not wait for %d", i+1, f.Op)
		}
	}
	if o := l.ops[4]; o.Class != plan.Inferred {
		t.Errorf("%+v", o)
	}
}
