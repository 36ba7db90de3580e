// Package filter selects transactions by an expression, and picks fields of
// transactions by name. The language is described in docs/filter.md.
package filter

import "github.com/rpcrdma/toolkit/decode/rpc"

//go:generate go test -run "TestNamesAreCurrent" -update .
//go:generate go test -run "TestGuideListsFields" -update .

// Filter is a compiled expression. It has scratch memory, so only one goroutine at a time may use it; Clone
// makes a copy for another goroutine.
type Filter struct {
	expr  string
	root  node // nil: everything matches
	blame bool
	s     sink
}

// Compile compiles an expression. An empty one matches everything. The error
// is an *Error.
func Compile(expr string) (*Filter, error) {
	tree, err := parse(expr)
	if err != nil {
		return nil, err
	}
	f := &Filter{expr: expr}
	if tree == nil {
		return f, nil
	}
	c := compiler{expr: expr}
	if f.root, _, err = c.node(tree); err != nil {
		return nil, err
	}
	f.blame = c.blame
	return f, nil
}

// Blame reports whether the expression has fields that need Transaction.Blame. A nil
// Filter has none.
func (f *Filter) Blame() bool { return f != nil && f.blame }

// Match reports whether the expression holds for the transaction that v shows.
func (f *Filter) Match(v *rpc.View) bool {
	return f.root == nil || f.root.match(&f.s, v)
}

// String is the expression.
func (f *Filter) String() string { return f.expr }

// Clone returns a Filter with the same expression and its own scratch memory.
func (f *Filter) Clone() *Filter { return &Filter{expr: f.expr, root: f.root, blame: f.blame} }

// FieldRef is a field found by name. It has scratch memory, so only one goroutine at a time may use it.
type FieldRef struct {
	f *field
	s sink
}

// Field finds a field. The error is an *Error.
func Field(name string) (*FieldRef, error) {
	f, err := lookup(name, 0, name)
	if err != nil {
		return nil, err
	}
	return &FieldRef{f: f}, nil
}

// Blame reports whether the field needs Transaction.Blame.
func (r *FieldRef) Blame() bool { return r.f.blame }

// Info describes the field.
func (r *FieldRef) Info() FieldInfo { return r.f.info() }

// Append appends all values of the field as text, in the order in which they appear in the transaction.
// Numbers are decimal, durations nanoseconds, times RFC 3339 in UTC with nanoseconds, opaques hexadecimal,
// and symbols are names (or numbers if the protocol defines no name).
func (r *FieldRef) Append(dst []string, v *rpc.View) []string {
	s := &r.s
	s.collect, s.dst, s.stop = true, dst, false
	r.f.emit(s, v)
	dst = s.dst
	s.dst = nil
	return dst
}

// FieldInfo describes a field.
type FieldInfo struct {
	Name string
	// Type is number, count, duration, time, boolean, text, symbol, flags,
	// address, bytes, group, or several of them joined with "|".
	Type        string
	Description string
}

// node is a compiled expression.
type node interface {
	match(s *sink, v *rpc.View) bool
}

type (
	allOf  []node
	anyOf  []node
	noneOf struct{ x node }
	test   struct {
		f *field
		p predicate
	}
)

func (l allOf) match(s *sink, v *rpc.View) bool {
	for _, n := range l {
		if !n.match(s, v) {
			return false
		}
	}
	return true
}

func (l anyOf) match(s *sink, v *rpc.View) bool {
	for _, n := range l {
		if n.match(s, v) {
			return true
		}
	}
	return false
}

func (n noneOf) match(s *sink, v *rpc.View) bool { return !n.x.match(s, v) }

func (t *test) match(s *sink, v *rpc.View) bool {
	s.p = &t.p
	s.seen, s.hit, s.miss, s.stop = false, false, false, false
	t.f.emit(s, v)
	if t.p.all {
		return s.seen && !s.miss
	}
	return s.hit
}
