package main

import (
	"maps"
	"path"
	"strconv"
	"strings"
)

// The resolved model: every declaration has a typ, which is what the emitter
// works with.

type kind int

const (
	kUint32 kind = iota
	kInt32
	kUint64
	kInt64
	kBool
	kEnum
	kOpaqueFixed
	kOpaque
	kData
	kStruct // struct, union or extern
	kArrayFixed
	kArray
	kOptional
	kList
)

type typ struct {
	kind kind
	def  *def   // enum, struct, union, extern
	elem *typ   // array, optional, list
	n    uint64 // length of a fixed one; limit of a variable one, 0 for none
	text bool   // opaque: show as text
	// redact is the class of an opaque, as package xdr calls it; empty for Secret.
	redact string
	show   string // type name for Begin
	// Ways to show an integer.
	flags  string // Go name of the table
	enumAs *def
}

// member is a field of a struct, the discriminant or an arm of a union.
type member struct {
	name    string // XDR
	goName  string
	typ     *typ // nil for void
	pointer bool
}

// table is the Go name and the elements of a list of named bits.
type table struct{ name, text string }

type model struct {
	pkg   string
	files []*file
	names map[string]*def // types and constants
	defs  []*def          // of the generated package, in order
	all   []*def          // and those of imported ones before them

	goNames map[string]*def
	flags   map[string]string // content of a table → its Go name
	tables  []table
	used    map[string]bool // Go names of tables
	imports map[string]bool
	wraps   map[string]*def
}

func newModel(pkg string, own, imported []*file) *model {
	m := &model{
		pkg: pkg, files: own, names: map[string]*def{}, goNames: map[string]*def{},
		flags: map[string]string{}, used: map[string]bool{}, imports: map[string]bool{}, wraps: map[string]*def{},
	}
	for _, f := range imported {
		seen := map[string]*def{}
		for _, d := range f.defs {
			m.register(d, seen)
		}
		m.all = append(m.all, f.defs...)
		maps.Copy(m.names, seen)
	}
	seen := map[string]*def{}
	for _, f := range own {
		for _, d := range f.defs {
			m.register(d, seen)
			m.defs = append(m.defs, d)
		}
	}
	maps.Copy(m.names, seen)
	m.all = append(m.all, m.defs...)
	for _, d := range m.defs {
		m.claim(d)
	}
	for _, d := range m.names {
		m.checkRecursion(d)
	}
	return m
}

// register enters a definition and what it contains.
func (m *model) register(d *def, seen map[string]*def) {
	if d.name != "" {
		if old := seen[d.name]; old != nil {
			fail(d.pos, "%s is already defined at %s", d.name, old.pos)
		}
		seen[d.name] = d
	}
	if d.kind == enumDef || d.kind == programDef || d.kind == versionDef {
		for _, c := range d.members {
			m.register(c, seen)
		}
	}
}

// claim makes sure that no two Go names are the same.
func (m *model) claim(d *def) {
	if d.kind != typedefDef && d.kind != externDef {
		n := m.localName(d)
		if old := m.goNames[n]; old != nil {
			fail(d.pos, "%s and %s (%s) have the same Go name %s", d.name, old.name, old.pos, n)
		}
		m.goNames[n] = d
	}
	for _, c := range d.members {
		m.claim(c)
	}
}

// goName applies the rule of the README.
func goName(s string, prag pragmas) string {
	if g := prag["go"]; len(g) == 1 {
		return g[0]
	}
	if s[0] >= 'A' && s[0] <= 'Z' {
		return s
	}
	var b strings.Builder
	for _, part := range strings.Split(s, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

func (m *model) localName(d *def) string {
	if d.kind == externDef {
		return d.goName
	}
	return goName(d.name, d.prag)
}

// ref is the Go expression for a definition, with its package.
func (m *model) ref(d *def) string {
	if d.pkg == "" {
		return m.localName(d)
	}
	m.imports[d.pkg] = true
	return path.Base(d.pkg) + "." + m.localName(d)
}

// constant evaluates a number or the name of a constant.
func (m *model) constant(s string, at pos) uint64 {
	for range 32 {
		if v, err := number(s); err == nil {
			return v
		}
		d := m.names[s]
		if d == nil || d.value == "" {
			fail(at, "%s is not a constant", s)
		}
		s = d.value
	}
	fail(at, "constant %s refers to itself", s)
	return 0
}

// checkRecursion turns linked lists into what they are and refuses every other
// recursion, so that no decoder can be made to recurse by its input.
func (m *model) checkRecursion(d *def) {
	switch d.checked {
	case 2:
		return
	case 1:
		fail(d.pos, "%s contains itself", d.name)
	}
	d.checked = 1
	if d.kind == structDef && len(d.fields) > 0 && m.selfPointer(d, d.fields[len(d.fields)-1]) {
		d.list = true
		d.fields = d.fields[:len(d.fields)-1]
	}
	var all []*decl
	switch d.kind {
	case typedefDef:
		all = append(all, d.decl)
	case structDef:
		all = d.fields
	case unionDef:
		for _, a := range d.arms {
			all = append(all, a.decl)
		}
	}
	for _, f := range all {
		if t := m.names[f.typ]; t != nil {
			// A typedef of a pointer to a list refers back to the struct that
			// is being looked at only through the member dropped above.
			m.checkRecursion(t)
		}
	}
	d.checked = 2
}

// selfPointer reports whether f is an optional d, by way of typedefs.
func (m *model) selfPointer(d *def, f *decl) bool {
	for range 32 {
		if f.shape == optional {
			return m.names[f.typ] == d
		}
		t := m.names[f.typ]
		if f.shape != plain || t == nil || t.kind != typedefDef {
			return false
		}
		f = t.decl
	}
	return false
}

var scalars = map[string]kind{
	"int32": kInt32, "uint32": kUint32, "int64": kInt64, "uint64": kUint64, "bool": kBool,
}

// base resolves a type name.
func (m *model) base(name string, at pos) *typ {
	if k, ok := scalars[name]; ok {
		return &typ{kind: k}
	}
	d := m.names[name]
	if d == nil {
		fail(at, "type %s is not defined", name)
	}
	switch d.kind {
	case typedefDef:
		if d.typ == nil {
			d.typ = m.resolve(d.decl)
		}
		return d.typ
	case enumDef:
		return &typ{kind: kEnum, def: d}
	case structDef, unionDef, externDef:
		return &typ{kind: kStruct, def: d, show: d.name}
	}
	fail(at, "%s is not a type", name)
	return nil
}

func (m *model) resolve(f *decl) *typ {
	t := m.resolveShape(f)
	if len(f.prag) > 0 {
		m.applyPragmas(t, f)
	}
	return t
}

func (m *model) resolveShape(f *decl) *typ {
	var n uint64
	if f.bound != "" {
		n = m.constant(f.bound, f.pos)
		if n == 0 || n > 1<<32-1 || f.shape == fixed && n > 4096 {
			fail(f.pos, "length %d of %s out of range", n, f.name)
		}
	}
	if f.typ == "opaque" || f.typ == "string" {
		if f.shape == fixed {
			return &typ{kind: kOpaqueFixed, n: n}
		}
		return &typ{kind: kOpaque, n: n, text: f.typ == "string"}
	}
	b := m.base(f.typ, f.pos)
	switch f.shape {
	case optional:
		if b.kind == kStruct && b.def.list {
			return &typ{kind: kList, elem: b}
		}
		return &typ{kind: kOptional, elem: b}
	case fixed:
		return &typ{kind: kArrayFixed, elem: b, n: n}
	case variable:
		return &typ{kind: kArray, elem: b, n: n}
	}
	if b.kind == kStruct && b.def.list {
		fail(f.pos, "%s is a linked list and needs a *", f.typ)
	}
	c := *b
	return &c
}

func (m *model) applyPragmas(t *typ, f *decl) {
	// On an array of integers a mask or an enum describes the elements.
	num := t
	for num.elem != nil && (num.kind == kArray || num.kind == kArrayFixed) {
		e := *num.elem
		num.elem = &e
		num = num.elem
	}
	for name, args := range f.prag {
		apply := fieldPragmas[name]
		if apply == nil || !apply(pragma{m, f, t, num, name, args}) {
			fail(f.pos, "pragma %%%s does not fit %s", name, f.name)
		}
	}
}

// pragma is a pragma of a field.
type pragma struct {
	m    *model
	f    *decl
	t    *typ // of the field
	num  *typ // of its elements, if it is an array
	name string
	args []string
}

// fieldPragmas apply the pragmas of fields. They return false for a field that a
// pragma does not fit.
var fieldPragmas = map[string]func(pragma) bool{
	"data":   pragma.data,
	"string": pragma.text,
	"bytes":  pragma.text,
	"max":    pragma.max,
	"flags":  pragma.flags,
	"enum":   pragma.enum,
	"type":   pragma.show,
	"redact": pragma.redact,
	"go":     func(p pragma) bool { return len(p.args) == 1 },
}

func (p pragma) data() bool {
	ok := p.t.kind == kOpaque
	p.t.kind = kData
	return ok
}

func (p pragma) text() bool {
	p.t.text = p.name == "string"
	return p.t.kind == kOpaque || p.t.kind == kOpaqueFixed
}

// classes are those of package xdr that a pragma may name.
var classes = map[string]string{
	"name": "Name", "path": "Path", "handle": "Handle", "who": "Who", "host": "Host",
	"owner": "Owner", "address": "Address", "known": "Known", "user": "User",
}

func (p pragma) redact() bool {
	k := p.t.kind
	if len(p.args) != 1 || k != kOpaque && k != kData && k != kOpaqueFixed && k != kUint32 && k != kUint64 {
		return false
	}
	p.t.redact = classes[p.args[0]]
	return p.t.redact != ""
}

func (p pragma) max() bool {
	k := p.t.kind
	if len(p.args) != 1 || k != kOpaque && k != kData && k != kArray && k != kList {
		return false
	}
	p.t.n = p.m.constant(p.args[0], p.f.pos)
	return true
}

// integers reports whether the field consists of integers.
func (p pragma) integers() bool { return p.num.kind <= kInt64 }

func (p pragma) flags() bool {
	if !p.integers() || len(p.args) == 0 {
		return false
	}
	p.num.flags = p.m.flagTable(p.args, p.f)
	return true
}

func (p pragma) enum() bool {
	if !p.integers() || len(p.args) != 1 {
		return false
	}
	d := p.m.names[p.args[0]]
	if d == nil || d.kind != enumDef {
		return false
	}
	p.num.enumAs = d
	return true
}

func (p pragma) show() bool {
	if len(p.args) != 1 || p.num.kind != kStruct {
		return false
	}
	p.num.show = p.args[0]
	return true
}

// flagTable returns the Go name of a table of bits.
func (m *model) flagTable(args []string, f *decl) string {
	var b strings.Builder
	add := func(d *def) {
		b.WriteString("{Mask: " + hex(m.constant(d.value, d.pos)) + ", Name: " + strconv.Quote(d.name) + "},\n")
	}
	for _, a := range args {
		if prefix, ok := strings.CutSuffix(a, "*"); ok {
			n := b.Len()
			for _, d := range m.allConstants() {
				if strings.HasPrefix(d.name, prefix) {
					add(d)
				}
			}
			if n == b.Len() {
				fail(f.pos, "no constant begins with %s", prefix)
			}
			continue
		}
		d := m.names[a]
		switch {
		case d != nil && d.kind == enumDef:
			for _, c := range d.members {
				add(c)
			}
		case d != nil && d.kind == constDef:
			add(d)
		default:
			fail(f.pos, "%s is neither a constant nor an enum", a)
		}
	}
	text := b.String()
	name := m.flags[text]
	if name == "" {
		name = "flags" + goName(f.name, nil)
		for n := 2; m.tableTaken(name); n++ {
			name = "flags" + goName(f.name, nil) + strconv.Itoa(n)
		}
		m.flags[text] = name
		m.tables = append(m.tables, table{name, text})
	}
	return name
}

func (m *model) tableTaken(name string) bool {
	for _, n := range m.flags {
		if n == name {
			return true
		}
	}
	return false
}

func (m *model) allConstants() []*def {
	var all []*def
	for _, d := range m.all {
		switch d.kind {
		case constDef:
			all = append(all, d)
		case enumDef:
			all = append(all, d.members...)
		}
	}
	return all
}

func hex(v uint64) string { return "0x" + strconv.FormatUint(v, 16) }

// reserved are the methods of generated types, which no field may have as its
// name.
var reserved = map[string]bool{
	"Decode": true, "Skip": true, "Redact": true, "Append": true, "EncodedSize": true, "Walk": true, "StatusCode": true,
}

func fieldName(f *decl) string {
	n := goName(f.name, f.prag)
	if c := n[0]; c < 'A' || c > 'Z' {
		n = "X" + n
	}
	if reserved[n] {
		n += "_"
	}
	return n
}

// structMembers resolves the members of a struct.
func (m *model) structMembers(d *def) []*member {
	if d.layout == nil {
		d.layout = []*member{}
		seen := map[string]bool{}
		for _, f := range d.fields {
			mem := &member{name: f.name, goName: fieldName(f), typ: m.resolve(f)}
			if seen[mem.goName] {
				fail(f.pos, "two members with the Go name %s", mem.goName)
			}
			seen[mem.goName] = true
			d.layout = append(d.layout, mem)
		}
	}
	return d.layout
}

type unionArm struct {
	*member
	labels    []string
	isDefault bool
}

// unionMembers resolves the discriminant and the arms of a union.
func (m *model) unionMembers(d *def) (disc *member, arms []unionArm) {
	disc = &member{name: d.disc.name, goName: fieldName(d.disc), typ: m.resolve(d.disc)}
	if k := disc.typ.kind; k > kEnum || k == kUint64 || k == kInt64 {
		fail(d.disc.pos, "bad type of a discriminant")
	}
	total := 0
	for _, a := range d.arms {
		mem := &member{}
		if a.decl.shape != void {
			mem = &member{name: a.decl.name, goName: fieldName(a.decl), typ: m.resolve(a.decl)}
			if mem.goName == disc.goName {
				fail(a.decl.pos, "arm %s has the name of the discriminant", a.decl.name)
			}
			for _, o := range arms {
				if o.goName == mem.goName {
					if o.typ.kind != mem.typ.kind || o.typ.def != mem.typ.def {
						fail(a.decl.pos, "arms named %s differ", mem.name)
					}
				}
			}
			total += m.goSize(mem.typ)
		}
		arms = append(arms, unionArm{mem, a.labels, a.isDefault})
	}
	_, pointers := d.prag["pointer"]
	_, values := d.prag["value"]
	if (pointers || total > 1024) && !values {
		for _, a := range arms {
			a.pointer = a.typ != nil && a.typ.kind == kStruct
		}
	}
	return disc, arms
}

// goSize estimates how many bytes a Go value takes.
func (m *model) goSize(t *typ) int {
	switch t.kind {
	case kUint32, kInt32, kBool, kEnum:
		return 4
	case kUint64, kInt64:
		return 8
	case kOpaqueFixed:
		return int(t.n)
	case kOpaque, kArray, kList:
		return 24
	case kData:
		return 40
	case kArrayFixed:
		return int(t.n) * m.goSize(t.elem)
	case kOptional:
		return 8 + m.goSize(t.elem)
	}
	d, n := t.def, 0
	switch d.kind {
	case externDef:
		return 256
	case structDef:
		for _, f := range m.structMembers(d) {
			n += m.goSize(f.typ)
		}
	case unionDef:
		disc, arms := m.unionMembers(d)
		n = m.goSize(disc.typ)
		for _, a := range arms {
			if a.pointer {
				n += 8
			} else if a.typ != nil {
				n += m.goSize(a.typ)
			}
		}
	}
	return n
}

// minSize is the least number of bytes that a value takes on the wire.
func (m *model) minSize(t *typ) int {
	switch t.kind {
	case kUint64, kInt64:
		return 8
	case kOpaqueFixed:
		return int(t.n+3) &^ 3
	case kArrayFixed:
		return int(t.n) * m.minSize(t.elem)
	case kStruct:
		d, n := t.def, 0
		switch d.kind {
		case externDef:
			return d.min
		case structDef:
			for _, f := range m.structMembers(d) {
				n += m.minSize(f.typ)
			}
		case unionDef:
			_, arms := m.unionMembers(d)
			least := -1
			for _, a := range arms {
				s := 0
				if a.typ != nil {
					s = m.minSize(a.typ)
				}
				if least < 0 || s < least {
					least = s
				}
			}
			n = 4 + max(least, 0)
		}
		return n
	}
	return 4
}

// fixedSize is the size on the wire of a type that always takes the same, or
// false.
func (m *model) fixedSize(t *typ) (int, bool) {
	switch t.kind {
	case kUint32, kInt32, kUint64, kInt64, kBool, kEnum, kOpaqueFixed:
		return m.minSize(t), true
	case kArrayFixed:
		n, ok := m.fixedSize(t.elem)
		return n * int(t.n), ok
	case kStruct:
		if t.def.kind != structDef {
			return 0, false
		}
		sum := 0
		for _, f := range m.structMembers(t.def) {
			n, ok := m.fixedSize(f.typ)
			if !ok {
				return 0, false
			}
			sum += n
		}
		return sum, true
	}
	return 0, false
}

// status returns the Go expression that leads from a value of d to an enum
// marked as status: the discriminant of a union, or the first such thing among
// the members of a struct. It is empty if there is none.
func (m *model) status(d *def) string {
	var ms []*member
	switch d.kind {
	case structDef:
		ms = m.structMembers(d)
	case unionDef:
		disc, _ := m.unionMembers(d)
		ms = []*member{disc}
	}
	for _, f := range ms {
		switch f.typ.kind {
		case kEnum:
			if _, ok := f.typ.def.prag["status"]; ok {
				return "." + f.goName
			}
		case kStruct:
			if s := m.status(f.typ.def); s != "" {
				return "." + f.goName + s
			}
		}
	}
	return ""
}

// statusFirst returns the entry of a procedure whose results begin with the status.
func (m *model) statusFirst(p *def) string {
	t := &typ{}
	if m.names[p.res] != nil {
		t = m.base(p.res, p.pos)
	}
	for t.kind == kStruct {
		var first *member
		switch t.def.kind {
		case structDef:
			first = m.structMembers(t.def)[0]
		case unionDef:
			first, _ = m.unionMembers(t.def)
		default:
			return ""
		}
		t = first.typ
	}
	if t.kind == kEnum {
		if _, ok := t.def.prag["status"]; ok {
			return ", StatusFirst: true"
		}
	}
	return ""
}

// message returns the Go constructor of a procedure's argument or result.
func (m *model) message(name string, at pos) string {
	if name == "void" {
		return "xdr.NewVoid"
	}
	field := &decl{name: name, typ: name, pos: at}
	if name == "string" {
		field.shape = variable
	} else if name == "opaque" {
		fail(at, "opaque needs a length")
	}
	t := m.resolveShape(field)
	d := t.def
	if t.kind != kStruct {
		d = m.wraps[name]
		if d == nil {
			d = &def{kind: structDef, name: name, prag: pragmas{"go": {goName(name, nil) + "Message"}}, pos: at, checked: 2}
			if n := m.names[name]; n != nil && len(n.prag["go"]) == 1 {
				d.prag["go"] = []string{n.prag["go"][0] + "Message"}
			}
			d.fields = []*decl{field}
			d.doc = "It carries a " + name + " as the argument or the result of a procedure."
			m.claim(d)
			m.wraps[name] = d
			m.defs = append(m.defs, d)
		}
	}
	return "xdr.New[" + m.ref(d) + "]"
}
