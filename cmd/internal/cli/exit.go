// Package cli is what the commands have in common: exit codes, mistakes of the
// caller, manual pages.
package cli

import (
	"errors"
	"fmt"
	"syscall"
)

// Exit codes.
const (
	ExitOK      = 0
	ExitFailure = 1
	ExitUsage   = 2
	ExitDamaged = 3 // finished, but the input is truncated or malformed
)

// UsageError is a mistake of the caller.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Usagef makes a UsageError.
func Usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

// ErrDamaged says that all was printed that could be decoded, and that the
// damage has been reported.
var ErrDamaged = errors.New("the input is truncated or malformed")

// ErrClosed says that nobody reads the output any more.
var ErrClosed = errors.New("output closed")

// ExitCode is the exit code that stands for an error.
func ExitCode(err error) int {
	var usage *UsageError
	switch {
	case err == nil, errors.Is(err, ErrClosed), errors.Is(err, syscall.EPIPE):
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, ErrDamaged):
		return ExitDamaged
	}
	return ExitFailure
}
