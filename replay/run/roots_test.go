package run_test

import (
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
)

// TestRoots: calls that cannot be sent name the one that failed before them, also over several steps.
func TestRoots(t *testing.T) {
	refused := 0
	full := &wireKind{refuse: func(args xdr.Message) xdr.Message {
		if _, ok := args.(*nfs3.MKDIR3args); ok {
			refused++
			return &nfs3.MKDIR3res{Status: nfs3.NFS3ERR_DQUOT}
		}
		return nil
	}}
	w := load(t, sample(t, "rocev2-nfs3-basic"), planner.Options{Payload: plan.Pattern})
	r, _ := against(t, w, wrong{wire: full}, nil)
	unsent := r.Totals[verdict.NotSent.String()]
	if refused == 0 || unsent == 0 {
		t.Fatalf("%d refused, %v", refused, r.Totals)
	}
	follows, lines := 0, 0
	for _, x := range r.Reasons {
		if x.Verdict == verdict.NotSent {
			lines++
			if x.Code == verdict.Follows && strings.Contains(x.Reason, "MKDIR") && strings.HasSuffix(x.Reason, ": NFS3ERR_DQUOT") {
				follows += x.Count
			} else {
				t.Errorf("%d times: %s", x.Count, x.Reason)
			}
		}
	}
	if follows != unsent || lines > refused {
		t.Errorf("%d of %d calls not sent name their root, in %d lines", follows, unsent, lines)
	}
}
