package run_test

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
)

// TestShared: clones that share their files change them under each other, which is not the server's fault; what breaks the protocol is.
func TestShared(t *testing.T) {
	for _, x := range []struct {
		name, sample string
		kind         *wireKind
		want         bool
	}{
		{"NFSv3", "rocev2-nfs3-basic", nil, true},
		{"NFSv4.2", "rocev2-nfs42-basic", nil, true},
		{"a wrong server", "rocev2-nfs42-basic", &wireKinds[slices.IndexFunc(wireKinds, func(k wireKind) bool { return k.name == "other-sequence" })], false},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := load(t, sample(t, x.sample), planner.Options{Payload: plan.Pattern})
			r, _ := against(t, w, wrong{wire: x.kind}, func(o *run.Options) { o.Clones, o.Shared = 3, true })
			if r.Explained() != x.want || r.NotDone != 0 || r.Sent == 0 || r.ReadBack != nil {
				t.Errorf("explained %v, %d not done, %v", r.Explained(), r.NotDone, r.Totals)
			}
			if x.want && !slices.ContainsFunc(r.Mismatches, func(m report.Mismatch) bool { return slices.Contains(m.Codes, verdict.Shared) }) {
				t.Error("no call met with another clone")
			}
			if n := r.Setup.Prepared; n.Files+n.Directories > len(w.Tables.Objects) {
				t.Errorf("%+v made for three clones", n)
			}
		})
	}
}
