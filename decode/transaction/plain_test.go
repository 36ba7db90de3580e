package transaction

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
	"github.com/rpcrdma/toolkit/decode/roce"
	"github.com/rpcrdma/toolkit/internal/testtools/rocetest"
)

// TestPlain wants the lists of headers to be counted as they are, although they are asked only where there are chunks:
// when a transaction is handed out, and when it is kept for the next one.
func TestPlain(t *testing.T) {
	for _, c := range []rocetest.Config{
		{Seed: 1, CM: true, Calls: 300, Kinds: []rocetest.Kind{rocetest.Small}},
		{Seed: 2, CM: true, Calls: 300, Callbacks: 20, Invalidate: true, MTU: 1024},
	} {
		plain, n := 0, 0
		check := func(tx *Transaction, when string) {
			if want := tx.Call.Header.Memory() + tx.Reply.Header.Memory(); tx.lists != want {
				t.Fatalf("transaction %d %s: lists of %d bytes, counted as %d", tx.serial, when, want, tx.lists)
			}
		}
		tr := NewTracker(Options{}, func(tx *Transaction) {
			n++
			if tx.plain() {
				plain++
			}
			check(tx, "emitted")
			tx.Release()
			check(tx, "released")
			if want := tx.owned(); tx.size != want {
				t.Fatalf("%d bytes, counted as %d", want, tx.size)
			}
		})
		f := rocetest.Feeder{Tracker: roce.NewTracker(tr, tr.Hooks(), new(rdma.Numbers), roce.Limits{})}
		f.All(rocetest.Make(c).Taps[0])
		tr.Flush()
		if n == 0 || plain == 0 || plain == n != (len(c.Kinds) == 1) {
			t.Errorf("%d of %d transactions without chunks", plain, n)
		}
	}
}
