package backlog

import (
	"context"
	"errors"
	"testing"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

func TestNext(t *testing.T) {
	queue, open, closed := make(chan int, 1), make(chan struct{}), make(chan struct{})
	close(closed)
	queue <- 7
	if r, err := Next(t.Context(), queue, open); r != 7 || err != nil {
		t.Errorf("%d, %v; want 7", r, err)
	}
	if _, err := Next(t.Context(), queue, closed); !errors.Is(err, verbs.ErrClosed) {
		t.Errorf("%v, want ErrClosed", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	queue <- 8
	if _, err := Next(ctx, queue, closed); !errors.Is(err, context.Canceled) || len(queue) != 1 {
		t.Errorf("%v with %d requests left; a context that has ended comes first", err, len(queue))
	}
}
