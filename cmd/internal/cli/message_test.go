package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// TestMessage: joined errors have a line each, and no line is made by what an error quotes.
func TestMessage(t *testing.T) {
	gone := &fs.PathError{Op: "open", Path: "a\nb\x1b", Err: fs.ErrNotExist}
	full := &fs.PathError{Op: "write", Path: "x\ny", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("plain"), "plain"},
		{gone, `open a\nb\x1b: file does not exist`},
		{&fs.PathError{Op: "open", Err: fs.ErrNotExist}, "open : file does not exist: the name of a file is empty"},
		{errors.Join(gone, full), "open a\\nb\\x1b: file does not exist\nwrite x\\ny: no space left on device"},
		{errors.Join(full, full), `write x\ny: no space left on device`},
		{errors.Join(errors.New("first"), errors.New("second")), "first\nsecond"},
		{fmt.Errorf("c\nd: %w", errors.Join(gone, full)), "c\\nd: open a\\nb\\x1b: file does not exist\nwrite x\\ny: no space left on device"},
		{fmt.Errorf("%w\n%w", gone, full), "open a\\nb\\x1b: file does not exist\nwrite x\\ny: no space left on device"},
		{fmt.Errorf("%w, e\nf %w", gone, full), `open a\nb\x1b: file does not exist, e\nf write x\ny: no space left on device`},
		{&UsageError{errors.Join(errors.New("one"), errors.New("  two"))}, "one\n  two"},
	} {
		if got := Message(c.err); got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
	}
}
