package unit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// arrival is a folder of captures that are decoded as they come.
type arrival struct {
	*bench
	t    *testing.T
	from string // where they come from
	dir  string
	logs string
}

func (a *arrival) file(n int) string { return filepath.Join(a.dir, fmt.Sprintf("cap-%d.pcapng", n)) }

// come brings files.
func (a *arrival) come(files ...int) {
	a.t.Helper()
	for _, n := range files {
		if err := os.Link(filepath.Join(a.from, filepath.Base(a.file(n))), a.file(n)); err != nil {
			a.t.Fatal(err)
		}
	}
}

// submit makes the unit of what is there, and puts it into the store.
func (a *arrival) submit() *layout.Unit {
	a.t.Helper()
	list, err := Follow(a.t.Context(), a.in, a.out, []*layout.Unit{plan(a.t, a.dir+"/*", layout.DefaultOptions())},
		func(f string, args ...any) { a.logs += fmt.Sprintf(f, args...) + "\n" })
	if err == nil {
		err = job.Put(a.t.Context(), a.out, list[0])
	}
	if err != nil {
		a.t.Fatal(err)
	}
	return list[0]
}

func (a *arrival) decode(u *layout.Unit) *layout.Done {
	a.t.Helper()
	d, err := Run(a.t.Context(), u, a.in, a.out, Options{Log: func(f string, args ...any) { a.logs += fmt.Sprintf(f, args...) + "\n" }})
	if err != nil {
		a.t.Fatal(err)
	}
	return d
}

// forget removes what is kept to go on from, as if another version had made it.
func (a *arrival) forget() {
	a.t.Helper()
	list, err := filepath.Glob(filepath.Join(a.bench.dir, "units", "*", "resume"))
	for _, name := range list {
		if err == nil {
			err = os.WriteFile(name, []byte("of another version"), 0o600)
		}
	}
	if err != nil || len(list) == 0 {
		a.t.Fatal(list, err)
	}
}

// found is the state of a unit, and all rows that count of the tap.
func (a *arrival) found(u *layout.Unit) (state []byte, rows []string) {
	a.t.Helper()
	state, err := a.out.ReadSmall(a.t.Context(), layout.StateName(u.ID), 1<<30)
	if err != nil {
		a.t.Fatal(err)
	}
	b, err := a.out.ReadSmall(a.t.Context(), layout.ManifestName(u.Tap), 1<<30)
	if err != nil {
		a.t.Fatal(err)
	}
	m, err := layout.ParseManifest(b, u.Tap)
	if err != nil || m.Unit != u.ID {
		a.t.Fatal(m, err)
	}
	for _, f := range m.Files {
		list, err := pq.ReadFile[any](filepath.Join(a.bench.dir, filepath.FromSlash(f.Name)))
		if err != nil {
			a.t.Fatal(err)
		}
		for i := range list {
			b, err := json.Marshal(list[i])
			if err != nil {
				a.t.Fatal(err)
			}
			rows = append(rows, string(b))
		}
	}
	return state, rows
}

// TestFollow decodes captures of a tap as they come, and compares the result with that of one unit of all.
func TestFollow(t *testing.T) {
	const files = 6
	steps := map[string]func(a *arrival) *layout.Unit{
		"in order": func(a *arrival) (u *layout.Unit) {
			for n := range files {
				a.come(n)
				u = a.submit()
				if len(u.Files) != 1 {
					a.t.Errorf("file %d: %d files are decoded", n, len(u.Files))
				}
				a.decode(u)
			}
			return u
		},
		"in a ring": func(a *arrival) (u *layout.Unit) {
			for n := range files {
				a.come(n)
				if n > 1 {
					if err := os.Remove(a.file(n - 2)); err != nil {
						a.t.Fatal(err)
					}
				}
				u = a.submit()
				a.decode(u)
			}
			return u
		},
		"in a ring that keeps more": func(a *arrival) (u *layout.Unit) {
			a.come(0, 1)
			a.decode(a.submit())
			for n := 2; n < files; n++ {
				a.come(n)
				if err := os.Remove(a.file(n - 2)); err != nil {
					a.t.Fatal(err)
				}
				if u = a.submit(); len(u.Files) != 1 {
					a.t.Errorf("file %d: %d files are decoded", n, len(u.Files))
				}
				a.decode(u)
			}
			return u
		},
		"submitted before the one before is done": func(a *arrival) *layout.Unit {
			a.come(0, 1)
			first := a.submit()
			a.come(2, 3)
			second := a.submit()
			a.come(4, 5)
			third := a.submit()
			a.decode(second)
			a.decode(third)
			a.decode(first)
			return third
		},
		"late": func(a *arrival) *layout.Unit {
			a.come(0, 1)
			a.decode(a.submit())
			a.come(3)
			a.decode(a.submit())
			a.come(4, 5)
			a.decode(a.submit())
			a.come(2)
			u := a.submit()
			if len(u.Files) != 4 || u.After == "" || !strings.Contains(a.logs, "3 files after it will be decoded again") {
				a.t.Errorf("%d files, after %q: %s", len(u.Files), u.After, a.logs)
			}
			a.decode(u)
			return u
		},
		"after an upgrade": func(a *arrival) *layout.Unit {
			a.come(0, 1)
			a.decode(a.submit())
			a.come(2)
			a.decode(a.submit())
			a.forget()
			a.come(3, 4)
			a.decode(a.submit())
			a.come(5)
			u := a.submit()
			a.decode(u)
			return u
		},
		"the same again": func(a *arrival) *layout.Unit {
			a.come(0, 1, 2)
			u := a.submit()
			a.decode(u)
			if again := a.submit(); again.ID != u.ID {
				a.t.Error("another unit of the same files")
			}
			a.come(3, 4, 5)
			u = a.submit()
			a.decode(u)
			return u
		},
	}
	for _, sample := range []string{"rocev2-nfs41-recall.pcap", "iwarp-nfs41-recall.pcap", "rocev2-nfs3-loss.both.pcapng.zst"} {
		from := filepath.Join(t.TempDir(), "from")
		rotate(t, from, read(t, filepath.Join(samples, sample)), files)
		begin := func(t *testing.T) *arrival {
			a := &arrival{bench: newBench(t), t: t, from: from, dir: filepath.Join(filepath.Dir(from), "nfs-7")}
			if err := os.RemoveAll(a.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(a.dir, 0o777); err != nil {
				t.Fatal(err)
			}
			return a
		}
		whole := begin(t)
		whole.come(0, 1, 2, 3, 4, 5)
		u := whole.submit()
		all := whole.decode(u)
		state, rows := whole.found(u)
		slices.Sort(rows)
		for name, step := range steps {
			t.Run(sample+"/"+name, func(t *testing.T) {
				a := begin(t)
				u := step(a)
				d, err := IsDone(t.Context(), u, a.out)
				if err != nil || d.Damage != all.Damage || d.Counts.Findings != all.Counts.Findings || !d.Last.Equal(all.Last) {
					t.Errorf("%+v, %v; want %+v", d, err, all)
				}
				gotState, gotRows := a.found(u)
				if !bytes.Equal(gotState, state) {
					t.Error("the state differs from that of one unit")
				}
				if slices.Sort(gotRows); !slices.Equal(gotRows, rows) {
					t.Errorf("%d rows, and not the %d of one unit", len(gotRows), len(rows))
				}
			})
		}
	}
}

// TestGone loses captures, and what is kept to go on from.
func TestGone(t *testing.T) {
	from := filepath.Join(t.TempDir(), "from")
	rotate(t, from, read(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap")), 6)
	a := &arrival{bench: newBench(t), t: t, from: from, dir: filepath.Join(filepath.Dir(from), "nfs-7")}
	if err := os.Mkdir(a.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	gone := func(n int) {
		t.Helper()
		if err := os.Remove(a.file(n)); err != nil {
			t.Fatal(err)
		}
	}
	a.come(0, 1)
	u := a.submit()
	gone(0)
	d := a.decode(u)
	if d.Status != 3 || d.Counts.Packets == 0 || len(d.Problems) != 1 || !strings.Contains(d.Problems[0].String(), "cap-0.pcapng") {
		t.Errorf("one of two files is gone: %+v", d)
	}
	a.come(2)
	lost := a.submit()
	gone(2)
	if _, err := Run(t.Context(), lost, a.in, a.out, Options{}); !Permanent(err) {
		t.Errorf("the only file is gone: %v", err)
	}
	a.come(3)
	last := a.submit()
	d = a.decode(last)
	if d.Follows != u.ID || d.Apart != "" || !strings.Contains(fmt.Sprint(d.Problems), lost.ID) {
		t.Errorf("a unit before cannot be done: %+v", d)
	}
	// Neither what is kept nor the captures are there.
	a.forget()
	gone(3)
	a.come(4)
	u = a.submit()
	d = a.decode(u)
	if d.Follows != last.ID || d.Apart != last.ID || !strings.Contains(a.logs, "begins with an empty memory") {
		t.Errorf("an empty memory: %+v\n%s", d, a.logs)
	}
	_, before := a.found(u)
	a.come(5)
	u = a.submit()
	if d = a.decode(u); d.Apart != last.ID {
		t.Errorf("a unit after that: %+v", d)
	}
	if _, rows := a.found(u); len(rows) <= len(before) {
		t.Errorf("%d rows, and %d before", len(rows), len(before))
	}
}
