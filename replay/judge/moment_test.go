package judge

import (
	"math"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestMoments: the size of a file during a WRITE says nothing about the server; the size of any
// other file does.
func TestMoments(t *testing.T) {
	op := func(id, object int, at, latency int64, modifies bool) *plan.Op {
		return &plan.Op{ID: id, XID: uint32(id), Time: at, Latency: latency, Modifies: modifies, Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: object}}}
	}
	write := op(1, 1, 100, 100, true)
	before := func(o *plan.Op, ns int64) *plan.Op {
		o.Before = ns
		return o
	}
	for _, c := range []struct {
		name    string
		op      *plan.Op
		relaxed bool
		again   bool
		reason  verdict.Code
	}{
		{"under way together", op(2, 1, 150, 100, false), false, false, verdict.Together},
		{"before", op(2, 1, 10, 20, false), false, false, verdict.None},
		{"after", op(2, 1, 300, 10, false), false, false, verdict.None},
		{"after, in any order", op(2, 1, 300, 10, false), true, false, verdict.AnyOrder},
		{"after, sent again", op(2, 1, 300, 10, false), false, true, verdict.SentAgain},
		{"without a reply", op(2, 1, 300, -1, false), false, false, verdict.Together},
		{"after, and sent before", before(op(2, 1, 300, 10, false), 110), false, false, verdict.Together},
		{"after, and sent before, but later", before(op(2, 1, 300, 10, false), 90), false, false, verdict.None},
		{"sent before by more than there is", before(op(2, 1, 300, 10, false), math.MaxInt64), false, false, verdict.Together},
		{"another file", op(2, 2, 150, 100, false), true, false, verdict.None},
		{"itself", write, true, false, verdict.None},
	} {
		m := newMoments(&workload.Workload{Ops: []*plan.Op{write, c.op}}, c.relaxed)
		if c.op == write {
			m = newMoments(&workload.Workload{Ops: []*plan.Op{write}}, c.relaxed)
		}
		got := m.reason(c.op, c.again)
		if got.Code != c.reason || c.reason == verdict.Together && got.Call.ID != 1 {
			t.Errorf("%s: %+v", c.name, got)
		}

		v := comparison{subject: subject{moment: func() verdict.Reason { return got }}}
		v.reset()
		want, have := &nfs3.GETATTR3res{}, &nfs3.GETATTR3res{}
		want.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Size: 10}
		have.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Size: 20}
		v.want.fill(want)
		v.have.fill(have)
		v.run()
		if explained := len(v.explained) > 0; explained != (got.Code != verdict.None) || explained == (len(v.different) > 0) {
			t.Errorf("%s: explained %+v, different %+v", c.name, v.explained, v.different)
		}
	}
}

// TestMomentOfRead: how much a READ returns depends on concurrent calls; how much a WRITE took
// does not.
func TestMomentOfRead(t *testing.T) {
	for _, reading := range []bool{true, false} {
		v := comparison{subject: subject{moment: func() verdict.Reason { return verdict.Reason{Code: verdict.Together} }, reading: reading}}
		v.reset()
		want, have := &nfs3.READ3res{}, &nfs3.READ3res{}
		want.Resok.Count, want.Resok.Eof = 100, true
		v.want.fill(want)
		v.have.fill(have)
		v.run()
		if got := len(v.different) == 0; got != reading || len(v.explained) != 1 {
			t.Errorf("reading %v: different %+v, explained %+v", reading, v.different, v.explained)
		}
	}
}
