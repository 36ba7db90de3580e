package transaction_test

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/decode/transaction"
	"github.com/rpcrdma/toolkit/internal/testtools/mutate/traffic"
)

// calmAtEnd checks that what was ordinary when a transaction ended is so when it is consumed, and that Calm says the same whether Blame
// says so or not. It returns how many were calm.
func calmAtEnd(t *testing.T, which uint8, program []byte) (calm int) {
	t.Helper()
	opt := decode.Options{}
	opt.Transactions.Ended = func(tx *transaction.Transaction) {
		if took, ok := tx.Ordinary(); ok {
			tx.NewOrdinary(took)
		}
	}
	traffic.Run(decode.New(opt, func(tx *transaction.Transaction) {
		took, ok := tx.Calm()
		known := tx.Blame != nil
		tx.Blame = nil
		want, wantOK := tx.Calm()
		if ok != wantOK || ok && took != want {
			// It may have waited: then only Blame makes it less than calm.
			if !known || tx.Credits|tx.Slots == 0 {
				t.Fatalf("capture %d, program %v: %v, %v, without Blame %v, %v", which, program, took, ok, want, wantOK)
			}
		}
		if ok {
			calm++
		}
	}), traffic.Apply(which, program), 64)
	return calm
}

// TestCalmAtEnd does so for captures that were changed at random.
func TestCalmAtEnd(t *testing.T) {
	calm := 0
	for which := range traffic.Count() {
		rng := rand.New(rand.NewPCG(uint64(which), 29))
		for round := range 20 {
			var program []byte
			for range 5 * round {
				program = append(program, byte(rng.Uint32()))
			}
			calm += calmAtEnd(t, uint8(which), program)
		}
	}
	if calm < 500 {
		t.Errorf("%d transactions were calm", calm)
	}
}

func FuzzCalmAtEnd(f *testing.F) {
	for which := range traffic.Count() {
		f.Add(uint8(which), []byte{})
	}
	f.Fuzz(func(t *testing.T, which uint8, program []byte) { calmAtEnd(t, which, program) })
}
