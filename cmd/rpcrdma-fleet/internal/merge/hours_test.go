package merge

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
)

// TestHours: each hour is a unit of its own. All of them together have the bytes of one unit, and the state of the last one has only
// the connections that have not ended long before.
func TestHours(t *testing.T) {
	const hours = 4
	const samples = "../../../../samples/"
	root := t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(root, "out"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	inputs := store.NewInputs(store.Options{})
	defer inputs.Close()
	caps := filepath.Join(root, "caps")
	in := []string{samples + "rocev2-nfs41-recall.pcap", samples + "iwarp-nfs41-recall.pcap"}
	if err := fleetgen.Write(caps, in, fleetgen.Options{Taps: 1, Slices: hours, Repeat: hours, Plain: true, Gap: 30 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	plan, err := unit.Plan(t.Context(), inputs, []string{caps + "/*/*"}, "", layout.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	day := plan[0]
	run := func(u *layout.Unit) *layout.Done {
		d, err := unit.Run(t.Context(), u, inputs, s, unit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	var hour *layout.Unit
	var last *layout.Done
	for i := range day.Files {
		if hour == nil {
			hour, err = layout.NewUnit(day.Tap, day.Files[:1], day.Options)
		} else {
			hour, err = hour.Next(day.Files[i : i+1])
		}
		if err == nil {
			err = job.Put(t.Context(), s, hour)
		}
		if err != nil {
			t.Fatal(err)
		}
		last = run(hour)
	}
	x := &Set{ctx: t.Context(), s: s}
	whole := func(d *layout.Done) *state.Unit {
		u, err := x.whole(t.Context(), &entry{state: d.State, ended: d.Ended})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	got, want := whole(last), whole(run(day))
	for _, k := range want.Sections() {
		if x := got.Section(k.Kind); x == nil || !bytes.Equal(x.Body, k.Body) {
			t.Errorf("section %s differs", k.Kind)
		}
	}
	if len(last.Ended) < hours-1 || 2*last.State.Unpacked > int64(want.Size()) {
		t.Errorf("%d objects of connections that have ended; a state of %d bytes, of %d in all", len(last.Ended), last.State.Unpacked, want.Size())
	}
}
