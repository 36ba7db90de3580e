// Rpcrdma-dump shows the RPC transactions in captures of RoCE, InfiniBand and
// iWARP: NFS over RDMA, and what travels beside it over TCP and UDP.
package main

import (
	"os"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	cli.Catch()
	cli.GrantMemory(0)
	code := run(os.Args[1:], cli.Standard())
	cli.EndPager()
	os.Exit(code)
}

// run runs the command line and returns the exit code.
func run(args []string, s *cli.Streams) int {
	return cli.Run(newRootCommand(s), splitTimes(args), s.Err, errFindings)
}
