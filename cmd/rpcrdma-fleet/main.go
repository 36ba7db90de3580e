// Rpcrdma-fleet decodes the captures of many taps, on one machine or on many, and reports over all of them.
package main

import (
	"os"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	cli.Catch()
	os.Exit(run(os.Args[1:], cli.Standard()))
}

// run runs the command line and returns the exit code.
func run(args []string, s *cli.Streams) int { return cli.Run(newRootCommand(s), args, s.Err) }
