package run

import (
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestStateThatCannotBeHad: state that cannot be created does not end a run; a server that is
// gone does.
func TestStateThatCannotBeHad(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.States = []plan.State{{Kind: plan.OpenState}}
	e, _ := testEngine(t, load)
	w := e.worlds[0]
	if err := e.establish(t.Context(), w); err != nil || !w.States[1].Refused {
		t.Errorf("%v, refused %v", err, w.States[1].Refused)
	}
	if !fatal(errors.New("no answer")) {
		t.Error("no answer is not fatal")
	}
}
