package run_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/providers"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestReplyRoom replays a READ whose reply came inline, as captured: with a lower
// inline threshold it needs chunks, with the same one it has none.
func TestReplyRoom(t *testing.T) {
	const size = 8192
	for _, c := range []struct{ inline, reads int }{{4096, 1}, {65536, 0}} {
		t.Run(fmt.Sprint(c.inline), func(t *testing.T) {
			w := steady(1, time.Millisecond)
			w.Tables.Objects = append(w.Tables.Objects, plan.Object{ID: 2, Server: 1, Type: "file", Parent: 1, Name: "f", Origin: plan.Before, Size: size})
			res := nfs3.READ3res{Resok: nfs3.READ3resok{Count: size, Eof: true, Data: xdr.Data{Length: size, Chunk: 1}}}
			w.Ops = append(w.Ops, &plan.Op{ID: 2, XID: 7, Connection: 1, Credential: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_READ,
				What: "READ", Role: plan.Workload, Class: plan.Exact, Latency: 1, Service: -1,
				Args:   []plan.Field{{N: "file", Kind: plan.FieldHandle, Ref: 2}, {N: "offset", Kind: plan.FieldU64}, {N: "count", Kind: plan.FieldU32, Value: size}},
				Expect: &plan.Expect{Results: res.Append(nil), Data: []plan.Result{{Length: size, EOF: true}}}, Layout: &plan.Layout{}})
			where := providers.Options{Name: "iwarp"}
			where.Endpoint.InlineSend, where.Endpoint.InlineReceive = c.inline, c.inline
			o, _ := rig(t, where, "3")
			o.Timing, o.Layout = run.Fast, true
			r, err := run.Run(within(t), w, o)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Explained() || r.Sent != 2 {
				t.Errorf("%v, %d sent, %+v", r.Totals, r.Sent, r.Mismatches)
			}
			anew := slices.ContainsFunc(r.Reasons, func(x report.ReasonReport) bool { return strings.Contains(x.Reason, "no room for the reply") })
			if anew != (c.reads > 0) {
				t.Errorf("laid out anew: %v; %+v", anew, r.Reasons)
			}
		})
	}
}

// TestNothing: a run says so if nothing of a capture can be replayed.
func TestNothing(t *testing.T) {
	w := steady(3, time.Millisecond)
	for i := range 5 {
		w.Skips = append(w.Skips, &plan.Skip{XID: uint32(i), Class: plan.Impossible, Reason: []string{"encrypted", "cut"}[i/4]})
	}
	w.Skips = append(w.Skips, &plan.Skip{Class: plan.Exact, Reason: "set-up"})
	o, _ := rig(t, providers.Options{Name: "tcp"}, "3")
	r, err := run.Run(within(t), w, o)
	if err != nil || len(r.Impossible) != 2 || r.Impossible[0].Count != 4 {
		t.Errorf("%v, %+v", err, r)
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "cannot be replayed: 5 calls\n       4  encrypted\n       1  cut\n") {
		t.Errorf("%v\n%s", err, text.String())
	}
	for _, o := range w.Ops {
		o.Role = plan.Sessions
	}
	_, err = run.Run(within(t), w, o)
	var nothing *workload.NothingError
	if !errors.As(err, &nothing) || nothing.Left != 3 || !strings.Contains(err.Error(), "5 calls cannot (4: encrypted; 1: cut); the other 3 only") {
		t.Error(err)
	}
	if err := run.Preview(&text, w, o, "server", true); !errors.As(err, &nothing) {
		t.Error(err)
	}
}
