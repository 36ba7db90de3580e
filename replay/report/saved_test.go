package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// twoRuns are two runs of one plan: the second has another difference, and another file that is wrong.
func twoRuns(t *testing.T) (first *Saved, second *Report) {
	t.Helper()
	write := func(op int, v verdict.Verdict, code verdict.Code, reason string) Mismatch {
		return Mismatch{Op: op, Operation: "nfs3 WRITE", What: "nfs3 WRITE a", Verdict: v, Codes: []verdict.Code{code}, Reasons: []string{reason}}
	}
	a := &Report{Schema: Schema, Sources: []string{"a.plan"}, Took: time.Second, Planned: 10, Sent: 10, Totals: map[string]int{"same": 8, "worse": 1, "explained": 1},
		Ops:        []OperationReport{{Operation: "nfs3 WRITE", Count: 10, Outcomes: map[string]int{"same": 8, "worse": 1, "explained": 1}, Live: Spread{Count: 10, Mean: time.Millisecond, P50: time.Millisecond, P99: 2 * time.Millisecond}}},
		Mismatches: []Mismatch{write(3, verdict.Worse, verdict.Fails, "NFS3ERR_IO, was OK"), write(4, verdict.Explained, verdict.Cut, "cut")},
		ReadBack:   &ReadBack{Wrong: []Finding{{Path: "/a", Code: verdict.NameLost, Reason: "lost"}}}}
	a.Setup.Server = "A"
	b := *a
	b.Setup.Server, b.Totals = "B", map[string]int{"same": 8, "worse": 2}
	b.Ops = []OperationReport{{Operation: "nfs3 WRITE", Count: 10, Outcomes: b.Totals, Live: Spread{Count: 10, Mean: time.Millisecond, P50: 2 * time.Millisecond, P99: 6 * time.Millisecond}}}
	b.Mismatches = []Mismatch{write(3, verdict.Worse, verdict.Fails, "NFS3ERR_IO, was OK"), write(5, verdict.Worse, verdict.Fails, "NFS3ERR_STALE, was OK")}
	b.ReadBack = &ReadBack{Wrong: []Finding{{Path: "/a", Code: verdict.NameLost, Reason: "lost"}}}
	return saved(t, a), &b
}

func saved(t *testing.T, r *Report) *Saved {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Load(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAccept(t *testing.T) {
	first, second := twoRuns(t)
	second.Accept(first)
	if second.Accepted != 1 || !second.Mismatches[0].Accepted || second.Mismatches[1].Accepted || !second.ReadBack.Wrong[0].Accepted || second.Explained() {
		t.Errorf("%d accepted: %+v %+v", second.Accepted, second.Mismatches, second.ReadBack)
	}
	_, again := twoRuns(t)
	again.Accept(saved(t, second))
	if again.Accepted != 2 || !again.Explained() {
		t.Errorf("%d accepted", again.Accepted)
	}
}

func TestJUnit(t *testing.T) {
	first, second := twoRuns(t)
	second.Accept(first)
	second.Mismatches[1].What += "\x01<&"
	var out bytes.Buffer
	if err := second.JUnit(&out); err != nil {
		t.Fatal(err)
	}
	var s junitSuite
	if err := xml.Unmarshal(out.Bytes(), &s); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	if s.Tests != 3 || s.Failures != 1 || s.Cases[1].Failure == nil || s.Cases[1].Failure.Message != "1 of 10 calls are not as captured" ||
		!strings.HasPrefix(s.Cases[1].Failure.Text, "worse: op 5: nfs3 WRITE a\ufffd<&") {
		t.Errorf("%s", &out)
	}
}

func TestCompareText(t *testing.T) {
	first, second := twoRuns(t)
	var out strings.Builder
	worse, err := CompareText(&out, first, saved(t, second))
	const want = `A: replay of a.plan against A: 10 calls in 1s (10/s); 8 same, 1 explained, 1 worse
B: replay of a.plan against B: 10 calls in 1s (10/s); 8 same, 2 worse

  OPERATION   COUNT A   B  WRONG A  B  P50 A    B  P99 A    B  P99 B/A
  nfs3 WRITE       10  10        1  2    1ms  2ms    2ms  6ms     3.00

Calls whose verdicts differ
  op 4: nfs3 WRITE a: explained in A, as captured in B
      A: cut
  op 5: nfs3 WRITE a: as captured in A, worse in B
      B: NFS3ERR_STALE, was OK
`
	if err != nil || worse != 1 || out.String() != want {
		t.Errorf("%v, %d worse:\n%s", err, worse, &out)
	}
}

// TestLoad: what is not a report is refused, however long it is.
func TestLoad(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another": {`{"schema":"rpcrdma.report/1"}`, `its schema is "rpcrdma.report/1": want rpcrdma.replay/1, as run --report writes it`},
		"no JSON": {"x", "no report of a replay in JSON: invalid character 'x' looking for beginning of value"},
		"empty":   {"", "no report of a replay in JSON: EOF"},
	} {
		if _, err := Load(strings.NewReader(c.text)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := load(io.MultiReader(strings.NewReader(`{"schema":"`), endless{}), 1<<20); err == nil || err.Error() != "it is longer than 1 MB" {
		t.Error(err)
	}
}

// endless is the text of a string without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
