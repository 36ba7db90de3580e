package workload

import (
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

func TestTwofold(t *testing.T) {
	pending, elsewhere := plan.Note{Kind: plan.NotePending}, plan.Note{Kind: plan.NoteElsewhere, Name: "f"}
	w := &Workload{}
	w.Tables.Objects = []plan.Object{{}, {Notes: []plan.Note{pending}}, {Notes: []plan.Note{elsewhere}}, {Notes: []plan.Note{pending, elsewhere}},
		{Type: "dir", Notes: []plan.Note{elsewhere}}, {Type: "file", Notes: []plan.Note{elsewhere}}}
	for id, want := range []bool{false, false, false, false, true, false, true, false} {
		if got := w.Twofold(id); got != want {
			t.Errorf("object %d: %v", id, got)
		}
	}
}
