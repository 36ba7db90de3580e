package link

import "testing"

// Each problem has a sentence of its own, and no value panics.
func TestProblemTexts(t *testing.T) {
	seen := map[string]Problem{}
	for p := range endOfProblems {
		if other, ok := seen[p.String()]; ok || (p.String() == "") != (p == NoProblem) {
			t.Errorf("problems %d and %d: %q", other, p, p)
		}
		seen[p.String()] = p
	}
	if s := Problem(255).String(); s != "" {
		t.Errorf("%q", s)
	}
}
