package check

import "testing"

// TestKeep: where there is no room for all findings, those of greatest severity are kept, in the order in which they came.
func TestKeep(t *testing.T) {
	a := apart{on: true}
	list := make([]entry, 0, 3*maxSaved)
	add := func(n int, s Severity) {
		for range n {
			f := &Finding{Rule: &rules[0], Severity: s, XID: uint32(len(list))}
			list = append(list, entry{0, saved{len(list), f}})
			a.keep(f)
		}
	}
	add(maxSaved-1, Note)
	add(2, Error)
	add(1, Warning)
	add(1, Note)
	add(1, Error)
	if a.lost != 4 || len(a.found) != maxSaved || a.kept != [Error + 1]int{Note: maxSaved - 4, Warning: 1, Error: 3} {
		t.Errorf("%d lost, %d kept: %v", a.lost, len(a.found), a.kept)
	}
	for i := 1; i < len(a.found); i++ {
		if a.found[i].f.XID <= a.found[i-1].f.XID {
			t.Fatalf("finding %d comes before %d", a.found[i].f.XID, a.found[i-1].f.XID)
		}
	}
	f := &fold{out: &Result{Checker: New(Options{}, nil)}, list: list}
	f.out.Checker.apart.total[Error] = 3
	r := f.result()
	n := 0
	for _, x := range r.Findings {
		if x.Severity == Error {
			n++
		}
	}
	if n != 3 || len(r.Findings) != maxMerged || len(r.Notes) != 1 {
		t.Errorf("%d errors of %d findings: %q", n, len(r.Findings), r.Notes)
	}
	add(maxSaved, Error)
	if a.keeps(Warning) || a.keeps(Error) {
		t.Error("full of errors, and more are kept")
	}
}
