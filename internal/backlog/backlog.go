// Package backlog takes connection requests from the queue of a listener.
package backlog

import (
	"context"

	"github.com/rpcrdma/toolkit/replay/verbs"
)

// Next waits for the next request in queue, as verbs.Listener.Accept does. It
// returns verbs.ErrClosed when closed is, and ctx.Err() when ctx ends first.
func Next[T any](ctx context.Context, queue <-chan T, closed <-chan struct{}) (r T, err error) {
	if err := ctx.Err(); err != nil {
		return r, err
	}
	select {
	case <-closed: // before what may still be in the queue
		return r, verbs.ErrClosed
	default:
	}
	select {
	case r = <-queue:
		return r, nil
	case <-closed:
		return r, verbs.ErrClosed
	case <-ctx.Done():
		return r, ctx.Err()
	}
}
