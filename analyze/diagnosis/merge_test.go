package diagnosis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/diagnosis"
	"github.com/rpcrdma/toolkit/analyze/state"
	"github.com/rpcrdma/toolkit/internal/testtools/simulate"
)

// unit is the saved state of a run, as a tap sees it.
func unit(t *testing.T, situation, tap string, hour int64, point simulate.Point) *state.Unit {
	t.Helper()
	for _, s := range simulate.Situations() {
		if s.Name == situation {
			c := s.Draw(5)
			c.Start += hour * 3600e9
			x, err := diagnose(t, simulate.Tell(c), point).Section([]string{tap})
			if err != nil {
				t.Fatal(err)
			}
			return state.NewUnit(x)
		}
	}
	t.Fatalf("no situation %q", situation)
	return nil
}

// TestMerge: a report of several taps names those in which causes were found, what costs most first; one of a single tap is what it was.
func TestMerge(t *testing.T) {
	slow, healthy := unit(t, "server-threads", "tap-1", 0, 0), unit(t, "healthy", "tap-2", 1, 0)
	rep, err := diagnosis.Merger{}.Report(state.Units{healthy, slow})
	if err != nil {
		t.Fatal(err)
	}
	first := rep.Causes[0]
	if first.Code != diagnosis.ServerThreads || !strings.HasPrefix(first.Where, "tap-1: ") || rep.Summary != first.Text || !strings.HasPrefix(first.Text, "tap-1: ") {
		t.Errorf("the first cause is %+v; %s", first, rep.Summary)
	}
	one, err := diagnosis.Merger{}.Report(state.Units{slow})
	if err != nil || rep.Calls <= one.Calls {
		t.Errorf("all calls took %d ns, those of one tap %d; %v", rep.Calls, one.Calls, err)
	}
	rep, err = diagnosis.Merger{}.Report(state.Units{healthy, unit(t, "healthy", "tap-3", 2, 0)})
	if err != nil || !rep.Healthy() || !strings.HasPrefix(rep.Summary, "No likely cause found in 2 captures") {
		t.Errorf("%v, %v", rep, err)
	}
	server := unit(t, "server-threads", "tap-4", 0, simulate.AtServer)
	for _, units := range []state.Units{{slow, server}, {server, slow}} {
		rep, err := diagnosis.Merger{}.Report(units)
		if err != nil || rep.Calls > one.Calls || rep.Causes[0].Code != diagnosis.ServerThreads || !strings.HasPrefix(rep.Causes[0].Text, "tap-4: ") {
			t.Errorf("what two taps have seen: %v; %s", err, rep.Summary)
		}
	}
	if rep, err := (diagnosis.Merger{}).Report(state.Units{state.NewUnit()}); rep != nil || err != nil {
		t.Errorf("of nothing: %v, %v", rep, err)
	}
	good := slow.Section(diagnosis.SectionKind)
	for _, body := range []string{"", "x", "\x01", "\x01\x00\x00\x00\x00\x00\x00\x00\x01", strings.Repeat("\xff", 200)} {
		u := state.NewUnit(*good, state.Section{Kind: diagnosis.CallsKind, Version: diagnosis.CallsVersion, Body: []byte(body)})
		if _, err := (diagnosis.Merger{}).Report(state.Units{u, slow}); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("calls %q: %v", body, err)
		}
	}
	for _, body := range []string{"", "{}", "x", `{"causes":[null]}`, `{"schema":"s","causes":[` + strings.Repeat(`{},`, 100) + `{}]}`} {
		u := state.NewUnit(state.Section{Kind: diagnosis.SectionKind, Version: diagnosis.SectionVersion, Body: []byte(body)})
		if err := (diagnosis.Merger{}).Survey(u); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%q: %v", body, err)
		}
	}
}
