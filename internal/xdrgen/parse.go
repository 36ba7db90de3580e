package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The syntax tree of a .x file. Names are as in the text.

type file struct {
	defs    []*def
	imports []importPragma
}

type importPragma struct {
	path, file string
	pos        pos
}

type defKind int

const (
	constDef defKind = iota
	typedefDef
	enumDef
	structDef
	unionDef
	externDef
	programDef
	versionDef
	procDef
)

// def is a definition, of any kind; most fields belong to some kinds only.
type def struct {
	kind defKind
	name string
	doc  string
	prag pragmas
	pos  pos
	pkg  string // import path, empty for the package that is generated

	value   string    // const, program, version, procedure: a number or a name
	members []*def    // enum (constDef), program (versionDef), version (procDef)
	decl    *decl     // typedef
	fields  []*decl   // struct
	disc    *decl     // union
	arms    []*arm    // union
	goName  string    // extern
	min     int       // extern
	leaf    bool      // extern: one field, shown by its method WalkField
	arg     string    // procedure: type name
	res     string    // procedure
	enum    *def      // the enum of a member
	list    bool      // struct: a linked list, whose last member has been dropped
	checked int       // state of the search for recursion
	typ     *typ      // resolved
	layout  []*member // struct
}

type shape int

const (
	plain shape = iota
	fixed
	variable
	optional
	void
)

type decl struct {
	name  string
	typ   string // a name, or a builtin type in canonical form
	shape shape
	bound string // of fixed and variable; empty without limit
	prag  pragmas
	pos   pos
}

type arm struct {
	labels    []string // of a case
	isDefault bool
	decl      *decl
}

// pragmas of one item: the words after each name.
type pragmas map[string][]string

type pos struct {
	file string
	line int
}

func (p pos) String() string { return fmt.Sprintf("%s:%d", p.file, p.line) }

type token struct {
	text   string // one punctuation mark, a word, or a line of pragmas
	doc    string // comment right before the token
	line   int
	pragma bool
}

// syntaxError is thrown by the parser and caught by its entry point.
type syntaxError struct{ error }

func fail(p pos, format string, args ...any) {
	panic(syntaxError{fmt.Errorf("%s: %s", p, fmt.Sprintf(format, args...))})
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex splits the text into tokens. The last one is empty.
func lex(name, s string) []token {
	l := lexer{name: name, s: s, line: 1}
	for l.i < len(l.s) {
		c := l.s[l.i]
		switch {
		case c == '\n':
			l.line++
			l.i++
		case c == ' ' || c == '\t' || c == '\r':
			l.i++
		case strings.HasPrefix(l.s[l.i:], "/*"):
			l.block()
		case strings.HasPrefix(l.s[l.i:], "//"):
			text := l.restOfLine()
			l.comment(strings.TrimSpace(text[2:]), l.line)
		case c == '%' && l.startsLine():
			text := l.restOfLine()
			l.token(token{text: strings.TrimSpace(text[1:]), pragma: true})
		default:
			l.word(c)
		}
	}
	return append(l.toks, token{line: l.line})
}

// lexer is a text that is split into tokens.
type lexer struct {
	name, s string
	i, line int // where it is
	toks    []token
	last    int    // line of the last token
	doc     string // comments that no token has got yet
	docEnd  int    // line of the last of them
}

// token adds a token with the comments right before it.
func (l *lexer) token(t token) {
	t.line = l.line
	if l.docEnd+1 >= l.line {
		t.doc = l.doc
	}
	l.doc = ""
	l.toks = append(l.toks, t)
	l.last = l.line
}

// comment keeps the text of a comment that begins in line start. A comment
// behind a token on the same line belongs to what precedes.
func (l *lexer) comment(text string, start int) {
	if start == l.last {
		return
	}
	if l.docEnd+1 < start {
		l.doc = ""
	}
	if l.doc != "" {
		l.doc += "\n"
	}
	l.doc += text
	l.docEnd = l.line
}

// block takes a comment between slashes and asterisks.
func (l *lexer) block() {
	body, _, ok := strings.Cut(l.s[l.i+2:], "*/")
	if !ok {
		fail(pos{l.name, l.line}, "comment does not end")
	}
	start := l.line
	var text []string
	for line := range strings.SplitSeq(body, "\n") {
		text = append(text, strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*")))
	}
	l.line += len(text) - 1
	l.comment(strings.Trim(strings.Join(text, "\n"), "\n"), start)
	l.i += len(body) + 4
}

// restOfLine takes the text up to the end of the line.
func (l *lexer) restOfLine() string {
	text, _, _ := strings.Cut(l.s[l.i:], "\n")
	l.i += len(text)
	return text
}

// startsLine reports whether nothing but space precedes on the line.
func (l *lexer) startsLine() bool {
	return strings.TrimSpace(l.s[strings.LastIndexByte(l.s[:l.i], '\n')+1:l.i]) == ""
}

// word takes a name, a number or a punctuation mark.
func (l *lexer) word(c byte) {
	end := l.i + 1
	if wordByte(c) || c == '-' {
		for end < len(l.s) && wordByte(l.s[end]) {
			end++
		}
	} else if !strings.ContainsRune("{}()[]<>;,:=*", rune(c)) {
		fail(pos{l.name, l.line}, "unexpected character %q", c)
	}
	l.token(token{text: l.s[l.i:end]})
	l.i = end
}

type parser struct {
	name string
	toks []token
	file *file
}

// parse reads a .x file. pkg is the import path of the package that holds its
// types, empty for the one that is generated.
func parse(name, text, pkg string) (f *file, err error) {
	defer func() {
		if e := recover(); e != nil {
			se, ok := e.(syntaxError)
			if !ok {
				panic(e)
			}
			err = se.error
		}
	}()
	p := &parser{name: name, toks: lex(name, text), file: &file{}}
	for p.peek() != "" || p.toks[0].pragma {
		p.definition(pkg)
	}
	return p.file, nil
}

func (p *parser) pos() pos     { return pos{p.name, p.toks[0].line} }
func (p *parser) peek() string { return p.toks[0].text }

func (p *parser) next() string {
	t := p.toks[0]
	if t.pragma {
		fail(p.pos(), "pragma out of place")
	}
	if len(p.toks) > 1 {
		p.toks = p.toks[1:]
	} else {
		fail(p.pos(), "unexpected end of file")
	}
	return t.text
}

func (p *parser) accept(s string) bool {
	if p.peek() == s && !p.toks[0].pragma {
		p.next()
		return true
	}
	return false
}

func (p *parser) expect(s string) {
	if !p.accept(s) {
		fail(p.pos(), "want %q, have %q", s, p.peek())
	}
}

func (p *parser) ident() string {
	if s := p.peek(); s == "" || s[0] >= '0' && s[0] <= '9' || !wordByte(s[0]) {
		fail(p.pos(), "want a name, have %q", s)
	}
	return p.next()
}

func (p *parser) value() string {
	s := p.peek()
	if s == "" || !wordByte(s[0]) && (s[0] != '-' || len(s) == 1) {
		fail(p.pos(), "want a number or a name, have %q", s)
	}
	if c := s[0]; c == '-' || c >= '0' && c <= '9' {
		if _, err := number(s); err != nil {
			fail(p.pos(), "%q is not a number", s)
		}
	}
	return p.next()
}

// number parses a literal; negative ones are in two's complement.
func number(s string) (uint64, error) {
	if strings.HasPrefix(s, "-") {
		v, err := strconv.ParseInt(s, 0, 64)
		return uint64(v), err
	}
	return strconv.ParseUint(s, 0, 64)
}

// pragma names, and whether they stand alone at the top level.
var pragmaNames = map[string]bool{
	"data": false, "flags": false, "enum": false, "time": false, "string": false,
	"bytes": false, "redact": false, "max": false, "status": false, "go": false, "name": false, "type": false,
	"pointer": false, "value": false, "operations": false, "open": false, "extern": true, "leaf": true, "import": true,
}

// pragmas reads the pragma lines before an item, and the comment before them.
func (p *parser) pragmas() (pragmas, string) {
	var prag pragmas
	doc := ""
	for p.toks[0].pragma {
		if doc == "" {
			doc = p.toks[0].doc
		}
		for _, part := range strings.Split(p.toks[0].text, ";") {
			w := strings.Fields(part)
			if len(w) == 0 {
				continue
			}
			top, known := pragmaNames[w[0]]
			switch {
			case !known:
				fail(p.pos(), "unknown pragma %q", w[0])
			case top:
				p.topPragma(w)
			default:
				if prag == nil {
					prag = pragmas{}
				}
				prag[w[0]] = w[1:]
			}
		}
		p.toks = p.toks[1:]
	}
	if d := p.toks[0].doc; d != "" {
		doc = d
	}
	return prag, doc
}

func (p *parser) topPragma(w []string) {
	switch {
	case w[0] == "import" && len(w) == 3:
		p.file.imports = append(p.file.imports, importPragma{path: w[1], file: w[2], pos: p.pos()})
	case (w[0] == "extern" || w[0] == "leaf") && (len(w) == 3 || len(w) == 4):
		d := &def{kind: externDef, name: w[1], goName: w[2], min: 4, leaf: w[0] == "leaf", pos: p.pos()}
		if len(w) == 4 {
			n, err := strconv.Atoi(w[3])
			if err != nil || n < 0 {
				fail(p.pos(), "bad size %q", w[3])
			}
			d.min = n
		}
		p.file.defs = append(p.file.defs, d)
	default:
		fail(p.pos(), "bad arguments of %%%s", w[0])
	}
}

func (p *parser) definition(pkg string) {
	prag, doc := p.pragmas()
	if p.peek() == "" {
		return
	}
	d := &def{doc: doc, prag: prag, pos: p.pos(), pkg: pkg}
	switch kw := p.next(); kw {
	case "const":
		d.kind, d.name = constDef, p.ident()
		p.expect("=")
		d.value = p.value()
	case "typedef":
		d.kind = typedefDef
		d.decl = p.declaration()
		d.decl.prag, d.name = prag, d.decl.name
		if d.decl.shape == void {
			fail(d.pos, "typedef of void")
		}
	case "enum":
		d.kind, d.name = enumDef, p.ident()
		p.enumBody(d, pkg)
	case "struct":
		d.kind, d.name = structDef, p.ident()
		p.expect("{")
		for !p.accept("}") {
			d.fields = append(d.fields, p.member())
		}
	case "union":
		d.kind, d.name = unionDef, p.ident()
		p.unionBody(d)
	case "program":
		d.kind, d.name = programDef, p.ident()
		p.programBody(d)
	default:
		fail(d.pos, "want a definition, have %q", kw)
	}
	p.expect(";")
	p.file.defs = append(p.file.defs, d)
}

func (p *parser) enumBody(d *def, pkg string) {
	p.expect("{")
	for {
		prag, doc := p.pragmas()
		m := &def{kind: constDef, pos: p.pos(), name: p.ident(), prag: prag, doc: doc, enum: d, pkg: pkg}
		p.expect("=")
		m.value = p.value()
		d.members = append(d.members, m)
		if !p.accept(",") {
			break
		}
		if p.peek() == "}" {
			break
		}
	}
	p.expect("}")
}

func (p *parser) member() *decl {
	prag, _ := p.pragmas()
	d := p.declaration()
	d.prag = prag
	p.expect(";")
	if d.shape == void {
		fail(d.pos, "void member of a struct")
	}
	return d
}

func (p *parser) unionBody(d *def) {
	p.expect("switch")
	p.expect("(")
	prag, _ := p.pragmas()
	d.disc = p.declaration()
	d.disc.prag = prag
	if d.disc.shape != plain {
		fail(d.disc.pos, "bad discriminant")
	}
	p.expect(")")
	p.expect("{")
	for !p.accept("}") {
		a := &arm{}
		var prag pragmas
		for {
			pr, _ := p.pragmas()
			if pr != nil {
				prag = pr
			}
			if p.accept("case") {
				a.labels = append(a.labels, p.value())
				p.expect(":")
			} else if p.accept("default") {
				a.isDefault = true
				p.expect(":")
			} else {
				break
			}
		}
		if len(a.labels) == 0 && !a.isDefault {
			fail(p.pos(), "want case or default, have %q", p.peek())
		}
		a.decl = p.declaration()
		a.decl.prag = prag
		p.expect(";")
		d.arms = append(d.arms, a)
	}
}

func (p *parser) programBody(d *def) {
	p.expect("{")
	for !p.accept("}") {
		prag, _ := p.pragmas()
		p.expect("version")
		v := &def{kind: versionDef, pos: p.pos(), name: p.ident(), prag: prag}
		p.expect("{")
		for !p.accept("}") {
			prag, _ := p.pragmas()
			pr := &def{kind: procDef, pos: p.pos(), prag: prag}
			pr.res = p.typeName()
			pr.name = p.ident()
			p.expect("(")
			pr.arg = p.typeName()
			p.expect(")")
			p.expect("=")
			pr.value = p.value()
			p.expect(";")
			v.members = append(v.members, pr)
		}
		p.expect("=")
		v.value = p.value()
		p.expect(";")
		d.members = append(d.members, v)
	}
	p.expect("=")
	d.value = p.value()
}

// canonical names of the builtin types, and the C spellings that are common.
var builtins = map[string]string{
	"int": "int32", "int32_t": "int32", "long": "int32",
	"uint32_t": "uint32", "u_int": "uint32", "u_long": "uint32", "u_int32_t": "uint32",
	"hyper": "int64", "int64_t": "int64",
	"u_hyper": "uint64", "uint64_t": "uint64", "u_int64_t": "uint64",
	"bool": "bool", "opaque": "opaque", "string": "string", "void": "void",
}

// typeName reads a type specifier and returns a definition's name, or the
// canonical name of a builtin type.
func (p *parser) typeName() string {
	at := p.pos()
	s := p.ident()
	switch s {
	case "unsigned":
		if p.accept("hyper") {
			return "uint64"
		}
		if !p.accept("int") {
			p.accept("long")
		}
		return "uint32"
	case "struct", "union", "enum":
		if p.peek() == "{" || s == "union" && p.peek() == "switch" {
			fail(at, "nested %s is not supported; give it a name", s)
		}
		return p.ident()
	case "float", "double", "quadruple":
		fail(at, "%s is not supported", s)
	}
	if b, ok := builtins[s]; ok {
		return b
	}
	return s
}

func (p *parser) declaration() *decl {
	d := &decl{pos: p.pos(), typ: p.typeName()}
	if d.typ == "void" {
		d.shape = void
		return d
	}
	if p.accept("*") {
		d.shape = optional
	}
	d.name = p.ident()
	open := p.peek()
	if open == "[" || open == "<" {
		if d.shape == optional {
			fail(d.pos, "array of optional items")
		}
		p.next()
		if open == "[" {
			d.shape = fixed
			d.bound = p.value()
			p.expect("]")
		} else {
			d.shape = variable
			if p.peek() != ">" {
				d.bound = p.value()
			}
			p.expect(">")
		}
	}
	switch {
	case d.typ == "opaque" && d.shape != fixed && d.shape != variable:
		fail(d.pos, "opaque %s needs a length", d.name)
	case d.typ == "string" && d.shape == plain:
		d.shape = variable // rpcgen's users leave the brackets out
	case d.typ == "string" && d.shape != variable:
		fail(d.pos, "string %s must be of variable length", d.name)
	}
	return d
}
