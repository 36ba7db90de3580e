package check_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/rpc"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/mutate/traffic"
)

// verdicts is what all rules say of packets, and what they know of a connection at its end; inFull has ordinary packets judged as all others are.
func verdicts(packets []capture.Packet, inFull bool) (out []string) {
	c := check.New(check.Options{Rules: check.All()}, func(f *check.Finding) {
		out = append(out, fmt.Sprintf("%s packet %d: %s, %s", f.Rule.ID, f.Ref.Number, f.Expected, f.Seen))
	})
	opt := decode.Options{Observer: c, Packet: c.Packet, Ordinary: c.Ordinary}
	opt.Closed = func(x *rdma.Connection) {
		out = append(out, c.Known(x))
		c.Closed(x)
	}
	if inFull {
		opt.Ordinary = nil
	}
	var v rpc.View
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		v.Set(tx)
		c.Transaction(&v)
	}), packets, 64)
	c.Finish()
	for _, r := range check.Rules() {
		out = append(out, fmt.Sprintf("%s %+v", r.ID, *c.Count(r)))
	}
	return out
}

// TestUsual: whether ordinary packets are judged in one step or by each rule, findings and counts are the same, in captures as
// they are and changed at random.
func TestUsual(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 3
	}
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 99))
		for round := range rounds {
			var program []byte
			for range 5 * round {
				program = append(program, byte(rng.Uint32()))
			}
			packets := traffic.Apply(uint8(which), program)
			short, full := verdicts(packets, false), verdicts(packets, true)
			if slices.Equal(short, full) {
				continue
			}
			for i := range full {
				if i >= len(short) || short[i] != full[i] {
					t.Fatalf("capture %d, program %v: in one step\n%q\nby each rule\n%q", which, program, short[min(i, len(short)-1)], full[i])
				}
			}
			t.Fatalf("capture %d, program %v: more in one step: %q", which, program, short[len(full):])
		}
	}
}
