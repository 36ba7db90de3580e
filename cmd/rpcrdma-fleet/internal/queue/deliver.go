package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// handle does with a message what has to be done.
func (w *Worker) handle(ctx context.Context, m jetstream.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		w.Note("a message that is not from the queue is ignored: %v", err)
		return
	}
	t, err := decodeTask(m.Subject(), m.Data())
	switch {
	case errors.Is(err, errNewer):
		w.Note("a message is left to other workers: %s: %v", cut(m.Subject(), 100), err)
		_ = m.NakWithDelay(w.q.ackWait)
		return
	case err != nil:
		w.Note("a message that nobody who submits units writes is removed from the queue: %s: %v", cut(m.Subject(), 100), err)
		_ = m.TermWithReason("malformed")
		return
	}
	d := &delivery{Worker: w, m: m, t: t, n: meta.NumDelivered}
	if err := w.Exec.Allowed(t.Store); err != nil {
		w.Note("unit %s is left to other workers: %v", t.Unit, err)
		d.later(w.q.ackWait)
		return
	}
	if !d.take(ctx) {
		return
	}
	w.working(ctx, t, m.Reply())
	stop := d.inProgress(ctx)
	d.do(ctx) // what follows is not deferred: see Run
	stop()
	w.idle(false)
}

// delivery is one message in the hands of a worker.
type delivery struct {
	*Worker
	m        jetstream.Msg
	t        Task
	n        uint64 // how often it was delivered
	rec      *Record
	revision uint64
}

// later gives the message back, to be delivered after a while.
func (d *delivery) later(wait time.Duration) { _ = d.m.NakWithDelay(wait) }

// inProgress keeps the message from being delivered to others.
func (d *delivery) inProgress(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(d.q.ackWait / beats)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				_ = d.m.InProgress()
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// take writes down that this worker has the unit. It reports false if it does not get it, and has answered the
// message then.
func (d *delivery) take(ctx context.Context) bool {
	rec, revision, err := d.q.record(ctx, d.t.Key())
	if err != nil {
		d.Note("unit %s: %v", d.t.Unit, err)
		d.later(d.q.ackWait / 2)
		return false
	}
	d.rec, d.revision = rec, revision
	if rec.State == Running && rec.Worker != d.Name {
		where, err := d.q.whereabouts(ctx, rec.Worker, d.t.Key())
		if err != nil || where == atWork {
			d.later(d.q.ackWait / 2)
			return false
		}
		if where == gone && !d.crashed(ctx) {
			return false
		}
	}
	if d.n >= lastDeliver {
		d.give(ctx, Failed, fmt.Sprintf("delivered %d times without a result", d.n))
		return false
	}
	next := &Record{
		State: Running, Job: d.t.Job, Worker: d.Name, Since: time.Now().UTC(), Crashes: d.rec.Crashes, Failures: d.rec.Failures, Reason: d.rec.Reason,
	}
	if !d.write(ctx, next) {
		d.later(d.q.ackWait / 2)
		return false
	}
	return true
}

// write changes the record, and reports whether it could.
func (d *delivery) write(ctx context.Context, r *Record) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	revision, err := d.q.update(ctx, d.t.Key(), r, d.revision)
	if err != nil {
		if !conflict(err) {
			d.Note("unit %s: its record cannot be written: %v", d.t.Unit, err)
		}
		return false
	}
	d.rec, d.revision = r, revision
	return true
}

// What a worker that has a unit is doing.
type whereabouts int

const (
	gone      whereabouts = iota
	atWork                // it decodes the unit
	elsewhere             // it lives, and could not say that it is through with the unit
)

// whereabouts tells what a worker that has a unit is doing.
func (q *Queue) whereabouts(ctx context.Context, worker, key string) (whereabouts, error) {
	e, err := q.workers.Get(ctx, worker)
	if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
		return gone, nil
	}
	if err != nil {
		return gone, err
	}
	s, err := decodeSign(e.Value())
	switch {
	case err != nil:
		return gone, nil //nolint:nilerr // whatever wrote this is no worker
	case s.Key == key:
		return atWork, nil
	}
	return elsewhere, nil
}

// crashed counts a crash of the worker that had the unit before. It reports false if that was one too many.
func (d *delivery) crashed(ctx context.Context) bool {
	reason := d.rec.Ended
	if reason == "" {
		reason = fmt.Sprintf("no sign of life for %s", d.q.ackWait)
	}
	c := Crash{Worker: d.rec.Worker, Time: time.Now().UTC().Truncate(time.Second), Reason: reason}
	r := *d.rec
	r.Crashes = append(append([]Crash(nil), r.Crashes...), c)
	r.State, r.Ended = Returned, ""
	if len(r.Crashes) > maxCrashes { // set aside already; submitted again without saying so
		r.Crashes = r.Crashes[len(r.Crashes)-maxCrashes:]
	}
	if !d.write(ctx, &r) {
		d.later(d.q.ackWait / 2)
		return false
	}
	d.Note("unit %s: its worker %s crashed (%s), %d of %d", d.t.Unit, c.Worker, reason, len(r.Crashes), maxCrashes)
	if err := d.Exec.Fail(ctx, d.t, c.Worker, "crashed: "+reason); err != nil {
		d.Note("unit %s: the crash cannot be noted in the store: %v", d.t.Unit, err)
	}
	return true
}

// do decodes the unit, unless there is nothing to do, and answers the message.
func (d *delivery) do(ctx context.Context) {
	// The store first: a worker may have crashed after it wrote the result.
	s, err := d.Exec.Standing(ctx, d.t)
	switch {
	case err != nil:
		d.failed(ctx, err)
		return
	case s == Foreign:
		d.Note("unit %s is removed from the queue: it belongs to no job %s in %s", d.t.Unit, d.t.Job, d.t.Store)
		d.give(ctx, Failed, "it belongs to no job in the store")
		return
	case s == Done:
		d.finish(ctx)
		return
	case s == SetAside:
		d.give(ctx, Aside, "set aside before")
		return
	case len(d.rec.Crashes) >= maxCrashes:
		d.setAside(ctx)
		return
	}
	if err := d.Exec.Run(ctx, d.t, d.progress); err != nil {
		d.failed(ctx, err)
		return
	}
	d.finish(ctx)
}

// setAside ends a unit at which workers crash.
func (d *delivery) setAside(ctx context.Context) {
	if err := d.Exec.SetAside(ctx, d.t, d.rec.Crashes); err != nil {
		d.failed(ctx, fmt.Errorf("it cannot be set aside: %w", err))
		return
	}
	d.Note("unit %s is set aside: %d workers crashed in it", d.t.Unit, len(d.rec.Crashes))
	d.give(ctx, Aside, fmt.Sprintf("%d workers crashed", len(d.rec.Crashes)))
}

// finish says that the result is there. Where that does not get through, the message comes again, to somebody who
// finds the result.
func (d *delivery) finish(ctx context.Context) {
	r := &Record{State: Finished, Job: d.t.Job, Worker: d.Name, Since: time.Now().UTC(), Crashes: d.rec.Crashes}
	if !d.write(ctx, r) {
		// Somebody else has it by now, since this worker was silent for too long. He finds the result.
		return
	}
	d.Worker.idle(true)
	d.ack(ctx)
}

func (d *delivery) ack(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := d.m.DoubleAck(ctx); err != nil {
		d.Note("unit %s is done, but NATS did not confirm that: %v; it will be delivered again, and found done", d.t.Unit, err)
	}
}

// give takes the unit out of the queue without a result.
func (d *delivery) give(ctx context.Context, s State, reason string) {
	r := *d.rec
	r.State, r.Job, r.Worker, r.Since, r.Ended, r.Reason = s, d.t.Job, d.Name, time.Now().UTC(), "", cut(reason, maxReason)
	if d.write(ctx, &r) {
		_ = d.m.TermWithReason(string(s))
	} else {
		d.later(d.q.ackWait / 2)
	}
}

// failed answers a message whose unit has no result: because this worker is to end, which is not a failure, or by an
// error.
func (d *delivery) failed(ctx context.Context, err error) {
	r := *d.rec
	r.State, r.Since = Returned, time.Now().UTC()
	if ctx.Err() != nil {
		d.write(ctx, &r)
		d.later(0)
		return
	}
	r.Failures++
	r.Reason = cut(err.Error(), maxReason)
	d.Note("unit %s: attempt %d of %d: %v", d.t.Unit, r.Failures, maxFailures, err)
	if noted := d.Exec.Fail(ctx, d.t, d.Name, r.Reason); noted != nil {
		d.Note("unit %s: the failure cannot be noted in the store: %v", d.t.Unit, noted)
	}
	var p permanent
	if errors.As(err, &p) || r.Failures >= maxFailures {
		d.rec = &r
		d.give(ctx, Failed, r.Reason)
		return
	}
	d.write(ctx, &r)
	d.later(min(time.Duration(r.Failures)*5*time.Second, d.q.ackWait))
}
