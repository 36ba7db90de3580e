package unit

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
)

// TestPrune: what is old goes, and the next unit goes on as if nothing had been removed. A late capture that cannot be put in its
// place comes last, and is named.
func TestPrune(t *testing.T) {
	const files = 6
	packets := read(t, filepath.Join(samples, "rocev2-nfs41-recall.pcap"))
	dir := filepath.Join(t.TempDir(), "tap") // states name it
	prepare := func() *arrival {
		a := &arrival{bench: newBench(t), t: t, from: filepath.Join(t.TempDir(), "from"), dir: dir}
		rotate(t, a.from, packets, files)
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
			t.Fatal(err)
		}
		return a
	}
	whole := prepare()
	for n := range files {
		whole.come(n)
	}
	all := whole.submit()
	whole.decode(all)
	wantState, wantRows := whole.found(all)

	a := prepare()
	var list []*layout.Unit
	var done []*layout.Done
	next := func(n int) {
		a.come(n)
		list = append(list, a.submit())
		done = append(done, a.decode(list[len(list)-1]))
	}
	for _, n := range []int{0, 2, 3, 4} {
		next(n)
	}
	before := a.objects(t)
	count := func(at time.Time, dry bool) int {
		t.Helper()
		p, err := Prune(t.Context(), a.out, at, dry)
		if err != nil || p.Objects > 0 && p.Bytes <= 0 {
			t.Fatal(p, err)
		}
		return p.Objects
	}
	// Unit 2 is the newest one that ended before; units 0 and 1 have a state and what the next one goes on from.
	at := done[2].Last.Add(1)
	if n := count(at, true); n != 4 {
		t.Errorf("%d objects would be removed", n)
	}
	compare(t, a.objects(t), before)
	if n := count(at, false); n != 4 {
		t.Errorf("%d objects were removed", n)
	}
	if n := count(at, false); n != 0 {
		t.Errorf("%d objects were removed when there was nothing old", n)
	}
	next(1) // late
	if u := list[len(list)-1]; len(u.Files) != 1 || u.After != list[3].ID || !strings.Contains(a.logs, "out of order: what was kept") {
		t.Errorf("a late file makes %+v: %s", u, a.logs)
	}

	a = prepare()
	list, done = nil, nil
	for n := range files - 1 {
		next(n)
	}
	count(done[3].Last.Add(1), false)
	next(files - 1)
	state, rows := a.found(list[files-1])
	if !bytes.Equal(state, wantState) || !slices.Equal(rows, wantRows) {
		t.Errorf("%d bytes of state, want %d; %d rows, want %d", len(state), len(wantState), len(rows), len(wantRows))
	}
	// A day later nothing is left but what reports are made from.
	count(done[0].Last.AddDate(0, 0, 2), false)
	state, rows = a.found(list[files-1])
	if !bytes.Equal(state, wantState) || len(rows) != 0 {
		t.Errorf("%d bytes of state, want %d; %d rows", len(state), len(wantState), len(rows))
	}
	for name := range a.objects(t) {
		if strings.HasPrefix(name, layout.Transactions) {
			t.Errorf("%s is still there", name)
		}
	}
}
