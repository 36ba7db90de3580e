package connections

import (
	"fmt"
	"math"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// SectionKind is the kind of the section of connections in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "connections"
	SectionVersion = 7
)

// none are the options, of which no one has to be the same.
type none struct{}

// sections describes the sections of connections.
var sections = &state.Kind[none]{
	Name: SectionKind, Version: SectionVersion, What: "a list of connections",
	Code: func(*none, *state.Coder) {}, Differ: func(_, _ *none) string { return "" },
}

// tap is what one tap saw.
type tap struct {
	inputs  []string
	account *account.Account
	pieces  []*piece
	lost    uint64 // connections that were not saved
	more    bool   // there are connections whose calls were not remembered
}

func (t *tap) code(c *state.Coder) {
	state.List(c, &t.inputs, maxInputs, func(s *string) { c.Text(s, maxWords) })
	has := t.account != nil
	if c.Flag(&has); has {
		if t.account == nil {
			t.account = new(account.Account)
		}
		c.JSON(t.account, maxBytes)
		t.account.Finish()
	}
	state.Number(c, &t.lost)
	c.Flag(&t.more)
	state.List(c, &t.pieces, maxSaved, func(p **piece) {
		if *p == nil {
			*p = new(piece)
		}
		(*p).code(c)
	})
}

func (p *piece) code(c *state.Coder) {
	p.seen.Code(c)
	state.Number(c, &p.near)
	state.Number(c, &p.timed)
	if c.Blob(&p.body, max(len(p.body), len(c.Bytes()))); !c.Reading() || c.Err() != nil {
		return
	}
	p.conn = &Connection{Connection: new(rdma.Connection)}
	k := state.NewReader(p.body)
	if p.conn.code(k); k.End() != nil {
		c.Fail("a connection: %w", k.Err())
	}
}

// Merger merges what several taps saw. It goes through the units twice: Survey finds out which connections several
// taps saw, and Result lists each of them once, as the tap nearest the responder saw it.
type Merger struct {
	survey state.Survey[none, state.Sightings]
}

// NewMerger makes a Merger.
func NewMerger() *Merger {
	return &Merger{state.Survey[none, state.Sightings]{Kind: sections, New: func(*none) *state.Sightings { return new(state.Sightings) }}}
}

// FromUnits merges what the taps of all units saw, into list.
func FromUnits(src state.Source, list *List) (*Result, error) {
	m := NewMerger()
	if err := state.All(src, m); err != nil {
		return nil, err
	}
	return m.Result(src, list)
}

// Survey implements state.Surveyor. The order of units makes no difference.
func (m *Merger) Survey(u *state.Unit) error {
	t := &tap{}
	return m.survey.Add(u, func(c *state.Coder, _ *none) { t.code(c) }, func(s *state.Sightings) {
		views := make([]state.View, len(t.pieces))
		for i, p := range t.pieces {
			views[i] = state.View{Seen: &p.seen, Tap: u.Tap(), Near: p.near, Timed: p.timed}
		}
		s.Add(views)
	})
}

// Decide implements state.Surveyor: it ends the first pass.
func (m *Merger) Decide() []state.Left { return m.survey.Decide() }

// Taps is how many taps are merged.
func (m *Merger) Taps() int { return m.survey.Len() }

// Result is what is known beside the list.
type Result struct {
	Account *account.Account // nil if no tap has one
	Notes   []string
}

// Result adds the connections of all units, which src gives once more, to list. The Merger must not be used
// afterwards. Connections of one tap keep their numbers; those of several are numbered by their start.
func (m *Merger) Result(src state.Source, list *List) (*Result, error) {
	if m.Taps() == 0 {
		return nil, fmt.Errorf("%w of %s", state.ErrNoState, sections.What)
	}
	s, several := m.survey.Kept(), m.Taps() > 1
	if several {
		if err := s.Choose(); err != nil {
			return nil, err
		}
	}
	defer s.Close()
	out := &Result{}
	var sum account.Sum
	var lost uint64
	left, more, accounts := 0, 0, 0
	err := m.survey.Each(src, func(u *state.Unit, place int) error {
		t := &tap{}
		if _, err := sections.Read(u, func(c *state.Coder, _ *none) { t.code(c) }); err != nil {
			return err
		}
		lost += min(t.lost, math.MaxUint64-lost)
		if t.more {
			more++
		}
		if t.account != nil {
			out.Account = t.account
			sum.Add(t.account)
			accounts++
		}
		input := u.Input()
		for i, p := range t.pieces {
			if several {
				number, taps := s.Number(place, i)
				if number == 0 {
					left++
					continue
				}
				p.conn.ID, p.conn.Tap, p.conn.Taps = number, state.ShortName(t.inputs), taps
				p.conn.Capture, p.conn.Packet = input.Of(p.conn.First.Number)
			}
			list.Add(p.conn)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if accounts > 1 {
		out.Account = sum.Account()
	}
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	if lost > 0 {
		note("%d connections are not in the saved states: more than %d of a tap", lost, maxSaved)
	}
	if several {
		note("%d taps: connections are numbered by their start; frames are those of the tap that is named", m.Taps())
	}
	if left > 0 {
		note("%d times another tap saw a connection that is listed: as the tap nearest the responder saw it", left)
	}
	if x := state.DoubtfulNote(s.Doubtful()); x != "" {
		note("%s", x)
	}
	if more > 0 && several {
		note("%d taps saw calls on more than %d connections: the others may be listed once for each tap", more, maxCalled)
	}
	return out, nil
}
