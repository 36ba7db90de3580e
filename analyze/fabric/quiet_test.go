package fabric

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/decode/rdma"
)

// TestQuiet compares Quiet, which remembers its last answer, with the stalls of two connections. Stalls are added, forgotten at once for
// lack of room, and dropped with their direction; connections end, or are merged with the other one.
func TestQuiet(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 117))
	r := New(Options{})
	conns := [2]*rdma.Connection{{ID: 1, Fabric: rdma.RoCEv2}, {ID: 2, Fabric: rdma.RoCEv2}}
	room, quiet, answers := r.stalled, 0, 0
	for i := range 50000 {
		c := conns[random.IntN(2)]
		k := r.conn(c)
		l := &k.dirs[random.IntN(2)].stalls
		at := random.Int64N(20)
		switch random.IntN(12) {
		case 0:
			if random.IntN(3) > 0 {
				r.stalled = room + allStalls*r.scale // no room for any
			}
			l.add(r, Stall{From: at - 1, To: at, Lost: 1, Cause: rdma.CauseRest})
			r.stalled = room
		case 1:
			l.reset(r)
			r.stalled = room
		case 2, 3:
			if random.IntN(5) > 0 {
				break
			}
			if into := conns[2-c.ID]; random.IntN(2) == 0 {
				r.Closed(c, rdma.Ref{})
			} else {
				r.Merged(into, 0, c, 0)
			}
			if r.Unstalled(c, at) {
				t.Fatalf("step %d: quiet although it has ended", i)
			}
			room = r.stalled
			c.Watched = nil // a new connection takes its place
		}
		c, since := conns[random.IntN(2)], random.Int64N(20)
		if random.IntN(3) == 0 {
			r.conn(c)
		}
		k, _ = c.Watched.(*conn)
		want := k != nil && k.dirs[0].stalls.none(since) && k.dirs[1].stalls.none(since)
		if got := r.Unstalled(c, since); got != want {
			t.Fatalf("step %d: quiet since %d: %v, want %v", i, since, got, want)
		}
		if answers++; want {
			quiet++
		}
	}
	if quiet < answers/10 || quiet > answers*9/10 {
		t.Errorf("%d of %d answers were that it was quiet", quiet, answers)
	}
}
