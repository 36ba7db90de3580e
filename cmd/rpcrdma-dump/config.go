package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/cmd/internal/settings"
)

// configurable are the flags that a configuration file may give another default: how output looks, limits, and keys. What chooses
// inputs and outputs stands on the command line.
var configurable = []string{
	"ascii", "clock", "color", "keytab", "limit-calls", "limit-connections", "limit-memory", "limit-message", "no-icrc", "no-pager", "resolve", "time", "width",
}

// filterTable is the table of filters with names, which -Y @NAME uses.
const filterTable = "filters."

// configure applies the configuration file to a command whose flags have been parsed.
func configure(cmd *cobra.Command, path string) error {
	named := path != ""
	if !named {
		path = settings.Path("dump.toml")
	}
	d := &settings.Document{}
	if path != "" && path != settings.None {
		var err error
		if d, err = settings.Read(path, named); err != nil {
			return fmt.Errorf("--config: %w", err)
		}
	}
	filters := make(map[string]string)
	var wrong []error
	for _, key := range d.Keys() {
		value := d.Values[key]
		err := error(nil)
		switch name, ok := strings.CutPrefix(key, filterTable); {
		case ok:
			filters[name], ok = value.(string)
			switch {
			case !ok:
				err = errors.New("not a string")
			case name != strings.Map(keepName, name):
				err = errors.New("a name of a filter has letters, digits, - and _ only")
			}
		case slices.Contains(configurable, key):
			err = setDefault(cmd, key, value)
		default:
			if err := d.Unknown(path, key, append(slices.Clone(configurable), filterTable)); err != nil {
				wrong = append(wrong, err)
			}
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s:%d: %s: %w", path, d.Line(key), key, err))
		}
	}
	if len(wrong) > 0 {
		return &cli.UsageError{Err: errors.Join(wrong...)}
	}
	return namedFilter(cmd, filters)
}

// setDefault sets a flag that was not given, if the command has it.
func setDefault(cmd *cobra.Command, name string, value any) error {
	f := cmd.Flags().Lookup(name)
	if f == nil || f.Changed {
		return nil
	}
	text, err := settings.Scalar(value)
	if b, ok := value.(bool); ok {
		text, err = strconv.FormatBool(b), nil
	}
	if err != nil {
		return err
	}
	return f.Value.Set(text)
}

// namedFilter replaces the names of filters in -Y by what they stand for.
func namedFilter(cmd *cobra.Command, filters map[string]string) error {
	f := cmd.Flags().Lookup("filter")
	if f == nil || !strings.Contains(f.Value.String(), "@") {
		return nil
	}
	text, err := expand(f.Value.String(), filters)
	if err != nil {
		return err
	}
	return f.Value.Set(text)
}

// expand replaces each @NAME outside of quotes by the filter of that name, in parentheses.
func expand(expression string, filters map[string]string) (string, error) {
	var b strings.Builder
	quote := byte(0)
	for i := 0; i < len(expression); i++ {
		c := expression[i]
		switch {
		case quote != 0 && c == '\\' && i+1 < len(expression):
			b.WriteByte(c)
			i++
			c = expression[i]
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote == 0 && c == '@':
			n := 0
			for i+1+n < len(expression) && nameByte(expression[i+1+n]) {
				n++
			}
			name := expression[i+1 : i+1+n]
			filter, ok := filters[name]
			if !ok {
				return "", unknownFilter(name, filters)
			}
			b.WriteString("(" + filter + ")")
			i += n
			continue
		}
		b.WriteByte(c)
	}
	return b.String(), nil
}

func nameByte(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// keepName is c if it may be part of a name, and otherwise -1.
func keepName(c rune) rune {
	if c < utf8.RuneSelf && nameByte(byte(c)) {
		return c
	}
	return -1
}

// unknownFilter is the mistake of a name that the configuration file does not have.
func unknownFilter(name string, filters map[string]string) error {
	if len(filters) == 0 {
		return cli.Usagef("-Y @%s: the configuration file has no filters; see 'Configuration file' in docs/rpcrdma-dump.md", name)
	}
	return cli.Usagef("-Y @%s: the configuration file has no such filter; it has %s", name, strings.Join(slices.Sorted(maps.Keys(filters)), ", "))
}
