// Package cli is what the commands have in common: streams and root command, exit
// codes, signals, memory, flags that several of them have, problems of the input,
// manual pages.
package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/rpcrdma/toolkit/internal/outfile"
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

// isUsage reports whether an error is a mistake of the caller: one of them is to
// name a file that is read as one that is written.
func isUsage(err error) bool {
	var usage *UsageError
	var conflict *outfile.Conflict
	return errors.As(err, &usage) || errors.As(err, &conflict)
}

// ErrInterrupted says that a signal ended a command before its output was whole.
var ErrInterrupted = errors.New("interrupted")

// ErrDamaged says that everything that could be decoded was printed, and that the
// damage has been reported.
var ErrDamaged = errors.New("the input is truncated or malformed")

// ErrClosed says that nobody reads the output any more.
var ErrClosed = errors.New("output closed")

// closed reports whether nobody reads the output any more, as after head. A connection to another host that has gone is a failure.
func closed(err error) bool {
	pipe, ok := errors.AsType[*fs.PathError](err)
	return errors.Is(err, ErrClosed) || ok && errors.Is(pipe, syscall.EPIPE)
}

// ExitCode is the exit code that stands for an error.
func ExitCode(err error) int {
	switch {
	case err == nil, closed(err):
		return ExitOK
	case isUsage(err):
		return ExitUsage
	case errors.Is(err, ErrDamaged):
		return ExitDamaged
	}
	return ExitFailure
}
