package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestCapturedOrder checks the edges against their definition: every call that had
// its reply before another one began is, directly or through others, before it; and
// no other is.
func TestCapturedOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := 2 + rnd.IntN(40)
		var ops []*plan.Op
		at := int64(0)
		for i := range n {
			at += rnd.Int64N(10)
			latency := rnd.Int64N(30)
			if rnd.IntN(10) == 0 {
				latency = -1
			}
			ops = append(ops, &plan.Op{ID: i + 1, Time: at, Latency: latency})
		}
		edges := map[int][]int{}
		capturedOrder(ops, edges)
		reach := make([]map[int]bool, n+1)
		for id := 1; id <= n; id++ {
			reach[id] = map[int]bool{}
			for _, d := range edges[id] {
				reach[id][d] = true
				for x := range reach[d] {
					reach[id][x] = true
				}
			}
			for d := 1; d < id; d++ {
				a, b := ops[d-1], ops[id-1]
				want := a.Latency >= 0 && a.Time+max(a.Latency, 1) <= b.Time
				if reach[id][d] != want {
					t.Fatalf("op %d [%d,+%d] before op %d [%d,+%d]: %v, want %v", d, a.Time, a.Latency, id, b.Time, b.Latency, reach[id][d], want)
				}
			}
		}
	}
}
