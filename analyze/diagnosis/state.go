package diagnosis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/internal/units"
)

// SectionKind is the kind of the section of a Report in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "diagnosis"
	SectionVersion = 1
)

// saved is a Report and the values needed to merge it with others.
type saved struct {
	*Report
	Inputs []string  `json:"inputs,omitempty"`
	Saves  []float64 `json:"saves,omitempty"` // of the causes
	First  int64     `json:"first,omitempty"`
	Last   int64     `json:"last,omitempty"`
	Count  int       `json:"count,omitempty"`
	P99    int64     `json:"p99_ns,omitempty"`
	// Ends are the connections: their keys without the time, which differs from tap to tap.
	Ends []string `json:"ends,omitempty"`
}

// Section encodes a Report of some inputs.
func (r *Report) Section(inputs []string) (state.Section, error) {
	x := saved{Report: r, Inputs: inputs, First: r.first, Last: r.last, Count: r.count, P99: r.p99, Ends: r.ends}
	for _, c := range r.Causes {
		x.Saves = append(x.Saves, c.saves)
	}
	b, err := json.Marshal(&x)
	return state.Section{Kind: SectionKind, Version: SectionVersion, Body: b}, err
}

// read decodes the section of a unit. It returns nil if there is none.
func read(u *state.Unit) (*saved, error) {
	s := u.Section(SectionKind)
	if s == nil {
		return nil, nil
	}
	if s.Version != SectionVersion {
		return nil, fmt.Errorf("%w: encoding %d of a diagnosis", state.ErrVersion, s.Version)
	}
	x := &saved{}
	if err := json.Unmarshal(s.Body, x); err != nil {
		return nil, fmt.Errorf("%w: diagnosis: %w", state.ErrDamaged, err)
	}
	if x.Report == nil || len(x.Causes) > mostCauses+1 || slices.Contains(x.Causes, nil) {
		return nil, fmt.Errorf("%w: diagnosis", state.ErrDamaged)
	}
	for i, c := range x.Causes {
		if c.saves = float64(c.Time); i < len(x.Saves) {
			c.saves = x.Saves[i]
		}
	}
	x.first, x.last, x.count, x.p99 = x.First, x.Last, x.Count, x.P99
	return x, nil
}

// Merger merges the Reports of units.
type Merger struct{}

// Survey implements state.Surveyor.
func (Merger) Survey(u *state.Unit) error {
	_, err := read(u)
	return err
}

// Decide implements state.Surveyor.
func (Merger) Decide() []state.Left { return nil }

// mostEnds is how many connections of all units are compared.
const mostEnds = 1 << 17

// nearness is how near the server a capture point is.
func nearness(point string) int {
	switch point {
	case besideServer:
		return 3
	case between:
		return 2
	case besideClient:
		return 0
	}
	return 1
}

// span is the time for which a unit has a connection.
type span struct {
	unit, near, conns int
	first, last       int64
}

// overlaps reports whether two units have a connection at the same time, for most of the time that the shorter one has it.
func (a *span) overlaps(b *span) bool {
	return 2*(min(a.last, b.last)-max(a.first, b.first)) > min(a.last-a.first, b.last-b.first)
}

// twice finds the connections that other units have at the same time, by unit. The unit nearest the server counts, or the one with most connections.
func twice(src state.Source) (map[int]map[string]bool, error) {
	have := make(map[string][]span)
	lost := make(map[int]map[string]bool)
	unit, sum := 0, 0
	err := src.Each(func(u *state.Unit) error {
		unit++
		x, err := read(u)
		if err != nil || x == nil {
			return err
		}
		lost[unit] = make(map[string]bool)
		me := span{unit, nearness(x.Point), len(x.Ends), x.first, x.last}
		for _, e := range x.Ends {
			for i := range have[e] {
				switch o := &have[e][i]; {
				case !o.overlaps(&me) || lost[o.unit][e]:
				case cmp.Or(cmp.Compare(me.near, o.near), cmp.Compare(me.conns, o.conns)) > 0:
					lost[o.unit][e] = true
				default:
					lost[unit][e] = true
				}
			}
			if sum < mostEnds {
				have[e] = append(have[e], me)
				sum++
			}
		}
		return nil
	})
	return lost, err
}

// leave removes what another unit says of the same connections.
func (x *saved) leave(lost map[string]bool) {
	own := len(x.Ends) == 0 || slices.ContainsFunc(x.Ends, func(e string) bool { return !lost[e] })
	if !own {
		x.Calls, x.count = 0, 0
	}
	x.Causes = slices.DeleteFunc(x.Causes, func(c *Cause) bool {
		if len(c.Evidence) == 0 {
			return !own
		}
		return !slices.ContainsFunc(c.Evidence, func(e Evidence) bool { return !lost[ends(e.ConnectionKey)] })
	})
}

// Report looks for causes in the calls of all units together. If a unit has too many, it merges their Reports: each cause names the inputs where it
// was found, and a connection in several captures counts once. Report returns nil if no unit has one.
func (Merger) Report(src state.Source) (rep *Report, err error) {
	if rep, err := joinUnits(src); rep != nil || err != nil {
		return rep, err
	}
	lost, err := twice(src)
	if err != nil {
		return nil, err
	}
	n, unit := 0, 0
	var first *saved
	err = src.Each(func(u *state.Unit) error {
		unit++
		x, err := read(u)
		if err != nil || x == nil {
			return err
		}
		x.leave(lost[unit])
		switch n++; n {
		case 1:
			first, rep = x, x.Report
			return nil
		case 2:
			first.named()
		}
		rep.merge(x.named())
		return nil
	})
	if err != nil || n < 2 {
		return rep, err
	}
	slices.SortStableFunc(rep.Causes, (*Cause).order)
	rep.Causes = slices.DeleteFunc(rep.Causes, func(c *Cause) bool { return c.Code == ClientIdle }) // one idle capture of many says nothing
	rep.Causes = rep.Causes[:min(len(rep.Causes), mostCauses)]
	for _, c := range rep.Causes {
		all := rep.Calls
		if c.Clock == Wall {
			all = rep.Wall
		}
		c.Share = min(float64(c.Time)/float64(max(all, 1)), 1)
	}
	switch {
	case !rep.Healthy():
		rep.Summary = rep.Causes[0].Text
	case rep.count == 0:
		rep.Summary = "The captures have no RPC calls."
	default:
		rep.Summary = fmt.Sprintf("No likely cause found in %s. The highest P99 is %s.", units.Plural(n, "capture"), units.DurationText(rep.p99))
	}
	return rep, nil
}

// named returns a Report whose causes name their inputs.
func (x *saved) named() *Report {
	name := x.input()
	if name == "" {
		return x.Report
	}
	for _, c := range x.Causes {
		c.Where, c.Text = name+": "+c.Where, name+": "+c.Text
		for i := range c.Evidence {
			if e := &c.Evidence[i]; e.File == "" {
				e.Tap = name
			}
		}
	}
	return x.Report
}

// input names the inputs.
func (x *saved) input() string {
	if len(x.Inputs) == 0 {
		return ""
	}
	name := x.Inputs[0]
	if n := len(x.Inputs) - 1; n > 0 {
		name = fmt.Sprintf("%s and %s", name, units.Plural(n, "other file"))
	}
	return name
}

// merge adds the causes of other inputs. It keeps the most costly ones.
func (r *Report) merge(o *Report) {
	r.first, r.last = earlier(r.first, o.first), max(r.last, o.last)
	r.Calls += o.Calls
	r.count += o.count
	if r.Wall = max(r.Wall, o.Wall); r.first > 0 {
		r.Wall = max(r.Wall, r.last-r.first)
	}
	r.p99 = max(r.p99, o.p99)
	if r.Point != o.Point {
		r.Point = ""
	}
	r.Causes = append(r.Causes, o.Causes...)
	if len(r.Causes) > 8*mostCauses {
		slices.SortStableFunc(r.Causes, (*Cause).order)
		r.Causes = r.Causes[:mostCauses]
	}
}

// earlier returns the earlier of two times. 0 is not a time.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
