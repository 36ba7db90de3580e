package decode

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestChoice: what takes less time is done nearly always, also after that has changed; near, if there is little between them.
func TestChoice(t *testing.T) {
	for name, tt := range map[string]struct {
		procs       int
		near, far   time.Duration // a packet
		then        time.Duration // far, in the second half
		first, last [2]float64    // share of near in the halves: at least, at most
	}{
		"far is slow":        {2, 100, 200, 200, [2]float64{0.95, 1}, [2]float64{0.97, 1}},
		"far is fast":        {2, 200, 100, 100, [2]float64{0, 0.1}, [2]float64{0, 0.05}},
		"the same":           {8, 100, 95, 95, [2]float64{0.95, 1}, [2]float64{0.97, 1}},
		"far becomes fast":   {2, 100, 200, 50, [2]float64{0.95, 1}, [2]float64{0, 0.4}},
		"far becomes slow":   {2, 100, 50, 200, [2]float64{0, 0.1}, [2]float64{0.6, 1}},
		"one processor only": {1, 200, 100, 100, [2]float64{1, 1}, [2]float64{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &pipeline{procs: tt.procs}
				p.help.L, p.track.L = &p.mu, &p.mu
				h := &handover{p: p, choice: newChoice()}
				const batch = 10
				for half, want := range [2][2]float64{tt.first, tt.last} {
					near, all := 0, 8000*tryPackets
					for n := 0; n < all; n += batch {
						took := tt.far
						switch {
						case h.choice.near:
							took = tt.near
							near += batch
						case half == 1:
							took = tt.then
						}
						time.Sleep(batch * took)
						h.tracked(batch)
					}
					if share := float64(near) / float64(all); share < want[0] || share > want[1] {
						t.Errorf("half %d: %.3f near, want %v", half, share, want)
					}
				}
			})
		})
	}
}
