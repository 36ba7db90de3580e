// Rpcrdma-otlp sends the transactions that rpcrdma-dump -T ndjson prints to an OpenTelemetry collector, as spans
// and as metrics.
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
