package main

import (
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/onepass"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
)

// blame is onepass.Attribute with the memory that there is.
func (o *inputOptions) blame(opt *decode.Options) []decode.StatePart {
	return attribute(opt, &o.memory)
}

func attribute(opt *decode.Options, memory *cli.Memory) []decode.StatePart {
	return onepass.Attribute(opt, memory.Scale(fabric.DefaultMemory), memory.Scale(session.DefaultMemory/2))
}
