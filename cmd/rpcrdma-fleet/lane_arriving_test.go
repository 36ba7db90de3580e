//go:build lane

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// arriving are captures of three taps that come while run --watch decodes them.
type arriving struct {
	*testing.T
	from, caps, out string
	watch           *process
}

func (a *arriving) file(dir string, tap, n int) string {
	return filepath.Join(dir, fmt.Sprintf("tap-%d", tap), fmt.Sprintf("cap-%d.pcap", n))
}

func (a *arriving) come(tap int, files ...int) {
	a.Helper()
	for _, n := range files {
		if err := os.Link(a.file(a.from, tap, n), a.file(a.caps, tap, n)); err != nil {
			a.Fatal(err)
		}
	}
}

func (a *arriving) start() {
	a.watch = start(a.T, "fleet", nil, "run", "-n", "2", "--watch", "200ms", filepath.Join(a.caps, "*", "*.pcap"), "-w", a.out)
}

// read reads an object of a tap; nil if it is not there yet.
func (a *arriving) read(name string) []byte {
	b, err := os.ReadFile(filepath.Join(a.out, filepath.FromSlash(name)))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		a.Fatal(err)
	}
	return b
}

// decoded waits until the units of a tap have these files, and are done.
func (a *arriving) decoded(tap int, files ...int) {
	a.Helper()
	var want, have []string
	for _, n := range files {
		want = append(want, filepath.Base(a.file("", tap, n)))
	}
	slices.Sort(want)
	for deadline := time.Now().Add(patience); !slices.Equal(have, want); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			a.Fatalf("tap %d has %q, want %q: %s", tap, have, want, a.watch.said)
		}
		head := layout.Head{}
		_ = json.Unmarshal(a.read(layout.HeadName(fmt.Sprintf("tap-%d", tap))), &head)
		have = nil
		for id := head.Unit; id != ""; {
			var u layout.Unit
			if len(a.read(layout.DoneName(id))) == 0 || json.Unmarshal(a.read(layout.UnitName(id)), &u) != nil {
				have = nil
				break
			}
			for i := range u.Files {
				have = append(have, filepath.Base(u.Files[i].Path()))
			}
			id = u.After
		}
		slices.Sort(have)
	}
}

// counted are the rows of all files that the manifest of a tap names.
func (a *arriving) counted(out string, tap int) (rows []string) {
	a.Helper()
	var m layout.Manifest
	b, err := os.ReadFile(filepath.Join(out, layout.ManifestName(fmt.Sprintf("tap-%d", tap))))
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	for _, f := range m.Files {
		var list []any
		if list, err = pq.ReadFile[any](filepath.Join(out, filepath.FromSlash(f.Name))); err != nil {
			break
		}
		for i := range list {
			b, e := json.Marshal(list[i])
			if e != nil {
				a.Fatal(e)
			}
			rows = append(rows, string(b))
		}
	}
	if err != nil {
		a.Fatal(err)
	}
	return rows
}

// told is what a command tells of all taps, without its first line or key, which says how the captures were divided.
func (a *arriving) told(out, c, format string) string {
	a.Helper()
	status, stdout, stderr := command(a.T, c, "-T", format, out)
	if format == "ndjson" {
		_, stdout, _ = strings.Cut(stdout, "\n")
	} else {
		x := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(stdout), &x); err != nil {
			a.Fatal(err)
		}
		delete(x, "units")
		b, err := json.Marshal(x)
		if err != nil {
			a.Fatal(err)
		}
		stdout = string(b)
	}
	if len(stdout) < 1000 {
		a.Errorf("%s: status %d, %q, %s", c, status, stdout, stderr)
	}
	return strings.ReplaceAll(fmt.Sprintf("status %d %s", status, stdout), a.from, a.caps) // rows name files
}

// stop ends the program as a signal does.
func (a *arriving) stop(says string) {
	a.Helper()
	_ = a.watch.Process.Signal(os.Interrupt)
	if err := a.watch.Wait(); err != nil || !strings.Contains(a.watch.said.String(), says) {
		a.Errorf("after a signal: %v, %s", err, a.watch.said)
	}
}

// TestLaneArriving: a day of 24 hours comes to 8 taps while run --watch decodes it. A file comes late, a ring deletes all but
// the newest ones, one file is never there, the program is killed, and in the middle a later version takes over. What is
// known in the end is what one process knows.
func TestLaneArriving(t *testing.T) {
	const hours, killed, upgrade = 24, 7, 12
	const ring, late, lost = 0, 1, 2 // taps to which something happens
	const lateFile, lostFile, kept = 9, 16, 3
	dir := t.TempDir()
	a := &arriving{T: t, from: filepath.Join(dir, "from"), caps: filepath.Join(dir, "caps"), out: filepath.Join(dir, "out")}
	captures(t, a.from, laneTaps, hours)
	have := make([][]int, laneTaps)
	for tap := range laneTaps {
		if err := os.MkdirAll(filepath.Join(a.caps, fmt.Sprintf("tap-%d", tap)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	come := func(tap, hour int) {
		a.come(tap, hour)
		have[tap] = append(have[tap], hour)
	}
	a.start()
	for hour := range hours {
		if hour == upgrade {
			a.stop("")
			// Another version of the program understands nothing of what was kept. Where captures are gone, calls that were open
			// would be lost.
			for tap := ring + 1; tap < laneTaps; tap++ {
				head := layout.Head{}
				if err := json.Unmarshal(a.read(layout.HeadName(fmt.Sprintf("tap-%d", tap))), &head); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(a.out, layout.ResumeName(head.Unit)), []byte("of another version"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a.start()
		}
		for tap := range laneTaps {
			if tap == late && hour == lateFile || tap == lost && hour == lostFile {
				continue
			}
			come(tap, hour)
			if tap == late && hour == lateFile+2 {
				come(tap, lateFile)
			}
		}
		if hour == killed {
			a.watch.kill()
			a.start()
		}
		for tap := range laneTaps {
			a.decoded(tap, have[tap]...)
		}
		if hour >= kept {
			if err := os.Remove(a.file(a.caps, ring, hour-kept)); err != nil {
				t.Fatal(err)
			}
		}
	}
	a.stop("cannot be gone on from")

	if err := os.Remove(a.file(a.from, lost, lostFile)); err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(dir, "alone")
	decodeAlone(t, func(tap int) string { return filepath.Join(a.from, fmt.Sprintf("tap-[%d]", tap), "*.pcap") }, laneTaps, alone)
	for c, format := range map[string]string{"report": "json", "check": "ndjson", "connections": "ndjson"} {
		if got, want := a.told(a.out, c, format), a.told(alone, c, format); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", c, got, want)
		}
	}
	rows := 0
	for tap := range laneTaps {
		got, want := a.counted(a.out, tap), a.counted(alone, tap)
		if rows += len(got); !slices.Equal(got, want) {
			t.Errorf("tap %d: %d rows, want %d, or others", tap, len(got), len(want))
		}
	}
	if rows < 1000 {
		t.Errorf("%d rows", rows)
	}
}
