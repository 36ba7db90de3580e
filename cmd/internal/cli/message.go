package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"github.com/rpcrdma/toolkit/internal/printable"
)

// Message is the text of an error to be shown: a line, and one more for each error that was joined to it. Joined errors
// with the same text appear once: a full disk fails both the write and the close.
//
// Errors quote names of files, and text of captures, plans and peers, all of which may hold line feeds. These are escaped, or they
// could make the program say what it does not say.
func Message(err error) string {
	return strings.Join(slices.Compact(strings.Split(message(err), "\n")), "\n") + advice(err)
}

// advice says what helps against an error whose text does not tell.
func advice(err error) string {
	path, ok := errors.AsType[*fs.PathError](err)
	switch {
	case ok && path.Path == "": // as a variable of a shell that is not set
		return ": the name of a file is empty"
	case errors.Is(err, syscall.EMFILE):
		most := ""
		if n := openFiles(); n > 0 {
			most = fmt.Sprintf(" (%d)", n)
		}
		return ": raise the limit of open files" + most + " with ulimit -n, or name fewer files at once"
	case errors.Is(err, syscall.ENFILE):
		return ": the whole system has too many files open (fs.file-max)"
	}
	return ""
}

func message(err error) string {
	text := err.Error()
	if !strings.Contains(text, "\n") {
		return printable.Line(text)
	}
	var inner []error
	switch x := err.(type) { //nolint:errorlint // each step of the chain is looked at
	case interface{ Unwrap() error }:
		inner = append(inner, x.Unwrap())
	case interface{ Unwrap() []error }:
		inner = x.Unwrap()
	}
	var b strings.Builder
	rest := text
	for i, e := range inner {
		if e == nil {
			continue
		}
		before, after, found := strings.Cut(rest, e.Error())
		switch {
		case !found:
			continue
		case i > 0 && before == "\n": // as errors.Join puts it
			b.WriteString(before)
		default:
			b.WriteString(printable.Line(before))
		}
		b.WriteString(message(e))
		rest = after
	}
	b.WriteString(printable.Line(rest))
	return b.String()
}
