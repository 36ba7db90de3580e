package edges

import (
	"strings"
	"testing"
)

// TestPoints deals the packets of a capture out to several capture points, none of which shows a copy: a path that
// moves to another link, a bond, a switch that distributes packets, or merged files with different interfaces.
// Nothing is missing, and so nothing may differ.
func TestPoints(t *testing.T) {
	deals := map[string]func(i, n int) int{
		"halves":  func(i, n int) int { return 2 * i / n },
		"thirds":  func(i, n int) int { return 3 * i / n },
		"turns":   func(i, _ int) int { return i / 20 % 2 },
		"by turn": func(i, _ int) int { return i % 2 },
		"each":    func(i, _ int) int { return i },
	}
	for _, f := range files(t) {
		if !strings.HasSuffix(f.name, "-recall") {
			continue
		}
		for name, deal := range deals {
			t.Run(f.name+"/"+name, func(t *testing.T) {
				packets := load(t, f.path)
				want := decoded(packets, f.memory(t), nil)
				for i := range packets {
					packets[i].Tap = uint16(deal(i, len(packets)))
				}
				got := decoded(packets, f.memory(t), nil)
				if len(got) != len(want) {
					t.Fatalf("%d transactions, want %d", len(got), len(want))
				}
				for i := range want {
					if diff := differing(want[i].fields, got[i].fields); len(diff) > 0 {
						t.Errorf("transaction %d, XID %#x: %v differ", i+1, want[i].xid, diff)
					}
				}
			})
		}
	}
}
