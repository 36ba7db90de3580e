package check

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rpc"
)

// maxMerged is how many findings of several taps are kept: those of greatest severity, and of these the earliest. The counts have all.
const maxMerged = maxSaved

// Result is what one or more taps found.
type Result struct {
	// Checker has the counts of all rules. It checks nothing any more.
	Checker *Checker
	// Findings of one tap are in their order, findings of several in the order of time.
	Findings []*Finding
	Notes    []string
}

// Merger merges what several taps found. It goes through the units twice: Survey finds out which connections several
// taps saw, and Result adds up what counts. Of a connection that several taps saw, what the tap nearest the responder
// found counts.
type Merger struct {
	survey state.Survey[terms, state.Sightings]
}

// NewMerger makes a Merger.
func NewMerger() *Merger {
	return &Merger{state.Survey[terms, state.Sightings]{Kind: sections, New: func(*terms) *state.Sightings { return new(state.Sightings) }}}
}

// FromUnits merges what the taps of all units found; their options must be the same.
func FromUnits(src state.Source) (*Result, error) {
	m := NewMerger()
	if err := state.All(src, m); err != nil {
		return nil, err
	}
	return m.Result(src)
}

// Survey implements state.Surveyor. The order of units makes no difference.
func (m *Merger) Survey(u *state.Unit) error {
	t := &tap{}
	return m.survey.Add(u, func(c *state.Coder, _ *terms) { t.code(c) }, func(s *state.Sightings) {
		var views []state.View
		for _, p := range t.pieces {
			if p.seen != nil {
				views = append(views, state.View{Seen: p.seen, Tap: u.Tap(), Near: p.near, Timed: p.timed})
			}
		}
		s.Add(views)
	})
}

// Decide implements state.Surveyor: it ends the first pass.
func (m *Merger) Decide() []state.Left { return m.survey.Decide() }

// Taps is how many taps are merged.
func (m *Merger) Taps() int { return m.survey.Len() }

// fold is what was added up.
type fold struct {
	out     *Result
	several bool
	list    []entry

	lost, cut             uint64
	twice, conns, skipped int
	doubtful              int // state.Chooser.Doubtful
}

// entry is a finding, and the place of its tap in the order of units.
type entry struct {
	tap int
	saved
}

// Result merges the units, which src gives once more. The Merger must not be used afterwards.
func (m *Merger) Result(src state.Source) (*Result, error) {
	if m.Taps() == 0 {
		return nil, fmt.Errorf("%w of %s", state.ErrNoState, sections.What)
	}
	options, s := m.survey.Options(), m.survey.Kept()
	defer s.Close()
	f := &fold{several: m.Taps() > 1}
	if f.several {
		if err := s.Choose(); err != nil {
			return nil, err
		}
		f.doubtful = s.Doubtful()
	}
	opt := Options{Profile: options.profile}
	for i := range rules {
		opt.Rules[i] = slices.Contains(options.rules, rules[i].ID)
	}
	f.out = &Result{Checker: New(opt, nil)}
	n := 0
	err := m.survey.Each(src, func(u *state.Unit, place int) error {
		t := &tap{}
		if _, err := sections.Read(u, func(c *state.Coder, _ *terms) { t.code(c) }); err != nil {
			return err
		}
		input := u.Input()
		f.add(n, t, s, place, &input)
		n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f.result(), nil
}

// add adds what counts of a tap: it is number n in the order of units, and unit is its place in s.
func (f *fold) add(n int, t *tap, s *state.Sightings, unit int, input *state.Input) {
	f.lost += min(t.lost, math.MaxUint64-f.lost)
	if t.more {
		f.twice++
	}
	before := first
	if f.several {
		before = earliest
	}
	at := 0
	for _, p := range t.pieces {
		number := 0
		if f.several && p.seen != nil {
			number, _ = s.Number(unit, at)
			at++
			if number == 0 {
				f.conns++
				f.skipped += len(p.found)
				continue
			}
		}
		key := ""
		if p.seen != nil && len(p.found) > 0 {
			key = string(rpc.AppendConnectionKey(nil, p.seen.Connection()))
		}
		f.out.Checker.apart.rest.merge(p.stats, before)
		f.out.Checker.apart.total.merge(p.total)
		for _, x := range p.found {
			if f.several {
				x.f.Connection = number
			}
			if x.f.Tap = input.Tap; input.Tap != "" {
				x.f.Capture, x.f.Packet = input.Of(x.f.Ref.Number)
				x.f.Key = key
			}
			f.list = append(f.list, entry{n, x})
		}
	}
	if len(f.list) > 2*maxMerged {
		f.limit()
	}
}

// order compares findings. Names of units do not decide between findings of connections, so the order does not depend on what else
// a unit has saved.
func (f *fold) order(a, b entry) int {
	if f.several {
		if d := cmp.Or(cmp.Compare(a.f.Ref.Time, b.f.Ref.Time), cmp.Compare(a.f.Connection, b.f.Connection), cmp.Compare(a.tap, b.tap)); d != 0 {
			return d
		}
	}
	return cmp.Compare(a.place, b.place)
}

// limit keeps the findings of greatest severity, and of equal ones the first.
func (f *fold) limit() {
	n := len(f.list) - maxMerged
	if n <= 0 {
		return
	}
	slices.SortFunc(f.list, func(a, b entry) int { return cmp.Or(cmp.Compare(b.f.Severity, a.f.Severity), f.order(a, b)) })
	f.cut += uint64(n)
	clear(f.list[maxMerged:])
	f.list = f.list[:maxMerged]
}

func (f *fold) result() *Result {
	f.limit()
	slices.SortFunc(f.list, f.order)
	errors := f.out.Checker.Totals()[Error]
	for _, e := range f.list {
		f.out.Findings = append(f.out.Findings, e.f)
		if e.f.Severity == Error {
			errors -= min(errors, 1)
		}
	}
	note := func(format string, args ...any) { f.out.Notes = append(f.out.Notes, fmt.Sprintf(format, args...)) }
	if f.lost > 0 {
		note("%d findings are counted, and not in the saved states: more than %d of a tap", f.lost, maxSaved)
	}
	if f.cut > 0 {
		note("%d findings are counted and not listed: more than %d of all taps", f.cut, maxMerged)
	}
	if f.lost+f.cut > 0 && errors > 0 {
		note("%d errors are counted and not listed", errors)
	}
	if f.conns > 0 {
		note("%d connections with %d findings are not counted: a tap nearer the responder saw them, too", f.conns, f.skipped)
	}
	if s := state.DoubtfulNote(f.doubtful); s != "" {
		note("%s", s)
	}
	if f.twice > 0 && f.several {
		note("%d taps saw more than %d connections: the others are counted even if another tap saw them, too", f.twice, maxOwn)
	}
	return f.out
}
