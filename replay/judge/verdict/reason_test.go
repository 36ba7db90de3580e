package verdict_test

import (
	"os"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// TestCodes: each code has a name of its own.
func TestCodes(t *testing.T) {
	seen := map[string]verdict.Code{}
	for c := range verdict.Codes() {
		name := c.String()
		if other, ok := seen[name]; ok || name == "unknown" {
			t.Errorf("codes %d and %d are both %q", c, other, name)
		}
		seen[name] = c
	}
	if len(seen) < 50 {
		t.Errorf("only %d codes", len(seen))
	}
}

// TestSchema: the schema of a report knows all codes.
func TestSchema(t *testing.T) {
	b, err := os.ReadFile("../../../docs/schemas/replay-1.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for list := range strings.SplitSeq(string(b), `"enum": [`) {
		list, _, _ = strings.Cut(list, "]")
		if !strings.Contains(list, `"only_here"`) {
			continue
		}
		lists++
		for c := range verdict.Codes() {
			if !strings.Contains(list, `"`+c.String()+`"`) {
				t.Errorf("list %d lacks %s", lists, c)
			}
		}
	}
	if lists != 3 {
		t.Errorf("%d lists of codes", lists)
	}
}

// TestWorsen: the verdict only gets worse, reasons come once, and there is an end of
// them.
func TestWorsen(t *testing.T) {
	var j verdict.Judgement
	j.Worsen(verdict.Different, verdict.Reason{Code: verdict.FieldDiffers})
	j.Worsen(verdict.Equivalent, verdict.Reason{Code: verdict.Optional})
	j.Worsen(verdict.Different, verdict.Reason{Code: verdict.FieldDiffers})
	if j.Verdict != verdict.Different || len(j.Reasons) != 2 {
		t.Errorf("%+v", j)
	}
	for n := range uint64(100) {
		j.Worsen(verdict.Different, verdict.Reason{Code: verdict.PatternDiffers, N: n})
	}
	if len(j.Reasons) != 8 {
		t.Errorf("%d reasons", len(j.Reasons))
	}
	j.Explain(verdict.Reason{Code: verdict.Cut})
	if j.Verdict != verdict.Explained || j.Reasons[0].Code != verdict.Cut || len(j.Reasons) != 9 {
		t.Errorf("%+v", j)
	}
}
