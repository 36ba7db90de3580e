package run_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/rpcrdma/toolkit/replay/guard"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/planner"
	"github.com/rpcrdma/toolkit/replay/run"
	"github.com/rpcrdma/toolkit/replay/transport"
)

// tallied counts the calls that go through a Requester.
type tallied struct {
	transport.Requester
	calls atomic.Int64
}

// Start implements transport.Requester.
func (r *tallied) Start(c *transport.Call) { r.calls.Add(1); r.Requester.Start(c) }

// Do implements transport.Requester.
func (r *tallied) Do(ctx context.Context, c *transport.Call) error {
	r.calls.Add(1)
	return r.Requester.Do(ctx, c)
}

// TestReadBackOnlyReads: the calls sent at the end change nothing, although the run may change
// anything: another guard, which allows no changes, lets all of them pass.
func TestReadBackOnlyReads(t *testing.T) {
	for _, name := range []string{"rocev2-nfs3-basic", "rocev2-nfs42-basic"} {
		w := load(t, sample(t, name), planner.Options{Payload: plan.Pattern})
		g := guard.New(guard.Options{Owner: bindings.OwnerPrefix("tag")})
		var end tallied
		asked := 0
		r, _ := against(t, w, wrong{}, func(o *run.Options) {
			o.Tag = "tag"
			access := o.Access
			o.Access = func(ctx context.Context) (*run.Access, error) {
				a, err := access(ctx)
				if asked++; asked == 2 && err == nil { // the first is the preparation's
					end.Requester = a.NFS
					a.NFS = g.Requester(&end)
				}
				return a, err
			}
		})
		if b := r.ReadBack; b == nil || len(b.Wrong)+len(b.Left) > 0 || b.Ended != "" || b.Objects == 0 || end.calls.Load() < 100 {
			t.Fatalf("%s: %+v", name, r.ReadBack)
		}
		if w := r.Written; w.Bytes == 0 || w.Run+w.End+w.Never != w.Bytes || w.End == 0 {
			t.Errorf("%s: %+v", name, w)
		}
	}
}
