package session

import (
	"errors"
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/analyze/state"
)

// TestMerge: a session that several taps saw is listed once, with the connections of all of them; another one beside it. Numbers are
// those of the merged report.
func TestMerge(t *testing.T) {
	c := func(id int, client, server string, calls uint64) Connection {
		return Connection{ID: id, Fabric: "rocev2", Client: client, Server: server, Calls: calls}
	}
	session := func(id string, list ...Connection) Session {
		s := Session{ID: id, Client: "c", Server: "s", Scope: "x", Callbacks: map[string]uint64{}, Connections: list}
		for _, x := range list {
			s.Calls += x.Calls
		}
		return s
	}
	unit := func(tap string, rep Report) *state.Unit {
		x, err := rep.Section()
		if err != nil {
			t.Fatal(err)
		}
		return state.NewUnit(x, (&state.Input{Tap: tap}).Section())
	}
	m := &Merger{}
	for _, x := range []struct {
		unit    *state.Unit
		numbers map[int]int
	}{
		// The tap at the client saw both connections, those at the ports of the server one each. There the second one counts.
		{unit("port", Report{Sessions: []Session{session("1", c(1, "a", "q", 3))}, Notes: []string{slotNote}}), map[int]int{1: 7}},
		{unit("client", Report{Sessions: []Session{session("1", c(1, "a", "p", 5), c(2, "a", "q", 3))}, Notes: []string{slotNote, "odd"}}), map[int]int{1: 4}},
		{unit("port 2", Report{Sessions: []Session{session("1", c(9, "a", "r", 2)), session("2", c(8, "b", "r", 1))}}), map[int]int{9: 5, 8: 3}},
		{state.NewUnit((&state.Input{Tap: "nothing"}).Section()), nil},
	} {
		if err := m.Add(x.unit, x.numbers); err != nil {
			t.Fatal(err)
		}
	}
	rep := m.Report()
	if rep == nil || len(rep.Sessions) != 2 {
		t.Fatalf("%+v", rep)
	}
	one := rep.Sessions[1]
	var ids []int
	for _, x := range one.Connections {
		ids = append(ids, x.ID)
	}
	if one.ID != "1" || one.Tap != "client" || one.Calls != 10 || !slices.Equal(ids, []int{4, 5, 7}) || one.Connections[0].Share != 0.5 {
		t.Errorf("%+v", one)
	}
	if len(rep.Trunks) != 1 || rep.Trunks[0].Kind != "session trunking" {
		t.Errorf("trunks %+v", rep.Trunks)
	}
	if !slices.Equal(rep.Notes, []string{slotNote, "client by itself: odd"}) {
		t.Errorf("notes %q", rep.Notes)
	}
	for _, hostile := range []string{
		`{"devices":[null]}`, `{"layouts":[{"data_servers":[null]}]}`, `{"sessions":[{"callbacks":null}]}`, `{"sessions":[{"callbacks":{},"granted":{}}]}`, `{"sessions":[null]}`, `[]`, ``,
	} {
		if err := m.Add(state.NewUnit(state.Section{Kind: SectionKind, Version: SectionVersion, Body: []byte(hostile)}), nil); !errors.Is(err, state.ErrDamaged) {
			t.Errorf("%s: %v", hostile, err)
		}
	}
	if (&Merger{}).Report() != nil {
		t.Error("a report of nothing")
	}
}
