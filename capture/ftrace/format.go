package ftrace

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Format is how a kernel lays out an event and prints it, as it says in the file "format" of the event in tracefs. It makes the text of
// the event out of its bytes, as tracefs would.
type Format struct {
	ID uint16 // the first two bytes of the event

	name   string // with the subsystem: rpcrdma:xprtrdma_reply
	fields map[string]field
	thread field
	ops    []op
}

// field is a part of an event.
type field struct {
	offset, size int
	dynamic      bool // its four bytes say where its value is, and how long that is
	text         bool // of characters
}

// op adds a part of the text.
type op struct {
	kind    opKind
	literal string
	field   field
	other   field // that field is compared with
	base    int
	width   int // minimum number of digits
	signed  bool
	names   map[uint64]string
	then    string // if field is below other, or not 0
	or      string // if it is not
}

type opKind uint8

const (
	opLiteral opKind = iota
	opNumber
	opText
	opAddress // a struct sockaddr
	opSymbol
	opBelow
	opTrue
)

// Bounds on what is read of a format.
const (
	maxFormat = 64 << 10
	maxOps    = 256
	maxDigits = 20
)

// NewFormat reads the text of a file "format". What is printed by means that are unknown here is shown as "?".
func NewFormat(system, text string) (*Format, error) {
	if len(text) > maxFormat {
		return nil, fmt.Errorf("a format of %d bytes", len(text))
	}
	f := &Format{fields: make(map[string]field)}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch key, value, _ := strings.Cut(line, ":"); key {
		case "name":
			f.name = system + ":" + strings.TrimSpace(value)
		case "ID":
			n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 16)
			if err != nil {
				return nil, fmt.Errorf("the number of an event: %w", err)
			}
			f.ID = uint16(n)
		case "field":
			if err := f.field(value); err != nil {
				return nil, err
			}
		case "print fmt":
			if err := f.print(strings.TrimSpace(value)); err != nil {
				return nil, err
			}
		}
	}
	var ok bool
	if f.thread, ok = f.fields["common_pid"]; !ok || f.name == "" || f.ID == 0 || f.ops == nil {
		return nil, errors.New("no format of an event")
	}
	return f, nil
}

// field reads
//
//	__data_loc char[] progname;	offset:24;	size:4;	signed:0;
func (f *Format) field(line string) error {
	declared, rest, _ := strings.Cut(line, ";")
	x := field{dynamic: strings.Contains(declared, "__data_loc "), text: strings.Contains(declared, "char[]") || strings.Contains(declared, "char ")}
	for part := range strings.SplitSeq(rest, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), ":")
		n, err := strconv.ParseUint(value, 10, 16)
		switch {
		case key != "offset" && key != "size":
		case err != nil:
			return fmt.Errorf("the place of a field: %w", err)
		case key == "offset":
			x.offset = int(n)
		default:
			x.size = int(n)
		}
	}
	name := declared[strings.LastIndexAny(declared, " *")+1:]
	name, _, _ = strings.Cut(name, "[")
	f.fields[name] = x
	return nil
}

// print reads what follows "print fmt:": a format of printf, and its arguments.
func (f *Format) print(text string) error {
	parts := split(text, ',')
	format, err := literals(parts[0])
	if err != nil {
		return err
	}
	parts = parts[1:]
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			i = len(format)
		}
		if i > 0 {
			f.ops = append(f.ops, op{literal: format[:i]})
		}
		if format = format[i:]; format == "" {
			break
		}
		verb, n := conversion(format)
		format = format[n:]
		switch {
		case verb.literal == "%":
			f.ops = append(f.ops, verb)
			continue
		case len(parts) == 0 || len(f.ops) >= maxOps:
			return errors.New("a format with fewer arguments than it prints, or too many")
		}
		f.ops = append(f.ops, f.argument(verb, parts[0]))
		parts = parts[1:]
	}
	if f.ops == nil {
		f.ops = []op{{}}
	}
	return nil
}

// conversion reads "%08x", "%lu", "%pISpc", and how long that is.
func conversion(s string) (op, int) {
	o := op{kind: opNumber, base: 10}
	i := 1
	for i < len(s) && (isDigit(s[i]) || strings.IndexByte("-+# .", s[i]) >= 0) {
		i++
	}
	width, _ := strconv.Atoi(strings.TrimLeft(s[1:i], "-+# ."))
	o.width = min(width, maxDigits)
	for i < len(s) && strings.IndexByte("hlzjtL", s[i]) >= 0 {
		i++
	}
	if i == len(s) {
		return op{literal: "?"}, i
	}
	switch c := s[i]; c {
	case '%':
		return op{literal: "%"}, i + 1
	case 'x', 'X':
		o.base = 16
	case 'd', 'i':
		o.signed = true
	case 's':
		o.kind = opText
	case 'p':
		for o.kind = opAddress; i+1 < len(s) && (s[i+1]|0x20 >= 'a' && s[i+1]|0x20 <= 'z' || isDigit(s[i+1])); {
			i++
		}
	}
	return o, i + 1
}

// argument completes a conversion with what it prints.
func (f *Format) argument(o op, text string) op {
	text = bare(text)
	unknown := op{literal: "?"}
	if cond, rest, ok := cut(text, '?'); ok {
		return f.choice(cond, rest)
	}
	name, args, call := strings.Cut(text, "(")
	args, closed := strings.CutSuffix(args, ")")
	switch {
	case !call:
		x, ok := f.value(text)
		if !ok || o.kind == opNumber && !integer(x.size) || o.kind == opText && !x.text {
			return unknown
		}
		o.field = x
	case !closed:
		return unknown
	case name == "__get_str" || name == "__get_sockaddr":
		x, ok := f.fields[strings.TrimSpace(args)]
		if !ok || !x.dynamic || (name == "__get_str") != (o.kind == opText) {
			return unknown
		}
		o.field = x
	case name == "__print_symbolic":
		parts := split(args, ',')
		x, ok := f.value(bare(parts[0]))
		if !ok || !integer(x.size) {
			return unknown
		}
		return op{kind: opSymbol, field: x, base: 16, names: symbols(parts[1:])}
	case name == "__print_flags":
		x, ok := f.value(bare(split(args, ',')[0]))
		if !ok || !integer(x.size) {
			return unknown
		}
		return op{kind: opSymbol, field: x, base: 16}
	default:
		return unknown
	}
	return o
}

// choice is of two texts.
func (f *Format) choice(cond, rest string) op {
	then, or, ok := cut(rest, ':')
	o := op{kind: opTrue}
	left, right, below := cut(cond, '<')
	x, ok1 := f.value(bare(left))
	ok = ok && ok1 && integer(x.size)
	if below {
		y, ok2 := f.value(bare(right))
		o.kind, o.other = opBelow, y
		ok = ok && ok2 && integer(y.size)
	}
	var err1, err2 error
	o.field = x
	o.then, err1 = literals(bare(then))
	o.or, err2 = literals(bare(or))
	if !ok || err1 != nil || err2 != nil {
		return op{literal: "?"}
	}
	return o
}

// value is the field of "REC->name".
func (f *Format) value(text string) (field, bool) {
	name, ok := strings.CutPrefix(text, "REC->")
	x, have := f.fields[name]
	return x, ok && have
}

func integer(size int) bool { return size == 1 || size == 2 || size == 4 || size == 8 }

// symbols reads { 0, "inline" }, { 1, "pullup" }. It leaves out entries whose value is not a number.
func symbols(parts []string) map[uint64]string {
	names := make(map[uint64]string)
	for _, p := range parts {
		p = strings.TrimSpace(p)
		p, _ = strings.CutPrefix(p, "{")
		p, _ = strings.CutSuffix(p, "}")
		value, name, _ := cut(p, ',')
		n, err1 := strconv.ParseUint(bare(value), 0, 64)
		s, err2 := literals(name)
		if err1 == nil && err2 == nil && len(names) < maxOps {
			names[n] = s
		}
	}
	return names
}

// bare takes the brackets and casts from around an expression.
func bare(s string) string {
	for s = strings.TrimSpace(s); strings.HasPrefix(s, "("); {
		depth, end := 0, -1
		for i := 0; i < len(s) && end < 0; i++ {
			switch s[i] {
			case '(':
				depth++
			case ')':
				if depth--; depth == 0 {
					end = i
				}
			}
		}
		switch rest := ""; {
		case end < 0:
			return s
		case end == len(s)-1:
			s = strings.TrimSpace(s[1:end])
		default:
			if rest = strings.TrimSpace(s[end+1:]); strings.Trim(s[1:end], "abcdefghijklmnopqrstuvwxyz_0123456789* ") != "" || strings.IndexByte("<?=&|+-", rest[0]) >= 0 {
				return s
			}
			s = rest
		}
	}
	return s
}

// split divides at a character that is neither in brackets nor in a string.
func split(s string, at byte) (parts []string) {
	for len(parts) < maxOps {
		first, rest, ok := cut(s, at)
		parts = append(parts, first)
		if !ok {
			break
		}
		s = rest
	}
	return parts
}

func cut(s string, at byte) (before, after string, ok bool) {
	depth, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				quoted = false
			}
		case c == at && depth == 0:
			return s[:i], s[i+1:], true
		case c == '"':
			quoted = true
		case c == '(' || c == '{':
			depth++
		case c == ')' || c == '}':
			depth--
		}
	}
	return s, "", false
}

// literals joins strings: "task:" "%08x".
func literals(s string) (string, error) {
	var b strings.Builder
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		q, err := strconv.QuotedPrefix(s)
		if err != nil || q[0] != '"' {
			return "", fmt.Errorf("no string: %.40q", s)
		}
		u, err := strconv.Unquote(q)
		if err != nil {
			return "", fmt.Errorf("no string: %.40q", q)
		}
		b.WriteString(u)
		s = s[len(q):]
	}
	return b.String(), nil
}

var native = binary.NativeEndian

// AppendLine adds the line of an event to b: the thread, the processor and the time, in nanoseconds, in which it came, and its text.
func (f *Format) AppendLine(b, event []byte, cpu int, at int64) []byte {
	b = strconv.AppendUint(b, f.thread.number(event), 10)
	b = append(b, " ["...)
	b = pad(b, uint64(cpu), 10, 3)
	b = append(b, "] "...)
	b = strconv.AppendInt(b, at/1e9, 10)
	b = append(b, '.')
	b = pad(b, uint64(at%1e9), 10, 9)
	b = append(b, ": "...)
	b = append(b, f.name...)
	b = append(b, ": "...)
	for i := range f.ops {
		b = f.ops[i].append(b, event)
	}
	return b
}

func (o *op) append(b, event []byte) []byte {
	switch o.kind {
	case opLiteral:
		return append(b, o.literal...)
	case opNumber:
		n := o.field.number(event)
		if o.signed {
			shift := 64 - 8*o.field.size
			return strconv.AppendInt(b, int64(n<<shift)>>shift, 10)
		}
		return pad(b, n, o.base, o.width)
	case opText:
		s := o.field.bytes(event)
		if i := bytes.IndexByte(s, 0); i >= 0 {
			s = s[:i]
		}
		for _, c := range s {
			if c < ' ' || c >= 0x7f {
				c = '?'
			}
			b = append(b, c)
		}
	case opAddress:
		return sockaddr(b, o.field.bytes(event))
	case opSymbol:
		n := o.field.number(event)
		if s, ok := o.names[n]; ok {
			return append(b, s...)
		}
		return strconv.AppendUint(append(b, "0x"...), n, o.base)
	case opBelow:
		if o.field.number(event) < o.other.number(event) {
			return append(b, o.then...)
		}
		return append(b, o.or...)
	case opTrue:
		if o.field.number(event) != 0 {
			return append(b, o.then...)
		}
		return append(b, o.or...)
	}
	return b
}

// number is the value of a field; 0 if the event ends before it.
func (x field) number(event []byte) uint64 {
	if x.offset > len(event)-x.size {
		return 0
	}
	switch v := event[x.offset : x.offset+x.size]; x.size {
	case 1:
		return uint64(v[0])
	case 2:
		return uint64(native.Uint16(v))
	case 4:
		return uint64(native.Uint32(v))
	case 8:
		return native.Uint64(v)
	}
	return 0
}

// bytes returns the contents of an array field.
func (x field) bytes(event []byte) []byte {
	offset, size := x.offset, x.size
	if x.dynamic {
		n := field{offset: x.offset, size: 4}.number(event)
		offset, size = int(n&0xffff), int(n>>16)
	}
	if offset > len(event)-size {
		return nil
	}
	return event[offset : offset+size]
}

// pad appends a number, padded to a minimum number of digits.
func pad(b []byte, n uint64, base, width int) []byte {
	at := len(b)
	b = strconv.AppendUint(b, n, base)
	have := len(b) - at
	for range width - have {
		b = append(b, '0')
	}
	if width > have {
		copy(b[at+width-have:], b[at:at+have])
		for i := at; i < at+width-have; i++ {
			b[i] = '0'
		}
	}
	return b
}

// Families of addresses (linux/socket.h).
const (
	familyIPv4 = 2
	familyIPv6 = 10
)

// sockaddr adds an address and its port.
func sockaddr(b, s []byte) []byte {
	if len(s) >= 8 {
		port := binary.BigEndian.Uint16(s[2:])
		switch family := native.Uint16(s); {
		case family == familyIPv4:
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte(s[4:])), port).AppendTo(b)
		case family == familyIPv6 && len(s) >= 24:
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(s[8:])), port).AppendTo(b)
		}
	}
	return append(b, '?')
}
