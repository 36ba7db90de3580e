package transaction

import (
	"testing"
	"time"
)

// Parts and AllPhases visit each phase once, Of finds its own field, and names
// are unique.
func TestPhaseNames(t *testing.T) {
	p := Phases{CallTransfer: 1, ArgumentPull: 2, Server: 4, ResultPush: 8, ReplyTransfer: 16, PullWait: 32, Ack: 64}
	var parts, all time.Duration
	n := 0
	for ph := range Parts() {
		if int(ph) != n {
			t.Errorf("%v is part %d", ph, n)
		}
		parts += p.Of(ph)
		n++
	}
	names := make(map[string]bool)
	for ph := range AllPhases() {
		all += p.Of(ph)
		names[ph.String()], names[ph.Short()+" short"] = true, true
	}
	if n != NumParts || parts != 31 || all != 127 || len(names) != 2*NumPhases || names[""] {
		t.Errorf("%d parts sum to %d, all to %d; %v", n, parts, all, names)
	}
	for range Parts() {
		break // must not go on
	}
	for ph := range AllPhases() {
		if ph == PhaseWait {
			break
		}
	}
}
