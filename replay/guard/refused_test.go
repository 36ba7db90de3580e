package guard

import (
	"strings"
	"testing"
)

// TestSentences: each reason has a sentence of its own, which what a server or a plan
// says cannot change.
func TestSentences(t *testing.T) {
	seen := map[string]Reason{}
	for r := Reason(1); r < numReasons; r++ {
		e := &Refused{Reason: r, What: "{detail}", Detail: "{what}%s"}
		s := e.Error()
		if sentences[r] == "" || seen[s] != 0 {
			t.Errorf("reason %d: %q, the same as reason %d", r, s, seen[s])
		}
		seen[s] = r
		if strings.Contains(sentences[r], "{detail}") && !strings.Contains(s, "{what}%s") {
			t.Errorf("reason %d: %q", r, s)
		}
	}
	for r, want := range map[Reason]string{
		Outside: "REMOVE would change something that is not known to be below the base", 0: "REMOVE is not sent", 200: "REMOVE is not sent",
	} {
		if got := (&Refused{Reason: r, What: "REMOVE"}).Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := (&Refused{Reason: Unknown}).Error(); got != "the call is not known" {
		t.Errorf("%q", got)
	}
}
