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

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/testtools/natstest"
)

// AckWaits of tests. Within longWait, no machine is so busy that a worker that lives is missed, and nothing expires
// that a test has just written. After shortWait, those are missed who have died. A test in which one has died has no
// more than one who lives: nobody is there to miss that one, however busy the machine is.
const (
	longWait  = time.Minute
	shortWait = time.Second
)

// patience is how long a test waits for what has to happen: longer than longWait, after which a message comes again that
// was lost on its way.
const patience = 3 * time.Minute

// rig is an embedded server with an empty queue.
type rig struct {
	*testing.T
	e       *Embedded
	q       *Queue
	ackWait time.Duration
}

func newRig(t *testing.T, ackWait time.Duration) *rig {
	t.Helper()
	return openRig(t, t.TempDir(), ackWait)
}

// openRig has its server in a directory.
func openRig(t *testing.T, dir string, ackWait time.Duration) *rig {
	t.Helper()
	r := &rig{T: t, ackWait: ackWait}
	e, err := Embed(dir, natstest.Log(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	r.e = e
	nc, err := Dial(e.Address, Submitter, "test", func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if r.q, err = Create(r.soon(), nc, Setup{AckWait: ackWait}); err != nil {
		t.Fatal(err)
	}
	return r
}

// soon is a context for one thing that the server does. One without an end gets one of five seconds from the client.
func (r *rig) soon() context.Context {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	r.Cleanup(cancel)
	return ctx
}

// until waits for a condition.
func (r *rig) until(what string, ok func() bool) {
	r.Helper()
	for deadline := time.Now().Add(patience); !ok(); pause(r.Context(), 10*time.Millisecond) {
		if time.Now().After(deadline) {
			r.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// unitID makes IDs.
func unitID(n int) string { return fmt.Sprintf("%032x", n+1) }

// task is the Task with a unit.
func task(n int) Task { return Task{Store: "mem://out", Job: unitID(1000), Unit: unitID(n)} }

func (r *rig) put(n int) Task {
	r.Helper()
	t := task(n)
	if _, err := r.q.Put(r.soon(), t, false); err != nil {
		r.Fatal(err)
	}
	return t
}

// worker starts a worker; stop waits for its end.
func (r *rig) worker(x Executor) (name string, stop func()) {
	r.Helper()
	nc, err := Dial(r.e.Address, RoleWorker, "worker", func(string, ...any) {})
	if err != nil {
		r.Fatal(err)
	}
	q, err := Open(r.soon(), nc)
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
	ctx, cancel := context.WithTimeout(r.Context(), patience)
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
	r.until("the queue is empty", func() bool { return len(r.look().Queued) == 0 })
}

func (r *rig) look() *Snapshot {
	r.Helper()
	s, err := r.q.Look(r.soon())
	if err != nil {
		r.Fatal(err)
	}
	return s
}

// memory is an Executor without a store.
type memory struct {
	mu      sync.Mutex
	done    map[string]int // how often a unit was decoded
	foreign map[string]bool
	aside   map[string][]Crash
	fails   []string
	asked   int // deliveries
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
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked++
	if store != "mem://out" {
		return errors.New("not allowed")
	}
	return nil
}

// deliveries are all that workers were given.
func (m *memory) deliveries() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

func TestQueue(t *testing.T) {
	r, x := newRig(t, longWait), newMemory(nil)
	var units []string
	for n := range 10 {
		units = append(units, r.put(n).Unit)
	}
	// Once more: nothing is queued twice.
	for n := range 10 {
		if again, err := r.q.Put(r.soon(), task(n), false); err != nil || again {
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
	// One of them may have done everything before the other shows its first sign of life.
	r.until("both workers show that they live", func() bool { return len(r.look().Workers) == 2 })
	if s := r.look(); len(s.Records) != 10 || len(s.Workers) != 2 || s.Odd != 0 {
		t.Errorf("%+v", s)
	}
	// What is done and submitted again is found done.
	if again, err := r.q.Put(r.soon(), task(3), false); err != nil || !again {
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
	c, err := r.q.js.Consumer(r.soon(), Stream, Consumer)
	if err != nil {
		r.Fatal(err)
	}
	batch, err := c.Fetch(1, jetstream.FetchMaxWait(patience))
	if err != nil {
		r.Fatal(err)
	}
	m, ok := <-batch.Messages()
	if !ok {
		r.Fatalf("nothing to take: %v", batch.Error())
	}
	r.q.ackWait = r.ackWait
	w := &Worker{Name: worker, Exec: newMemory(nil), Note: r.Logf, q: r.q}
	tk, err := decodeTask(m.Subject(), m.Data())
	if err != nil {
		r.Fatal(err)
	}
	d := &delivery{Worker: w, m: m, t: tk}
	if !d.take(r.soon()) {
		r.Fatal("not taken")
	}
	w.working(r.Context(), tk, m.Reply())
	if !ended {
		return
	}
	// Somebody sees the end while there is still a sign of life, which may expire before.
	r.until("the end is noted", func() bool {
		if err := r.q.Bury(r.soon(), worker, "killed"); err != nil {
			r.Fatal(err)
		}
		rec, _, err := r.q.record(r.soon(), tk.Key())
		if err != nil {
			r.Fatal(err)
		}
		if rec.Ended == "" {
			w.working(r.Context(), tk, m.Reply())
		}
		return rec.Ended != ""
	})
}

func TestCrash(t *testing.T) {
	r, x := newRig(t, shortWait), newMemory(nil)
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
	r, x := newRig(t, longWait), newMemory(nil)
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
	if _, err := r.q.Put(r.soon(), task(0), false); err != nil {
		t.Fatal(err)
	}
	r.empty()
	x.mu.Lock()
	delete(x.aside, u)
	x.mu.Unlock()
	if _, err := r.q.Put(r.soon(), task(0), true); err != nil {
		t.Fatal(err)
	}
	r.empty()
	if rec, _, err := r.q.record(r.soon(), task(0).Key()); err != nil || rec.State != Finished || len(rec.Crashes) != 0 {
		t.Errorf("%+v, %v", rec, err)
	}
}

func TestErrors(t *testing.T) {
	r := newRig(t, shortWait) // attempts follow one another as soon
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
	r := newRig(t, longWait)
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

// TestAwayAtStart: a worker that NATS does not answer when it starts waits, and works then.
func TestAwayAtStart(t *testing.T) {
	r, x := newRig(t, longWait), newMemory(nil)
	u := r.put(0).Unit
	gate, way := natstest.NewGate(t), r.e.Address
	server := strings.TrimPrefix(way.Servers, "nats://")
	gate.Open(server)
	way.Servers = "nats://" + gate.Address
	nc, err := Dial(way, RoleWorker, "worker", func(string, ...any) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	q, err := Open(r.soon(), nc)
	if err != nil {
		t.Fatal(err)
	}
	gate.Shut()
	r.until("the worker has lost NATS", func() bool { return !nc.IsConnected() })
	waits := make(chan bool, 1)
	w := &Worker{Name: NewName(), Exec: x, Note: func(format string, args ...any) {
		t.Logf(format, args...)
		select {
		case waits <- true:
		default:
		}
	}}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx, q) }()
	select {
	case <-waits:
	case err := <-ended:
		t.Fatalf("the worker has ended: %v", err)
	}
	gate.Open(server)
	if rec := r.ends(u)[u]; rec.State != Finished {
		t.Errorf("%+v", rec)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// The acknowledgement is lost, or the worker dies before it: the next one finds the result.
func TestLostAck(t *testing.T) {
	r, x := newRig(t, shortWait), newMemory(nil)
	u := r.put(0).Unit
	x.done[u] = 1
	r.die("ghost", false)
	r.worker(x)
	if rec := r.ends(u)[u]; rec.State != Finished || x.done[u] != 1 {
		t.Errorf("%+v, decoded %d times", rec, x.done[u]-1)
	}
	r.empty()
}

// halting says that a unit is in work, and ends when it is told to.
func halting(began chan<- bool, goOn <-chan bool) func(context.Context, Task) error {
	return func(ctx context.Context, _ Task) error {
		began <- true
		select {
		case <-goOn:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A unit in the hands of a worker that lives is not decoded by another, whatever is delivered.
func TestDuplicate(t *testing.T) {
	r := newRig(t, longWait)
	began, goOn := make(chan bool, 8), make(chan bool)
	x := newMemory(halting(began, goOn)) // the store of both workers
	u := r.put(0).Unit
	first, _ := r.worker(x)
	<-began
	s := r.look()
	if s.Workers[first] == nil || s.Workers[first].Unit != u {
		t.Fatalf("%+v", s)
	}
	r.worker(x)
	waiting := func() bool {
		c, err := r.q.js.Consumer(r.soon(), Stream, Consumer)
		if err != nil {
			t.Fatal(err)
		}
		return c.CachedInfo().NumWaiting == 1
	}
	r.until("the second worker waits for work", waiting)
	for n := range 3 {
		if err := r.q.nc.Publish(s.Workers[first].Ack, []byte("-NAK")); err != nil {
			t.Fatal(err)
		}
		r.until("the unit is delivered again", func() bool { return x.deliveries() == n+2 })
		r.until("the second worker has given it back", waiting)
	}
	close(goOn)
	rec := r.ends(u)[u]
	r.empty()
	if rec.State != Finished || rec.Worker != first || len(rec.Crashes) != 0 || len(began) != 0 || x.done[u] != 1 {
		t.Errorf("%+v; taken by %d others", rec, len(began))
	}
}

// TestLong: a worker keeps its unit for longer than AckWait, as long as it shows that it lives.
func TestLong(t *testing.T) {
	for ackWait := shortWait; ; ackWait *= 2 {
		gap, wrong := long(t, ackWait)
		if wrong == "" {
			return
		}
		// Where the machine keeps a worker from showing that it lives, it is missed with good reason, and nothing was tested.
		if gap < ackWait/2 || ackWait > 30*shortWait {
			t.Fatalf("%s, after no sign of life for %v; AckWait is %v", wrong, gap, ackWait)
		}
		t.Logf("%s, after no sign of life for %v: once more", wrong, gap)
	}
}

// long has a unit decoded for one and a half AckWaits, and says what went wrong. The gap is the longest time, by the
// clock of the server, without a sign of life.
func long(t *testing.T, ackWait time.Duration) (gap time.Duration, wrong string) {
	t.Helper()
	r := newRig(t, ackWait)
	began, goOn := make(chan bool, 100), make(chan bool)
	x := newMemory(halting(began, goOn))
	u := r.put(0).Unit
	first, _ := r.worker(x)
	<-began
	signs, err := r.q.workers.Watch(r.soon(), first)
	if err != nil {
		t.Fatal(err)
	}
	r.worker(x)
	var from, last time.Time
	for last.Sub(from) < ackWait*3/2 {
		select {
		case e := <-signs.Updates():
			switch {
			case e == nil: // the end of what was there before
			case from.IsZero():
				from, last = e.Created(), e.Created()
			default:
				gap, last = max(gap, e.Created().Sub(last)), e.Created()
			}
		case <-time.After(patience):
			t.Fatal("a worker shows no signs of life")
		}
	}
	others := x.deliveries() - 1
	close(goOn)
	rec := r.ends(u)[u]
	r.empty()
	if rec.State != Finished || rec.Worker != first || len(rec.Crashes) != 0 || x.done[u] != 1 || others != 0 {
		wrong = fmt.Sprintf("%+v; delivered to %d others, decoded %d times", rec, others, x.done[u])
	}
	return gap, wrong
}

// Whatever others put into the queue and the buckets, work goes on.
func TestHostile(t *testing.T) {
	r, x := newRig(t, longWait), newMemory(nil)
	bad := []string{
		"", "{", "null", "[]", `{"version":1}`, `{"version":0,"store":"mem://out","job":"` + unitID(0) + `","unit":"` + unitID(0) + `"}`,
		`{"version":1,"store":"mem://out","job":"../../x","unit":"` + unitID(0) + `"}`,
		`{"version":1,"store":"mem://out","job":"` + unitID(0) + `","unit":"` + unitID(500) + `"}`,
		`{"version":1,"store":"%","job":"` + unitID(0) + `","unit":"` + unitID(0) + `"}`,
		`{"version":1,"store":"mem://out","job":"` + unitID(0) + `","unit":"` + unitID(8) + `"}{}`,
		strings.Repeat("[", maxMessage),
	}
	for n, s := range bad {
		if _, err := r.q.js.Publish(r.soon(), subject(task(n)), []byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.q.js.Publish(r.soon(), subject(task(900)), make([]byte, maxMessage+1)); err == nil {
		t.Error("the server takes messages of any size")
	}
	u := r.put(100).Unit
	odd := map[string]string{task(100).Key(): `{"state":"running","worker":"*.>","crashes":[{},{},{},{},{},{}]}`, "odd": "{", task(77).Key(): `{"state":"` + strings.Repeat("x", 9999) + `"}`}
	for key, v := range odd {
		if _, err := r.q.units.Put(r.soon(), key, []byte(v)); err != nil {
			t.Fatal(err)
		}
		if _, err := r.q.workers.Put(r.soon(), key, []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	if s := r.look(); s.Odd != 6 {
		t.Errorf("%+v", s)
	}
	r.worker(x)
	if rec := r.ends(u)[u]; rec.State != Finished {
		t.Errorf("%+v", rec)
	}
	r.empty()
	if len(x.done) != 1 {
		t.Errorf("decoded %v", x.done)
	}
	if err := r.q.Bury(r.soon(), "odd", "x"); err == nil {
		t.Error("a forged sign is taken for one")
	}
}

// What a later version of the program submits is left to its workers.
func TestNewer(t *testing.T) {
	r, x := newRig(t, longWait), newMemory(nil)
	ack, err := r.q.js.Publish(r.soon(), subject(task(1)), []byte(`{"version":2,"what":["is","new"],"unit":7}`))
	if err != nil {
		t.Fatal(err)
	}
	u := r.put(100).Unit
	r.worker(x)
	if rec := r.ends(u)[u]; rec.State != Finished {
		t.Errorf("%+v", rec)
	}
	s, err := r.q.js.Stream(r.soon(), Stream)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.GetMsg(r.soon(), ack.Sequence); err != nil {
		t.Errorf("the message of a later version is gone: %v", err)
	}
}

// The queue outlives its server, if it has a directory.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	u := unitID(0)
	for round := range 2 {
		r := openRig(t, dir, longWait)
		if round == 0 {
			r.put(0)
		} else {
			_, stop := r.worker(newMemory(nil))
			if rec := r.ends(u)[u]; rec.State != Finished {
				t.Errorf("%+v", rec)
			}
			stop()
		}
		r.q.nc.Close()
		r.e.Close()
	}
}
