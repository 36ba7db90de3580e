package report

import "testing"

// TestWitnessed: a plan's DELEGRETURN may be sent as a CLOSE, and nothing else as something else.
func TestWitnessed(t *testing.T) {
	for _, x := range []struct {
		planned, sent string
		same          bool
	}{
		{"4.2 SEQUENCE PUTFH DELEGRETURN", "4.2 SEQUENCE PUTFH DELEGRETURN", true},
		{"4.2 SEQUENCE PUTFH DELEGRETURN", "4.2 SEQUENCE PUTFH CLOSE", true},
		{"4.2 SEQUENCE PUTFH CLOSE", "4.2 SEQUENCE PUTFH DELEGRETURN", false},
		{"4.2 SEQUENCE PUTFH DELEGRETURN", "4.2 SEQUENCE PUTFH REMOVE", false},
	} {
		if c := (&witnessed{ops: x.planned}); c.is(x.sent) != x.same {
			t.Errorf("%s sent as %s: %v", x.planned, x.sent, !x.same)
		}
	}
}
