package check

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode/transaction"
)

// TestOpenCalls compares openCalls with a map.
func TestOpenCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var o openCalls
	want := make(map[*transaction.Transaction]*callState)
	txs := make([]transaction.Transaction, 40)
	for i := range 20000 {
		tx := &txs[r.IntN(1+len(txs)*(i%5)/5+4)%len(txs)]
		if got := o.get(tx); got != want[tx] {
			t.Fatalf("%d: %p, want %p", i, got, want[tx])
		}
		if want[tx] == nil && r.IntN(2) == 0 {
			want[tx] = &callState{}
			o.put(tx, want[tx])
			continue
		}
		if got := o.take(tx); got != want[tx] {
			t.Fatalf("%d: took %p, want %p", i, got, want[tx])
		}
		delete(want, tx)
	}
}
