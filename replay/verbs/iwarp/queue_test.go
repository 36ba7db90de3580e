package iwarp

import (
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// TestReceives: a receive takes its place in the queue until its completion has been polled, and comes back as it was posted.
func TestReceives(t *testing.T) {
	for _, depth := range []int{1, 3, 4, 5} {
		var q recvQueue
		q.init(depth)
		next, taken := uint64(0), uint64(0)
		post := func(n int) error {
			var wrs []verbs.RecvRequest
			for i := range n {
				wrs = append(wrs, verbs.RecvRequest{ID: next + uint64(i), Buffer: make([]byte, 1)})
			}
			err := q.post(wrs)
			if err == nil {
				next += uint64(n)
			}
			return err
		}
		for round := range 20 {
			n := 1 + round%depth
			if err := post(n); err != nil {
				t.Fatalf("depth %d: %v", depth, err)
			}
			if err := post(depth - n + 1); !errors.Is(err, verbs.ErrQueueFull) {
				t.Fatalf("depth %d: %d more of %d: %v", depth, depth-n+1, n, err)
			}
			for range n {
				r, ok := q.take()
				if !ok || r.ID != taken || len(r.Buffer) != 1 || q.at(taken).Buffer != nil {
					t.Fatalf("depth %d: %+v, %t, want %d", depth, r, ok, taken)
				}
				taken++
			}
			if r, ok := q.take(); ok {
				t.Fatalf("depth %d: %+v was not posted", depth, r)
			}
			if err := post(depth - n + 1); !errors.Is(err, verbs.ErrQueueFull) {
				t.Fatalf("depth %d: %d more of %d that were not polled: %v", depth, depth-n+1, n, err)
			}
			q.polled.Add(uint64(n))
		}
	}
}

// TestCompleted: nothing is left of the completion that was in the same place before.
func TestCompleted(t *testing.T) {
	x := &receiver{c: new(conn)}
	x.c.completions.init(4)
	x.recv = verbs.RecvRequest{ID: 7, Buffer: make([]byte, 1)}
	d := x.completed(verbs.StatusFlushed)
	d.Length, d.Invalidated, d.Handle = 8, true, 9
	x.deliver()
	x.recv.ID = 10
	if d := *x.completed(verbs.StatusSuccess); d.ID != 10 || d.Op != verbs.OpRecv || d.Status != verbs.StatusSuccess || d.Length != 0 || d.Invalidated || d.Handle != 0 {
		t.Errorf("%+v", d)
	}
	if x.recv.Buffer != nil {
		t.Error("the memory of the receive is kept alive")
	}
}
