// Rpcrdma-dump shows the RPC transactions in captures of RoCE, InfiniBand and
// iWARP: NFS over RDMA, and what travels beside it over TCP and UDP.
package main

import (
	"io"
	"os"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	cli.Catch()
	cli.GrantMemory(0)
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
