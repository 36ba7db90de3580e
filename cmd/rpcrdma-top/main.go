// Rpcrdma-top shows the activity on an RDMA network: operations, their latency and phases, open transactions
// and the progress of their chunks, connections, files, clients.
package main

import (
	"os"
	"strconv"

	"github.com/rpcrdma/toolkit/cmd/internal/cli"
)

func main() {
	cli.Catch()
	cli.GrantMemory(0)
	os.Exit(run(os.Args[1:], cli.Standard()))
}

// run runs the command line and returns the exit code.
func run(args []string, s *cli.Streams) int {
	return cli.Run(newRootCommand(s), splitBatch(args), s.Err)
}

// splitBatch gives --batch without a number the value 0, for tables at the end.
func splitBatch(args []string) []string {
	out := make([]string, 0, len(args)+1)
	for i, a := range args {
		if a == "--" {
			return append(out, args[i:]...)
		}
		out = append(out, a)
		if a != "--batch" && a != "-b" {
			continue
		}
		if i+1 < len(args) {
			if _, err := strconv.Atoi(args[i+1]); err == nil {
				continue
			}
		}
		out = append(out, "0")
	}
	return out
}
