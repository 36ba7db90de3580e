package holds

import (
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// Each decodes packets, asks of each transaction what must be true of it, shows it
// to f, and bounds what all of that may allocate. Names of files are known to the
// view from one transaction to the next.
func Each(t T, packets []capture.Packet, opt decode.Options, f func(*rpc.View)) {
	t.Helper()
	var memory Memory
	memory.Start()
	v, all := rpc.View{Names: &rpc.Names{}}, rpc.View{Names: &rpc.Names{}}
	d := decode.New(opt, func(tx *transaction.Transaction) {
		Transaction(t, tx)
		all.SetAll(tx)
		v.Set(tx)
		if v.Clean() {
			if tx.XID%2 == 0 { // of the others, f is the first who asks
				Demand(t, &v, &all, uint64(tx.XID))
			}
		}
		f(&v)
		v.Learn()
		all.Learn()
		if v.Path() != all.Path() {
			t.Fatalf("%s: %q was learned, decoded at once %q", v.ProcedureName(), v.Path(), all.Path())
		}
	})
	traffic.Run(d, packets, 16)
	memory.End(t)
}
