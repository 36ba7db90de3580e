package schedule

import (
	"fmt"
	"time"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// Entry is one call: an op in one clone.
type Entry struct {
	Op    *plan.Op
	Clone int

	window  bool // it is of the plan
	over    bool
	ended   time.Duration // when it was over
	state   State
	missing int32         // replies that it waits for
	due     time.Duration // from the start of the replay
	ready   time.Duration // when the last reply that it waited for was there
}

// Due is the time from which an entry could go: its own, and that of the last reply
// that it waited for.
func (e *Entry) Due() time.Duration { return max(e.due, e.ready) }

// State is how far the call has come.
func (e *Entry) State() State { return e.state }

// Step moves a call on. An event that its state does not know is an error, and leaves
// the state as it is.
func (e *Entry) Step(v Event) error {
	// No event leads to Waiting, so that the zero State marks what is not there.
	next := transitions[e.state][v]
	if next == Waiting {
		return fmt.Errorf("op %d of the plan: %s while it is %s", e.Op.ID, v, e.state)
	}
	e.state = next
	return nil
}
