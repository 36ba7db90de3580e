package transaction

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestTable compares Table with a map.
func TestTable(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	txs := make([]Transaction, 3*nearTable)
	for _, open := range []int{3, nearTable, len(txs)} {
		var table Table[int]
		want := make(map[*Transaction]int)
		for i := range 20_000 {
			tx := &txs[random.IntN(open)]
			have, ok := want[tx]
			if v, k := table.Get(tx); v != have || k != ok {
				t.Fatalf("%d open, step %d: %d, %v, want %d, %v", open, i, v, k, have, ok)
			}
			switch {
			case !ok:
				table.Put(tx, i)
				want[tx] = i
			case random.IntN(4) > 0:
				if v, k := table.Take(tx); v != have || !k {
					t.Fatalf("%d open, step %d: took %d, %v, want %d", open, i, v, k, have)
				}
				delete(want, tx)
				if _, k := table.Take(tx); k {
					t.Fatalf("%d open, step %d: taken twice", open, i)
				}
			}
			if i%1000 == 999 {
				odd := func(v int) bool { return v%2 == 1 }
				table.DeleteFunc(odd)
				maps.DeleteFunc(want, func(_ *Transaction, v int) bool { return odd(v) })
			}
			if table.Len() != len(want) {
				t.Fatalf("%d open, step %d: %d, want %d", open, i, table.Len(), len(want))
			}
		}
	}
}

func TestTableAllocates(t *testing.T) {
	var table Table[[4]*int]
	txs := make([]Transaction, nearTable)
	if n := testing.AllocsPerRun(100, func() {
		for i := range txs {
			table.Put(&txs[i], [4]*int{})
		}
		for i := range txs {
			table.Take(&txs[i])
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
