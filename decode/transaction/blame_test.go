package transaction

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestNewQuiet: what NewQuiet says does not depend on what was there before.
func TestNewQuiet(t *testing.T) {
	var a Transaction
	for range 1000 {
		took := time.Duration(rand.IntN(3))
		if rand.IntN(4) == 0 {
			a.NewBlame().Shares[rand.IntN(int(NumParts))][rand.IntN(rdma.NumCauses)] = took
			continue
		}
		var b Transaction
		p := Phases{CallTransfer: time.Duration(rand.IntN(2)), ReplyTransfer: 3, Server: took}
		a.NewClean(&p)
		b.NewClean(&p)
		if *a.Blame != *b.Blame {
			t.Fatalf("%+v, want %+v", a.Blame, b.Blame)
		}
	}
}
