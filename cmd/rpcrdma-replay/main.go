// Rpcrdma-replay makes plans of captured NFS workloads and replays them.
package main

import (
	"os"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/internal/printable"
)

func main() {
	cli.Catch()
	cli.GrantMemory(0)
	os.Exit(execute(os.Args[1:], cli.Standard()))
}

// execute runs the command line and returns the exit code.
func execute(args []string, s *cli.Streams) int {
	s, flush := cli.FitTerminal(s)
	defer flush()
	// This program's output has no colors.
	s = &cli.Streams{In: s.In, Out: printable.TextWriter(s.Out), Err: printable.TextWriter(s.Err)}
	return cli.Run(newRootCommand(s), args, s.Err, errDiffers, errWorse)
}
