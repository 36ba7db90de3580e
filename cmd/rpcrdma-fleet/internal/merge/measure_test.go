package merge

import (
	"bytes"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/analyze/check"
	"github.com/rpcrdma/toolkit/analyze/connections"
	"github.com/rpcrdma/toolkit/analyze/latency"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/job"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/layout"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/store"
	"github.com/rpcrdma/toolkit/cmd/rpcrdma-fleet/internal/unit"
	"github.com/rpcrdma/toolkit/internal/testtools/fleetgen"
)

// measured is how many units TestMemory merges. The figures of docs/fleet.md are of 1,000 and 10,000.
var (
	measured = flag.Int("units", 300, "how many units TestMemory merges")
	repeated = flag.Int("repeat", 1, "how often each unit has the captures of TestMemory, each time of other hosts")
)

// TestMemory: memory for merging grows neither with the number of units nor with the size of their states, but for some
// hundred bytes a connection.
func TestMemory(t *testing.T) {
	const samples = "../../../../samples/"
	in := []string{samples + "rocev2-nfs41-recall.pcap", samples + "iwarp-nfs41-recall.pcap", samples + "rocev2-nfs3-longcall.pcap"}
	root := t.TempDir()
	s, err := store.Open(t.Context(), filepath.Join(root, "out"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	inputs := store.NewInputs(store.Options{})
	defer inputs.Close()
	caps := filepath.Join(root, "caps")
	if err := fleetgen.Write(caps, in, fleetgen.Options{Taps: 1, Slices: 1, Repeat: *repeated, Plain: true}); err != nil {
		t.Fatal(err)
	}
	units, err := unit.Plan(t.Context(), inputs, []string{caps + "/*/*"}, "", layout.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	done, err := unit.Run(t.Context(), units[0], inputs, s, unit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.ReadSmall(t.Context(), done.State.Name, MaxState)
	if err != nil {
		t.Fatal(err)
	}
	one, err := state.Decode(b, MaxState)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	stored, unpacked, conns := int64(0), int64(0), 0
	put := func(name string, b []byte) store.Written {
		t.Helper()
		w, err := s.WriteSmall(t.Context(), name, b)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for k := range *measured {
		u, err := layout.NewUnit(fmt.Sprint("tap-", k), units[0].Files, units[0].Options)
		if err != nil {
			t.Fatal(err)
		}
		var f state.File
		x := elsewhere(one.Units()[0], k)
		f.Add(x)
		d := *done
		d.Unit, d.Tap, d.Results, d.Counts.Rows = u.ID, u.Tap, nil, 0
		d.State.Name = layout.StateName(u.ID)
		w := put(d.State.Name, f.Append(nil))
		d.State.Size, d.State.SHA256, d.State.Unpacked = w.Size, w.SHA256, int64(x.Size())
		put(layout.UnitName(u.ID), u.Encode())
		put(layout.DoneName(u.ID), d.Encode())
		ids = append(ids, u.ID)
		stored += w.Size
		unpacked += d.State.Unpacked
		conns += d.Counts.Connections
	}
	j, err := layout.NewJob(nil, ids, layout.DefaultOptions(), time.Unix(1, 0), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Write(t.Context(), s, j, nil); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d units, %d connections, states of %d bytes, %d compressed", len(ids), conns, unpacked, stored)
	for _, x := range []struct {
		name string
		to   state.Surveyor
		do   func(*Set, state.Surveyor) error
	}{
		{"report", latency.NewMerger(), func(set *Set, m state.Surveyor) error {
			_, err := m.(*latency.Merger).Report(set)
			return err
		}},
		{"check", check.NewMerger(), func(set *Set, m state.Surveyor) error {
			_, err := m.(*check.Merger).Result(set)
			return err
		}},
		{"connections", connections.NewMerger(), func(set *Set, m state.Surveyor) error {
			list := connections.NewList(8 << 20)
			defer list.Close()
			_, err := m.(*connections.Merger).Result(set, list)
			return err
		}},
	} {
		runtime.GC()
		stop := make(chan struct{})
		peak := make(chan uint64)
		go func() {
			var most uint64
			var m runtime.MemStats
			for {
				select {
				case <-stop:
					peak <- most
					return
				case <-time.After(5 * time.Millisecond):
					runtime.ReadMemStats(&m)
					most = max(most, m.HeapInuse)
				}
			}
		}()
		before := cpu()
		set, err := Open(t.Context(), s, nil, x.to)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.do(set, x.to); err != nil {
			t.Fatal(err)
		}
		close(stop)
		most := <-peak
		t.Logf("%s: heap in use at most %d KiB, %v of processor time", x.name, most>>10, (cpu() - before).Round(time.Millisecond))
		if set.Units.Done != *measured {
			t.Errorf("%d units done", set.Units.Done)
		}
		if limit := uint64(64<<20) + uint64(conns)*2048; most > limit {
			t.Errorf("%s: %d bytes, more than %d", x.name, most, limit)
		}
	}
}

// elsewhere is a state of other hosts: in place of 10.0.x.y, with x below 4, as fleetgen gives them to the first tap.
func elsewhere(u *state.Unit, k int) *state.Unit {
	var sections []state.Section
	for _, kind := range []string{"report", "check", "connections", "input"} {
		x := *u.Section(kind)
		x.Body = bytes.Clone(x.Body)
		for i := 0; i+5 <= len(x.Body); i++ {
			if a := x.Body[i : i+5]; a[0] == 4 && a[1] == 10 && a[2] == 0 && a[3] < 4 {
				a[2], a[3] = byte(k>>6+1), byte(k&63)<<2|a[3]
				i += 4
			}
		}
		sections = append(sections, x)
	}
	return state.NewUnit(sections...)
}

// cpu is the processor time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
