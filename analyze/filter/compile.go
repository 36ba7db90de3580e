package filter

import (
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// compiler turns a tree into nodes.
type compiler struct {
	expr   string
	fields map[string]*field // found so far, by name
	blame  bool              // one of them needs Transaction.Blame
}

func (c *compiler) field(t token) (*field, error) {
	if f, ok := c.fields[t.src]; ok {
		return f, nil
	}
	f, err := lookup(t.src, t.pos, c.expr)
	if err != nil {
		return nil, err
	}
	if c.fields == nil {
		c.fields = map[string]*field{}
	}
	c.fields[t.src] = f
	c.blame = c.blame || f.blame
	return f, nil
}

// node compiles a tree. cost is the cost of evaluating it.
func (c *compiler) node(t tree) (n node, cost int, err error) {
	switch t := t.(type) {
	case treeAnd:
		l, cost, err := c.nodes(t)
		return allOf(l), cost, err
	case treeOr:
		l, cost, err := c.nodes(t)
		return anyOf(l), cost, err
	case treeNot:
		x, cost, err := c.node(t.x)
		return noneOf{x}, cost, err
	}
	return c.test(t.(*treeTest))
}

// nodes compiles the terms of an "and" or "or" and puts cheap ones first. Terms have no side effects, so
// their order does not change the result.
func (c *compiler) nodes(terms []tree) ([]node, int, error) {
	type term struct {
		n    node
		cost int
	}
	var all []term
	sum := 0
	for _, t := range terms {
		n, cost, err := c.node(t)
		if err != nil {
			return nil, 0, err
		}
		all = append(all, term{n, cost})
		sum += cost
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].cost < all[j].cost })
	l := make([]node, len(all))
	for i := range all {
		l[i] = all[i].n
	}
	return l, sum, nil
}

// asListed is the field that a test is about: a status compared with "ok" is that
// of the listing.
func asListed(f *field, t *treeTest) *field {
	if f.name == "status" && t.op.equates() && slices.ContainsFunc(t.args, func(a argument) bool { return strings.EqualFold(a.lo.text, "ok") }) {
		return statusColumn()
	}
	return f
}

func (c *compiler) test(t *treeTest) (node, int, error) {
	f, err := c.field(t.field)
	if err != nil {
		return nil, 0, err
	}
	f = asListed(f, t)
	if f.kinds&^(kGroup|kCount) != 0 && t.op != opExists {
		// The members of a group have their own kinds; the group itself has no value.
		g := *f
		g.kinds &^= kGroup
		f = &g
	}
	n := &test{f: f}
	p := &n.p
	switch p.op = t.op; t.op {
	case opExists:
		return n, f.cost, nil
	case opNe:
		p.op, p.neg, p.all = opEq, true, true
	case opAllEq:
		p.op, p.all = opEq, true
	case opAnyNe:
		p.op, p.neg = opEq, true
	case opNotIn:
		p.op, p.neg, p.all = opIn, true, true
	}
	usable := f.kinds & t.op.fits()
	if f.textual && t.op >= opLt && t.op <= opGe {
		usable &^= kEnum // a symbol without a number has no order
	}
	if usable&^kCount == 0 {
		if f.kinds&^kGroup == 0 {
			return nil, 0, &Error{
				Expr: c.expr, Pos: t.field.pos, Found: t.field.src, Expected: "a field that has a value before " + t.op.String(),
				Hint: f.below(),
			}
		}
		return nil, 0, &Error{
			Expr: c.expr, Pos: t.opPos, Found: t.op.String(),
			Expected: "an operator that fits " + f.name + ", whose type is " + f.kinds.String(),
		}
	}
	for _, a := range t.args {
		l, err := c.literal(f, a.lo, usable, t.op)
		if err != nil {
			return nil, 0, err
		}
		if a.ranged {
			if l, err = c.ranged(f, a, usable); err != nil {
				return nil, 0, err
			}
		}
		p.lits = append(p.lits, l)
		if h, ok := listedXID(f, a); ok {
			p.lits = append(p.lits, h)
		}
	}
	if p.op == opEq && len(p.lits[0].symbols) == 1 {
		p.only = p.lits[0].symbols[0]
	}
	if t.op == opMatches {
		lit := t.args[0].lo
		if p.re, err = regexp.Compile(lit.text); err != nil {
			return nil, 0, &Error{
				Expr: c.expr, Pos: lit.pos, Found: lit.src, Expected: "a regular expression",
				Hint: strings.TrimPrefix(err.Error(), "error parsing regexp: "),
			}
		}
		return n, f.cost + 2, nil
	}
	return n, f.cost, nil
}

// literal checks that a value suits a field.
func (c *compiler) literal(f *field, t token, usable kindSet, op opcode) (literal, error) {
	if op == opContains || op == opMatches {
		l := parseLiteral(t, usable, nil, op)
		l.kinds |= usable & (kString | kEnum | kFlags | kAddr)
		if op == opMatches {
			l.kinds |= usable
		}
		if l.kinds&usable != 0 && (op == opMatches || l.text != "") {
			return l, nil
		}
		return l, c.mismatch(f, t, usable)
	}
	l := parseLiteral(t, usable, f.symbolList(), op)
	if f.name == "xid" && l.kinds&usable == 0 {
		if u, ok := xidText(t); ok {
			l.u, l.kinds = u, l.kinds|kUint
		}
	}
	if f.united && l.kinds&kDuration != 0 {
		if ns, err := strconv.ParseInt(t.text, 10, 64); err == nil && ns > 0 {
			return l, unitless(f, t, c.expr)
		}
	}
	if f.joined && len(l.symbols) == 0 {
		l.join(f.symbolList(), op)
	}
	if l.kinds&usable == 0 {
		err := c.mismatch(f, t, usable)
		if op >= opLt && op <= opGe && usable&(kEnum|kFlags) != 0 {
			err.Expected, err.Hint = (usable&^(kEnum|kFlags)|kUint).literals()+" for "+f.name, "symbols have no order"
		}
		return l, err
	}
	return l, nil
}

func (c *compiler) ranged(f *field, a argument, usable kindSet) (literal, error) {
	usable &= opLe.fits() | kAddr
	for _, t := range [...]token{a.lo, a.hi} {
		if ns, err := strconv.ParseInt(t.text, 10, 64); err == nil && ns > 0 && f.united && usable&kDuration != 0 {
			return literal{}, unitless(f, t, c.expr)
		}
	}
	lo := parseLiteral(a.lo, usable, nil, opGe)
	hi := parseLiteral(a.hi, usable, nil, opLe)
	if f.textual {
		usable &^= kEnum
	}
	if lo.kinds&usable == 0 {
		return lo, c.mismatch(f, a.lo, usable)
	}
	if hi.kinds&usable == 0 {
		return lo, c.mismatch(f, a.hi, usable)
	}
	if lo.kinds&hi.kinds&usable == 0 || lo.kinds&usable&kAddr != 0 && lo.prefix.Addr().BitLen() != hi.prefix.Addr().BitLen() {
		return lo, c.mismatch(f, a.hi, usable)
	}
	lo.kinds &= hi.kinds
	if lo.beyond(&hi, usable) {
		// It would match nothing, which looks like a capture without such transactions.
		e := c.mismatch(f, a.hi, usable)
		e.Expected, e.Hint = "the end of a range, not less than "+a.lo.text, ""
		return lo, e
	}
	lo.hi, lo.symbols, hi.symbols = &hi, nil, nil
	return lo, nil
}

// beyond reports whether the beginning of a range lies behind its end, in whatever form fields have it.
func (l *literal) beyond(hi *literal, usable kindSet) bool {
	kinds := l.kinds & usable
	if kinds&(kString|kBytes|kData) != 0 {
		return false
	}
	return kinds != 0 &&
		(kinds&(kUint|kEnum|kFlags) == 0 || l.u > hi.u) &&
		(kinds&kInt == 0 || l.i > hi.i) &&
		(kinds&kDuration == 0 || l.ns > hi.ns) &&
		(kinds&kTime == 0 || l.daily != hi.daily || compareTime(l.sec, l.nsec, hi) > 0) &&
		(kinds&kAddr == 0 || l.prefix.Addr().Compare(hi.prefix.Addr()) > 0)
}

// unitless is the error for a duration without a unit: "latency > 20" may be meant as milliseconds. Fields
// whose name includes the unit take plain numbers.
func unitless(f *field, t token, expr string) *Error {
	return &Error{
		Expr: expr, Pos: t.pos, Found: t.src, Expected: "a duration with a unit for " + f.name,
		Hint: "such as " + t.text + "ns, " + t.text + "us, " + t.text + "ms or " + t.text + "s",
	}
}

// xidText parses an XID as listings show it: eight hexadecimal digits.
func xidText(t token) (uint64, bool) {
	if len(t.text) != 8 {
		return 0, false
	}
	u, err := strconv.ParseUint(t.text, 16, 32)
	return u, err == nil
}

// listedXID is the second meaning of an XID of eight decimal digits. It may be a decimal number or copied
// from a listing, so either matches.
func listedXID(f *field, a argument) (literal, bool) {
	if f.name != "xid" || a.ranged {
		return literal{}, false
	}
	if _, err := strconv.ParseUint(a.lo.text, 10, 64); err != nil {
		return literal{}, false
	}
	u, ok := xidText(a.lo)
	return literal{text: a.lo.text, u: u, kinds: kUint}, ok
}

func (c *compiler) mismatch(f *field, t token, usable kindSet) *Error {
	e := &Error{Expr: c.expr, Pos: t.pos, Found: t.src}
	if usable&^kCount == 0 {
		e.Expected = "another test: " + f.name + " has no order"
		return e
	}
	e.Expected = usable.literals() + " for " + f.name
	if usable&(kEnum|kFlags) != 0 {
		symbols := f.symbolList()
		if e.Hint = didYouMean(t.text, symbols); e.Hint == "" {
			e.Hint = didYouMean(t.text, withoutPrefix(symbols))
		}
		if e.Hint == "" && len(symbols) > 0 && len(symbols) <= 8 {
			e.Hint = "one of " + strings.Join(symbols, ", ")
		}
	}
	return e
}

func withoutPrefix(symbols []string) []string {
	var all []string
	for _, s := range symbols {
		if _, rest, ok := strings.Cut(s, "_"); ok {
			all = append(all, rest)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
