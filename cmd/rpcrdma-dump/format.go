package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/filter"
	"github.com/rpcrdma/toolkit/analyze/ndjson"
	"github.com/rpcrdma/toolkit/analyze/text"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/table"
)

// textPrinter writes lines, and a tree below each if there is one.
type textPrinter struct {
	list text.Lister
	tree *text.Tree
}

func (p *textPrinter) begin(b []byte) []byte  { return b }
func (p *textPrinter) finish(b []byte) []byte { return b }

func (p *textPrinter) print(b []byte, v *rpc.View) []byte {
	b = append(p.list.Append(b, v), '\n')
	if p.tree != nil {
		b = p.tree.Append(b, v)
		b = append(b, '\n')
	}
	return b
}

// ndjsonPrinter writes one JSON object a line.
type ndjsonPrinter struct{ e ndjson.Encoder }

func (p *ndjsonPrinter) begin(b []byte) []byte              { return b }
func (p *ndjsonPrinter) finish(b []byte) []byte             { return b }
func (p *ndjsonPrinter) print(b []byte, v *rpc.View) []byte { return append(p.e.Append(b, v), '\n') }

// jsonPrinter writes one JSON array.
type jsonPrinter struct {
	e    ndjson.Encoder
	some bool
}

func (p *jsonPrinter) begin(b []byte) []byte { return append(b, '[') }

func (p *jsonPrinter) print(b []byte, v *rpc.View) []byte {
	if p.some {
		b = append(b, ',')
	}
	p.some = true
	return p.e.Append(append(b, '\n'), v)
}

func (p *jsonPrinter) finish(b []byte) []byte { return append(b, "\n]\n"...) }

// fieldsPrinter writes fields that the user has chosen, as tshark does.
type fieldsPrinter struct {
	fields     []*filter.FieldRef
	header     bool
	separator  string
	aggregator string
	quote      byte // 0: none
	occurrence byte // f, l or a
	values     []string
}

func newFieldsPrinter(names, options []string) (*fieldsPrinter, error) {
	if len(names) == 0 {
		return nil, cli.Usagef("-T fields needs at least one -e field; --list-fields lists them")
	}
	p := &fieldsPrinter{separator: "\t", aggregator: ",", occurrence: 'a'}
	for _, n := range names {
		f, err := cli.Field(n)
		if err != nil {
			return nil, err
		}
		p.fields = append(p.fields, f)
	}
	for _, o := range options {
		for _, one := range splitOptions(o) {
			if err := p.set(one); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// blames reports whether a printer writes what needs Transaction.Blame.
func blames(p printer) bool {
	switch p := p.(type) {
	case *fieldsPrinter:
		return slices.ContainsFunc(p.fields, (*filter.FieldRef).Blame)
	case *journalPrinter:
		return p.e.Blame()
	}
	return false
}

var layoutKeys = []string{"header=", "separator=", "occurrence=", "aggregator=", "quote=", "bom="}

// splitOptions splits "header=y,separator=,": a comma separates only in front of another option.
func splitOptions(s string) []string {
	var out []string
	start := 0
	for i := 0; i < len(s); i++ {
		if s[i] != ',' || i == start {
			continue
		}
		for _, k := range layoutKeys {
			if strings.HasPrefix(s[i+1:], k) {
				out = append(out, s[start:i])
				start = i + 1
				break
			}
		}
	}
	return append(out, s[start:])
}

func (p *fieldsPrinter) set(option string) error {
	key, v, ok := strings.Cut(option, "=")
	bad := func(what string) error { return cli.Usagef("-E %s is %s, not %q", key, what, v) }
	switch {
	case !ok:
		return cli.Usagef("-E %q is not option=value", option)
	case key == "header":
		if v != "y" && v != "n" {
			return bad("y or n")
		}
		p.header = v == "y"
	case key == "bom":
		if v != "n" {
			return bad("n")
		}
	case key == "separator":
		return character(&p.separator, v, bad)
	case key == "aggregator":
		return character(&p.aggregator, v, bad)
	case key == "occurrence":
		if v != "f" && v != "l" && v != "a" {
			return bad("f, l or a")
		}
		p.occurrence = v[0]
	case key == "quote":
		switch v {
		case "d":
			p.quote = '"'
		case "s":
			p.quote = '\''
		case "n":
			p.quote = 0
		default:
			return bad("d, s or n")
		}
	default:
		return cli.Usagef("no such option: -E %s (header, separator, quote, occurrence, aggregator)", key)
	}
	return nil
}

func character(dst *string, v string, bad func(string) error) error {
	switch {
	case v == "/t" || v == `\t`:
		*dst = "\t"
	case v == "/s":
		*dst = " "
	case len([]rune(v)) == 1:
		*dst = v
	default:
		return bad("/t, /s or one character")
	}
	return nil
}

func (p *fieldsPrinter) begin(b []byte) []byte {
	if !p.header {
		return b
	}
	for i, f := range p.fields {
		if i > 0 {
			b = append(b, p.separator...)
		}
		b = append(b, f.Info().Name...)
	}
	return append(b, '\n')
}

func (p *fieldsPrinter) finish(b []byte) []byte { return b }

func (p *fieldsPrinter) print(b []byte, v *rpc.View) []byte {
	for i, f := range p.fields {
		if i > 0 {
			b = append(b, p.separator...)
		}
		p.values = f.Append(p.values[:0], v)
		values := p.values
		if len(values) > 1 {
			switch p.occurrence {
			case 'f':
				values = values[:1]
			case 'l':
				values = values[len(values)-1:]
			}
		}
		if len(values) == 0 {
			continue
		}
		if p.quote != 0 {
			b = append(b, p.quote)
		}
		for j, s := range values {
			if j > 0 {
				b = append(b, p.aggregator...)
			}
			b = p.value(b, s)
		}
		if p.quote != 0 {
			b = append(b, p.quote)
		}
	}
	return append(b, '\n')
}

// value appends a value on one line. Quotation marks in it are doubled, as in CSV.
func (p *fieldsPrinter) value(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c >= 0x7f || c == '\\' || c == p.quote && c != 0 {
			if p.quote != 0 {
				s = strings.ReplaceAll(s, string(rune(p.quote)), string(rune(p.quote))+string(rune(p.quote)))
			}
			b, _ = text.Safe(b, []byte(s))
			return b
		}
	}
	return append(b, s...)
}

// listFields lists the fields in lines of at most columns, 0 for any length.
func listFields(w io.Writer, columns int) error {
	fields := filter.Fields()
	name, typ := 0, 0
	for _, f := range fields {
		name, typ = max(name, len(f.Name)), max(typ, len(f.Type))
	}
	for _, f := range fields {
		line := fmt.Appendf(nil, "%-*s  %-*s  %s", name, f.Name, typ, f.Type, f.Description)
		if _, err := w.Write(append(table.AppendHanging(nil, line, columns, name+typ+4), '\n')); err != nil {
			return closed(err)
		}
	}
	return nil
}
