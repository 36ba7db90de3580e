package queue

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Snapshot is what NATS knows.
type Snapshot struct {
	Records map[string]*Record // by Key
	Queued  map[string]bool    // Keys of units whose message is in the queue, also those in work
	Workers map[string]*Sign   // those alive, by name
	Odd     int                // records and signs that no worker writes
}

// Look asks NATS for all it knows.
func (q *Queue) Look(ctx context.Context) (*Snapshot, error) {
	s := &Snapshot{Records: map[string]*Record{}, Workers: map[string]*Sign{}}
	var err error
	if s.Queued, err = q.queued(ctx); err != nil {
		return nil, err
	}
	err = each(ctx, q.units, func(e jetstream.KeyValueEntry) {
		if r, err := decodeRecord(e.Value()); err == nil && isKey(e.Key()) {
			s.Records[e.Key()] = r
		} else {
			s.Odd++
		}
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, q.workers, func(e jetstream.KeyValueEntry) {
		if w, err := decodeSign(e.Value()); err == nil && validWorker(e.Key()) {
			s.Workers[e.Key()] = w
		} else {
			s.Odd++
		}
	})
	return s, err
}

// queued lists the units that have a message.
func (q *Queue) queued(ctx context.Context) (map[string]bool, error) {
	info, err := q.stream.Info(ctx, jetstream.WithSubjectFilter(subjectPrefix+"*"))
	if err != nil {
		return nil, err
	}
	m := make(map[string]bool, len(info.State.Subjects))
	for s := range info.State.Subjects {
		m[strings.TrimPrefix(s, subjectPrefix)] = true
	}
	return m, nil
}

// each visits all values of a bucket.
func each(ctx context.Context, kv jetstream.KeyValue, visit func(jetstream.KeyValueEntry)) error {
	w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return err
	}
	defer func() { _ = w.Stop() }()
	for {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return errors.New("NATS ended the listing early")
			}
			if e == nil {
				return nil
			}
			visit(e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Wait tells what becomes of units, by their Keys, until all of them have ended; of each change it calls changed. A unit that is
// neither queued nor has ended is lost: it is returned, for the store to say what became of it.
func (q *Queue) Wait(ctx context.Context, keys []string, changed func(key string, r *Record)) (lost []string, err error) {
	open := make(map[string]bool, len(keys))
	for _, u := range keys {
		open[u] = true
	}
	w, err := q.units.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { _ = w.Stop() }()
	check := time.NewTicker(10 * time.Second)
	defer check.Stop()
	suspects := map[string]bool{}
	for len(open) > 0 {
		select {
		case e, ok := <-w.Updates():
			if !ok {
				return nil, errors.New("NATS does not tell any more how units get on")
			}
			if e == nil || !open[e.Key()] {
				continue
			}
			r, err := decodeRecord(e.Value())
			if err != nil {
				continue
			}
			changed(e.Key(), r)
			if r.State.Final() {
				delete(open, e.Key())
			}
		case <-check.C:
			// Twice in a row, since a record may be on its way.
			queued, err := q.queued(ctx)
			if err != nil {
				continue
			}
			for u := range open {
				switch {
				case queued[u]:
					delete(suspects, u)
				case suspects[u]:
					lost = append(lost, u)
					delete(open, u)
				default:
					suspects[u] = true
				}
			}
		case <-ctx.Done():
			return lost, ctx.Err()
		}
	}
	return lost, nil
}

// Bury says that a worker has ended, for those who saw it: its unit is delivered to another at once, instead of
// when its signs of life stay away. A reason says how it crashed; "" that it did not.
func (q *Queue) Bury(ctx context.Context, worker, reason string) error {
	e, err := q.workers.Get(ctx, worker)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := q.workers.Delete(ctx, worker); err != nil {
		return err
	}
	s, err := decodeSign(e.Value())
	if err != nil || s.Key == "" {
		return err
	}
	r, revision, err := q.record(ctx, s.Key)
	if err != nil {
		return err
	}
	if r.State == Running && r.Worker == worker && reason != "" {
		r.Ended = cut(reason, maxReason)
		if _, err := q.update(ctx, s.Key, r, revision); err != nil {
			return err
		}
		if strings.HasPrefix(s.Ack, "$JS.ACK.") {
			return q.nc.Publish(s.Ack, []byte("-NAK"))
		}
	}
	return nil
}
