package main

import (
	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/analyze/session"
	"github.com/rpcrdma/toolkit/cmd/internal/cli"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/transaction"
)

// blame lets the decoder find out what the time of transactions was lost to, and whether
// they came after all slots of their session had been in use. It costs a look at each
// packet: only where somebody wants to know. The Observer has to be set before. It
// returns what a saved state has besides the decoder.
func (o *inputOptions) blame(opt *decode.Options) []decode.StatePart {
	return attribute(opt, &o.memory)
}

func attribute(opt *decode.Options, memory *cli.Memory) []decode.StatePart {
	b := blame.Lean(memory.Scale(fabric.DefaultMemory))
	opt.Watcher = rdma.Watchers(opt.Watcher, b.Recorder)
	slots := session.New(nil)
	slots.Live()
	slots.SlotsOnly()
	slots.Limit(memory.Scale(session.DefaultMemory / 2))
	opt.Observer = session.Beside(opt.Observer, slots)
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		b.Ended(tx)
		slots.Ended(tx)
	}
	return []decode.StatePart{b.Recorder, slots}
}
