package run

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestMoments: the size of a file beside a WRITE under way says nothing about
// the server, and that of any other file does.
func TestMoments(t *testing.T) {
	op := func(id, object int, at, latency int64, modifies bool) *plan.Op {
		return &plan.Op{ID: id, XID: uint32(id), Time: at, Latency: latency, Modifies: modifies, Args: []plan.Field{{N: "object", Kind: plan.FieldHandle, Ref: object}}}
	}
	write := op(1, 1, 100, 100, true)
	for _, c := range []struct {
		name    string
		op      *plan.Op
		relaxed bool
		again   bool
		reason  string
	}{
		{"under way together", op(2, 1, 150, 100, false), false, false, "op 1"},
		{"before", op(2, 1, 10, 20, false), false, false, ""},
		{"after", op(2, 1, 300, 10, false), false, false, ""},
		{"after, in any order", op(2, 1, 300, 10, false), true, false, "--relaxed"},
		{"after, sent again", op(2, 1, 300, 10, false), false, true, "sent again"},
		{"without a reply", op(2, 1, 300, -1, false), false, false, "op 1"},
		{"another file", op(2, 2, 150, 100, false), true, false, ""},
		{"itself", write, true, false, ""},
	} {
		m := newMoments(&Workload{Ops: []*plan.Op{write, c.op}}, c.relaxed)
		if c.op == write {
			m = newMoments(&Workload{Ops: []*plan.Op{write}}, c.relaxed)
		}
		got := m.reason(c.op, c.again)
		if (got == "") != (c.reason == "") || !strings.Contains(got, c.reason) {
			t.Errorf("%s: %q", c.name, got)
		}

		v := comparison{moment: func() string { return got }}
		v.reset()
		want, have := &nfs3.GETATTR3res{}, &nfs3.GETATTR3res{}
		want.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Size: 10}
		have.Resok.ObjAttributes = nfs3.Fattr3{Type: nfs3.NF3REG, Size: 20}
		v.want.fill(want)
		v.have.fill(have)
		v.run()
		if explained := len(v.explained) > 0; explained != (got != "") || explained == (len(v.different) > 0) {
			t.Errorf("%s: explained %q, different %q", c.name, v.explained, v.different)
		}
	}
}

// TestMomentOfRead: how much a READ gives is of a moment, and how much a WRITE
// took is not.
func TestMomentOfRead(t *testing.T) {
	for _, reading := range []bool{true, false} {
		v := comparison{moment: func() string { return "together" }, reading: reading}
		v.reset()
		want, have := &nfs3.READ3res{}, &nfs3.READ3res{}
		want.Resok.Count, want.Resok.Eof = 100, true
		v.want.fill(want)
		v.have.fill(have)
		v.run()
		if got := len(v.different) == 0; got != reading || len(v.explained) != 1 {
			t.Errorf("reading %v: different %q, explained %q", reading, v.different, v.explained)
		}
	}
}
