package cli

import (
	"errors"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/filter"
)

// ListOfFields says where the fields of display filters are listed.
const ListOfFields = "'rpcrdma-dump --list-fields' lists the fields"

// Filter compiles the display filter of a flag; nil for an empty one. An error is
// the caller's mistake, and shows the place in the expression.
func Filter(expression string) (*filter.Filter, error) {
	if expression == "" {
		return nil, nil
	}
	f, err := filter.Compile(expression)
	var place *filter.Error
	switch {
	case errors.As(err, &place):
		lines := []error{err}
		for line := range strings.Lines(place.Caret()) {
			lines = append(lines, errors.New("  "+strings.TrimSuffix(line, "\n")))
		}
		if place.Unknown {
			lines = append(lines, errors.New(ListOfFields))
		}
		return nil, &UsageError{errors.Join(lines...)}
	case err != nil:
		return nil, &UsageError{err}
	}
	return f, nil
}

// Field finds the field that one -e names. An error is the caller's mistake.
func Field(name string) (*filter.FieldRef, error) {
	f, err := filter.Field(name)
	if err == nil {
		return f, nil
	}
	says := "-e " + shown(name) + ": there is no such field"
	switch place, ok := errors.AsType[*filter.Error](err); {
	case strings.Contains(name, ","):
		says += "; give -e once for each field"
	case ok && place.Hint != "":
		says += "; " + place.Hint
	}
	return nil, &UsageError{errors.Join(errors.New(says), errors.New(ListOfFields))}
}
