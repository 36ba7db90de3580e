package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/settings"
	"github.com/rpcrdma/toolkit/internal/outfile"
)

// config is the configuration file: see docs/rpcrdma-top.md. What flags say counts more.
type config struct {
	path  string
	files *outfile.Files // knows the inputs, so that none of them is taken for a configuration file
}

// configName is the file in the directory of configuration files.
const configName = "top.toml"

// setting is a key of the configuration file.
type setting struct {
	key  string
	flag string // that counts more; empty: set sees to it
	set  func(o *options, v any) error
}

// keys are all keys of the configuration file.
func keys() []setting {
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
			s, err := settings.Scalar(v)
			if err != nil {
				return err
			}
			return o.keep.Set(s)
		}},
	}
	for _, name := range alarmNames() {
		list = append(list, setting{"alarm." + name, "", func(o *options, v any) error {
			s, err := settings.Scalar(v)
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
			s, err := settings.Scalar(v)
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
	s, err := settings.Scalar(v)
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

// configure reads the configuration file; given reports whether a flag was used.
func (o *options) configure(given func(flag string) bool) error {
	path := o.config
	if path == "" {
		path = settings.Path(configName)
	}
	if path == "" || path == settings.None {
		return nil
	}
	d, err := settings.Read(path, o.config != "")
	if err != nil {
		return fmt.Errorf("--config: %w", err)
	}
	if err := apply(d, path, o, given); err != nil {
		return &cli.UsageError{Err: err}
	}
	o.configFile = &config{path: path}
	return nil
}

// apply sets what the file says. All mistakes are reported at once, in the order of their lines.
func apply(d *settings.Document, path string, o *options, given func(flag string) bool) error {
	all := keys()
	var names []string
	byKey := make(map[string]*setting, len(all))
	for i := range all {
		names = append(names, all[i].key)
		byKey[all[i].key] = &all[i]
	}
	var wrong []error
	for _, k := range d.Keys() {
		s := byKey[k]
		switch {
		case s == nil:
			wrong = append(wrong, d.Unknown(path, k, names))
		case s.flag != "" && given(s.flag):
		default:
			if err := s.set(o, d.Values[k]); err != nil {
				wrong = append(wrong, fmt.Errorf("%s:%d: %s: %w", path, d.Line(k), k, err))
			}
		}
	}
	return errors.Join(wrong...)
}

// keep writes the columns and the order of a view to the file, and leaves all else in it as it is. No columns
// and no order are those that the program has anyway.
func (c *config) keep(view string, columns []string, sorted string) error {
	d, err := settings.Read(c.path, false)
	if err != nil {
		return err
	}
	want := maps.Clone(d.Values)
	list := make([]any, len(columns))
	quoted := make([]string, len(columns))
	for i, s := range columns {
		list[i], quoted[i] = s, strconv.Quote(s)
	}
	value := ""
	if delete(want, "columns."+view); len(columns) > 0 {
		want["columns."+view], value = list, "["+strings.Join(quoted, ", ")+"]"
	}
	if d, err = d.Change("columns", view, value); err != nil {
		return err
	}
	value = ""
	if delete(want, "sort."+view); sorted != "" {
		want["sort."+view], value = sorted, strconv.Quote(sorted)
	}
	if d, err = d.Change("sort", view, value); err != nil {
		return err
	}
	for _, values := range []map[string]any{want, d.Values} { // tables that are empty now say nothing
		maps.DeleteFunc(values, func(_ string, v any) bool { return settings.Empty(v) })
	}
	if !reflect.DeepEqual(want, d.Values) {
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
	if _, err = f.Write(d.Text); err != nil {
		f.Discard()
		return err
	}
	return f.Commit()
}
