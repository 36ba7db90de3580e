package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// persistence is how long those who submit units try again: a cluster that has lost a server takes up to ten seconds to
// choose another one to lead a stream.
const persistence = time.Minute

// persist does something until it works, cannot work, or the time is over; 0 stands for any time. It calls again, if
// that is not nil, with the first error after which it tries once more.
func persist(ctx context.Context, most time.Duration, again func(error), do func() error) error {
	for end := time.Now().Add(most); ; {
		err := do()
		if err == nil || ctx.Err() != nil || !passing(err) || most > 0 && time.Now().After(end) {
			return err
		}
		if again != nil {
			again(err)
			again = nil
		}
		pause(ctx, 500*time.Millisecond)
	}
}

// Answers of a cluster that is choosing a leader, or has not decided about another message yet.
const (
	errNotAvailable = jetstream.ErrorCode(10008)
	errNotLeader    = jetstream.ErrorCode(10009)
	errNotKnown     = jetstream.ErrorCode(10163)
)

// passing reports whether trying again may help: NATS is away, or nobody leads a stream at the moment.
func passing(err error) bool {
	var api *jetstream.APIError
	if errors.As(err, &api) {
		return api.ErrorCode == errNotAvailable || api.ErrorCode == errNotLeader || api.ErrorCode == errNotKnown
	}
	for _, e := range []error{
		nats.ErrNoResponders, jetstream.ErrNoStreamResponse, nats.ErrTimeout, context.DeadlineExceeded, nats.ErrReconnectBufExceeded, nats.ErrDisconnected,
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
