package run_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/run"
)

// TestPreviewCounts: as many calls are sent as the preview says, but for those that return delegations,
// which this server does not give.
func TestPreviewCounts(t *testing.T) {
	says := regexp.MustCompile(`(?m)^send (\d+) call`)
	for _, name := range []string{"rocev2-nfs3-basic", "iwarp-nfs40-basic", "rocev2-nfs41-recall", "rocev2-nfs42-basic"} {
		w := load(t, sample(t, name), planner.Options{})
		var text strings.Builder
		if err := run.Preview(&text, w, run.Options{Directory: "/replay", Write: true, Prepare: true}, "builtin", true); err != nil {
			t.Fatal(err)
		}
		m := says.FindStringSubmatch(text.String())
		if m == nil {
			t.Fatal(&text)
		}
		preview, _ := strconv.Atoi(m[1])
		r, _ := against(t, w, wrong{}, nil)
		sent, omitted := 0, r.Totals["omitted"]
		for v, n := range r.Totals {
			if v != "omitted" && v != "not sent" {
				sent += n
			}
		}
		if sent > preview || sent+omitted != preview {
			t.Errorf("%s: the preview says %d; %v\n%s", name, preview, r.Totals, &text)
		}
	}
}
