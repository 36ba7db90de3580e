package show

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/text/results"
)

// TestWanted: a finding is wanted if it is shown, and what is not wanted once is never wanted again: check.Options rely on it.
func TestWanted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	rules := check.Rules()
	for _, format := range [...]string{"text", "ndjson", "json"} {
		for _, least := range [...]check.Severity{check.Note, check.Warning, check.Error} {
			for _, most := range [...]uint64{0, 1, 3} {
				for _, quiet := range [...]bool{false, true} {
					var b []byte
					s := Findings{
						Format: format, Least: least, Shown: results.Shown{Findings: make(map[*check.Rule]uint64), Max: most, Quiet: quiet},
						Write: func(add func([]byte) []byte) { b = add(b) },
					}
					type kind struct {
						rule     *check.Rule
						severity check.Severity
					}
					gone := make(map[kind]bool)
					for range 100 {
						k := kind{rules[random.IntN(3)], check.Note + check.Severity(random.IntN(3))}
						before, wanted := len(b), s.Wanted(k.rule, k.severity)
						s.Finding(&check.Finding{Rule: k.rule, Severity: k.severity})
						if shown := len(b) > before; shown != wanted {
							t.Fatalf("%s, %v, %d, %v: wanted %v, shown %v", format, least, most, quiet, wanted, shown)
						}
						if wanted && gone[k] {
							t.Fatalf("%s, %v, %d, %v: %v is wanted again", format, least, most, quiet, k)
						}
						gone[k] = !wanted
					}
				}
			}
		}
	}
}
