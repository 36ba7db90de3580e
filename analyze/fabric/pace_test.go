package fabric

import "testing"

// TestWent: the usual time falls at once, to no less than 1/16 ns, and rises by a sixteenth of what is more, of at most four times itself.
func TestWent(t *testing.T) {
	var m congestion
	for i, c := range [...]struct{ gap, usual int64 }{{100, 1600}, {10, 160}, {20, 170}, {1000, 170 + 510/16}, {5, 80}, {0, 1}, {0, 1}, {10, 1}, {1, 1}} {
		if m.went(c.gap); m.pace != c.usual {
			t.Errorf("%d: after %d ns the usual time is %d, not %d", i, c.gap, m.pace, c.usual)
		}
	}
}
