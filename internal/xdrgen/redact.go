package main

import "fmt"

// redacter writes a Redact method. Numbers that follow each other are copied at once.
type redacter struct {
	*emitter
	ahead int // bytes of numbers that have not been copied yet
}

// redact writes the Redact method of a structure.
func (e *emitter) redact(name string, ms []*member) {
	s := redacter{emitter: &emitter{model: e.model, at: e.at}}
	for _, m := range ms {
		s.item(m.typ)
	}
	s.catchUp()
	e.p("func (*%s) Redact(x *xdr.Redactor) {\n%s}\n", name, s.String())
}

// redactUnion writes the Redact method of a union.
func (e *emitter) redactUnion(name string, disc *member, arms []unionArm) {
	s := redacter{emitter: &emitter{model: e.model, at: e.at}}
	if e.simpleBool(disc, arms) {
		s.block("if x.Word() != 0 {", arms[0].typ)
	} else {
		s.choice("x.Word()", fmt.Sprintf("default:\nx.Fail(xdr.Value, %q)", disc.name), disc, arms, s.alone)
	}
	e.p("func (*%s) Redact(x *xdr.Redactor) {\n%s}\n", name, s.String())
}

// catchUp copies the numbers before the next item.
func (s *redacter) catchUp() {
	if s.ahead > 0 {
		s.p("x.Numbers(%d)", s.ahead)
		s.ahead = 0
	}
}

// alone copies an item, and leaves nothing to be copied.
func (s *redacter) alone(t *typ) {
	s.item(t)
	s.catchUp()
}

// block copies an item in a block of its own.
func (s *redacter) block(head string, t *typ) {
	s.p("%s", head)
	s.alone(t)
	s.p("}")
}

// numbers is the size of a type that consists of numbers that are kept.
func (s *redacter) numbers(t *typ) (int, bool) {
	size, ok := s.fixedSize(t)
	return size, ok && s.kept(t)
}

// kept reports whether a type of fixed size has nothing that is replaced.
func (s *redacter) kept(t *typ) bool {
	switch t.kind {
	case kOpaqueFixed:
		return false
	case kUint32, kUint64:
		return t.redact == ""
	case kArrayFixed:
		return s.kept(t.elem)
	case kStruct:
		for _, m := range s.structMembers(t.def) {
			if !s.kept(m.typ) {
				return false
			}
		}
	}
	return true
}

// item copies an item.
func (s *redacter) item(t *typ) {
	if n, ok := s.numbers(t); ok {
		s.ahead += n
		return
	}
	s.catchUp()
	class := "xdr." + t.redact
	if t.redact == "" {
		class = "xdr.Secret"
	}
	switch t.kind {
	case kUint32:
		s.p("x.Bytes(%s, 4)", class)
	case kUint64:
		s.p("x.Bytes(%s, 8)", class)
	case kOpaqueFixed:
		s.p("x.Bytes(%s, %d)", class, t.n)
	case kOpaque:
		s.p("x.Text(%s, %d)", class, t.n)
	case kData:
		s.p("x.Item(%s, %d)", class, t.n)
	case kStruct:
		none := "(*%s)(nil)"
		if t.def.kind == externDef {
			none = "new(%s)" // what it embeds may have the method
		}
		s.p(none+".Redact(x)", s.ref(t.def))
	default:
		s.items(t)
	}
}

// items copies items whose number has to be read.
func (s *redacter) items(t *typ) {
	s.depth++
	n := numberName(s.depth - 1)
	switch t.kind {
	case kArrayFixed:
		s.block(fmt.Sprintf("for range %d {", t.n), t.elem)
	case kOptional:
		s.block("if x.Word() != 0 {", t.elem)
	case kArray:
		s.block(fmt.Sprintf("for %s := x.Elements(%d, %d); %[1]s > 0 && !x.Failed(); %[1]s-- {", n, t.n, s.minSize(t.elem)), t.elem)
	case kList:
		if t.n == 0 {
			s.block("for x.Word() != 0 {", t.elem)
			break
		}
		s.block(fmt.Sprintf("for %s := 0; x.Word() != 0; %[1]s++ {\nif %[1]s >= %d {\nx.Fail(xdr.Range, \"\")\nreturn\n}", n, t.n), t.elem)
	}
	s.depth--
}
