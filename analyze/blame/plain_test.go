package blame_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/blame"
	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// blamed is what the time of the transactions in packets was lost to, and what the Recorder says in the end.
func blamed(packets []capture.Packet, full bool) (out []string) {
	b := blame.Lean(0)
	o := b.Recorder.Observer()
	if full {
		o.Runs = nil
	}
	opt := decode.Options{Observers: []decode.Observer{o}}
	opt.Transactions.Ended = b.Ended
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		s := fmt.Sprintf("XID %#x at %d:", tx.XID, tx.Call.First.Number)
		if tx.Blame != nil {
			s += fmt.Sprint(*tx.Blame)
		}
		out = append(out, s)
	}), packets, 64)
	return append(out, fmt.Sprintf("%+v", b.Recorder.Totals()))
}

// TestPlain: whether a Watcher is told of ordinary packets in one call or in four, the time is lost to the same, in captures as
// they are and changed at random.
func TestPlain(t *testing.T) {
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
			short, full := blamed(packets, false), blamed(packets, true)
			if slices.Equal(short, full) {
				continue
			}
			for i := range full {
				if i >= len(short) || short[i] != full[i] {
					t.Fatalf("capture %d, program %v: in one call\n%s\nin full\n%s", which, program, short[min(i, len(short)-1)], full[i])
				}
			}
			t.Fatalf("capture %d, program %v: more in one call", which, program)
		}
	}
}
