package filter

import (
	"strings"
	"time"
)

// maxDepth bounds the nesting of parentheses and negations.
const maxDepth = 200

// maxExpr bounds the length of an expression in bytes.
const maxExpr = 1 << 20

// tree is a parsed expression.
type tree interface{}

type (
	treeAnd []tree
	treeOr  []tree
	treeNot struct{ x tree }
	// treeTest is a comparison, or a field alone if op is opExists.
	treeTest struct {
		field token
		op    opcode
		opPos int
		args  []argument
	}
)

// argument is a literal, or a range of them.
type argument struct {
	lo, hi token
	ranged bool
}

type opcode uint8

const (
	opExists opcode = iota
	opEq
	opNe
	opAllEq
	opAnyNe
	opLt
	opLe
	opGt
	opGe
	opContains
	opMatches
	opIn
	opNotIn
	opMask
)

var opNames = [...]string{"exists", "==", "!=", "===", "!==", "<", "<=", ">", ">=", "contains", "matches", "in", "not in", "&"}

func (o opcode) String() string { return opNames[o] }

var opWords = map[string]opcode{
	"==": opEq, "=": opEq, "eq": opEq, "any_eq": opEq,
	"!=": opNe, "ne": opNe, "all_ne": opNe,
	"===": opAllEq, "all_eq": opAllEq,
	"!==": opAnyNe, "any_ne": opAnyNe,
	"<": opLt, "lt": opLt, "<=": opLe, "le": opLe, ">": opGt, "gt": opGt, ">=": opGe, "ge": opGe,
	"contains": opContains, "matches": opMatches, "~": opMatches, "in": opIn,
	"&": opMask, "bitwise_and": opMask,
}

// primitives take a value without an operator, as in tcpdump: "host 10.0.0.1".
var primitives = map[string]bool{"host": true, "net": true, "port": true}

type parser struct {
	lexer
	tok   token // the next one
	err   error
	depth int
}

func parse(expr string) (tree, error) {
	if len(expr) > maxExpr {
		return nil, &Error{Expr: expr[:64], Pos: 0, Found: first(expr), Expected: "an expression of at most 1 MiB"}
	}
	p := &parser{lexer: lexer{expr: expr}}
	p.advance()
	if p.err == nil && p.tok.kind == tokEnd {
		return nil, nil
	}
	t := p.or()
	if p.err == nil && p.tok.kind != tokEnd {
		p.fail(`"and", "or" or the end`, p.apart(t))
	}
	return t, p.err
}

// apart is a hint for a value, the last one of t, whose unit is the next token.
func (p *parser) apart(t tree) string {
	for {
		switch l := t.(type) {
		case treeOr:
			t = l[len(l)-1]
			continue
		case treeAnd:
			t = l[len(l)-1]
			continue
		}
		break
	}
	x, ok := t.(*treeTest)
	if !ok || len(x.args) != 1 || p.tok.kind != tokWord || strings.ContainsAny(p.tok.src[:1], "0123456789") {
		return ""
	}
	value := x.args[0].lo.src + p.tok.src
	if _, err := time.ParseDuration(value); err != nil {
		if _, ok := parseUint(value); !ok {
			return ""
		}
	}
	return "write " + value + " without a space"
}

func (p *parser) advance() {
	if p.err == nil {
		p.tok, p.err = p.next()
	}
	if p.err != nil {
		p.tok = token{pos: len(p.expr)}
	}
}

func (p *parser) fail(expected, hint string) {
	if p.err == nil {
		p.err = &Error{Expr: p.expr, Pos: p.tok.pos, Found: p.tok.src, Expected: expected, Hint: hint}
	}
	p.tok = token{pos: len(p.expr)}
}

// word reports whether the next token is one of these keywords or signs.
func (p *parser) word(all ...string) bool {
	if p.tok.kind != tokWord && p.tok.kind != tokPunct {
		return false
	}
	for _, w := range all {
		if strings.EqualFold(p.tok.src, w) {
			return true
		}
	}
	return false
}

// keyword reports whether the next token is a word that cannot be a field.
func (p *parser) keyword() bool {
	_, ok := opWords[strings.ToLower(p.tok.src)]
	return ok || p.word("and", "or")
}

func (p *parser) or() tree {
	l := treeOr{p.and()}
	for p.word("or", "||") {
		p.advance()
		l = append(l, p.and())
	}
	if len(l) == 1 {
		return l[0]
	}
	return l
}

func (p *parser) and() tree {
	l := treeAnd{p.unary()}
	for p.word("and", "&&") {
		p.advance()
		l = append(l, p.unary())
	}
	if len(l) == 1 {
		return l[0]
	}
	return l
}

func (p *parser) unary() tree {
	if p.depth++; p.depth > maxDepth {
		p.fail("less than 200 levels of parentheses and negations", "")
	}
	defer func() { p.depth-- }()
	switch {
	case p.err != nil:
		return nil
	case p.word("not", "!"):
		p.advance()
		return treeNot{p.unary()}
	case p.word("("):
		p.advance()
		t := p.or()
		if !p.word(")") {
			p.fail(`"and", "or" or ")"`, "")
			return nil
		}
		p.advance()
		return t
	case p.tok.kind != tokWord || p.keyword():
		p.fail(`a field, "not" or "("`, "")
		return nil
	}
	return p.test()
}

func (p *parser) test() tree {
	t := &treeTest{field: p.tok}
	p.advance()
	t.opPos = p.tok.pos
	op, ok := opExists, false
	if p.tok.kind == tokWord || p.tok.kind == tokPunct {
		op, ok = opWords[strings.ToLower(p.tok.src)]
	}
	switch {
	case ok:
		p.advance()
	case p.word("not"):
		p.advance()
		if !p.word("in") {
			p.fail(`"in"`, "")
			return nil
		}
		p.advance()
		op = opNotIn
	case primitives[strings.ToLower(t.field.src)] && p.tok.kind.literal() && !p.word("and", "or"):
		op = opEq
	default:
		return t
	}
	t.op = op
	if op == opIn || op == opNotIn {
		p.list(t)
		return t
	}
	t.args = []argument{{lo: p.literal()}}
	return t
}

func (p *parser) literal() token {
	if !p.tok.kind.literal() {
		p.fail("a value", "")
		return token{}
	}
	t := p.tok
	p.advance()
	return t
}

func (p *parser) list(t *treeTest) {
	if !p.word("{") {
		p.fail(`"{"`, "")
		return
	}
	p.set = true
	p.advance()
	for p.err == nil {
		a := argument{lo: p.literal()}
		if p.word("..") {
			p.advance()
			a.ranged, a.hi = true, p.literal()
		}
		t.args = append(t.args, a)
		if p.word(",") {
			p.advance()
			continue
		}
		if p.word("}") {
			break
		}
		if !p.tok.kind.literal() {
			p.fail(`"," or "}"`, "")
		}
	}
	p.set = false
	p.advance()
}
