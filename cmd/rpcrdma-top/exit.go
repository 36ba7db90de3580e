package main

import (
	"errors"
	"fmt"
)

// Exit codes, as of rpcrdma-dump.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
	exitDamaged = 3 // finished, but the input is truncated or malformed
)

// usageError is a mistake of the caller.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// errDamaged says that all was shown that could be decoded, and that the damage
// has been reported.
var errDamaged = errors.New("the input is truncated or malformed")

// errClosed says that nobody reads the output any more.
var errClosed = errors.New("output closed")

func exitCode(err error) int {
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, errClosed):
		return exitOK
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errDamaged):
		return exitDamaged
	}
	return exitFailure
}
