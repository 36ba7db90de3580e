package run

import (
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

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
