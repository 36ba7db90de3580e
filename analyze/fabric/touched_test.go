package fabric

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// Connections that come and go between two calls of Active are not held until the next.
func TestTouchedAreOpen(t *testing.T) {
	r := New(Options{Lean: true, Live: true})
	var open []*rdma.Connection
	for id := range 2000 {
		c := &rdma.Connection{ID: id + 1, Fabric: rdma.RoCEv2}
		r.Saw(c, &rdma.Sighting{Class: rdma.ClassRequest, Ref: rdma.Ref{Number: uint64(id + 1), Time: int64(id)}})
		if open = append(open, c); len(open) > 10 {
			r.Closed(open[0], rdma.Ref{})
			open = open[1:]
		}
		if len(r.touched) > len(open) || len(r.live) != len(open) {
			t.Fatalf("%d connections are held, %d are live, %d are open", len(r.touched), len(r.live), len(open))
		}
	}
	seen := 0
	r.Active(func(h *Health) {
		if !h.Ended {
			seen++
		}
	})
	if seen != len(open) {
		t.Errorf("something was seen of %d connections that are open, not %d", seen, len(open))
	}
}
