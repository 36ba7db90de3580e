package workload

import (
	"fmt"
	"strings"

	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// NothingError says that a plan contains nothing worth replaying, and why.
type NothingError struct {
	Left       int           // calls that set up and tear down sessions, and the like
	Impossible []plan.Reason // why the others are not in the plan
}

func (e *NothingError) Error() string {
	n := 0
	var why []string
	for _, r := range e.Impossible {
		n += r.Count
		why = append(why, fmt.Sprintf("%d: %s", r.Count, r.Reason))
	}
	s := fmt.Sprintf("nothing of this capture's workload can be replayed: %s cannot (%s)", units.Plural(n, "call"), strings.Join(why, "; "))
	if e.Left > 0 {
		s += fmt.Sprintf("; the other %d only set up and tear down sessions, or do nothing", e.Left)
	}
	return s
}

// Replayable returns a *NothingError if nothing of what the capture's clients did can
// be replayed. Clients that did nothing, or only mounted, are no error.
func (w *Workload) Replayable() error {
	impossible, f := w.Impossible(), w.facts()
	if len(impossible) == 0 || f.works {
		return nil
	}
	return &NothingError{Left: f.ops, Impossible: impossible}
}

// maxImpossible is how many reasons are distinguished.
const maxImpossible = 32

// Impossible counts the transactions of the capture that cannot be replayed, by
// reason, the most frequent first.
func (w *Workload) Impossible() []plan.Reason {
	if w.Streams() {
		return w.known.left.List()
	}
	var r Reasons
	for _, s := range w.Skips {
		r.Skip(s)
	}
	return r.List()
}
