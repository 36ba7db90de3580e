// Package settings reads configuration files: TOML, with the line of each key, so that a mistake is shown where it is.
package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/nearest"
)

// None is the value of --config for no file.
const None = "none"

// Most bounds a configuration file, in bytes.
const Most = 1 << 20

// Path is the file that is read without --config; empty if there is no home for it.
func Path(name string) string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // which the specification wants to be ignored
		var err error
		if dir, err = os.UserHomeDir(); err != nil || !filepath.IsAbs(dir) {
			return ""
		}
		dir = filepath.Join(dir, ".config")
	}
	return filepath.Join(dir, "rpcrdma", name)
}

// Scalar is a string or a number as text.
func Scalar(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	}
	return "", errors.New("neither a string nor a number")
}

// place of an expression in a document.
type expression struct {
	key      string // with that of its table
	line     int
	from, to int // bytes; without a comment behind it
}

// Document is a configuration file that was parsed.
type Document struct {
	Text   []byte
	Values map[string]any // by key, with those of the tables
	list   []expression   // keys
	tables []expression
}

// Line is where a key stands, or the table that it is in.
func (d *Document) Line(key string) int {
	for k := key; k != ""; {
		for _, e := range slices.Concat(d.list, d.tables) {
			if e.key == k {
				return e.line
			}
		}
		i := strings.LastIndexByte(k, '.')
		k = k[:max(i, 0)]
	}
	return 1
}

// Parse parses a configuration file; an error says where.
func Parse(name string, text []byte) (*Document, error) {
	var tree map[string]any
	err := toml.Unmarshal(text, &tree)
	var where *toml.DecodeError
	switch {
	case errors.As(err, &where):
		line, column := where.Position()
		return nil, fmt.Errorf("%s:%d:%d: %s", name, line, column, strings.TrimPrefix(where.Error(), "toml: "))
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	d := &Document{Text: text, Values: make(map[string]any)}
	d.flatten("", tree)
	var p unstable.Parser
	p.Reset(text)
	table := ""
	for p.NextExpression() {
		e := p.Expression()
		var key []string
		at := unstable.Range{}
		for it := e.Key(); it.Next(); {
			key = append(key, string(it.Node().Data))
			at = it.Node().Raw
		}
		x := expression{key: strings.Join(key, "."), line: p.Shape(at).Start.Line, from: int(at.Offset), to: int(at.Offset + at.Length)}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = x.key + "."
			d.tables = append(d.tables, x)
		case unstable.KeyValue:
			x.key, x.from, x.to = table+x.key, int(e.Raw.Offset), int(e.Raw.Offset+e.Raw.Length)
			d.list = append(d.list, x)
		default:
		}
	}
	return d, p.Error()
}

// flatten makes one list of all tables.
func (d *Document) flatten(prefix string, tree map[string]any) {
	for k, v := range tree {
		if t, ok := v.(map[string]any); ok && strings.Count(prefix, ".") < 4 && len(t) > 0 {
			d.flatten(prefix+k+".", t)
			continue
		}
		d.Values[prefix+k] = v
	}
}

// Read reads a configuration file, which need not exist if it is the usual one.
func Read(path string, named bool) (*Document, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return Parse(path, nil)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, Most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > Most {
		return nil, cli.Usagef("%s: too long for a configuration file", path)
	}
	d, err := Parse(path, text)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return d, nil
}

// Keys are the keys of the document, in the order of their lines.
func (d *Document) Keys() []string {
	return slices.SortedFunc(maps.Keys(d.Values), func(a, b string) int {
		if n := d.Line(a) - d.Line(b); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
}

// Unknown returns the error for a key that does not exist; names are the keys that do. An empty table with one of their names is
// allowed, and gives nil.
func (d *Document) Unknown(path, key string, names []string) error {
	if Empty(d.Values[key]) && slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, key+".") }) {
		return nil
	}
	hint := ""
	if near := nearKeys(key, names); len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return fmt.Errorf("%s:%d: there is no key %q%s", path, d.Line(key), key, hint)
}

// Empty reports whether a value is a table without keys.
func Empty(v any) bool {
	t, ok := v.(map[string]any)
	return ok && len(t) == 0
}

// nearKeys are the keys that may have been meant: misspelt, or in another table.
func nearKeys(key string, names []string) []string {
	if near := nearest.Names(key, names); len(near) > 0 {
		return near
	}
	_, last, _ := strings.Cut(key, ".")
	var out []string
	for _, n := range names {
		table, bare, ok := strings.Cut(n, ".")
		if ok && (bare == key || bare == last) || !ok && (table == last) {
			out = append(out, n)
		}
	}
	return out[:min(len(out), 3)]
}

// Change sets a key of a table, or removes it if the value is empty.
func (d *Document) Change(table, key, value string) (*Document, error) {
	text := d.Text
	splice := func(from, to int, s string) []byte {
		return slices.Concat(text[:from], []byte(s), text[to:])
	}
	for _, e := range d.list {
		if e.key != table+"."+key {
			continue
		}
		line := ""
		if value != "" {
			// The key may have been written with that of its table.
			before, _, _ := bytes.Cut(text[e.from:e.to], []byte("="))
			line = string(bytes.TrimSpace(before)) + " = " + value
		}
		return Parse("", splice(e.from, e.to, line))
	}
	if value == "" {
		return d, nil
	}
	line := key + " = " + value + "\n"
	for _, e := range d.tables {
		if e.key != table {
			continue
		}
		if i := bytes.IndexByte(text[e.to:], '\n'); i >= 0 {
			return Parse("", splice(e.to+i+1, e.to+i+1, line))
		}
		return Parse("", append(slices.Clone(text), "\n"+line...))
	}
	head := "[" + table + "]\n"
	if len(text) > 0 {
		head = "\n" + head
		if text[len(text)-1] != '\n' {
			head = "\n" + head
		}
	}
	return Parse("", append(slices.Clone(text), head+line...))
}
