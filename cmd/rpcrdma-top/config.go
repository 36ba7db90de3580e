package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/nearest"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// config is the configuration file: see docs/rpcrdma-top.md. What flags say counts more.
type config struct {
	path  string
	files *outfile.Files // knows the inputs, so that none of them is taken for a configuration file
}

// noConfig is the value of --config for none.
const noConfig = "none"

// maxConfig bounds the configuration file, in bytes.
const maxConfig = 1 << 20

// configPath is the file that is read without --config; empty if there is no home for it.
func configPath() string {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) { // which the specification wants to be ignored
		var err error
		if dir, err = os.UserHomeDir(); err != nil || !filepath.IsAbs(dir) {
			return ""
		}
		dir = filepath.Join(dir, ".config")
	}
	return filepath.Join(dir, "rpcrdma", "top.toml")
}

// setting is a key of the configuration file.
type setting struct {
	key  string
	flag string // that counts more; empty: set sees to it
	set  func(o *options, v any) error
}

// settings are all keys.
func settings() []setting {
	list := []setting{
		{"interval", "interval", func(o *options, v any) error { return setDuration(&o.interval, v) }},
		{"stuck", "stuck", func(o *options, v any) error { return setDuration(&o.stuck, v) }},
		{"linger", "linger", func(o *options, v any) error { return setDuration(&o.linger, v) }},
		{"filter", "filter", func(o *options, v any) error { return setFilter(o, v) }},
		{"theme", "theme", func(o *options, v any) error { return setTheme(o, v) }},
		{"ascii", "ascii", func(o *options, v any) error { return setBool(&o.ascii, v) }},
		{"resolve", "resolve", func(o *options, v any) error { return setBool(&o.resolve, v) }},
		{"bell", "bell", func(o *options, v any) error { return setBool(&o.bell, v) }},
		{"mouse", "no-mouse", func(o *options, v any) error {
			on := !o.noMouse
			err := setBool(&on, v)
			o.noMouse = !on
			return err
		}},
		{"keep", "keep", func(o *options, v any) error {
			s, err := scalar(v)
			if err != nil {
				return err
			}
			return o.keep.Set(s)
		}},
	}
	for _, name := range alarmNames() {
		list = append(list, setting{"alarm." + name, "", func(o *options, v any) error {
			s, err := scalar(v)
			if err != nil {
				return err
			}
			return setThreshold(&o.thresholds, name, s)
		}})
	}
	for _, v := range tables {
		name := strings.ToLower(viewNames[v])
		list = append(list,
			setting{"columns." + name, "", func(o *options, x any) error {
				names, err := texts(x)
				if err != nil {
					return err
				}
				return o.layout.setColumns(v, names)
			}},
			setting{"sort." + name, "", func(o *options, x any) error {
				s, ok := x.(string)
				if !ok {
					return errors.New("not the name of a column")
				}
				return o.layout.setSort(v, s)
			}})
	}
	for _, name := range slices.Sorted(maps.Keys(toneNames)) {
		list = append(list, setting{"colors." + name, "", func(o *options, v any) error {
			s, err := scalar(v)
			if err != nil {
				return err
			}
			c, err := parseColor(s)
			if err == nil {
				o.inks[toneNames[name]] = &c
			}
			return err
		}})
	}
	return list
}

func setDuration(d *time.Duration, v any) error {
	s, err := scalar(v)
	if err != nil {
		return err
	}
	x, err := cli.ParseDuration(s)
	if err == nil {
		*d = x
	}
	return err
}

func setBool(b *bool, v any) error {
	x, ok := v.(bool)
	if !ok {
		return errors.New("neither true nor false")
	}
	*b = x
	return nil
}

func setFilter(o *options, v any) error {
	s, ok := v.(string)
	if !ok {
		return errors.New("not a string")
	}
	if _, err := cli.Filter(s); err != nil {
		return err
	}
	o.filter = s
	return nil
}

func setTheme(o *options, v any) error {
	s, ok := v.(string)
	if !ok {
		return errors.New("not a string")
	}
	if _, err := parseTheme(s); err != nil {
		return err
	}
	o.theme = s
	return nil
}

// scalar is a string or a number as text.
func scalar(v any) (string, error) {
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

func texts(v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, errors.New(`not a list of names, such as ["age", "xid"]`)
	}
	out := make([]string, len(list))
	for i := range list {
		if out[i], ok = list[i].(string); !ok {
			return nil, errors.New(`not a list of names, such as ["age", "xid"]`)
		}
	}
	return out, nil
}

// place of an expression in a document.
type expression struct {
	key      string // with that of its table
	line     int
	from, to int // bytes; without a comment behind it
}

// document is a configuration file that was parsed.
type document struct {
	text   []byte
	values map[string]any // by key, with those of the tables
	list   []expression   // keys
	tables []expression
}

// line is where a key stands, or the table that it is in.
func (d *document) line(key string) int {
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

// parseConfig parses a configuration file; an error says where.
func parseConfig(name string, text []byte) (*document, error) {
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
	d := &document{text: text, values: make(map[string]any)}
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
func (d *document) flatten(prefix string, tree map[string]any) {
	for k, v := range tree {
		if t, ok := v.(map[string]any); ok && strings.Count(prefix, ".") < 4 && len(t) > 0 {
			d.flatten(prefix+k+".", t)
			continue
		}
		d.values[prefix+k] = v
	}
}

// readConfig reads a configuration file, which need not exist if it is the usual one.
func readConfig(path string, named bool) (*document, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		return parseConfig(path, nil)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfig {
		return nil, cli.Usagef("%s: too long for a configuration file", path)
	}
	d, err := parseConfig(path, text)
	if err != nil {
		return nil, &cli.UsageError{Err: err}
	}
	return d, nil
}

// configure reads the configuration file; given reports whether a flag was used.
func (o *options) configure(given func(flag string) bool) error {
	path := o.config
	if path == "" {
		path = configPath()
	}
	if path == "" || path == noConfig {
		return nil
	}
	d, err := readConfig(path, o.config != "")
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if err := d.apply(path, o, given); err != nil {
		return &cli.UsageError{Err: err}
	}
	o.configFile = &config{path: path}
	return nil
}

// apply sets what the file says. All mistakes are reported at once, in the order of their lines.
func (d *document) apply(path string, o *options, given func(flag string) bool) error {
	all := settings()
	var names []string
	byKey := make(map[string]*setting, len(all))
	for i := range all {
		names = append(names, all[i].key)
		byKey[all[i].key] = &all[i]
	}
	keys := slices.SortedFunc(maps.Keys(d.values), func(a, b string) int {
		if n := d.line(a) - d.line(b); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	var wrong []error
	for _, k := range keys {
		s := byKey[k]
		switch {
		case s == nil && isTable(names, k) && isEmpty(d.values[k]):
		case s == nil:
			hint := ""
			if near := nearKeys(k, names); len(near) > 0 {
				hint = "; did you mean " + strings.Join(near, " or ") + "?"
			}
			wrong = append(wrong, fmt.Errorf("%s:%d: there is no key %q%s", path, d.line(k), k, hint))
		case s.flag != "" && given(s.flag):
		default:
			if err := s.set(o, d.values[k]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s:%d: %s: %w", path, d.line(k), k, err))
			}
		}
	}
	return errors.Join(wrong...)
}

func isTable(names []string, key string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, key+".") })
}

func isEmpty(v any) bool {
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

// keep writes the columns and the order of a view to the file, and leaves all else in it as it is. No columns
// and no order are those that the program has anyway.
func (c *config) keep(view string, columns []string, sorted string) error {
	d, err := readConfig(c.path, false)
	if err != nil {
		return err
	}
	want := maps.Clone(d.values)
	list := make([]any, len(columns))
	quoted := make([]string, len(columns))
	for i, s := range columns {
		list[i], quoted[i] = s, strconv.Quote(s)
	}
	value := ""
	if delete(want, "columns."+view); len(columns) > 0 {
		want["columns."+view], value = list, "["+strings.Join(quoted, ", ")+"]"
	}
	if d, err = d.change("columns", view, value); err != nil {
		return err
	}
	value = ""
	if delete(want, "sort."+view); sorted != "" {
		want["sort."+view], value = sorted, strconv.Quote(sorted)
	}
	if d, err = d.change("sort", view, value); err != nil {
		return err
	}
	for _, values := range []map[string]any{want, d.values} { // tables that are empty now say nothing
		maps.DeleteFunc(values, func(_ string, v any) bool { return isEmpty(v) })
	}
	if !reflect.DeepEqual(want, d.values) {
		return fmt.Errorf("%s is written in a way that cannot be changed from here", c.path)
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return err
	}
	f, err := c.files.Create(c.path)
	if err != nil {
		return err
	}
	defer f.Forget()
	if _, err = f.Write(d.text); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}

// change sets a key of a table, or removes it if the value is empty.
func (d *document) change(table, key, value string) (*document, error) {
	text := d.text
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
		return parseConfig("", splice(e.from, e.to, line))
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
			return parseConfig("", splice(e.to+i+1, e.to+i+1, line))
		}
		return parseConfig("", append(slices.Clone(text), "\n"+line...))
	}
	head := "[" + table + "]\n"
	if len(text) > 0 {
		head = "\n" + head
		if text[len(text)-1] != '\n' {
			head = "\n" + head
		}
	}
	return parseConfig("", append(slices.Clone(text), head+line...))
}
