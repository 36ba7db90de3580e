package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// rig is an embedded server with an empty queue.
type rig struct {
	*testing.T
	e *Embedded
	q *Queue
}

func newRig(t *testing.T) *rig {
	t.Helper()
	e, err := Embed(t.TempDir(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r := &rig{T: t, e: e}
	nc, err := Dial(e.Address, "test", func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if r.q, err = Create(t.Context(), nc, Setup{AckWait: time.Second}); err != nil {
		t.Fatal(err)
	}
	return r
}

// unitID makes IDs.
func unitID(n int) string { return fmt.Sprintf("%032x", n+1) }

// task is the Task with a unit.
func task(n int) Task { return Task{Store: "mem://out", Job: unitID(1000), Unit: unitID(n)} }

func (r *rig) put(n int) Task {
	r.Helper()
	t := task(n)
	if _, err := r.q.Put(r.Context(), t, false); err != nil {
		r.Fatal(err)
	}
	return t
}

// worker starts a worker; stop waits for its end.
func (r *rig) worker(x Executor) (name string, stop func()) {
	r.Helper()
	nc, err := Dial(r.e.Address, "worker", func(string, ...any) {})
	if err != nil {
		r.Fatal(err)
	}
	q, err := Open(r.Context(), nc)
	if err != nil {
		r.Fatal(err)
	}
	w := &Worker{Name: NewName(), Version: "test", Exec: x, Note: r.Logf}
	ctx, cancel := context.WithCancel(r.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := w.Run(ctx, q); err != nil {
			r.Error(err)
		}
	})
	stop = func() {
		cancel()
		wg.Wait()
		nc.Close()
	}
	r.Cleanup(stop)
	return w.Name, stop
}

// ends waits until all units have ended and returns their records.
func (r *rig) ends(units ...string) map[string]*Record {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context(), 60*time.Second)
	defer cancel()
	m := map[string]*Record{}
	var keys []string
	for _, u := range units {
		keys = append(keys, Task{Store: "mem://out", Unit: u}.Key())
	}
	lost, err := r.q.Wait(ctx, keys, func(key string, rec *Record) { m[key[17:]] = rec })
	if err != nil || len(lost) > 0 {
		r.Fatalf("units %q lost, %v", lost, err)
	}
	return m
}

// empty waits until the queue is empty: the acknowledgement comes after the record.
func (r *rig) empty() {
	r.Helper()
	for range 200 {
		m, err := r.q.queued(r.Context())
		if err != nil {
			r.Fatal(err)
		}
		if len(m) == 0 {
			return
		}
		pause(r.Context(), 20*time.Millisecond)
	}
	r.Fatal("the queue does not become empty")
}

// memory is an Executor without a store.
type memory struct {
	mu      sync.Mutex
	done    map[string]int // how often a unit was decoded
	foreign map[string]bool
	aside   map[string][]Crash
	fails   []string
	run     func(ctx context.Context, t Task) error
}

func newMemory(run func(ctx context.Context, t Task) error) *memory {
	return &memory{done: map[string]int{}, foreign: map[string]bool{}, aside: map[string][]Crash{}, run: run}
}

func (m *memory) Standing(_ context.Context, t Task) (Standing, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.foreign[t.Unit]:
		return Foreign, nil
	case m.done[t.Unit] > 0:
		return Done, nil
	case m.aside[t.Unit] != nil:
		return SetAside, nil
	}
	return ToDo, nil
}

func (m *memory) Run(ctx context.Context, t Task, progress func(Progress)) error {
	progress(Progress{Files: 1})
	if m.run != nil {
		if err := m.run(ctx, t); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done[t.Unit]++
	return nil
}

func (m *memory) Fail(_ context.Context, _ Task, _, reason string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fails = append(m.fails, reason)
	return nil
}

func (m *memory) SetAside(_ context.Context, t Task, c []Crash) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.aside[t.Unit] = c
	return nil
}

func (m *memory) Allowed(store string) error {
	if store != "mem://out" {
		return errors.New("not allowed")
	}
	return nil
}

func TestQueue(t *testing.T) {
	r, x := newRig(t), newMemory(nil)
	var units []string
	for n := range 10 {
		units = append(units, r.put(n).Unit)
	}
	// Once more: nothing is queued twice.
	for n := range 10 {
		if again, err := r.q.Put(t.Context(), task(n), false); err != nil || again {
			t.Fatalf("queued twice: %v, %v", again, err)
		}
	}
	r.worker(x)
	r.worker(x)
	for u, rec := range r.ends(units...) {
		if rec.State != Finished || x.done[u] != 1 {
			t.Errorf("unit %s: %+v, decoded %d times", u, rec, x.done[u])
		}
	}
	r.empty()
	s, err := r.q.Look(t.Context())
	if err != nil || len(s.Records) != 10 || len(s.Workers) != 2 || s.Odd != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	// What is done and submitted again is found done.
	if again, err := r.q.Put(t.Context(), task(3), false); err != nil || !again {
		t.Fatalf("not queued again: %v, %v", again, err)
	}
	r.empty()
	if x.done[unitID(3)] != 1 {
		t.Errorf("decoded %d times", x.done[unitID(3)])
	}
}

// die takes a unit like a worker that crashes in it.
func (r *rig) die(worker string, ended bool) {
	r.Helper()
	c, err := r.q.js.Consumer(r.Context(), Stream, Consumer)
	if err != nil {
		r.Fatal(err)
	}
	batch, err := c.Fetch(1, jetstream.FetchMaxWait(20*time.Second))
	if err != nil {
		r.Fatal(err)
	}
	for m := range batch.Messages() {
		r.q.ackWait = time.Second
		w := &Worker{Name: worker, Exec: newMemory(nil), Note: r.Logf, q: r.q}
		tk, err := decodeTask(m.Subject(), m.Data())
		if err != nil {
			r.Fatal(err)
		}
		d := &delivery{Worker: w, m: m, t: tk}
		if !d.take(r.Context()) {
			r.Fatal("not taken")
		}
		w.working(r.Context(), tk, m.Reply())
		if ended {
			if err := r.q.Bury(r.Context(), worker, "killed"); err != nil {
				r.Fatal(err)
			}
		}
		return
	}
	r.Fatalf("nothing to take: %v", batch.Error())
}

func TestCrash(t *testing.T) {
	r, x := newRig(t), newMemory(nil)
	u := r.put(0).Unit
	r.die("ghost-1", true)  // somebody saw it
	r.die("ghost-2", false) // its signs of life stay away
	r.worker(x)
	rec := r.ends(u)[u]
	if rec.State != Finished || len(rec.Crashes) != 2 || rec.Crashes[0].Reason != "killed" || !strings.Contains(rec.Crashes[1].Reason, "no sign of life") {
		t.Errorf("%+v", rec)
	}
	if len(x.fails) != 1 || !strings.Contains(x.fails[0], "no sign") { // the first was noted by the second ghost
		t.Errorf("failures %q", x.fails)
	}
}

func TestPoison(t *testing.T) {
	r, x := newRig(t), newMemory(nil)
	u, other := r.put(0).Unit, unitID(1)
	for n := range maxCrashes {
		r.die(fmt.Sprint("ghost-", n), true)
	}
	r.put(1)
	r.worker(x)
	m := r.ends(u, other)
	if m[u].State != Aside || len(x.aside[u]) != maxCrashes || x.done[u] != 0 || m[other].State != Finished {
		t.Errorf("%+v, %+v, %+v", m[u], m[other], x)
	}
	r.empty()
	// Again: it is tried again only for those who ask for it.
	if _, err := r.q.Put(t.Context(), task(0), false); err != nil {
		t.Fatal(err)
	}
	r.empty()
	x.mu.Lock()
	delete(x.aside, u)
	x.mu.Unlock()
	if _, err := r.q.Put(t.Context(), task(0), true); err != nil {
		t.Fatal(err)
	}
	r.empty()
	if rec, _, err := r.q.record(t.Context(), task(0).Key()); err != nil || rec.State != Finished || len(rec.Crashes) != 0 {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestErrors(t *testing.T) {
	r := newRig(t)
	tries := map[string]int{}
	x := newMemory(nil)
	x.run = func(_ context.Context, task Task) error {
		x.mu.Lock()
		defer x.mu.Unlock()
		tries[task.Unit]++
		switch {
		case task.Unit == unitID(0) && tries[task.Unit] < maxFailures:
			return errors.New("the store is away")
		case task.Unit == unitID(1):
			return errors.New("the store is always away")
		case task.Unit == unitID(2):
			return fmt.Errorf("wrapped: %w", Permanent(errors.New("the file has changed")))
		}
		return nil
	}
	x.foreign[unitID(3)] = true
	var units []string
	for n := range 4 {
		units = append(units, r.put(n).Unit)
	}
	r.worker(x)
	m := r.ends(units...)
	for n, want := range []struct {
		state State
		tries int
	}{{Finished, maxFailures}, {Failed, maxFailures}, {Failed, 1}, {Failed, 0}} {
		if rec := m[unitID(n)]; rec.State != want.state || tries[unitID(n)] != want.tries || len(rec.Crashes) != 0 {
			t.Errorf("unit %d: %+v after %d tries, want %+v", n, rec, tries[unitID(n)], want)
		}
	}
	r.empty()
}

// A worker that is stopped gives its unit back at once, which is no crash.
func TestStop(t *testing.T) {
	r := newRig(t)
	began := make(chan bool, 1)
	x := newMemory(func(ctx context.Context, _ Task) error {
		began <- true
		<-ctx.Done()
		return ctx.Err()
	})
	u := r.put(0).Unit
	_, stop := r.worker(x)
	<-began
	stop()
	y := newMemory(nil)
	r.worker(y)
	if rec := r.ends(u)[u]; rec.State != Finished || len(rec.Crashes) != 0 || rec.Failures != 0 || len(x.fails) != 0 {
		t.Errorf("%+v, %q", rec, x.fails)
	}
}

// The acknowledgement is lost, or the worker dies before it: the next one finds the result.
func TestLostAck(t *testing.T) {
	r, x := newRig(t), newMemory(nil)
	u := r.put(0).Unit
	x.done[u] = 1
	r.die("ghost", false)
	r.worker(x)
	if rec := r.ends(u)[u]; rec.State != Finished || x.done[u] != 1 {
		t.Errorf("%+v, decoded %d times", rec, x.done[u]-1)
	}
	r.empty()
}

// A unit in the hands of a worker that lives is not decoded by another, whatever is delivered.
func TestDuplicate(t *testing.T) {
	r := newRig(t)
	began, goOn := make(chan bool, 8), make(chan bool)
	run := func(context.Context, Task) error {
		began <- true
		<-goOn
		return nil
	}
	x, y := newMemory(run), newMemory(run)
	u := r.put(0).Unit
	first, _ := r.worker(x)
	<-began
	s, err := r.q.Look(t.Context())
	if err != nil || s.Workers[first] == nil || s.Workers[first].Unit != u {
		t.Fatalf("%+v, %v", s, err)
	}
	// Deliver it again.
	if err := r.q.nc.Publish(s.Workers[first].Ack, []byte("-NAK")); err != nil {
		t.Fatal(err)
	}
	r.worker(y)
	pause(t.Context(), 1500*time.Millisecond) // longer than AckWait
	close(goOn)
	rec := r.ends(u)[u]
	if rec.State != Finished || rec.Worker != first || len(rec.Crashes) != 0 || len(began) != 0 {
		t.Errorf("%+v; taken by %d others", rec, len(began))
	}
	x.mu.Lock() // the second worker finds what the first has in its store
	y.mu.Lock()
	y.done[u] = x.done[u]
	y.mu.Unlock()
	x.mu.Unlock()
	r.empty()
}

// Whatever others put into the queue and the buckets, work goes on.
func TestHostile(t *testing.T) {
	r, x := newRig(t), newMemory(nil)
	bad := []string{
		"", "{", "null", "[]", `{"version":1}`, `{"version":2,"store":"mem://out","job":"` + unitID(0) + `","unit":"` + unitID(0) + `"}`,
		`{"version":1,"store":"mem://out","job":"../../x","unit":"` + unitID(0) + `"}`,
		`{"version":1,"store":"mem://out","job":"` + unitID(0) + `","unit":"` + unitID(500) + `"}`,
		`{"version":1,"store":"%","job":"` + unitID(0) + `","unit":"` + unitID(0) + `"}`,
		`{"version":1,"store":"mem://out","job":"` + unitID(0) + `","unit":"` + unitID(8) + `"}{}`,
		strings.Repeat("[", maxMessage),
	}
	for n, s := range bad {
		if _, err := r.q.js.Publish(t.Context(), subject(task(n)), []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.q.js.Publish(t.Context(), subject(task(900)), make([]byte, maxMessage+1)); err == nil {
		t.Error("the server takes messages of any size")
	}
	u := r.put(100).Unit
	odd := map[string]string{task(100).Key(): `{"state":"running","worker":"*.>","crashes":[{},{},{},{},{},{}]}`, "odd": "{", task(77).Key(): `{"state":"` + strings.Repeat("x", 9999) + `"}`}
	for key, v := range odd {
		if _, err := r.q.units.Put(t.Context(), key, []byte(v)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.q.workers.Put(t.Context(), key, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := r.q.Look(t.Context())
	if err != nil || s.Odd != 6 {
		t.Errorf("%+v, %v", s, err)
	}
	r.worker(x)
	if rec := r.ends(u)[u]; rec.State != Finished {
		t.Errorf("%+v", rec)
	}
	r.empty()
	if len(x.done) != 1 {
		t.Errorf("decoded %v", x.done)
	}
	if err := r.q.Bury(t.Context(), "odd", "x"); err == nil {
		t.Error("a forged sign is taken for one")
	}
}

// The queue outlives its server, if it has a directory.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	u := unitID(0)
	for round := range 2 {
		e, err := Embed(dir, t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		r := &rig{T: t, e: e}
		nc, err := Dial(e.Address, "test", t.Logf)
		if err != nil {
			t.Fatal(err)
		}
		if r.q, err = Create(t.Context(), nc, Setup{AckWait: time.Second}); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			r.put(0)
		} else {
			_, stop := r.worker(newMemory(nil))
			if rec := r.ends(u)[u]; rec.State != Finished {
				t.Errorf("%+v", rec)
			}
			stop()
		}
		nc.Close()
		e.Close()
	}
}
