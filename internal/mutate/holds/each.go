package holds

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// Each decodes packets, asks of each transaction what must be true of it, shows it
// to f, and bounds what all of that may allocate. Names of files are known to the
// view from one transaction to the next.
func Each(t T, packets []capture.Packet, opt decode.Options, f func(*rpc.View)) {
	t.Helper()
	var memory Memory
	memory.Start()
	v := rpc.View{Names: &rpc.Names{}}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		Transaction(t, tx)
		v.Set(tx)
		f(&v)
		v.Learn()
	})
	traffic.Run(d, packets, 16)
	memory.End(t)
}
