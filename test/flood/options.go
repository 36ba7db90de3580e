package main

import (
	"fmt"
	"os"

	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
	"github.com/rpcrdma/toolkit/replay/transport/budget"
)

// The server runs with the defaults of all options.
func tcpOptions() tcprpc.Options        { return tcprpc.Options{Budget: newBudget()} }
func endpointOptions() endpoint.Options { return endpoint.Options{Budget: newBudget()} }

var shared *budget.Budget

func newBudget() *budget.Budget {
	shared = budget.New(budget.Options{Log: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }})
	return shared
}

// tell reports what the budget has done.
func tell() { fmt.Fprintf(os.Stderr, "%+v\n", shared.Stats()) }
