// Rpcrdma-dump shows the RPC transactions in captures of RoCE, InfiniBand and
// iWARP: NFS over RDMA, and what travels beside it over TCP and UDP.
package main

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	// A write to a closed pipe returns an error instead of a signal, so that
	// files are closed and memory profiles written.
	signal.Ignore(syscall.SIGPIPE)
	cli.Memory(0)
	os.Exit(run(os.Args[1:], &streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are what a command reads and writes.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// run runs the command line and returns the exit code.
func run(args []string, s *streams) int {
	return cli.Run(newRootCommand(s), splitTimes(args), s.err, errFindings)
}
