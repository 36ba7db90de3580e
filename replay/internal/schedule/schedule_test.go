package schedule

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestSchedule takes calls out in the order in which they may go.
func TestSchedule(t *testing.T) {
	ops := []*plan.Op{
		{ID: 1, Time: 0, Latency: 10},
		{ID: 2, Time: 40, Latency: 10, After: 1, Think: 30, Deps: []plan.Dep{{Op: 1, Kind: plan.DepCreate}}},
		{ID: 3, Time: 20, Latency: 1, Deps: []plan.Dep{{Op: 1, Kind: plan.DepProgram}}},
	}
	for timing, want := range map[Timing][3]time.Duration{
		AsCaptured: {0, 20, 10}, // at twice the speed
		Think:      {0, 100 + 15, 10},
		Fast:       {0, 0, 0},
		FixedRate:  {0, 1e9 / 4, 1e9 / 2},
	} {
		s := New(&plan.Tables{}, Options{Timing: timing, Speed: 2, Rate: 4, Relaxed: true, Clones: 1})
		for _, o := range ops {
			if err := s.Add(o, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		over := 0
		for {
			e, at := s.Next()
			if e == nil {
				break
			}
			s.Take()
			if at != want[e.Op.ID-1] {
				t.Errorf("%s: op %d is due at %d, want %d", timing, e.Op.ID, at, want[e.Op.ID-1])
			}
			if e.Op.ID == 2 && e.Due() < 100 {
				t.Errorf("%s: op 2 could go at %d, before the reply that it waits for", timing, e.Due())
			}
			for _, v := range []Event{Hand, Reply, Judge, Finish} {
				if err := e.Step(v); err != nil {
					t.Error(err)
				}
			}
			if err := s.Ended(e, 100); err != nil {
				t.Error(err)
			}
			over++
		}
		if over != len(ops) {
			t.Errorf("%s: %d of %d ops", timing, over, len(ops))
		}
		s = New(&plan.Tables{}, Options{Timing: timing, Speed: 2, Rate: 4, Clones: 2, Stagger: time.Hour})
		if err := s.Add(ops[0], 0, nil); err != nil {
			t.Fatal(err)
		}
		first := s.Take()
		if second, at := s.Next(); first.Clone != 0 || second.Clone != 1 || at < time.Hour || at > time.Hour+time.Second {
			t.Errorf("%s: copy %d is due at %v", timing, second.Clone, at)
		}
	}
}

// TestSpan: the later of two times stays the later one, however slow a replay is.
func TestSpan(t *testing.T) {
	for _, rate := range []float64{1, 1e-6, 1e-9, 1e-12, 1e-300} {
		s := New(&plan.Tables{}, Options{Timing: FixedRate, Rate: rate, Clones: 1})
		slow := New(&plan.Tables{}, Options{Timing: AsCaptured, Speed: rate, Clones: 1})
		for id, last := 2, time.Duration(1); id < 1<<40; id <<= 4 {
			o := &plan.Op{ID: id, Time: int64(id)}
			due := s.due(o, 0)
			if due < last || time.Now().Add(due).Before(time.Now()) {
				t.Errorf("at %g calls a second, call %d is due at %v, after one at %v", rate, id, due, last)
			}
			if at := slow.due(o, 0); at < time.Duration(id) {
				t.Errorf("at %g times the speed, %d ns are %v", rate, id, at)
			}
			last = due
		}
	}
}

// TestEdges: what ends a session waits for all that came before, from the same
// address; an OPEN waits for those of the same file by the same owner.
func TestEdges(t *testing.T) {
	state := func(op nfs4.NfsOpnum4) *plan.Compound {
		return &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(op), Args: []plan.Field{{Kind: plan.FieldState, Ref: 1}}}}}
	}
	tables := &plan.Tables{
		Connections: []plan.Connection{{Client: "192.0.2.1:700"}, {Client: "192.0.2.1:701"}, {Client: "192.0.2.2:700"}},
		States:      []plan.State{{Kind: plan.OpenState, DefinedBy: 1}},
	}
	ops := []*plan.Op{
		{ID: 1, Time: 0, Latency: 1, Connection: 1},
		{ID: 2, Time: 5, Latency: 1, Connection: 2, Compound: state(nfs4.OP_READ)},
		{ID: 3, Time: 5, Latency: 99, Connection: 2, Compound: state(nfs4.OP_WRITE)}, // under way for long
		{ID: 4, Time: 10, Latency: 1, Connection: 3, Compound: state(nfs4.OP_CLOSE)},
		{ID: 5, Time: 20, Latency: 1, Connection: 1, Role: plan.Sessions},
		{ID: 6, Time: 30, Latency: 1, Connection: 2},
	}
	s := New(tables, Options{Timing: AsCaptured, Speed: 1, Clones: 1})
	got := map[int][]int{}
	for _, o := range ops {
		if err := s.Add(o, 0, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range s.slots {
		for _, id := range x.children {
			got[id] = append(got[id], x.op.ID)
		}
	}
	want := map[int][]int{4: {2}, 5: {1, 2}, 6: {5}}
	for id := range len(ops) + 1 {
		if len(got[id]) != len(want[id]) {
			t.Errorf("op %d waits for %v, want %v", id, got[id], want[id])
			continue
		}
		for i := range want[id] {
			if got[id][i] != want[id][i] {
				t.Errorf("op %d waits for %v, want %v", id, got[id], want[id])
			}
		}
	}
}

// TestTransitions: no event leads back to Waiting, each state but the two ends has a
// way to an end, and what the table does not have is refused.
func TestTransitions(t *testing.T) {
	ends := func(s State) bool { return s == Over || s == GivenUp }
	for s := range State(states) {
		seen := map[State]bool{s: true}
		for grew := true; grew; {
			grew = false
			for from := range seen {
				for _, to := range transitions[from] {
					if to != Waiting && !seen[to] {
						seen[to], grew = true, true
					}
				}
			}
		}
		if !seen[Over] && !seen[GivenUp] {
			t.Errorf("no way out of %s", s)
		}
		for v := range Event(events) {
			if ends(s) && transitions[s][v] != Waiting {
				t.Errorf("%s leads on from %s", v, s)
			}
		}
	}
	e := &Entry{Op: &plan.Op{ID: 7}}
	if err := e.Step(Reply); err == nil || e.State() != Waiting {
		t.Errorf("a reply to what was not sent: %v, %s", err, e.State())
	}
	if err := e.Step(Released); err != nil || e.State() != Ready {
		t.Errorf("%v, %s", err, e.State())
	}
}
