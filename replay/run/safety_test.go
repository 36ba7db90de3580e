package run

import (
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestChangeAtRoot: a CREATE right after PUTROOTFH is below the base where the base
// stands for the root, and nowhere else.
func TestChangeAtRoot(t *testing.T) {
	o := &plan.Op{Modifies: true, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
		{Op: uint32(nfs4.OP_PUTROOTFH)},
		{Op: uint32(nfs4.OP_CREATE), Args: []plan.Field{{Kind: plan.FieldName, Bytes: []byte("d")}}},
	}}}
	load := &Workload{Ops: []*plan.Op{o}}
	base := []byte("base")
	for _, c := range []struct {
		name string
		root []byte
		safe bool
	}{
		{"the base", []byte("base"), true},
		{"what is above the base", []byte("above"), false},
		{"the server's own root", nil, false},
	} {
		w := newWorld(load, 0, "test")
		w.base, w.root = base, c.root
		if why := newSafety(load).check(o, w); (why == "") != c.safe {
			t.Errorf("the root is %s: %q", c.name, why)
		}
	}
}

// TestStateThatCannotBeHad does not end a run; a server that is gone does.
func TestStateThatCannotBeHad(t *testing.T) {
	load := &Workload{}
	load.Tables.States = []plan.State{{Kind: plan.OpenState}}
	w := newWorld(load, 0, "test")
	e := &engine{load: load, worlds: []*world{w}}
	e.opt = Options{}.withDefaults()
	e.record = newRecorder(&e.opt, load)
	if err := e.establish(t.Context(), w); err != nil || !w.states[1].refused {
		t.Errorf("%v, refused %v", err, w.states[1].refused)
	}
	if !fatal(errors.New("no answer")) {
		t.Error("no answer is not fatal")
	}
}
