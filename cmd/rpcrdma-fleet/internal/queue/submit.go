package queue

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// errPerSubject is the server's text for a second message of a subject; its code stands for several limits.
const errPerSubject = "maximum messages per subject exceeded"

// Put queues a unit, unless it is queued or in work. Again forgets its crashes.
func (q *Queue) Put(ctx context.Context, t Task, again bool) (queued bool, err error) {
	b, err := t.encode()
	if err != nil {
		return false, err
	}
	// Of a unit that was queued, and whose answer was lost, another attempt says that it was queued before.
	err = persist(ctx, persistence, nil, func() error {
		if err := q.reset(ctx, t, again); err != nil {
			return err
		}
		_, err := q.js.Publish(ctx, subject(t), b, jetstream.WithExpectStream(Stream), jetstream.WithRetryAttempts(5), jetstream.WithRetryWait(time.Second))
		return err
	})
	var api *jetstream.APIError
	if errors.As(err, &api) && api.Description == errPerSubject {
		return false, nil
	}
	return err == nil, err
}

// reset prepares the record of a unit that ended, for another round.
func (q *Queue) reset(ctx context.Context, t Task, again bool) error {
	for {
		r, revision, err := q.record(ctx, t.Key())
		if err != nil || revision == 0 || !r.State.Final() && !(again && len(r.Crashes) > 0) {
			return err
		}
		n := &Record{State: Returned, Job: t.Job, Since: time.Now().UTC(), Crashes: r.Crashes}
		if again {
			n.Crashes = nil
			if r.State == Running { // its worker goes on, and tells later
				n.State, n.Worker, n.Since = r.State, r.Worker, r.Since
			}
		}
		if _, err = q.update(ctx, t.Key(), n, revision); !conflict(err) {
			return err
		}
	}
}
