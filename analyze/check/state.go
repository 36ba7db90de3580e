package check

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// SectionKind is the kind of the section of a Checker in a saved state, SectionVersion the version of its encoding.
const (
	SectionKind    = "check"
	SectionVersion = 1
)

// sections describes the sections of checks.
var sections = &state.Kind[terms]{
	Name: SectionKind, Version: SectionVersion, What: "a check", Code: (*terms).code, Differ: (*terms).differs,
}

const (
	maxText = 1 << 16
)

// terms are what must be the same of all states.
type terms struct {
	profile Profile
	rules   []string // IDs
	filter  string
}

// piece is what a tap found of a connection; seen is nil for what concerns none in particular.
type piece struct {
	seen  *state.Seen
	id    int
	near  int64
	timed uint64
	stats *table
	total *totals
	found []saved
}

// saved is a finding and its place among those of the tap.
type saved struct {
	place int
	f     *Finding
}

// tap is what one tap found.
type tap struct {
	pieces []*piece
	lost   uint64 // findings that were not kept
	more   bool   // there were connections that were not distinguished
}

// Section encodes what was found, with the filter that the findings were limited by. Call it after Finish and before Sum.
func (c *Checker) Section(filter string) state.Section {
	a := &c.apart
	rest := &piece{stats: &a.rest, total: &a.total}
	x := &tap{lost: a.lost, more: a.more, pieces: append(pieces(a.list), rest)}
	x.place(a.found)
	t := c.terms(filter)
	return sections.Section(&t, x.code)
}

func (c *Checker) terms(filter string) terms {
	t := terms{profile: c.opt.Profile, filter: filter}
	for i := range rules {
		if c.opt.Rules[i] {
			t.rules = append(t.rules, rules[i].ID)
		}
	}
	return t
}

func pieces(list []*own) (out []*piece) {
	for _, o := range list {
		near, n := o.near.Value()
		seen := o.seen
		seen.Calls = o.calls
		out = append(out, &piece{seen: &seen, id: o.id, near: near, timed: n, stats: &o.stats, total: &o.total})
	}
	slices.SortFunc(out, (*piece).order)
	return out
}

// order is the order of pieces: by the numbers of their connections, and last what is of none in particular.
func (p *piece) order(o *piece) int {
	id := func(p *piece) int {
		if p.seen == nil {
			return math.MaxInt
		}
		return p.id
	}
	return cmp.Compare(id(p), id(o))
}

// byID is the pieces of connections.
func (t *tap) byID() map[int]*piece {
	of := make(map[int]*piece)
	for _, p := range t.pieces {
		if p.seen != nil {
			of[p.id] = p
		}
	}
	return of
}

// place adds findings to the pieces of their connections, and to the last one what is of none.
func (t *tap) place(found []saved) {
	of := t.byID()
	for _, x := range found {
		p := of[x.f.Connection]
		if p == nil {
			p = t.pieces[len(t.pieces)-1]
		}
		p.found = append(p.found, x)
	}
}

// Ended takes out what was found of connections that ended before a packet. The section of the others is to be completed with it:
// see Join.
func (c *Checker) Ended(before rdma.Ref, filter string) (s state.Section, found bool) {
	a := &c.apart
	wait := make(map[*own]bool) // findings of them are still to be decided
	for i := range c.pending {
		wait[c.pending[i].c.own] = true
	}
	var ended, left []*own
	for _, o := range a.list {
		if o.last.Seen() && o.last.Before(before) && !wait[o] {
			ended = append(ended, o)
			delete(a.byID, o.id)
			a.gone.merge(&o.total)
		} else {
			left = append(left, o)
		}
	}
	a.list = left
	a.taken += len(ended)
	x := &tap{pieces: append(pieces(ended), &piece{stats: new(table), total: new(totals)})}
	of := x.byID()
	var taken, others []saved
	for _, f := range a.found {
		if of[f.f.Connection] == nil {
			others = append(others, f)
			continue
		}
		taken = append(taken, f)
		a.kept[f.f.Severity]--
	}
	a.found = others
	x.place(taken)
	t := c.terms(filter)
	return sections.Section(&t, x.code), len(ended) > 0
}

// Join completes the section of a unit with what Ended had taken out before.
func Join(u *state.Unit, ended []*state.Unit) (state.Section, error) {
	t := &tap{}
	read := func(u *state.Unit, t *tap) (*terms, error) {
		return sections.Read(u, func(c *state.Coder, _ *terms) { t.code(c) })
	}
	o, err := read(u, t)
	if err != nil {
		return state.Section{}, err
	}
	all := &tap{lost: t.lost, more: t.more}
	for _, e := range ended {
		x := &tap{}
		p, err := read(e, x)
		if err == nil && o.differs(p) != "" {
			err = fmt.Errorf("%w: %s", state.ErrOptions, o.differs(p))
		}
		if err != nil {
			return state.Section{}, err
		}
		all.pieces = append(all.pieces, slices.DeleteFunc(x.pieces, func(p *piece) bool { return p.seen == nil })...)
	}
	of := all.byID()
	for _, p := range t.pieces {
		switch was := of[p.id]; {
		case p.seen == nil: // also what came to light of connections that had ended
			p.found = slices.DeleteFunc(p.found, func(x saved) bool {
				was := of[x.f.Connection]
				if was == nil || len(was.found) >= maxSaved {
					return false
				}
				was.found = append(was.found, x)
				was.count(x.f, p)
				return true
			})
			all.pieces = append(all.pieces, p)
		case was == nil:
			all.pieces = append(all.pieces, p)
		default: // stragglers
			was.stats.merge(p.stats, first)
			was.total.merge(p.total)
			n := min(len(p.found), maxSaved-len(was.found))
			all.lost += uint64(len(p.found) - n)
			was.found = append(was.found, p.found[:n]...)
		}
	}
	slices.SortFunc(all.pieces, (*piece).order)
	for _, p := range all.pieces {
		slices.SortFunc(p.found, func(a, b saved) int { return cmp.Compare(a.place, b.place) })
	}
	return sections.Section(o, all.code), nil
}

// count counts a finding that another piece had counted.
func (p *piece) count(f *Finding, other *piece) {
	r := f.Rule.id
	n, m := p.stats.of(r), other.stats.of(r)
	n.add(f)
	m.Judged--
	m.Found--
	m.By[f.By]--
	if f.Known != "" {
		m.Known--
	}
	p.total[f.Severity]++
	other.total[f.Severity]--
}

// Sum completes the counts of a Checker that told connections apart: see Count. It must not be used to check
// afterwards.
func (c *Checker) Sum() {
	for _, o := range c.apart.list {
		c.apart.rest.merge(&o.stats, first)
		c.apart.total.merge(&o.total)
	}
	c.apart.total.merge(&c.apart.gone)
	c.apart.list, c.apart.byID = nil, nil
}

// first and earliest compare the first findings of two tables: by packet number, or by time where there are
// several captures.
func first(a, b rdma.Ref) bool { return a.Number < b.Number }

func earliest(a, b rdma.Ref) bool {
	return a.Time < b.Time || a.Time == b.Time && a.Number < b.Number
}

// merge adds counts. Sums that do not fit are the largest number.
func (t *table) merge(o *table, before func(a, b rdma.Ref) bool) {
	for r := range ruleCount {
		if !o.has(r) {
			continue
		}
		n, m := t.of(r), o.of(r)
		x, y := n.fields(), m.fields()
		for j := range x {
			sum, carry := bits.Add64(*x[j], *y[j], 0)
			if *x[j] = sum; carry != 0 {
				*x[j] = math.MaxUint64
			}
		}
		n.Worst = max(n.Worst, m.Worst)
		if m.First.Seen() && (!n.First.Seen() || before(m.First, n.First)) {
			n.First = m.First
		}
	}
}

func (t *totals) merge(o *totals) {
	for i := range t {
		t[i] += min(o[i], math.MaxUint64-t[i])
	}
}

// fields are all numbers of a Count.
func (n *Count) fields() []*uint64 {
	out := []*uint64{&n.Judged, &n.Found, &n.Known, &n.By[Unknown], &n.By[Requester], &n.By[Responder]}
	for i := range n.NotJudged {
		out = append(out, &n.NotJudged[i])
	}
	return out
}

func (t *terms) code(c *state.Coder) {
	state.Enum(c, &t.profile, len(Profiles))
	state.List(c, &t.rules, int(ruleCount), func(s *string) { c.Text(s, 128) })
	c.Text(&t.filter, maxText)
}

// differs says in what other options differ.
func (t *terms) differs(o *terms) string {
	switch {
	case t.profile != o.profile:
		return fmt.Sprintf("profiles %s and %s", t.profile, o.profile)
	case !slices.Equal(t.rules, o.rules):
		return "rules"
	case t.filter != o.filter:
		return fmt.Sprintf("filters %q and %q", t.filter, o.filter)
	}
	return ""
}

func (t *tap) code(c *state.Coder) {
	state.Number(c, &t.lost)
	c.Flag(&t.more)
	state.List(c, &t.pieces, maxOwn+maxEnded+1, func(p **piece) {
		if *p == nil {
			*p = new(piece)
		}
		(*p).code(c)
	})
}

func (p *piece) code(c *state.Coder) {
	has := p.seen != nil
	if c.Flag(&has); has {
		if p.seen == nil {
			p.seen = new(state.Seen)
		}
		p.seen.Code(c)
		state.Number(c, &p.id)
		state.Number(c, &p.near)
		state.Number(c, &p.timed)
	}
	if p.stats == nil {
		p.stats, p.total = new(table), new(totals)
	}
	for i := range p.total {
		state.Number(c, &p.total[i])
	}
	var used []id
	for r := range ruleCount {
		if p.stats.has(r) && *p.stats.of(r) != (Count{}) {
			used = append(used, r)
		}
	}
	n := len(used)
	c.Count(&n, 4, int(ruleCount))
	for i := range n {
		var r id
		if !c.Reading() {
			r = used[i]
		}
		if codeRule(c, &r); c.Err() != nil {
			return
		}
		p.stats.of(r).code(c)
	}
	state.List(c, &p.found, maxSaved, func(s *saved) {
		state.Number(c, &s.place)
		if s.f == nil {
			s.f = new(Finding)
		}
		s.f.code(c)
	})
}

// codeRule codes a rule by its ID, which does not change.
func codeRule(c *state.Coder, r *id) {
	name := ""
	if !c.Reading() {
		name = rules[*r].ID
	}
	if c.Text(&name, 128); !c.Reading() || c.Err() != nil {
		return
	}
	for i := range rules {
		if rules[i].ID == name {
			*r = id(i)
			return
		}
	}
	c.Fail("there is no rule %q", name)
}

func (n *Count) code(c *state.Coder) {
	for _, v := range n.fields() {
		state.Number(c, v)
	}
	state.Enum(c, &n.Worst, int(Error)+1)
	codeRef(c, &n.First)
}

func codeRef(c *state.Coder, r *rdma.Ref) {
	state.Signed(c, &r.Time)
	state.Number(c, &r.Number)
}

func (f *Finding) code(c *state.Coder) {
	var r id
	if !c.Reading() {
		r = f.Rule.id
	}
	codeRule(c, &r)
	f.Rule = &rules[r]
	state.Enum(c, &f.Severity, int(Error)+1)
	c.Text(&f.Known, maxText)
	codeRef(c, &f.Ref)
	state.Number(c, &f.Connection)
	state.Enum(c, &f.Fabric, rdma.Fabrics)
	c.Flag(&f.HasXID)
	state.Number(c, &f.XID)
	c.Flag(&f.Backward)
	c.Text(&f.Program, maxText)
	c.Text(&f.Operation, maxText)
	state.Number(c, &f.CallFrame)
	state.Number(c, &f.ReplyFrame)
	state.Enum(c, &f.By, int(Responder)+1)
	for _, e := range [...]*rdma.End{&f.From, &f.To} {
		c.Address(&e.Addr)
		state.Number(c, &e.Port)
		state.Number(c, &e.QPN)
	}
	for _, s := range [...]*string{&f.Expected, &f.Seen, &f.Reaction, &f.CallKey, &f.ReplyKey} {
		c.Text(s, maxText)
	}
}
