package planner

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/rpcrdma/toolkit/capture"
	"github.com/rpcrdma/toolkit/decode"
	"github.com/rpcrdma/toolkit/internal/testtools/hostile"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner/order"
)

// TestRoom builds plans from captures that are made to exhaust their readers, with hardly any
// memory for tables. The result is a consistent plan with all calls that says which limits it has
// reached.
func TestRoom(t *testing.T) {
	for i, k := range hostile.Kinds() {
		for j, memory := range []int{1, 30_000, 0} {
			if testing.Short() && (i+j)%3 != 0 {
				continue
			}
			var pcap bytes.Buffer
			if err := k.Write(&pcap, max(1, k.Small/50)); err != nil {
				t.Fatal(err)
			}
			in, err := capture.NewReader(&pcap, k.Name, capture.Options{})
			if err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(t.TempDir(), "plan")
			s, err := Build(context.Background(), in, out, decode.Options{}, Options{Memory: memory})
			if err != nil {
				t.Fatalf("%s: %v", k.Name, err)
			}
			r, err := plan.Open(out, 0)
			if err != nil {
				t.Fatalf("%s, memory %d: %v", k.Name, memory, err)
			}
			ops, err := r.All()
			if err != nil {
				t.Fatalf("%s, memory %d: %v", k.Name, memory, err)
			}
			if n := s.Ops.Exact + s.Ops.Inferred + s.Ops.Synthesised; n != len(ops) {
				t.Errorf("%s, memory %d: %d calls, counted %d", k.Name, memory, len(ops), n)
			}
			if memory == 1 && len(ops) > 20 && len(r.Tables.Objects) > 1 && len(s.Limits) == 0 {
				t.Errorf("%s: no limit was reached with %d objects", k.Name, len(r.Tables.Objects))
			}
			if memory == 0 && len(s.Limits) > 0 {
				t.Errorf("%s: %v", k.Name, s.Limits)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestNone checks that an object without details does not change the shared ones.
func TestNone(t *testing.T) {
	if none.links != nil || none.owner != "" || none.target != "" || none.written != nil || none.known != nil || none.content != nil ||
		none.pieces != nil || none.notes != nil || none.held != nil || none.cookies != nil || !none.bytes.Empty() || !none.dir.Empty() ||
		!none.locks.Empty() || none.readEnd != 0 || none.commit != (order.Flight{}) || none.acl != nil || none.base != "" || none.major != 0 {
		t.Errorf("%+v", none)
	}
}
