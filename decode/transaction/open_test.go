package transaction

import (
	"math/rand/v2"
	"testing"
)

// TestOpenCalls compares the table with a map.
func TestOpenCalls(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		var o openCalls
		m := map[uint32]*Transaction{}
		span := uint32(1) << (2 + rng.Uint32N(12)) // few XIDs meet often
		for range 20000 {
			xid := rng.Uint32N(span) << 24 >> rng.Uint32N(25)
			switch rng.Uint32N(3) {
			case 0:
				tx := &Transaction{XID: xid}
				o.put(xid, tx)
				m[xid] = tx
			case 1:
				if tx := m[xid]; tx != nil {
					o.remove(tx)
					delete(m, xid)
				} else {
					o.remove(&Transaction{XID: xid})
				}
			}
			if o.get(xid) != m[xid] || o.n != len(m) {
				t.Fatalf("seed %d: %d entries, want %d; XID %d: %p, want %p", seed, o.n, len(m), xid, o.get(xid), m[xid])
			}
		}
		n := 0
		for xid, tx := range o.all() {
			if m[xid] != tx {
				t.Fatal("not in the map")
			}
			n++
		}
		if n != len(m) {
			t.Fatal(n, len(m))
		}
	}
}

func TestOpenCallsAllocate(t *testing.T) {
	var o openCalls
	tx := &Transaction{}
	xid := uint32(0)
	if n := testing.AllocsPerRun(1000, func() {
		xid++
		tx.XID = xid
		o.put(xid, tx)
		if o.get(xid) != tx {
			t.Fatal("lost")
		}
		o.remove(tx)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
