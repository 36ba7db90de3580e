package report

import (
	"slices"

	"github.com/rpcrdma/toolkit/internal/units"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
)

// ReadBack says how what a run has written and removed was read back at its end.
type ReadBack struct {
	Names      int       `json:"names"`      // looked up: those that must be there, and those that must not
	Objects    int       `json:"objects"`    // whose attributes were read
	Attributes int       `json:"attributes"` // compared: size, mode, owner, link count, times that a client had set
	Bytes      uint64    `json:"bytes"`      // of files, compared
	Wrong      []Finding `json:"wrong,omitempty"`
	More       int       `json:"more_wrong,omitempty"` // that are not listed
	// Left is what could not be compared.
	Left  []LeftOut `json:"not_compared,omitempty"`
	Ended string    `json:"ended,omitempty"` // why it ended early

	// New are bytes that were compared here and not during the run, and Unreadable those
	// that were to be; by clone.
	New        map[int]uint64 `json:"-"`
	Unreadable map[int]uint64 `json:"-"`
}

// fine reports whether all is as the run has left it, but for what was accepted.
func (b *ReadBack) fine() bool {
	return b == nil || b.Ended == "" && b.More == 0 && !slices.ContainsFunc(b.Wrong, func(f Finding) bool { return !f.Accepted })
}

// Finding is something that is not as the run has left it.
type Finding struct {
	Clone  int          `json:"clone"`
	Path   string       `json:"path"`
	Code   verdict.Code `json:"code"`
	Reason string       `json:"reason"`
	// Accepted: an earlier run had it, too.
	Accepted bool `json:"accepted,omitempty"`
}

// LeftOut counts what was not compared.
type LeftOut struct {
	What  string `json:"what"`
	Count int    `json:"count"`
}

// Written says what became of the bytes that a run, and the preparation, have written, and
// the server has acknowledged: Bytes = Run + End + Never.
type Written struct {
	Bytes uint64       `json:"bytes"`
	Run   uint64       `json:"compared_during_run"`
	End   uint64       `json:"compared_at_end"` // and not during the run
	Never uint64       `json:"never_compared"`
	Why   []NeverBytes `json:"never_compared_why,omitempty"`
}

// NeverBytes are bytes that were never compared, for one reason.
type NeverBytes struct {
	Reason string `json:"reason"`
	Bytes  uint64 `json:"bytes"`
}

// written tells what became of the bytes that were written.
func (p *printer) written(r *Report) {
	if w := &r.Written; w.Bytes > 0 {
		p.f("\nWritten: %s, of which %s were compared during the run, %s only at the end, %s never\n", units.BytesText(w.Bytes), units.BytesText(w.Run), units.BytesText(w.End), units.BytesText(w.Never))
		for _, n := range w.Why {
			p.f("  %s never: %s\n", units.BytesText(n.Bytes), n.Reason)
		}
	}
	b := r.ReadBack
	if b == nil {
		return
	}
	p.f("\nRead back: %s, %s with %s, %s of data: ", units.Plural(b.Names, "name"), units.Plural(b.Objects, "object"), units.Plural(b.Attributes, "attribute"), units.BytesText(b.Bytes))
	if len(b.Wrong) == 0 {
		p.f("all as the run has left it\n")
	} else {
		p.f("%s\n", units.Plural(len(b.Wrong)+b.More, "mistake"))
	}
	for i := range b.Wrong {
		f := &b.Wrong[i]
		if r.Setup.Clones > 1 {
			p.f("  clone %d, ", f.Clone+1)
		} else {
			p.f("  ")
		}
		p.f("%s: %s", clipText(f.Path, 100), clipText(f.Reason, 160))
		if f.Accepted {
			p.f(" (as in the baseline)")
		}
		p.f("\n")
	}
	if b.More > 0 {
		p.f("  … and %d more\n", b.More)
	}
	for _, l := range b.Left {
		p.f("  not compared, %d times: %s\n", l.Count, clipText(l.What, 160))
	}
	if b.Ended != "" {
		p.f("  ENDED early: %s\n", clipText(b.Ended, 160))
	}
}
