package latency

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/account"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// SectionKind is the kind of a report's section in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "report"
	SectionVersion = 6
)

// sections describes the sections of reports.
var sections = &state.Kind[terms]{
	Name: SectionKind, Version: SectionVersion, What: "a report", Code: (*terms).code, Differ: (*terms).differs,
}

// State is what the report of one tap is made of.
type State struct {
	terms
	tap *tap
	mem memory
}

// tap is what one tap saw.
type tap struct {
	inputs  []string
	packets uint64
	bytes   uint64
	begun   bool // there was a packet
	first   int64
	last    int64
	back    decode.Backwards
	account *account.Account
	pieces  []*piece
	beyond  uint64 // transactions of connections that were not distinguished
	checked bool   // when reading: it was read before
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
	return &State{terms: termsOf(&r.opt, src.Filter), tap: newTap(src, []*piece{x}), mem: r.mem}
}

func newTap(src Source, pieces []*piece) *tap {
	t := &tap{
		inputs: listed(src.Inputs), packets: src.Packets, bytes: src.Bytes, begun: src.First.Seen(), first: src.First.Time, last: src.Last.Time, back: src.Backwards, pieces: pieces,
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

// newPiece describes a part, whose groups are settled; id is the number of its only connection, 0 if there may be several.
func newPiece(id int, seen *state.Seen, p *part) *piece {
	x := &piece{seen: seen, part: p}
	for _, g := range p.groups {
		x.all += g.Count
	}
	for i := range p.conns {
		x.conns = append(x.conns, numbered{p.conns[i].Connection, p.conns[i].First.UnixNano()})
	}
	if seen != nil && len(x.conns) == 0 {
		x.conns = []numbered{{id, seen.First}}
	}
	return x
}

// order is the order of pieces: by the numbers of their connections, and last what is of none in particular.
func (x *piece) order(o *piece) int {
	id := func(p *piece) int {
		if p.seen == nil || len(p.conns) == 0 {
			return math.MaxInt
		}
		return p.conns[0].id
	}
	return cmp.Compare(id(x), id(o))
}

// Join completes the section of a unit with what Collector.Ended had taken out before. The result has the bytes of a state from which
// nothing was taken out.
func Join(u *state.Unit, ended []*state.Unit) (state.Section, error) {
	read := func(u *state.Unit) (*terms, *tap, error) {
		t := &tap{checked: true}
		o, err := sections.Read(u, func(c *state.Coder, o *terms) { t.code(c, o) })
		return o, t, err
	}
	o, t, err := read(u)
	if err != nil {
		return state.Section{}, err
	}
	for _, e := range ended {
		p, x, err := read(e)
		if err == nil && o.differs(p) != "" {
			err = fmt.Errorf("%w: %s", state.ErrOptions, o.differs(p))
		}
		if err != nil {
			return state.Section{}, err
		}
		t.pieces = append(t.pieces, x.pieces...)
	}
	slices.SortStableFunc(t.pieces, (*piece).order)
	return sections.Section(o, func(c *state.Coder) { t.code(c, o) }), nil
}

// measure finds near and n, for which nobody asks until the piece is saved.
func (x *piece) measure() {
	list := make([]*Distribution, len(x.part.groups))
	for i, g := range x.part.groups {
		list[i] = g.phases[transaction.PhaseServer].distribution()
	}
	var server Distribution
	server.merge(list...)
	x.n, x.near = server.Count, server.P50
}

// Section encodes the state. Call it before Report.
func (s *State) Section() state.Section {
	return sections.Section(&s.terms, func(c *state.Coder) { s.tap.code(c, &s.terms) })
}

// Report makes the report. The State must not be used afterwards.
func (s *State) Report() *Report {
	f := newFold(s.terms, s.mem)
	src := &source{}
	src.add(s.tap)
	for _, x := range s.tap.pieces {
		if f.ran == nil && len(s.tap.pieces) == 1 {
			f.ran = x.part.order
		}
		f.add(x.part, x.seen)
	}
	return f.report(src)
}

// code codes a tap. All parts are checked when they are read for the first time.
func (t *tap) code(c *state.Coder, options *terms) {
	state.List(c, &t.inputs, maxParts, func(s *string) { c.Text(s, maxText) })
	state.Number(c, &t.packets)
	state.Number(c, &t.bytes)
	c.Flag(&t.begun)
	state.Signed(c, &t.first)
	state.Signed(c, &t.last)
	state.Number(c, &t.back.Count)
	state.Signed(c, &t.back.Most)
	state.Number(c, &t.back.First)
	if t.back.Most < 0 {
		c.Fail("the time goes back by less than nothing")
	}
	has := t.account != nil
	if c.Flag(&has); has {
		if t.account == nil {
			t.account = new(account.Account)
		}
		c.JSON(t.account, maxEncoded)
		t.account.Finish()
	}
	state.Number(c, &t.beyond)
	state.List(c, &t.pieces, maxParts+maxEnded, func(x **piece) {
		if *x == nil {
			*x = new(piece)
		}
		(*x).code(c, options, t.checked)
	})
}

func (x *piece) code(c *state.Coder, t *terms, checked bool) {
	has := x.seen != nil
	if c.Flag(&has); has {
		if x.seen == nil {
			x.seen = new(state.Seen)
		}
		x.seen.Code(c)
	}
	if x.part != nil {
		x.measure()
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
	if !checked {
		if _, err := x.load(t, &memory{limit: DefaultMemory / 2}); err != nil {
			c.Fail("a connection: %w", err)
		}
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
