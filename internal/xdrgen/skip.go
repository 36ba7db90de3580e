package main

import (
	"fmt"
	"strings"
)

// skipper writes a Skip method. Items of fixed size are not looked at: their sizes are added to the offset of what
// follows them.
type skipper struct {
	*emitter
	ahead int // bytes that the variable off does not count yet
	vars  int // numbers in use: n0, and n1 in what n0 counts, …
}

// skip writes the Skip method of a structure.
func (e *emitter) skip(name string, ms []*member) {
	s := skipper{emitter: &emitter{model: e.model, at: e.at}}
	for _, m := range ms {
		s.item(m.typ)
	}
	e.p("func (*%s) Skip(r *xdr.Reader, off uint) uint {\n%s%sreturn %s\n}\n", name, s.declared(), s.String(), s.off())
}

// skipUnion writes the Skip method of a union.
func (e *emitter) skipUnion(name string, disc *member, arms []unionArm) {
	s := skipper{emitter: &emitter{model: e.model, at: e.at}}
	if e.simpleBool(disc, arms) {
		s.block("if v != 0 {", arms[0].typ)
	} else {
		s.choice("v", "default:\nreturn xdr.Beyond", disc, arms, s.alone)
	}
	e.p("func (*%s) Skip(r *xdr.Reader, off uint) uint {\nv, off := r.SkipWord(off)\n%s%sreturn off\n}\n", name, s.declared(), s.String())
}

// choice writes a switch between the arms of a union by the discriminant, which word reads. arm writes one of them, missing is what is
// done for values without one.
func (e *emitter) choice(word, missing string, disc *member, arms []unionArm, arm func(*typ)) {
	value := word
	switch disc.typ.kind {
	case kInt32:
		value = "int32(" + word + ")"
	case kBool:
		value, missing = word+" != 0", ""
	case kEnum:
		value = e.ref(disc.typ.def) + "(" + word + ")"
	}
	e.p("switch %s {", value)
	if e.cases(disc, arms, func(a unionArm) { arm(a.typ) }) {
		missing = ""
	}
	e.p("%s\n}", missing)
}

// cases writes the cases of the arms, and reports whether one of them is the default.
func (e *emitter) cases(disc *member, arms []unionArm, body func(unionArm)) (all bool) {
	for _, a := range arms {
		if a.isDefault {
			all = true
			e.p("default:")
		} else {
			var ls []string
			for _, l := range a.labels {
				ls = append(ls, e.label(l, disc.typ))
			}
			e.p("case %s:", strings.Join(ls, ", "))
		}
		if a.typ != nil {
			body(a)
		}
	}
	return all
}

// declared declares the numbers in use.
func (s *skipper) declared() string {
	var names []string
	for i := range s.vars {
		names = append(names, numberName(i))
	}
	if len(names) == 0 {
		return ""
	}
	return "var " + strings.Join(names, ", ") + " uint32\n"
}

func numberName(depth int) string { return fmt.Sprintf("n%d", depth) }

// number takes a number into use.
func (s *skipper) number() string {
	s.depth++
	s.vars = max(s.vars, s.depth)
	return numberName(s.depth - 1)
}

// off is the expression of the offset.
func (s *skipper) off() string {
	n := s.ahead
	s.ahead = 0
	if n == 0 {
		return "off"
	}
	return fmt.Sprintf("off + %d", n)
}

// alone passes over an item, of which nothing is left to be added.
func (s *skipper) alone(t *typ) {
	s.item(t)
	s.catchUp()
}

// catchUp has the variable off count all bytes.
func (s *skipper) catchUp() {
	if s.ahead > 0 {
		s.p("off += %d", s.ahead)
		s.ahead = 0
	}
}

// block passes over an item in a block of its own.
func (s *skipper) block(head string, t *typ) {
	s.p("%s", head)
	s.alone(t)
	s.p("}")
}

// item passes over an item.
func (s *skipper) item(t *typ) {
	if n, ok := s.fixedSize(t); ok {
		s.ahead += n
		return
	}
	switch t.kind {
	case kOpaque:
		s.p("off = r.SkipOpaque(%s, %d)", s.off(), t.n)
	case kData:
		s.p("off = r.SkipData(%s, %d)", s.off(), t.n)
	case kStruct:
		none := "(*%s)(nil)"
		if t.def.kind == externDef {
			none = "new(%s)" // what it embeds may have the method
		}
		s.p("off = "+none+".Skip(r, %s)", s.ref(t.def), s.off())
	default:
		s.items(t)
	}
}

// items passes over items whose number has to be read.
func (s *skipper) items(t *typ) {
	if n, ok := s.fixedSize(t.elem); ok && t.kind == kArray {
		s.p("off = r.SkipArray(%s, %d, %d)", s.off(), t.n, n)
		return
	}
	if t.kind == kArrayFixed {
		s.catchUp()
		s.block(fmt.Sprintf("for range %d {", t.n), t.elem)
		return
	}
	off, n := s.off(), s.number()
	switch t.kind {
	case kOptional:
		s.block(fmt.Sprintf("if %s, off = r.SkipWord(%s); %[1]s != 0 {", n, off), t.elem)
	case kArray:
		s.block(fmt.Sprintf("for %s, off = r.SkipCount(%s, %d, %d); %[1]s > 0 && off < xdr.Beyond; %[1]s-- {", n, off, t.n, s.minSize(t.elem)), t.elem)
	case kList:
		head := fmt.Sprintf("for %s, off = r.SkipWord(%s); %[1]s != 0; %[1]s, off = r.SkipWord(off) {", n, off)
		if t.n == 0 {
			s.block(head, t.elem)
			break
		}
		c := s.number()
		s.block(fmt.Sprintf("%s = 0\n%s\nif %[1]s++; %[1]s > %[3]d {\nreturn xdr.Beyond\n}", c, head, t.n), t.elem)
		s.depth--
	}
	s.depth--
}
