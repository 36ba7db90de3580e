package work

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/queue"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// bench is a store with a job of one unit, and one more unit that is of no job.
type bench struct {
	*testing.T
	x      *Executor
	s      *store.Store
	url    string
	unit   *layout.Unit
	task   queue.Task
	stray  queue.Task
	decode func() error // before the result is written
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{T: t, url: "file://" + filepath.ToSlash(filepath.Join(dir, "out"))}
	allow, err := NewAllow([]string{"file://" + filepath.ToSlash(dir)})
	if err != nil {
		t.Fatal(err)
	}
	b.x = &Executor{Allow: allow, Decode: b.run}
	t.Cleanup(func() {
		if err := b.x.Close(); err != nil {
			t.Error(err)
		}
	})
	if b.s, err = store.Open(t.Context(), b.url, store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.s.Close() })
	b.unit = b.newUnit("nfs-7", "file://"+filepath.ToSlash(dir)+"/caps/a.pcap")
	b.task = queue.Task{Store: b.url, Job: b.submit(b.unit), Unit: b.unit.ID}
	b.stray = b.task
	b.stray.Unit = b.newUnit("nfs-8", "file:///caps/b.pcap").ID
	return b
}

func (b *bench) newUnit(tap, url string) *layout.Unit {
	b.Helper()
	u, err := layout.NewUnit(tap, []layout.File{{URL: url, Size: 9, Modified: time.Unix(1, 0).UTC()}}, layout.DefaultOptions())
	if err != nil {
		b.Fatal(err)
	}
	return u
}

func (b *bench) submit(u *layout.Unit) (id string) {
	b.Helper()
	j, err := layout.NewJob([]string{"x"}, []string{u.ID}, layout.DefaultOptions(), time.Unix(2, 0), "test")
	if err == nil {
		err = job.Write(b.Context(), b.s, j, []*layout.Unit{u})
	}
	if err != nil {
		b.Fatal(err)
	}
	return j.ID
}

// run stands for the decoder: it leaves what is kept for resuming behind, as one that is killed after done.json does.
func (b *bench) run(ctx context.Context, u *layout.Unit, _ *store.Inputs, out *store.Store, progress func(queue.Progress)) error {
	progress(queue.Progress{Files: 1})
	if b.decode != nil {
		if err := b.decode(); err != nil {
			return err
		}
	}
	d := &layout.Done{
		Unit: u.ID, Tap: u.Tap, Problems: []layout.Problem{}, Notes: []string{}, Results: []layout.Result{},
		Counts: layout.Counts{Files: 1, Stored: 9}, State: layout.Result{Name: layout.StateName(u.ID), SHA256: strings.Repeat("0a", 32)},
	}
	_, err := out.WriteSmall(ctx, layout.ProgressName(u.ID), []byte("x"))
	_, err2 := out.WriteSmall(ctx, layout.DoneName(u.ID), d.Encode())
	return errors.Join(err, err2)
}

func (b *bench) standing(t queue.Task, want queue.Standing) {
	b.Helper()
	if got, err := b.x.Standing(b.Context(), t); got != want || err != nil {
		b.Errorf("standing %v, %v, want %v", got, err, want)
	}
}

func (b *bench) names() (list []string) {
	b.Helper()
	for o, err := range b.s.List(b.Context(), "units/") {
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, strings.TrimPrefix(o.Name, layout.UnitFolder(b.unit.ID)))
	}
	return list
}

func (b *bench) do(ctx context.Context) error {
	return b.x.Run(ctx, b.task, func(queue.Progress) {})
}

// TestCrashAfterResult: a worker dies after its result is there, and before anybody knows. The next one finds it, and
// tidies up.
func TestCrashAfterResult(t *testing.T) {
	b := newBench(t)
	b.standing(b.task, queue.ToDo)
	if err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.standing(b.task, queue.Done)
	if err := b.x.Fail(t.Context(), b.task, "w-1", "crashed: no sign of life"); err != nil {
		t.Fatal(err)
	}
	b.standing(b.task, queue.Done)
	if got := strings.Join(b.names(), " "); got != "done.json failed/1.json unit.json" {
		t.Errorf("%q", got)
	}
}

// TestTwice: two workers have the same unit, and both write it.
func TestTwice(t *testing.T) {
	b := newBench(t)
	var both sync.WaitGroup
	both.Add(2)
	b.decode = func() error {
		both.Done()
		both.Wait()
		return nil
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if err := b.do(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	b.standing(b.task, queue.Done)
	if got := strings.Join(b.names(), " "); got != "done.json unit.json" {
		t.Errorf("%q", got)
	}
}

// TestSetAside: after three crashes it says who crashed, and how.
func TestSetAside(t *testing.T) {
	b := newBench(t)
	var crashes []queue.Crash
	for i := range 3 {
		c := queue.Crash{Worker: fmt.Sprint("w-", i), Reason: "killed\x1b[2J"}
		crashes = append(crashes, c)
		if err := b.x.Fail(t.Context(), b.task, c.Worker, c.Reason); err != nil {
			t.Fatal(err)
		}
		b.standing(b.task, queue.ToDo)
	}
	if err := b.x.SetAside(t.Context(), b.task, crashes); err != nil {
		t.Fatal(err)
	}
	b.standing(b.task, queue.SetAside)
	all, err := job.LookAll(t.Context(), b.s, []string{b.unit.ID})
	if err != nil {
		t.Fatal(err)
	}
	if x := all[0]; x.State != job.IsAside || x.Failures != 3 || !strings.HasPrefix(x.Reason, "3 workers crashed: worker w-0: killed") || !strings.Contains(x.Reason, "worker w-2") {
		t.Errorf("%+v", x)
	}
	// A result that comes late counts nevertheless.
	if err := b.do(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.standing(b.task, queue.Done)
}

// TestForeign: what no job of the store lists is neither decoded nor noted.
func TestForeign(t *testing.T) {
	b := newBench(t)
	nowhere := b.task
	nowhere.Job = strings.Repeat("0", 32)
	if _, err := b.s.WriteSmall(t.Context(), layout.JobName(strings.Repeat("1", 32)), []byte(`{"units":["`+b.task.Unit+`"],"count":1e99}`)); err != nil {
		t.Fatal(err)
	}
	forged := b.task
	forged.Job = strings.Repeat("1", 32)
	renamed := b.task
	renamed.Job = strings.Repeat("2", 32)
	x, err := b.s.ReadSmall(t.Context(), layout.JobName(b.task.Job), 1<<20)
	if err == nil {
		_, err = b.s.WriteSmall(t.Context(), layout.JobName(renamed.Job), x)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []queue.Task{b.stray, nowhere, forged, renamed} {
		b.standing(task, queue.Foreign)
		if err := b.x.Fail(t.Context(), task, "w", "x"); err != nil {
			t.Error(err)
		}
	}
	if got := strings.Join(b.names(), " "); got != "unit.json" {
		t.Errorf("%q", got)
	}
	b.standing(b.task, queue.ToDo)
}

// TestPermanent: what no other attempt can mend is not tried again; all else is.
func TestPermanent(t *testing.T) {
	permanent := func(err error) bool { return reflect.TypeOf(err) == reflect.TypeOf(queue.Permanent(nil)) }
	for _, x := range []struct {
		err  error
		want bool
	}{
		{store.ErrChanged, true}, {fmt.Errorf("a.pcap: %w", store.ErrNotFound), true}, {errors.New("the disk is full"), false}, {context.Canceled, false},
	} {
		b := newBench(t)
		b.decode = func() error { return x.err }
		if err := b.do(t.Context()); !errors.Is(err, x.err) || permanent(err) != x.want {
			t.Errorf("%v is permanent: %v", err, permanent(err))
		}
		b.standing(b.task, queue.ToDo)
	}
	// Captures in places that are not allowed.
	b := newBench(t)
	u := b.newUnit("nfs-9", "file:///etc/shadow")
	b.task = queue.Task{Store: b.url, Job: b.submit(u), Unit: u.ID}
	b.decode = func() error { t.Error("it is decoded"); return nil }
	if err := b.do(t.Context()); !permanent(err) || !strings.Contains(err.Error(), "--allow") {
		t.Error(err)
	}
	if err := b.x.Allowed("file:///elsewhere"); err == nil {
		t.Error("any store is allowed")
	}
	// A unit that is none.
	for _, bad := range []string{"", "{}", `{"files":1e400}`, string(b.unit.Encode())} {
		if _, err := b.s.WriteSmall(t.Context(), layout.UnitName(u.ID), []byte(bad)); err != nil {
			t.Fatal(err)
		}
		if _, err := b.x.Standing(t.Context(), b.task); !permanent(err) {
			t.Errorf("%.40q: %v", bad, err)
		}
	}
}
