package main

import (
	"github.com/rpcrdma/toolkit/replay/endpoint"
	"github.com/rpcrdma/toolkit/replay/tcprpc"
)

func tcpOptions() tcprpc.Options        { return tcprpc.Options{} }
func endpointOptions() endpoint.Options { return endpoint.Options{} }
