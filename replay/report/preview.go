package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// Preview says what a run would do.
type Preview struct {
	Server, Directory string
	Same              []plan.SameServer // captured servers that are one
	Make, Write       bool              // whether the files are to be made, and may be
	Prepared          Prepared          // what would be made
	PrepareOnly       bool
	Clones            int
	Timing            string
	AsCaptured        bool          // calls are sent at captured times, within Duration
	Duration          time.Duration // at the speed of the replay
	Speed             float64
	Send              int            // calls of one clone
	Delegated         int            // of Send, those that have nothing to do unless the server gives delegations
	SendIfThere       int            // the same, if the files that are not made are there nevertheless; 0 if that is known
	MaxCalls          int            // after which the run ends; 0 for any number
	Refused           map[string]int // reasons why others are not sent
	Skipped           int            // transactions that are not in the plan
	Impossible        []plan.Reason
	Kinds             map[string]*PreviewKind // by kind of operation
}

// PreviewKind counts the calls of one kind.
type PreviewKind struct{ Calls, Modify, NotSent int }

// nothing says that a plan has no calls.
const nothing = "There is nothing to replay: the capture has no calls of NFS."

// Text writes a preview for people.
func (v *Preview) Text(w io.Writer) error {
	p := &printer{w: w}
	p.f("server %s, directory %s\n", v.Server, v.Directory)
	for _, s := range v.Same {
		p.f("in the capture %s\n", s)
	}
	switch {
	case v.Make && v.Write:
		d := &v.Prepared
		p.f("make there: %s, %s, %s, %s of data", units.Plural(d.Directories, "directory"), units.Plural(d.Files, "file"), units.Plural(d.Others, "other object"), units.BytesText(d.Bytes))
		if v.Clones > 1 {
			p.f(", %d times", v.Clones)
		}
		p.f("\n")
	case v.Make:
		p.f("make nothing there, since --write is missing\n")
	default:
		p.f("expect the files there\n")
	}
	if v.PrepareOnly {
		return p.err
	}
	all := v.Send * v.Clones
	send := all
	if v.MaxCalls > 0 {
		send = min(send, v.MaxCalls)
	}
	p.f("send %s", units.Plural(send, "call"))
	if v.AsCaptured {
		p.f(" within %s", units.Short(v.Duration))
	}
	p.f(", timing %s", v.Timing)
	if v.AsCaptured && v.Speed != 1 {
		p.f(" at %g times the speed", v.Speed)
	}
	p.f(", if the server answers as the captured one did\n")
	if v.Delegated > 0 {
		p.f("  %d of them only if it gives delegations\n", v.Delegated*v.Clones)
	}
	if more := v.SendIfThere - v.Send; more > 0 {
		p.f("send %s more if the files that the workload expects are there already\n", units.Plural(more*v.Clones, "call"))
	}
	p.refused(v)
	if all > send {
		p.f("not send %s: the run ends after %d\n", units.Plural(all-send, "call"), v.MaxCalls)
	}
	if v.Skipped > 0 {
		p.f("%d transactions of the capture are not in the plan\n", v.Skipped)
	}
	p.impossible(v.Impossible)
	if len(v.Kinds) == 0 {
		p.f("\n%s\n", nothing)
		return p.err
	}
	p.kinds(v)
	return p.err
}

// refused lists why calls are not sent, the most frequent reason first.
func (p *printer) refused(v *Preview) {
	all := 0
	reasons := make([]string, 0, len(v.Refused))
	for why, n := range v.Refused {
		all += n
		reasons = append(reasons, why)
	}
	if all == 0 {
		return
	}
	slices.SortFunc(reasons, func(a, b string) int { return cmp.Or(cmp.Compare(v.Refused[b], v.Refused[a]), cmp.Compare(a, b)) })
	p.f("not send %s:\n", units.Plural(all*v.Clones, "call"))
	for _, why := range reasons {
		p.f("  %6d  %s\n", v.Refused[why]*v.Clones, why)
	}
}

func (p *printer) kinds(v *Preview) {
	rows := [][]string{{"OPERATION", "CALLS", "CHANGE SOMETHING", "NOT SENT"}}
	names := make([]string, 0, len(v.Kinds))
	for n := range v.Kinds {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(v.Kinds[b].Calls, v.Kinds[a].Calls), cmp.Compare(a, b))
	})
	for _, n := range names {
		k := v.Kinds[n]
		rows = append(rows, []string{n, fmt.Sprint(k.Calls), fmt.Sprint(k.Modify), fmt.Sprint(k.NotSent)})
	}
	p.f("\n")
	p.table(1, rows)
}
