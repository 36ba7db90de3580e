package latency

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/decode"
)

// Merger makes one report of what several taps saw. It goes through the units twice: Survey finds out which
// connections several taps saw, and Report adds up what counts, one connection at a time. Beside the result it holds
// some 100 bytes for each unit and for each connection.
type Merger struct {
	survey state.Survey[terms, survey]
	top    int // -1: as many as were saved
	// Renumbered, if there is one, is told by Report how the connections of each unit are numbered: by their numbers in the unit, without
	// those that count elsewhere; nil if they keep theirs.
	Renumbered func(u *state.Unit, numbers map[int]int) error
}

// survey is what is kept of the units.
type survey struct {
	chooser state.Chooser
	numbers state.Numbering
	units   []surveyed // in the order in which they came
	err     error      // of the Chooser
}

// surveyed has the first numbers of a unit's connections in both.
type surveyed struct{ view, conn int }

// NewMerger makes a Merger.
func NewMerger() *Merger {
	return &Merger{survey: state.Survey[terms, survey]{Kind: sections, New: func(*terms) *survey { return &survey{} }}, top: -1}
}

// FromUnits makes a Merger of all units of a source, which must have the same options.
func FromUnits(src state.Source) (*Merger, error) {
	m := NewMerger()
	if err := state.All(src, m); err != nil {
		return nil, err
	}
	if m.Taps() == 0 {
		return nil, fmt.Errorf("%w of %s", state.ErrNoState, sections.What)
	}
	return m, nil
}

// Survey implements state.Surveyor. The order of units makes no difference.
func (m *Merger) Survey(u *state.Unit) error {
	t := &tap{}
	return m.survey.Add(u, func(c *state.Coder, o *terms) { t.code(c, o) }, func(s *survey) { s.add(u.Name(), u.Tap(), t) })
}

func (s *survey) add(name, at string, t *tap) {
	of := surveyed{view: s.chooser.Len(), conn: s.numbers.Len()}
	for _, x := range t.pieces {
		view := -1
		if x.seen != nil {
			view = s.chooser.Len()
			if err := s.chooser.Add(len(s.units), state.View{Seen: x.seen, Tap: at, Near: x.near, Timed: x.n}); err != nil && s.err == nil {
				s.err = err
			}
		}
		for _, n := range x.conns {
			s.numbers.Add(n.first, view, x.seen, name)
		}
	}
	s.units = append(s.units, of)
}

// Decide implements state.Surveyor: it ends the first pass.
func (m *Merger) Decide() []state.Left { return m.survey.Decide() }

// Top limits the number of slow transactions to n, and reports whether as many were saved.
func (m *Merger) Top(n int) bool {
	m.top = min(n, m.survey.Options().top)
	return n <= m.survey.Options().top
}

// Interval reports whether the states were collected with a given length of intervals.
func (m *Merger) Interval() (length time.Duration, given bool) {
	length = m.survey.Options().interval
	return length, length > 0
}

// Taps is how many taps are merged.
func (m *Merger) Taps() int { return m.survey.Len() }

// Report makes the report of the units, which src gives once more. The Merger must not be used afterwards.
//
// Of a connection that several taps saw, what one of them saw counts: see state.Choose.
func (m *Merger) Report(src state.Source) (*Report, error) {
	if m.Taps() == 0 {
		return nil, fmt.Errorf("%w of %s", state.ErrNoState, sections.What)
	}
	options, s := m.survey.Options(), m.survey.Kept()
	several, doubtful := m.Taps() > 1, ""
	if several {
		if err := cmp.Or(s.err, s.chooser.Choose()); err != nil {
			return nil, err
		}
		s.numbers.Finish(&s.chooser)
		doubtful = state.DoubtfulNote(s.chooser.Doubtful())
	}
	defer s.chooser.Close()
	f := newFold(*options, memory{limit: DefaultMemory / 2})
	if m.top >= 0 {
		f.top = m.top
	}
	sum := &source{doubtful: doubtful}
	err := m.survey.Each(src, func(u *state.Unit, place int) error {
		t := &tap{checked: true}
		if _, err := sections.Read(u, func(c *state.Coder, o *terms) { t.code(c, o) }); err != nil {
			return err
		}
		f.input = u.Input()
		sum.add(t)
		var c *choice
		var numbers map[int]int
		if several {
			c, numbers = sum.choose(t, s, s.units[place]), make(map[int]int)
			for _, list := range c.numbers {
				maps.Copy(numbers, list)
			}
		}
		if m.Renumbered != nil {
			if err := m.Renumbered(u, numbers); err != nil {
				return err
			}
		}
		return f.tap(options, t, c)
	})
	if err != nil {
		return nil, err
	}
	return f.report(sum), nil
}

// choice says what counts of a tap: the pieces that it has numbers for.
type choice struct {
	numbers map[*piece]map[int]int // new numbers of the connections in a piece
	silent  bool                   // intervals of the rest do not count: no connection does
}

// choose finds out what counts of a tap, and remembers for the notes what does not.
func (src *source) choose(t *tap, s *survey, of surveyed) *choice {
	c := &choice{numbers: make(map[*piece]map[int]int), silent: true}
	other := elsewhere{name: state.ShortName(t.inputs), inputs: t.inputs, beyond: t.beyond}
	for _, x := range t.pieces {
		counts := true
		if x.seen != nil {
			counts = s.chooser.Counts(of.view)
			of.view++
		}
		first := of.conn
		of.conn += len(x.conns)
		if !counts {
			other.conns++
			saturated(&other.transactions, x.all)
			continue
		}
		c.silent = c.silent && x.all == 0
		numbers := make(map[int]int, len(x.conns))
		for i, n := range x.conns {
			numbers[n.id] = s.numbers.Number(first + i)
		}
		c.numbers[x] = numbers
	}
	if other.conns > 0 || other.beyond > 0 {
		src.elsewhere = append(src.elsewhere, other)
	}
	return c
}

// tap adds what counts of a tap, which was saved with these options; c is nil if all does, and connections keep their
// numbers.
func (f *fold) tap(options *terms, t *tap, c *choice) error {
	for _, x := range t.pieces {
		var numbers map[int]int
		if c != nil {
			if numbers = c.numbers[x]; numbers == nil {
				continue
			}
		}
		p, err := x.load(options, &f.mem)
		if err != nil {
			return fmt.Errorf("%w: %w", state.ErrChanged, err)
		}
		if c != nil {
			// How many calls were in flight at a tap matters only if some of them count.
			if c.silent && x.all == 0 {
				p.series = series{}
			}
			p.renumber(f.by, numbers)
		}
		f.add(p, x.seen)
	}
	return nil
}

// source sums up what is known of the captures.
type source struct {
	taps           int
	inputs         []string
	packets, bytes uint64
	begun          bool
	first, last    int64
	one            *account.Account // of the only tap
	accounts       account.Sum
	accounted      bool
	overflow       bool
	elsewhere      []elsewhere
	doubtful       string // state.DoubtfulNote
	back           decode.Backwards
}

// elsewhere is what a tap saw that is counted elsewhere.
type elsewhere struct {
	name         string
	inputs       []string
	conns        int
	transactions uint64
	beyond       uint64
}

func (src *source) add(t *tap) {
	src.taps++
	if src.taps == 1 {
		src.inputs, src.first, src.last = t.inputs, t.first, t.last
	} else {
		src.inputs = append(src.inputs, t.inputs...)
	}
	src.overflow = saturated(&src.packets, t.packets) || src.overflow
	src.overflow = saturated(&src.bytes, t.bytes) || src.overflow
	if t.begun {
		if !src.begun || t.first < src.first {
			src.first = t.first
		}
		if !src.begun || t.last > src.last {
			src.last = t.last
		}
		src.begun = true
	}
	src.overflow = saturated(&src.back.Count, t.back.Count) || src.overflow
	src.back.Most = max(src.back.Most, t.back.Most)
	if src.back.First = t.back.First; src.taps > 1 {
		src.back.First = 0 // each tap has its own numbers
	}
	if src.one = t.account; t.account != nil {
		src.accounts.Add(t.account)
		src.accounted = true
	}
}

// account is the sum of all accounts; nil if there is none.
func (src *source) account() *account.Account {
	switch {
	case src.taps == 1:
		return src.one
	case src.accounted:
		return src.accounts.Account()
	}
	return nil
}

// namedTaps is how many taps are named in notes.
const namedTaps = 16

// finish sorts what is shown, and returns the notes.
func (src *source) finish() (notes []string) {
	if s := text.Backwards(&src.back); s != "" {
		notes = append(notes, s)
	}
	if src.taps == 1 {
		return notes
	}
	if src.inputs == nil {
		src.inputs = []string{}
	}
	if !src.begun {
		src.first, src.last = 0, 0
	}
	slices.Sort(src.inputs)
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if src.overflow {
		note("packets or bytes do not fit into 64 bits: they are the largest numbers that do")
	}
	note("%d taps: connections are numbered by their start, and calls in flight at once are counted at one tap", src.taps)
	slices.SortStableFunc(src.elsewhere, func(a, b elsewhere) int { return slices.Compare(a.inputs, b.inputs) })
	for _, x := range src.elsewhere[:min(len(src.elsewhere), namedTaps)] {
		if x.conns > 0 {
			note("%s: %d connections with %d transactions are not counted: a tap nearer the responder saw them, too", x.name, x.conns, x.transactions)
		}
		if x.beyond > 0 {
			note("%s: %d transactions of connections beyond its limit are counted, even if another tap saw them, too", x.name, x.beyond)
		}
	}
	if src.doubtful != "" {
		note("%s", src.doubtful)
	}
	if more := len(src.elsewhere) - namedTaps; more > 0 {
		note("%d more taps saw connections that another tap saw, too", more)
	}
	return notes
}
