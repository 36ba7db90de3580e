package fabric

import (
	"math/rand/v2"
	"testing"
)

// TestAllowed: as long as no loss has reduced the window, and it need not start again, what is allowed is what was in flight.
func TestAllowed(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 1))
	for range 20000 {
		w := window{
			peak: rng.Uint64N(8), segment: rng.Uint64N(3), base: rng.Uint64N(8), resumed: rng.Uint64N(8),
			reduced: rng.IntN(2) == 0, growing: rng.IntN(2) == 0, idle: rng.IntN(3) == 0,
		}
		w.known.acked = rng.Uint64N(12)
		less := w.allowedLess()
		if got := w.allowed(); got != less {
			t.Fatalf("%d is allowed, not %d: %+v", got, less, w)
		}
		flight := rng.Uint64N(12)
		if got, want := w.grown(flight), !w.reduced && flight > w.peak || w.reduced && flight >= max(w.peak, less); got != want {
			t.Fatalf("%d in flight: %t, not %t: %+v", flight, got, want, w)
		}
	}
}
