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
	w := e.clones[0]
	if err := e.provision.establish(t.Context(), w); err != nil || !w.States[1].Refused {
		t.Errorf("%v, refused %v", err, w.States[1].Refused)
	}
	if !fatal(errors.New("no answer")) {
		t.Error("no answer is not fatal")
	}
}

// TestStateBeforeItsSession: a file of NFSv4.1 is not opened before its client has a session. A server would only
// refuse that.
func TestStateBeforeItsSession(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir"}, {ID: 2, Type: "file", Parent: 1, Name: "f"}}
	load.Tables.Clients = []plan.Client{{Minor: 1, DefinedBy: 1}}
	load.Tables.States = []plan.State{{Kind: plan.OpenState, Object: 2, Client: 1}}
	e, _ := testEngine(t, load)
	w := e.clones[0]
	w.Objects[1].Handle, w.Objects[2].Handle, w.Clients[1].Bound = []byte("dir"), []byte("file"), true
	err := e.provision.open(t.Context(), w, 1)
	var impossible errImpossible
	if !errors.As(err, &impossible) || err.Error() != "its client has no session before the start" {
		t.Errorf("%v", err)
	}
}
