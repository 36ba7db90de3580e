package merge

import (
	"fmt"
	"strings"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/internal/printable"
	"github.com/rpcrdma/toolkit/internal/units"
)

// Schema is the value of the key "schema" of Units.
const Schema = "rpcrdma.fleet.units/1"

// Named is how many units that are not merged are named.
const Named = 100

// Units says what a result was made from.
type Units struct {
	Schema string `json:"schema"`
	Job    string `json:"job,omitempty"`
	Units  int    `json:"units"`
	// Done are those that are merged; of these, Damaged had input that was truncated or malformed.
	Done    int    `json:"done"`
	Damaged int    `json:"damaged"`
	Missing int    `json:"missing"`
	Failed  int    `json:"failed"`
	Aside   int    `json:"aside"`
	NotDone []Unit `json:"not_done"` // the first ones by ID
}

// Unit is one that is not merged.
type Unit struct {
	Unit   string    `json:"unit"`
	Tap    string    `json:"tap"`
	State  job.State `json:"state"`
	Reason string    `json:"reason,omitempty"`
}

// Complete reports whether all units are merged.
func (u *Units) Complete() bool { return u.Done == u.Units }

func (u *Units) count(x *job.Standing) {
	u.Units++
	switch x.State {
	case job.Damaged:
		u.Damaged++
		u.Done++
		return
	case job.Done:
		u.Done++
		return
	case job.Failed:
		u.Failed++
	case job.IsAside:
		u.Aside++
	case job.Missing:
		u.Missing++
	}
	if len(u.NotDone) < Named {
		u.NotDone = append(u.NotDone, Unit{x.Unit, x.Tap, x.State, x.Reason})
	}
}

// Line is the first line of a result.
func (u *Units) Line() string {
	var b strings.Builder
	b.WriteString(units.Plural(u.Units, "unit"))
	if u.Job != "" {
		b.WriteString(" of job " + u.Job)
	}
	fmt.Fprintf(&b, ": %d done, %d missing, %d failed, %d set aside", u.Done, u.Missing, u.Failed, u.Aside)
	if !u.Complete() {
		b.WriteString(": INCOMPLETE")
	}
	if u.Damaged > 0 {
		fmt.Fprintf(&b, "; %d of damaged input", u.Damaged)
	}
	return b.String()
}

// Problems are the units that are not merged, in words.
func (u *Units) Problems() (list []string) {
	for _, x := range u.NotDone {
		state := string(x.State)
		if x.State == job.IsAside {
			state = "set aside"
		}
		s := fmt.Sprintf("unit %s (tap %s): %s", x.Unit, printable.Line(x.Tap), state)
		if x.Reason != "" {
			s += ": " + printable.Line(x.Reason)
		}
		list = append(list, s)
	}
	if n := u.Units - u.Done - len(u.NotDone); n > 0 {
		list = append(list, fmt.Sprintf("%d more units are not done", n))
	}
	return list
}
