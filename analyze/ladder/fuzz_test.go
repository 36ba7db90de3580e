package ladder

import (
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// FuzzLadder draws the transactions of changed captures, in the form that how
// chooses. Nothing unprintable comes out, and what is JSON is valid.
func FuzzLadder(f *testing.F) {
	for i := range traffic.Count() {
		for how := range uint8(3) {
			f.Add(uint8(i), how, []byte{})
		}
	}
	var memory holds.Memory
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		packets := traffic.Apply(which, program)
		memory.Start()
		v := rpc.View{Names: &rpc.Names{}}
		draw := Drawer{Verbose: how&3 == 1, ASCII: how&3 == 1}
		var e Encoder
		opt := decode.Options{}
		opt.Transactions.Packets = 16
		d := decode.New(opt, func(tx *transaction.Transaction) {
			holds.Transaction(t, tx)
			v.Set(tx)
			if how&3 < 2 {
				check(t, draw.Append(nil, &v), draw.ASCII)
			} else if b := e.Append(nil, &v); !json.Valid(b) {
				t.Fatalf("%s", b)
			}
			v.Learn()
		})
		traffic.Run(d, packets, 16)
		memory.End(t)
	})
}
