package blame_test

import (
	"testing"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/analyze/fabric"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzBlame changes captures: the shares of each transaction sum to its phases
// (package holds), with or without other watchers.
func FuzzBlame(f *testing.F) {
	for i := range traffic.Count() {
		f.Add(uint8(i), false, []byte{})
		f.Add(uint8(i), true, []byte{traffic.Drop, 5, 0, 0, 0, traffic.Double, 9, 0, 3, 0, traffic.Swap, 12, 0, 2, 0})
	}
	f.Fuzz(func(t *testing.T, which uint8, small bool, program []byte) {
		var opt decode.Options
		b := blame.Lean(0)
		if small {
			opt.RoCE = roce.Limits{Connections: 4, SendBytes: 1 << 12, Requests: 16, Assembly: 1 << 14}
			b = blame.New(fabric.Options{Memory: 1})
			opt.Observe(fabric.New(fabric.Options{}).Observer())
		}
		opt.Observe(b.Recorder.Observer())
		opt.Transactions.Ended = b.Ended
		holds.Each(t, traffic.Apply(which, program), opt, func(v *rpc.View) {
			if p, ok := v.Tx.Phases(); ok && p.Divided() && v.Tx.Blame == nil && v.Tx.Connection.Fabric < rdma.TCP && !small {
				t.Errorf("XID %#x: nobody has looked", v.Tx.XID)
			}
		})
	})
}
