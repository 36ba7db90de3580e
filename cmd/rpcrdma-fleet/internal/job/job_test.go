package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
)

// bench is a store in a folder, with units of a job.
type bench struct {
	*testing.T
	s     *store.Store
	job   *layout.Job
	units []*layout.Unit
}

func newBench(t *testing.T, n int) *bench {
	t.Helper()
	b := &bench{T: t}
	var err error
	if b.s, err = store.Open(t.Context(), filepath.Join(t.TempDir(), "out"), store.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.s.Close() })
	var ids []string
	for i := range n {
		f := layout.File{URL: fmt.Sprintf("s3://caps/nfs-%d/a.pcap", i), Size: int64(i) + 1, Modified: time.Unix(1, 0).UTC()}
		u, err := layout.NewUnit(fmt.Sprint("nfs-", i), []layout.File{f}, layout.DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		b.units, ids = append(b.units, u), append(ids, u.ID)
	}
	if b.job, err = layout.NewJob([]string{"s3://caps/*/*"}, ids, layout.DefaultOptions(), time.Unix(2, 0), "test"); err != nil {
		t.Fatal(err)
	}
	if err := Write(t.Context(), b.s, b.job, b.units); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) write(name string, contents []byte) {
	b.Helper()
	if _, err := b.s.WriteSmall(b.Context(), name, contents); err != nil {
		b.Fatal(err)
	}
}

// done writes what a worker writes last.
func (b *bench) done(i int, change func(*layout.Done)) {
	u := b.units[i]
	d := &layout.Done{
		Unit: u.ID, Tap: u.Tap, Problems: []layout.Problem{}, Notes: []string{}, Results: []layout.Result{},
		Counts: layout.Counts{Files: len(u.Files), Stored: u.Bytes(), Transactions: 5},
		State:  layout.Result{Name: layout.StateName(u.ID), Size: 7, SHA256: strings.Repeat("0a", 32), Unpacked: 9},
	}
	if change != nil {
		change(d)
	}
	b.write(layout.DoneName(u.ID), d.Encode())
}

func (b *bench) look(i int) *Standing {
	b.Helper()
	list, err := LookAll(b.Context(), b.s, []string{b.units[i].ID})
	if err != nil {
		b.Fatal(err)
	}
	return list[0]
}

// TestStanding: what the store says of units, whoever wrote it.
func TestStanding(t *testing.T) {
	crash := func(b *bench, i int) error {
		return Fail(b.Context(), b.s, b.units[i].ID, "w", fmt.Sprintf("crash %d", i))
	}
	for _, x := range []struct {
		name     string
		do       func(b *bench) error // to unit 0
		want     State
		failures int
		reason   string
	}{
		{"nothing", func(*bench) error { return nil }, Missing, 0, ""},
		{"done", func(b *bench) error { b.done(0, nil); return nil }, Done, 0, ""},
		{"damaged input", func(b *bench) error { b.done(0, func(d *layout.Done) { d.Status = 3 }); return nil }, Damaged, 0, ""},
		{"done twice", func(b *bench) error { b.done(0, nil); b.done(0, nil); return nil }, Done, 0, ""},
		{"a failure", func(b *bench) error { return crash(b, 0) }, Failed, 1, "crash 0"},
		{"three failures", func(b *bench) error { return errors.Join(crash(b, 0), crash(b, 0), crash(b, 0)) }, Failed, 3, "crash 0"},
		{"set aside", func(b *bench) error {
			return errors.Join(crash(b, 0), SetAside(b.Context(), b.s, b.units[0].ID, 3, "three of them"))
		}, IsAside, 1, "three of them"},
		{"tried again", func(b *bench) error {
			return errors.Join(crash(b, 0), SetAside(b.Context(), b.s, b.units[0].ID, 3, "x"), Retry(b.Context(), b.s, b.units[0].ID))
		}, Failed, 1, "crash 0"},
		{"tried again without need", func(b *bench) error { return Retry(b.Context(), b.s, b.units[0].ID) }, Missing, 0, ""},
		// A worker was killed after its result was there, or counted as crashed and was not: the result counts.
		{"done after a crash", func(b *bench) error { b.done(0, nil); return crash(b, 0) }, Done, 0, ""},
		{"done after it was set aside", func(b *bench) error {
			err := SetAside(b.Context(), b.s, b.units[0].ID, 3, "x")
			b.done(0, nil)
			return err
		}, Done, 0, ""},

		// What nobody writes who means well.
		{"another's unit", func(b *bench) error { b.write(layout.UnitName(b.units[0].ID), b.units[1].Encode()); return nil }, Missing, 0, "it is unit"},
		{"no unit", func(b *bench) error { b.write(layout.UnitName(b.units[0].ID), []byte("{")); return nil }, Missing, 0, "malformed"},
		{"another's result", func(b *bench) error {
			b.done(1, nil)
			x, err := b.s.ReadSmall(b.Context(), layout.DoneName(b.units[1].ID), 1<<20)
			b.write(layout.DoneName(b.units[0].ID), x)
			return err
		}, Missing, 0, "of another unit"},
		{"files that are not there", func(b *bench) error {
			b.done(0, func(d *layout.Done) { d.Counts.Files = 1 << 40 })
			return nil
		}, Missing, 0, "do not fit"},
		{"fewer connections than none", func(b *bench) error {
			b.done(0, func(d *layout.Done) { d.Counts.Connections = -1 })
			return nil
		}, Missing, 0, "do not fit"},
		{"rows from nowhere", func(b *bench) error {
			b.done(0, func(d *layout.Done) { d.Counts.Rows = 1 << 63 })
			return nil
		}, Missing, 0, "9223372036854775808"},
		{"a state of negative size", func(b *bench) error {
			b.done(0, func(d *layout.Done) { d.State.Unpacked = -1 << 63 })
			return nil
		}, Missing, 0, "sizes 7 and -9223372036854775808"},
		{"a count that no number holds", func(b *bench) error {
			b.write(layout.DoneName(b.units[0].ID), []byte(`{"counts":{"rows":99999999999999999999999}}`))
			return nil
		}, Missing, 0, "malformed"},
		{"failures that nobody can have had", func(b *bench) error {
			for _, n := range []string{"99999999999999999999", "-1", "100001", "x", "", "1e3", "../1"} {
				b.write(layout.FailedFolder(b.units[0].ID)+strings.ReplaceAll(n, "/", "_")+".json", []byte("{}"))
			}
			return nil
		}, Missing, 0, ""},
		{"a failure beside them", func(b *bench) error {
			b.write(layout.FailedFolder(b.units[0].ID)+"99999999999999999999.json", []byte("{}"))
			return crash(b, 0)
		}, Failed, 1, "crash 0"},
		{"a failure of another", func(b *bench) error {
			b.write(layout.FailedName(b.units[0].ID, 1), (&layout.Failure{Unit: b.units[1].ID, Attempt: 1, Reason: "x"}).Encode())
			return nil
		}, Failed, 1, "the note of it is malformed"},
		{"a failure that is too long", func(b *bench) error {
			b.write(layout.FailedName(b.units[0].ID, 7), bytes.Repeat([]byte(" "), layout.MaxFailure+1))
			return nil
		}, Failed, 1, "the note of it is malformed"},
		{"set aside in other words", func(b *bench) error { b.write(layout.AsideName(b.units[0].ID), []byte("no!")); return nil }, IsAside, 0, "aside.json: malformed"},
	} {
		t.Run(x.name, func(t *testing.T) {
			b := newBench(t, 3)
			if err := x.do(b); err != nil {
				t.Fatal(err)
			}
			got := b.look(0)
			if got.State != x.want || got.Failures != x.failures || !strings.Contains(got.Reason, x.reason) || (x.reason == "") != (got.Reason == "") {
				t.Errorf("%+v, want %s, %d failures, %q", got, x.want, x.failures, x.reason)
			}
			if got.State == Done && (got.Counts.Transactions != 5 || got.Result.Unpacked != 9) {
				t.Errorf("%+v", got)
			}
			// The others are what they are.
			all, err := LookAll(t.Context(), b.s, b.job.Units)
			if err != nil || len(all) != 3 || b.look(2).State != Missing {
				t.Error(all, err)
			}
			for i, id := range b.job.Units {
				if all[i].Unit != id {
					t.Errorf("unit %d is %s, want %s", i, all[i].Unit, id)
				}
			}
		})
	}
}

// TestWrite: the same job twice is the same objects, and what is damaged is mended.
func TestWrite(t *testing.T) {
	b := newBench(t, 20)
	list := func() (names []string) {
		for o, err := range b.s.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, fmt.Sprint(o.Name, o.Size, o.Modified))
		}
		return names
	}
	before := list()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if err := Write(t.Context(), b.s, b.job, b.units); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if after := list(); len(after) != 41 || strings.Join(after, "\n") != strings.Join(before, "\n") {
		t.Errorf("%q, and not %q", after, before)
	}
	b.write(layout.UnitName(b.units[3].ID), b.units[4].Encode())
	b.write(layout.JobName(b.job.ID), []byte("{}"))
	if _, err := Read(t.Context(), b.s, b.job.ID); !errors.Is(err, layout.ErrFormat) {
		t.Error(err)
	}
	if err := Write(t.Context(), b.s, b.job, b.units); err != nil {
		t.Fatal(err)
	}
	if u, err := ReadUnit(t.Context(), b.s, b.units[3].ID); err != nil || u.Tap != "nfs-3" {
		t.Error(u, err)
	}
	if j, err := Read(t.Context(), b.s, b.job.ID); err != nil || len(j.Units) != 20 {
		t.Error(j, err)
	}
	if ids, err := IDs(t.Context(), b.s); err != nil || len(ids) != 1 || ids[0] != b.job.ID {
		t.Error(ids, err)
	}
	for _, id := range []string{"", "../../etc", strings.Repeat("0", 31), strings.Repeat("0", 32)} {
		if j, err := Read(t.Context(), b.s, id); err == nil {
			t.Errorf("%q is job %+v", id, j)
		}
	}
	// A job under another's name.
	other := strings.Repeat("0", 32)
	b.write(layout.JobName(other), b.job.Encode())
	if _, err := Read(t.Context(), b.s, other); !errors.Is(err, layout.ErrFormat) {
		t.Error(err)
	}
}

// TestDone: only a result that fits is one.
func TestDone(t *testing.T) {
	b := newBench(t, 2)
	is := func() bool {
		ok, err := IsDone(t.Context(), b.s, b.units[0])
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if is() {
		t.Error("nothing is there")
	}
	b.write(layout.DoneName(b.units[0].ID), []byte("null"))
	if is() {
		t.Error("it is not a result")
	}
	b.done(0, nil)
	d, err := ReadDone(t.Context(), b.s, b.units[0])
	if !is() || err != nil || d.Unit != b.units[0].ID {
		t.Error(d, err)
	}
	if _, err := ReadDone(t.Context(), b.s, b.units[1]); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ReadUnit(ctx, b.s, b.units[0].ID); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := LookAll(ctx, b.s, b.job.Units); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestBudget: however many goroutines read objects of whatever size, what they have in memory together is bounded, and
// all of them get what they read.
func TestBudget(t *testing.T) {
	b := newBench(t, 1)
	const total, small, huge = 16 << 10, 1 << 10, 40 << 10
	sizes := []int{0, 1, small - 1, small, small + 1, 5000, 8 << 10, 9 << 10, total, huge}
	for _, n := range sizes {
		b.write(fmt.Sprint("x/", n), make([]byte, n))
	}
	x := newBudget(total)
	x.usual = small
	var now, most, parsed atomic.Int64
	var wg sync.WaitGroup
	for i := range 200 {
		n := sizes[i%len(sizes)]
		wg.Go(func() {
			err := x.read(t.Context(), b.s, fmt.Sprint("x/", n), huge, func(got []byte) error {
				if len(got) != n {
					t.Errorf("%d bytes, want %d", len(got), n)
				}
				sum := now.Add(int64(n))
				for old := most.Load(); sum > old && !most.CompareAndSwap(old, sum); old = most.Load() {
				}
				if sum > max(total, int64(n)) {
					t.Errorf("%d bytes at a time", sum)
				}
				for range 200 {
					runtime.Gosched()
				}
				now.Add(-int64(n))
				parsed.Add(1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() != huge || parsed.Load() != 200 {
		t.Errorf("%d bytes at a time, %d objects", most.Load(), parsed.Load())
	}
	if err := x.read(t.Context(), b.s, fmt.Sprint("x/", huge), huge-1, func([]byte) error { return nil }); !errors.Is(err, store.ErrTooLarge) {
		t.Error(err)
	}
	if err := x.read(t.Context(), b.s, "x/8192", 8000, func([]byte) error { return nil }); !errors.Is(err, store.ErrTooLarge) {
		t.Error(err)
	}
	want := errors.New("x")
	if err := x.read(t.Context(), b.s, "x/1", 8, func([]byte) error { return want }); !errors.Is(err, want) {
		t.Error(err)
	}
	if !x.free.TryAcquire(total) {
		t.Error("some of it is never given back")
	}
}
