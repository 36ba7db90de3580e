package results

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/latency"
)

// TestExplained: a share of the change is only given where it is one.
func TestExplained(t *testing.T) {
	for _, x := range []struct {
		recovery, rest latency.Change
		explained      float64
		want           string
	}{
		{latency.Change{A: 0, B: 3e9, Delta: 3e9}, latency.Change{A: 1e9, B: 2e9, Delta: 1e9}, 0.75, "75.0 % of the change are explained"},
		{latency.Change{A: 3e9, B: 0, Delta: -3e9}, latency.Change{A: 1e9, B: 2e9, Delta: 1e9}, 1.5, "the rest changed in the other direction, by +1.000s"},
		{latency.Change{A: 1e9, B: 0, Delta: -1e9}, latency.Change{A: 1e9, B: 3e9, Delta: 2e9}, -1, "than the rest, which changed by +2.000s"},
	} {
		d := &latency.Diff{All: &latency.DiffGroup{Lost: map[string]latency.Change{"recovery": x.recovery, "rest": x.rest}, Explained: &x.explained}}
		var out bytes.Buffer
		newDiffPrinter(&out, d, 0).lost()
		if share := " % of the change"; !strings.Contains(out.String(), x.want) || strings.Contains(out.String(), share) != strings.Contains(x.want, share) {
			t.Errorf("%s\nwant %q", &out, x.want)
		}
	}
}
