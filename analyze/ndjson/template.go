package ndjson

import (
	"strings"
	"sync"

	"github.com/rpcrdma/toolkit/analyze/fields"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/digits"
	"github.com/rpcrdma/toolkit/internal/printable"
)

// template is an object with holes for what differs between the transactions of a kind.
type template struct {
	kind   kind // unless it is the general one
	pieces []piece
	text   string // behind the last piece
}

// piece is a text, and what is behind it.
type piece struct {
	text    string
	key     int // how many bytes at the end of text are the key
	hole    hole
	uint    func(*fields.Reader, *rpc.View) (uint64, bool) // of number, stamp
	field   *fields.Field
	write   func(b []byte, v *rpc.View) []byte // of list
	open    func(e *Encoder, v *rpc.View) bool // of nested: reports whether there is one
	members *template                          // of nested
}

// hole is what fills it.
type hole uint8

const (
	other  hole = iota // what Field.Read tells the row
	number             // Field.Uint
	stamp              // likewise, a time
	quoted             // Field.Bytes
	handle             // likewise, in hex
	list               // piece.write
	nested             // the members
	ends               // the parties
)

// holeOf is the hole for an attribute.
func holeOf(f *fields.Field) hole {
	switch {
	case f.Bytes != nil && f.Type == fields.Bytes:
		return handle
	case f.Bytes != nil:
		return quoted
	case f.Uint != nil && f.Type == fields.Time:
		return stamp
	case f.Uint != nil && f.Type != fields.Boolean:
		return number
	}
	return other
}

// nothing is what stands for a value that is not there, with its key, by fields.Absent.
var nothing = [...]string{fields.Null: "null", fields.Empty: `""`, fields.Zero: "0", fields.Never: ""}

// append appends the object of a transaction.
func (t *template) append(e *Encoder, b []byte, v *rpc.View) []byte {
	for i := range t.pieces {
		p := &t.pieces[i]
		b = append(b, p.text...)
		if p.hole == number {
			if n, ok := p.uint(&e.reader, v); ok && int64(n) >= 0 {
				b = digits.Append(b, n)
				continue
			}
		}
		b = p.fill(e, b, v)
	}
	return append(b, t.text...)
}

// fill appends what is behind the text of a piece.
func (p *piece) fill(e *Encoder, b []byte, v *rpc.View) []byte {
	before := len(b)
	switch p.hole {
	case stamp:
		if n, ok := p.uint(&e.reader, v); ok {
			return append(e.clock.append(append(b, '"'), int64(n)), '"')
		}
	case quoted, handle:
		if s := p.field.Bytes(&e.reader, v); s != nil {
			return p.bytes(b, s)
		}
	case list:
		if !p.field.Unrecorded(v) {
			b = p.write(b, v)
		}
	case nested:
		if p.open(e, v) {
			if b = p.members.append(e, b, v); len(b) == before {
				b = append(b, '{')
			}
			b[before] = '{' // the first member needs no comma
			return append(b, '}')
		}
	case ends:
		return append(b, e.parties(v)...)
	default: // and numbers that are not there, or below 0
		e.row.b = b
		p.field.Read(&e.reader, v)
		b, e.row.b = e.row.b, nil
	}
	switch {
	case len(b) > before:
		return b
	case p.field.Unrecorded(v):
		return append(b, "null"...)
	case p.field.Absent == fields.Omitted:
		return b[:len(b)-p.key]
	}
	return append(b, nothing[p.field.Absent]...)
}

// bytes appends a name or a handle.
func (p *piece) bytes(b, s []byte) []byte {
	if p.hole == handle {
		return append(digits.Hex(append(b, '"'), s), '"')
	}
	if printable.Plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	return QuoteBytes(b, s)
}

// general is the template of all transactions. Every attribute is a hole in it.
var general = sync.OnceValue(func() *template {
	t := &template{text: "}"}
	in, skip := "", "" // the object whose members follow, the list whose members are written with it
	for _, f := range fields.All() {
		if !f.In(fields.NDJSON) || skip != "" && strings.HasPrefix(f.Name, skip) {
			continue
		}
		p := piece{field: &f, hole: holeOf(&f), uint: f.Uint, write: lists[f.Name], open: objects[f.Name]}
		to := t
		if in != "" && strings.HasPrefix(f.Name, in) {
			to = t.pieces[len(t.pieces)-1].members
			p.text = `,"` + f.Name[len(in):] + `":`
		} else {
			in = ""
			p.text = `,"` + f.Name + `":`
		}
		p.key = len(p.text)
		switch {
		case p.write != nil:
			p.hole, skip = list, f.Name+"."
		case p.open != nil:
			p.hole, p.members, in = nested, &template{}, f.Name+"."
		}
		to.pieces = append(to.pieces, p)
	}
	t.pieces[0].text = "{" + t.pieces[0].text[1:]
	return t
})

// ofParties is a template of the parties alone.
var ofParties = sync.OnceValue(func() *template {
	t := &template{}
	for _, p := range general().pieces {
		if p.field.Of == fields.OfParties {
			t.pieces = append(t.pieces, p)
		}
	}
	return t
})

// maker makes a template of the transactions of a kind.
type maker struct {
	e     *Encoder
	v     *rpc.View // one of them
	made  *template
	text  []byte // behind the last piece
	first bool   // in an object: what follows needs no comma
}

func (e *Encoder) newTemplate(v *rpc.View, k kind) *template {
	m := maker{e: e, v: v, made: &template{kind: k}}
	m.add(general().pieces)
	m.made.text = string(m.text) + general().text
	return m.made
}

func (m *maker) add(pieces []piece) {
	k := &m.made.kind
	for i, p := range pieces {
		part := partOf[p.field.Name]
		switch {
		case p.field.Of == fields.OfParties:
			if i == 0 || pieces[i-1].field.Of != fields.OfParties {
				m.hole(piece{hole: ends})
			}
		case k.same.has(p.field.Of) || part != 0 && k.parts&part == 0: // they have the same, or none
			before := len(m.text)
			m.text = (&template{pieces: pieces[i : i+1]}).append(m.e, m.text, m.v)
			if m.first && len(m.text) > before {
				m.text, m.first = append(m.text[:before], m.text[before+1:]...), false
			}
		case p.hole == nested:
			m.text, m.first = append(append(m.text, p.text...), '{'), true
			m.add(p.members.pieces)
			m.text, m.first = append(m.text, '}'), false
		default:
			m.hole(p)
		}
	}
}

// hole adds a piece with the text in front of it.
func (m *maker) hole(p piece) {
	if m.first {
		p.text, m.first = p.text[1:], false
	}
	p.text = string(m.text) + p.text
	m.made.pieces, m.text = append(m.made.pieces, p), m.text[:0]
}
