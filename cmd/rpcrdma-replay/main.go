// Rpcrdma-replay makes plans of captured NFS workloads and replays them.
package main

import (
	"io"
	"os"
	"syscall"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	cli.Catch()
	cli.GrantMemory(0)
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
	// All that this program shows is text without colors.
	s = &streams{s.in, cli.Plain(s.out), cli.Plain(s.err)}
	return cli.Run(newRootCommand(s), args, s.err, errDiffers, syscall.EPIPE)
}
