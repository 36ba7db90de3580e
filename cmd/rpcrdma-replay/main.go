// Rpcrdma-replay makes plans of captured NFS workloads and replays them.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	// A write to a closed pipe returns an error instead of a signal, so that
	// files are closed.
	signal.Ignore(syscall.SIGPIPE)
	os.Exit(execute(os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are what a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// execute runs the command line and returns the exit code.
func execute(args []string, s *streams) int {
	root := newRootCommand(s)
	root.SetArgs(args)
	err := root.Execute()
	if errors.Is(err, syscall.EPIPE) {
		err = cli.ErrClosed
	}
	if err != nil && !errors.Is(err, cli.ErrDamaged) && !errors.Is(err, cli.ErrClosed) && !errors.Is(err, errDiffers) {
		fmt.Fprintf(s.err, "rpcrdma-replay: %v\n", err)
		var usage *cli.UsageError
		if errors.As(err, &usage) {
			fmt.Fprintln(s.err, "Try 'rpcrdma-replay --help'.")
		}
	}
	return cli.ExitCode(err)
}
