package transaction

import (
	"math/rand/v2"
	"testing"
)

// TestStates compares States with a map, while transactions are made, dropped and made again in the same entries, with and without a value.
func TestStates(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 8))
	var e entries
	var s States[int]
	want := make(map[*Transaction]int)
	var live []*Transaction
	for step := range 20_000 {
		switch n := len(live); {
		case n == 0 || n < 100 && random.IntN(8) == 0:
			tx := new(Transaction)
			e.add(tx)
			live = append(live, tx)
		case random.IntN(8) == 0:
			i := random.IntN(n)
			e.drop(live[i]) // its value is left behind
			delete(want, live[i])
			live[i] = live[n-1]
			live = live[:n-1]
		default:
			tx := live[random.IntN(n)]
			switch _, has := want[tx]; {
			case !has:
				if v := s.Begin(tx); *v != 0 {
					t.Fatalf("step %d: a new value is %d", step, *v)
				} else {
					*v = step + 1
				}
				want[tx] = step + 1
			case random.IntN(2) == 0:
				s.End(tx)
				delete(want, tx)
			}
		}
		for _, tx := range live {
			v, has := want[tx]
			if got := s.Of(tx); (got != nil) != has || has && *got != v {
				t.Fatalf("step %d: %v, want %d (%t)", step, got, v, has)
			}
		}
	}
}

// TestStatesAllocate: once there is room for all, nothing is allocated.
func TestStatesAllocate(t *testing.T) {
	var e entries
	var s States[[8]int]
	tx := new(Transaction)
	e.add(tx)
	if n := testing.AllocsPerRun(100, func() { s.Begin(tx)[3] = 7; s.End(tx) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
