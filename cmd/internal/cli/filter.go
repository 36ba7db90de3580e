package cli

import (
	"errors"
	"strings"

	"github.com/rpcrdma/toolkit/analyze/filter"
)

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
		return nil, Usagef("%v\n  %s", err, strings.ReplaceAll(place.Caret(), "\n", "\n  "))
	case err != nil:
		return nil, &UsageError{err}
	}
	return f, nil
}
