package transaction

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestNewOrdinary compares what NewOrdinary leaves in a Blame with what NewQuiet does, whatever was there before.
func TestNewOrdinary(t *testing.T) {
	var a, b Transaction
	for range 1000 {
		switch took := time.Duration(rand.IntN(3)); rand.IntN(4) {
		case 0:
			a.NewBlame().Shares[rand.IntN(int(NumParts))][rand.IntN(rdma.NumCauses)] = took
			*b.NewBlame() = *a.Blame
		case 1:
			p := Phases{CallTransfer: time.Duration(rand.IntN(2)), ReplyTransfer: 3, Server: took}
			a.NewQuiet(&p)
			b.NewQuiet(&p)
		default:
			a.NewOrdinary(took)
			b.NewQuiet(&Phases{Server: took, Total: took})
		}
		if a.Blame.Quiet != b.Blame.Quiet || a.Blame.Shares != b.Blame.Shares {
			t.Fatalf("%+v, want %+v", a.Blame, b.Blame)
		}
	}
}
