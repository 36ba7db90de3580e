package queue

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Standing is what the store says of a unit.
type Standing int

// Standings.
const (
	Foreign  Standing = iota // the job is not in the store, or the unit not in the job
	ToDo                     // to be decoded
	Done                     // its result is there, and fits
	SetAside                 // too many workers crashed
)

// Executor does with a unit what has to do with the store.
type Executor interface {
	Standing(ctx context.Context, t Task) (Standing, error)
	// Run decodes the unit and writes its result, whole, before it returns nil. It may be called several times for
	// the same unit, also by two workers at a time. It may call progress from any goroutine.
	Run(ctx context.Context, t Task, progress func(Progress)) error
	// Fail notes an attempt that ended without a result.
	Fail(ctx context.Context, t Task, worker, reason string) error
	// SetAside notes that the unit is not tried again.
	SetAside(ctx context.Context, t Task, crashes []Crash) error
	// Allowed says why this worker does not touch a store; nil if it does.
	Allowed(store string) error
}

// permanent is an error that another attempt would have as well.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// Permanent marks an error of an Executor as one that another attempt would have as well.
func Permanent(err error) error { return permanent{err} }

// Worker takes units from the queue, one at a time.
type Worker struct {
	Name    string // unique among all workers, and never used again
	Version string // of the program
	Exec    Executor
	Note    func(format string, args ...any)

	q    *Queue
	mu   sync.Mutex
	sign Sign
	// showing keeps an older sign from being written after a newer one, which says what unit is in work.
	showing sync.Mutex
}

// NewName makes a name for a worker.
func NewName() string {
	host, _ := os.Hostname()
	host = strings.Map(func(c rune) rune {
		if validWorker(string(c)) {
			return c
		}
		return '-'
	}, cut(host, 60))
	return fmt.Sprintf("%s-%d-%s", host, os.Getpid(), strings.ToLower(randomText()[:8]))
}

// Run takes units until the context ends. Then the unit in work is given back, for another worker to go on at the
// last file boundary. Losing NATS is no error: Run waits for it.
func (w *Worker) Run(ctx context.Context, q *Queue) error {
	if !validWorker(w.Name) {
		return fmt.Errorf("%q cannot be the name of a worker", w.Name)
	}
	host, _ := os.Hostname()
	w.q, w.sign = q, Sign{Host: host, PID: os.Getpid(), Version: w.Version, Started: time.Now().UTC()}
	var c jetstream.Consumer
	err := persist(ctx, 0, func(err error) { w.Note("waiting for NATS: %v", err) }, func() (err error) {
		c, err = q.js.Consumer(ctx, Stream, Consumer)
		return err
	})
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("consumer %s of stream %s: %w", Consumer, Stream, err)
	}
	q.ackWait = c.CachedInfo().Config.AckWait
	if q.ackWait < time.Second || q.ackWait > time.Hour {
		return fmt.Errorf("consumer %s: an AckWait of %s; this program wants a second to an hour", Consumer, q.ackWait)
	}
	beat, stop := context.WithCancel(context.WithoutCancel(ctx))
	var live sync.WaitGroup
	live.Go(func() { w.beat(beat) })
	for ctx.Err() == nil {
		if err := w.next(ctx, c); err != nil && ctx.Err() == nil {
			w.Note("waiting for NATS: %v", err)
			pause(ctx, min(2*time.Second, q.ackWait))
		}
	}
	// Not deferred: a worker that panics must leave its sign behind, which says what it had in work.
	stop()
	live.Wait()
	bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	_ = q.workers.Delete(bye, w.Name) // it expires anyway
	return nil
}

// next waits for a unit, for a while, and does what has to be done with it.
func (w *Worker) next(ctx context.Context, c jetstream.Consumer) error {
	wait, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	batch, err := c.Fetch(1, jetstream.FetchContext(wait))
	if err != nil {
		return err
	}
	for m := range batch.Messages() {
		w.handle(ctx, m)
	}
	if err := batch.Error(); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// beat shows signs of life.
func (w *Worker) beat(ctx context.Context) {
	t := time.NewTicker(w.q.ackWait / beats)
	defer t.Stop()
	for {
		w.show(ctx)
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

// show writes the sign of life. When NATS is away it is the next one that counts.
func (w *Worker) show(ctx context.Context) {
	w.showing.Lock()
	defer w.showing.Unlock()
	w.mu.Lock()
	s := w.sign
	w.mu.Unlock()
	s.Resident = resident()
	b, err := s.encode()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, w.q.ackWait/2)
	defer cancel()
	_, _ = w.q.workers.Put(ctx, w.Name, b)
}

// working puts the unit into the sign of life, before anything in it can crash.
func (w *Worker) working(ctx context.Context, t Task, ack string) {
	w.mu.Lock()
	w.sign.Unit, w.sign.Job, w.sign.Key, w.sign.Ack, w.sign.Since, w.sign.Progress = t.Unit, t.Job, t.Key(), ack, time.Now().UTC(), Progress{}
	w.mu.Unlock()
	w.show(ctx)
}

func (w *Worker) idle(done bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if done {
		w.sign.Done++
	}
	w.sign.Unit, w.sign.Job, w.sign.Key, w.sign.Ack, w.sign.Since, w.sign.Progress = "", "", "", "", time.Time{}, Progress{}
}

func (w *Worker) progress(p Progress) {
	w.mu.Lock()
	w.sign.Progress = p
	w.mu.Unlock()
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
