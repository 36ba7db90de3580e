package report

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
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

// TestCauses: calls are counted with the one that made them differ, and reasons that differ in their place are one.
func TestCauses(t *testing.T) {
	r := NewRecorder(10)
	call := verdict.Call{ID: 7, What: "nfs4.2 OPEN f"}
	r.Add(&Outcome{Op: &plan.Op{ID: 7}, Verdict: verdict.Worse, Reasons: []verdict.Reason{{Code: verdict.Adapted}, {Code: verdict.Fails, At: verdict.Place{Path: "OPEN"}, Now: "NFS4ERR_INVAL"}}})
	for i := range 3 {
		r.Add(&Outcome{Op: &plan.Op{ID: 8 + i}, Verdict: verdict.NotSent, Reasons: []verdict.Reason{{Code: verdict.Follows, Call: call, Now: "NFS4ERR_INVAL"}}})
	}
	r.Add(&Outcome{Op: &plan.Op{ID: 12}, Verdict: verdict.Explained, Reasons: []verdict.Reason{{Code: verdict.Unhappened, Call: call}}})
	for i := range uint64(3) {
		r.Add(&Outcome{Op: &plan.Op{ID: 13}, Verdict: verdict.Different, Reasons: []verdict.Reason{{Code: verdict.WrittenDiffers, N: 4096 * i}}})
	}
	again := NewRecorder(10)
	again.Restore(r.Snapshot(), 0)
	for _, r := range []*Recorder{r, again} {
		var rep Report
		r.Fill(&rep)
		if want := (Cause{Op: 7, XIDHex: "0x00000000", What: "nfs4.2 OPEN f", Why: "OPEN: NFS4ERR_INVAL, was OK", NotSent: 3, Explained: 1}); len(rep.Causes) != 1 || rep.Causes[0] != want {
			t.Errorf("%+v", rep.Causes)
		}
		i := slices.IndexFunc(rep.Reasons, func(x ReasonReport) bool { return x.Code == verdict.WrittenDiffers })
		if i < 0 || rep.Reasons[i].Count != 3 || rep.Reasons[i].Reason != "what was written is not there: other bytes at 0, for example" {
			t.Errorf("%+v", rep.Reasons)
		}
		var text strings.Builder
		rep.Planned = 1
		if err := rep.Text(&text); err != nil {
			t.Fatal(err)
		}
		want := "\nCauses\n  op 7, XID 00000000: nfs4.2 OPEN f: OPEN: NFS4ERR_INVAL, was OK; 3 calls depend on it and were not sent; it explains 1 call\n"
		if !strings.Contains(text.String(), want) || strings.Contains(text.String(), "needs what op 7") && !strings.Contains(text.String(), "Calls whose") {
			t.Errorf("%s", text.String())
		}
	}
}
