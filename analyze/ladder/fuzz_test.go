package ladder

import (
	"encoding/json"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/holds"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// FuzzLadder draws the transactions of changed captures, in the form that how
// chooses. Nothing unprintable comes out, and what is JSON is valid.
func FuzzLadder(f *testing.F) {
	for i := range traffic.Count() {
		for how := range uint8(3) {
			f.Add(uint8(i), how, []byte{})
		}
	}
	f.Fuzz(func(t *testing.T, which, how uint8, program []byte) {
		draw := Drawer{Verbose: how&3 == 1, ASCII: how&3 == 1}
		var e Encoder
		opt := decode.Options{}
		opt.Transactions.Packets = 16
		holds.Each(t, traffic.Apply(which, program), opt, func(v *rpc.View) {
			if how&3 < 2 {
				check(t, draw.Append(nil, v), draw.ASCII)
			} else if b := e.Append(nil, v); !json.Valid(b) {
				t.Fatalf("%s", b)
			}
		})
	})
}
