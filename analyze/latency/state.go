package latency

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// SectionKind is the kind of a report's section in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "report"
	SectionVersion = 1
)

// Errors of Merge. The text of the error says more.
var (
	ErrNoState = errors.New("there is no state of a report")
	ErrTerms   = errors.New("states of reports with different options cannot be merged")
)

// State is what reports are made of: what one or more taps saw.
type State struct {
	terms
	shown int // of the slowest transactions
	taps  []*tap
	mem   memory
}

// tap is what one tap saw.
type tap struct {
	name    string // see state.Unit; empty before it is saved
	inputs  []string
	packets uint64
	bytes   uint64
	begun   bool // there was a packet
	first   int64
	last    int64
	account *account.Account
	pieces  []*piece
	beyond  uint64 // transactions of connections that were not told apart
}

// piece is what a tap saw of a connection, as it is in memory or in a file.
type piece struct {
	seen *state.Seen // nil: of several connections, or of no connection in particular
	near int64       // median of the time in which the server answered, in nanoseconds
	n    uint64      // transactions that have a latency
	all  uint64      // transactions
	// conns are the numbers and times of the connections in it.
	conns []numbered

	part *part
	body []byte
}

// numbered is the number of a connection at its tap, and the time of its first packet.
type numbered struct {
	id    int
	first int64
}

// State is what the Recorder found, without telling connections apart. The Recorder must not be used afterwards.
func (r *Recorder) State(src Source) *State {
	p := r.part()
	x := newPiece(0, nil, p)
	return &State{terms: termsOf(&r.opt, src.Filter), shown: r.opt.Top, taps: []*tap{newTap(src, []*piece{x})}, mem: r.mem}
}

func newTap(src Source, pieces []*piece) *tap {
	t := &tap{
		inputs: listed(src.Inputs), packets: src.Packets, bytes: src.Bytes, begun: src.First.Seen(), first: src.First.Time, last: src.Last.Time, pieces: pieces,
	}
	if src.Account != nil {
		t.account = account.New(src.Account)
	}
	return t
}

// listed are as many inputs as a state can have. If there are more, the last one says how many.
func listed(inputs []string) []string {
	if len(inputs) <= maxParts {
		return inputs
	}
	n := maxParts - 1
	return append(slices.Clone(inputs[:n]), fmt.Sprintf("and %d more", len(inputs)-n))
}

// newPiece describes a part; id is the number of its only connection, 0 if there may be several.
func newPiece(id int, seen *state.Seen, p *part) *piece {
	x := &piece{seen: seen, part: p}
	var server Distribution
	for _, g := range p.groups {
		g.settle()
		x.all += g.Count
		server.merge(g.phases[transaction.PhaseServer].distribution())
	}
	x.n, x.near = server.Count, server.P50
	for i := range p.conns {
		x.conns = append(x.conns, numbered{p.conns[i].Connection, p.conns[i].First.UnixNano()})
	}
	if seen != nil && len(x.conns) == 0 {
		x.conns = []numbered{{id, seen.First}}
	}
	return x
}

// Section encodes the state of one tap. Call it before Report.
func (s *State) Section() state.Section {
	c := state.NewWriter(nil)
	s.terms.code(c)
	s.taps[0].code(c, &s.terms)
	return state.Section{Kind: SectionKind, Version: SectionVersion, Body: c.Bytes()}
}

// code codes a tap. All parts are checked when they are read.
func (t *tap) code(c *state.Coder, options *terms) {
	state.List(c, &t.inputs, maxParts, func(s *string) { c.Text(s, maxText) })
	state.Number(c, &t.packets)
	state.Number(c, &t.bytes)
	c.Flag(&t.begun)
	state.Signed(c, &t.first)
	state.Signed(c, &t.last)
	has := t.account != nil
	if c.Flag(&has); has {
		if t.account == nil {
			t.account = new(account.Account)
		}
		codeJSON(c, t.account)
		t.account.Finish()
	}
	state.Number(c, &t.beyond)
	state.List(c, &t.pieces, maxParts, func(x **piece) {
		if *x == nil {
			*x = new(piece)
		}
		(*x).code(c, options)
	})
}

func (x *piece) code(c *state.Coder, t *terms) {
	has := x.seen != nil
	if c.Flag(&has); has {
		if x.seen == nil {
			x.seen = new(state.Seen)
		}
		x.seen.Code(c)
	}
	state.Number(c, &x.near)
	state.Number(c, &x.n)
	state.Number(c, &x.all)
	state.List(c, &x.conns, maxAudited, func(n *numbered) {
		state.Number(c, &n.id)
		state.Signed(c, &n.first)
	})
	if !c.Reading() {
		body := x.body
		if x.part != nil {
			k := state.NewWriter(nil)
			x.part.code(k, t, nil)
			body = k.Bytes()
		}
		c.Blob(&body, len(body))
		return
	}
	if c.Blob(&x.body, len(c.Bytes())); c.Err() != nil {
		return
	}
	if _, err := x.load(t, &memory{limit: DefaultMemory / 2}); err != nil {
		c.Fail("a connection: %w", err)
	}
}

// load returns the part.
func (x *piece) load(t *terms, m *memory) (*part, error) {
	if x.part != nil {
		return x.part, nil
	}
	c := state.NewReader(x.body)
	p := &part{}
	p.code(c, t, m)
	return p, c.End()
}

// FromUnits returns the state of all units. Each must have a section of a report; all of them must have the same
// options.
func FromUnits(units []*state.Unit) (*State, error) {
	s := &State{mem: memory{limit: DefaultMemory / 2}}
	for i, u := range units {
		x := u.Section(SectionKind)
		switch {
		case x == nil:
			return nil, fmt.Errorf("%w: it was saved by another command", ErrNoState)
		case x.Version != SectionVersion:
			return nil, fmt.Errorf("%w: encoding %d of reports, and this program knows encoding %d", state.ErrVersion, x.Version, SectionVersion)
		}
		c := state.NewReader(x.Body)
		var options terms
		options.code(c)
		t := &tap{name: u.Name()}
		if c.Err() == nil {
			t.code(c, &options)
		}
		if err := c.End(); err != nil {
			return nil, fmt.Errorf("%w: report: %w", state.ErrDamaged, err)
		}
		if i == 0 {
			s.terms, s.shown = options, options.top
		} else if d := s.terms.differs(&options); d != "" {
			return nil, fmt.Errorf("%w: %s", ErrTerms, d)
		}
		s.taps = append(s.taps, t)
	}
	if len(s.taps) == 0 {
		return nil, ErrNoState
	}
	return s, nil
}

// differs says in what other options differ; it is empty if they are equal.
func (t *terms) differs(o *terms) string {
	names := func(by []Key) string {
		var s []string
		for _, k := range by {
			s = append(s, k.String())
		}
		return cmp.Or(strings.Join(s, ","), "none")
	}
	switch {
	case !slices.Equal(t.by, o.by):
		return fmt.Sprintf("groups by %s and by %s", names(t.by), names(o.by))
	case t.interval != o.interval:
		return fmt.Sprintf("intervals of %v and of %v (0s: chosen)", t.interval, o.interval)
	case t.top != o.top:
		return fmt.Sprintf("%d and %d slow transactions", t.top, o.top)
	case !slices.Equal(t.inline, o.inline):
		return "inline thresholds"
	case t.filter != o.filter:
		return fmt.Sprintf("filters %q and %q", t.filter, o.filter)
	}
	return ""
}

// Top limits the number of slow transactions to n, and reports whether as many were saved.
func (s *State) Top(n int) bool {
	s.shown = min(n, s.top)
	return n <= s.top
}

// Interval reports whether the state was collected with a given length of intervals.
func (s *State) Interval() (length time.Duration, given bool) { return s.interval, s.interval > 0 }

// Taps is how many taps the state has.
func (s *State) Taps() int { return len(s.taps) }

// Report makes the report. The State must not be used afterwards.
func (s *State) Report() *Report {
	f := newFold(s.terms, s.mem)
	f.top = s.shown
	chosen := s.choose()
	src := s.source(chosen)
	for _, x := range chosen {
		if !x.counts {
			continue
		}
		p, err := x.load(&s.terms, &f.mem)
		if err != nil {
			panic(err) // it could be read before
		}
		if f.ran == nil && len(chosen) == 1 {
			f.ran = p.order
		}
		if x.silent {
			p.series = series{}
		}
		if x.numbers != nil {
			p.renumber(s.by, x.numbers)
		}
		f.add(p)
	}
	rep := f.report(src)
	return rep
}

// choice is a piece that counts, or the same connection as one that does.
type choice struct {
	*piece
	tap     *tap
	counts  bool
	silent  bool        // its intervals do not count
	numbers map[int]int // new numbers of its connections; nil: they keep theirs
}

// choose decides which pieces count, and gives numbers to their connections. The result has them in an order that
// depends on nothing but what they are.
//
// Of a connection that several taps saw, those of one tap count: see state.Choose.
func (s *State) choose() []*choice {
	var all []*choice
	var views []state.View
	var of []*choice
	for _, t := range s.taps {
		for _, x := range t.pieces {
			c := &choice{piece: x, tap: t, counts: true}
			all = append(all, c)
			if x.seen != nil {
				views = append(views, state.View{Seen: x.seen, Tap: t.name, Near: x.near, Timed: x.n})
				of = append(of, c)
			}
		}
	}
	if len(s.taps) == 1 {
		return all
	}
	for i, counts := range state.Choose(views) {
		of[i].counts = counts
	}
	// How many calls were in flight at a tap matters only if some of them count.
	some := make(map[*tap]bool)
	for _, c := range all {
		some[c.tap] = some[c.tap] || c.counts && c.piece.all > 0
	}
	for _, c := range all {
		c.silent = !some[c.tap] && c.piece.all == 0
	}
	number(all)
	return all
}

// number numbers the connections of all pieces that count by their start.
func number(all []*choice) {
	type entry struct {
		of    *choice
		place int
		numbered
	}
	var list []entry
	for place, c := range all {
		if !c.counts {
			continue
		}
		c.numbers = make(map[int]int)
		for _, n := range c.conns {
			list = append(list, entry{c, place, n})
		}
	}
	slices.SortStableFunc(list, func(a, b entry) int {
		if d := cmp.Compare(a.first, b.first); d != 0 {
			return d
		}
		if x, y := a.of.seen, b.of.seen; x != nil && y != nil {
			if d := x.Compare(y); d != 0 {
				return d
			}
		}
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(a.id, b.id))
	})
	for i, e := range list {
		e.of.numbers[e.id] = i + 1
	}
}

// toldTaps is how many taps are named in notes.
const toldTaps = 16

// source sums up what is known of the captures.
func (s *State) source(chosen []*choice) *source {
	t := s.taps[0]
	src := &source{inputs: t.inputs, packets: t.packets, bytes: t.bytes, first: t.first, last: t.last, account: t.account}
	if len(s.taps) == 1 {
		return src
	}
	*src = source{inputs: []string{}}
	begun := false
	overflow := false
	var accounts []*account.Account
	for _, t := range s.taps {
		src.inputs = append(src.inputs, t.inputs...)
		overflow = saturated(&src.packets, t.packets) || overflow
		overflow = saturated(&src.bytes, t.bytes) || overflow
		if t.begun && (!begun || t.first < src.first) {
			src.first = t.first
		}
		if t.begun && (!begun || t.last > src.last) {
			src.last = t.last
		}
		begun = begun || t.begun
		if t.account != nil {
			accounts = append(accounts, t.account)
		}
	}
	slices.Sort(src.inputs)
	if len(accounts) > 0 {
		src.account = account.Merge(accounts...)
	}
	if overflow {
		src.notes = append(src.notes, "packets or bytes do not fit into 64 bits: they are the largest numbers that do")
	}
	src.notes = append(src.notes, fmt.Sprintf("%d taps: connections are numbered by their start, and calls in flight at once are counted at one tap", len(s.taps)))
	s.told(src, chosen)
	return src
}

// told says what taps saw that is counted elsewhere.
func (s *State) told(src *source, chosen []*choice) {
	type sums struct {
		t            *tap
		conns        int
		transactions uint64
	}
	of := make(map[*tap]*sums, len(s.taps))
	for _, t := range s.taps {
		of[t] = &sums{t: t}
	}
	for _, c := range chosen {
		if !c.counts {
			of[c.tap].conns++
			saturated(&of[c.tap].transactions, c.all)
		}
	}
	var list []*sums
	more := 0
	for _, t := range s.taps {
		if x := of[t]; x.conns > 0 || t.beyond > 0 {
			list = append(list, x)
		}
	}
	slices.SortStableFunc(list, func(a, b *sums) int {
		return cmp.Or(slices.Compare(a.t.inputs, b.t.inputs), strings.Compare(a.t.name, b.t.name))
	})
	for i, x := range list {
		if i >= toldTaps {
			more++
			continue
		}
		name := shortName(x.t.inputs)
		if x.conns > 0 {
			src.notes = append(src.notes, fmt.Sprintf("%s: %d connections with %d transactions are not counted: a tap nearer the responder saw them, too", name, x.conns, x.transactions))
		}
		if x.t.beyond > 0 {
			src.notes = append(src.notes, fmt.Sprintf("%s: %d transactions of connections beyond its limit are counted, even if another tap saw them, too", name, x.t.beyond))
		}
	}
	if more > 0 {
		src.notes = append(src.notes, fmt.Sprintf("%d more taps saw connections that another tap saw, too", more))
	}
}

func shortName(inputs []string) string {
	switch len(inputs) {
	case 0:
		return "a tap"
	case 1:
		return inputs[0]
	}
	return fmt.Sprintf("%s and %d more", inputs[0], len(inputs)-1)
}
