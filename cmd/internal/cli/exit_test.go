package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// TestClosed: who has read enough of the output is not a failure, and nothing is said of it. A host that has gone is one.
func TestClosed(t *testing.T) {
	pipe := &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
	for _, x := range []struct {
		err  error
		code int
	}{
		{pipe, ExitOK},
		{fmt.Errorf("page: %w", pipe), ExitOK},
		{ErrClosed, ExitOK},
		{errors.Join(pipe, ErrClosed), ExitOK},
		{&net.OpError{Op: "write", Net: "tcp", Err: syscall.EPIPE}, ExitFailure},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ExitFailure},
	} {
		var said bytes.Buffer
		root := &cobra.Command{Use: "x", SilenceErrors: true, SilenceUsage: true, RunE: func(*cobra.Command, []string) error { return x.err }}
		if code := Run(root, []string{}, &said); code != x.code || code != ExitCode(x.err) || (said.Len() > 0) != (code != ExitOK) {
			t.Errorf("%v: exit status %d, %q", x.err, code, &said)
		}
	}
}
