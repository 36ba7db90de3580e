package main

import (
	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
)

// blame lets the decoder find out what the time of transactions was lost to. It costs
// a look at each packet: only where somebody wants to know.
func (o *inputOptions) blame(opt *decode.Options) { attribute(opt, &o.memory) }

func attribute(opt *decode.Options, memory *cli.Memory) {
	b := blame.Lean(memory.Scale(fabric.DefaultMemory))
	opt.Watcher = rdma.Watchers(opt.Watcher, b.Recorder)
	opt.Transactions.Ended = b.Ended
}
