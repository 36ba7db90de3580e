//go:build !race

package v3_test

import "testing"

// With the race detector a sync.Pool forgets what it has at random.

func TestNoAllocation(t *testing.T) {
	s, c, f := prepare(t)
	for name, x := range calls(c, f) {
		n := testing.AllocsPerRun(200, func() { s.ServeRPC(x) })
		if n >= 1 {
			t.Errorf("%s: %v allocations", name, n)
		}
		if x.replies == 0 || name == "READ" && x.bytes < 1<<20 {
			t.Errorf("%s: %d replies of %d bytes", name, x.replies, x.bytes)
		}
	}
}
