package report

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/verdict"
)

// TestCodesBesideReasons: JSON has the sentence that it always had, and the code.
func TestCodesBesideReasons(t *testing.T) {
	r := NewRecorder(1)
	long := verdict.Reason{Code: verdict.NoReply, Detail: strings.Repeat("x", 1000)}
	fails := verdict.Reason{Code: verdict.Fails, Now: "NFS3ERR_IO"}
	for range 3 {
		r.Add(&Outcome{Op: &plan.Op{ID: 7}, Verdict: verdict.Worse, Reasons: []verdict.Reason{fails, long}})
	}
	var rep Report
	r.Fill(&rep)
	if len(rep.Mismatches) != 1 || rep.More != 2 || len(rep.Reasons) != 2 || rep.Reasons[0].Count != 3 {
		t.Fatalf("%+v", rep)
	}
	b, err := json.Marshal(&rep)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`{"verdict":"worse","code":"fails","reason":"NFS3ERR_IO, was OK","count":3}`,
		`"codes":["fails","no_reply"]`, `"reasons":["NFS3ERR_IO, was OK","xxx`, `"reason":"` + strings.Repeat("x", maxReason) + `…"`,
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("%s is not in %s", want, b)
		}
	}
}

// TestNotes come once each, and not without end.
func TestNotes(t *testing.T) {
	r := NewRecorder(0)
	for i := range 1000 {
		r.Note("note %d", i%100)
	}
	if len(r.notes) != maxNotes || r.notes[1] != "note 1" {
		t.Errorf("%d notes: %q", len(r.notes), r.notes[:2])
	}
}
