package run_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/site"
)

// TestNoReclaimComplete: a client whose RECLAIM_COMPLETE the capture lacks may open files all the same.
func TestNoReclaimComplete(t *testing.T) {
	for _, c := range []struct {
		name string
		lack bool
		note int
	}{
		{"as captured", false, 0},
		{"without", true, 1},
	} {
		w := load(t, sample(t, "rocev2-nfs41-mixed-load"), planner.Options{})
		found := 0
		for _, o := range w.Ops {
			if k := o.Compound; k != nil && k.Ops[len(k.Ops)-1].Op == uint32(nfs4.OP_RECLAIM_COMPLETE) {
				if found++; c.lack {
					k.Ops, o.Expect = k.Ops[:1], nil
				}
			}
		}
		o, _ := rig(t, site.Options{Name: "tcp"}, "4.1")
		o.Timing = run.Fast
		r, err := run.Run(t.Context(), w, o)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := r.Text(&text); err != nil || found != 1 || !r.Explained() || strings.Count(text.String(), "RECLAIM_COMPLETE") < c.note || c.note == 0 && strings.Contains(text.String(), "note:") {
			t.Errorf("%s: %v, found %d\n%s", c.name, err, found, &text)
		}
	}
}

// TestDelegationsLeft: delegations that the plan leaves behind with the last session of a client are returned, so that the
// read-back need not wait until they are revoked.
func TestDelegationsLeft(t *testing.T) {
	w := load(t, sample(t, "rocev2-nfs42-basic"), planner.Options{})
	left, ended := 0, 0
	for _, o := range w.Ops {
		if o.Compound == nil {
			continue
		}
		last := len(o.Compound.Ops) - 1
		switch nfs4.NfsOpnum4(o.Compound.Ops[last].Op) {
		case nfs4.OP_DELEGRETURN:
			o.Compound.Ops, o.Expect = o.Compound.Ops[:last], nil
			left++
		case nfs4.OP_DESTROY_SESSION:
			ended++
		}
	}
	o, _ := rig(t, site.Options{Name: "tcp"}, "4.2")
	o.Timing, o.VerifyFiles = run.Fast, true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	r, err := run.Run(ctx, w, o)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Explained() {
		t.Errorf("DESTROY_CLIENTID of a client with delegations: %v %+v", r.Totals, r.Mismatches)
	}
	if b := r.ReadBack; left == 0 || ended == 0 || b == nil || b.Ended != "" || len(b.Wrong) > 0 {
		t.Errorf("%d delegations left, %d sessions ended: %+v", left, ended, b)
	}
}
