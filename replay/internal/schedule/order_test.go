package schedule

import (
	"math/rand/v2"
	"testing"

	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestCapturedOrder checks the rule against its definition: at any time those calls may go
// before which no call is unfinished that had its reply before they began. Calls end in random
// order, and the window holds a random number of them.
func TestCapturedOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 5))
	for range 200 {
		n := 2 + rnd.IntN(40)
		var list []*plan.Op
		at := int64(0)
		for i := range n {
			at += rnd.Int64N(10)
			latency := rnd.Int64N(30)
			if rnd.IntN(10) == 0 {
				latency = -1
			}
			list = append(list, &plan.Op{ID: i + 1, Time: at, Latency: latency})
		}
		clones := 1 + rnd.IntN(3)
		size := 1 + rnd.IntN(n)
		s := New(&plan.Tables{}, Options{Timing: Fast, Clones: clones})
		over := make([]map[int]bool, clones)
		going := make([]map[int]*Entry, clones)
		for w := range clones {
			over[w], going[w] = map[int]bool{}, map[int]*Entry{}
		}
		added, left := 0, n*clones
		for left > 0 {
			for added < n && s.Len() < size {
				added++
				if err := s.Add(list[added-1], 0, nil); err != nil {
					t.Fatal(err)
				}
			}
			for e, _ := s.Next(); e != nil; e, _ = s.Next() {
				s.Take()
				going[e.Clone][e.Op.ID] = e
			}
			for w := range clones {
				for id := 1; id <= added; id++ {
					may := true
					for d := 1; d < id; d++ {
						a, b := list[d-1], list[id-1]
						may = may && (over[w][d] || a.Latency < 0 || a.Time+max(a.Latency, 1) > b.Time)
					}
					if has := going[w][id] != nil || over[w][id]; has != may {
						t.Fatalf("op %d [%d,+%d] of clone %d may go: %v, want %v", id, list[id-1].Time, list[id-1].Latency, w, has, may)
					}
				}
			}
			w := rnd.IntN(clones)
			for _, e := range going[w] {
				if err := s.Ended(e, 0); err != nil {
					t.Fatal(err)
				}
				delete(going[w], e.Op.ID)
				over[w][e.Op.ID] = true
				left--
				break
			}
		}
		if s.Len() != 0 || s.First() != n+1 {
			t.Fatalf("%d ops are left in the window, which begins with op %d", s.Len(), s.First())
		}
	}
}

// TestOrderDecreases: times that decrease, which a plan of several captures may have, let no
// call wait for a later one.
func TestOrderDecreases(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 6))
	for range 100 {
		s := New(&plan.Tables{}, Options{Timing: Fast, Clones: 1})
		n := 1 + rnd.IntN(50)
		for id := 1; id <= n; id++ {
			if err := s.Add(&plan.Op{ID: id, Time: rnd.Int64() - rnd.Int64(), Latency: rnd.Int64() - 5}, 0, nil); err != nil {
				t.Fatal(err)
			}
		}
		for ended := range n {
			e, _ := s.Next()
			if e == nil {
				t.Fatalf("%d of %d ops wait for themselves", n-ended, n)
			}
			if err := s.Ended(s.Take(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestWindowForgets: what the schedule holds does not grow with the calls that are over.
func TestWindowForgets(t *testing.T) {
	tables := &plan.Tables{Connections: []plan.Connection{{Client: "192.0.2.1:700"}}, States: []plan.State{{Kind: plan.OpenState}}}
	s := New(tables, Options{Timing: Fast, Clones: 2})
	for id := 1; id <= 10000; id++ {
		o := &plan.Op{ID: id, Connection: 1, Time: int64(id), Latency: 100, Deps: []plan.Dep{{Op: max(1, id-1), Kind: plan.DepCreate}},
			Compound: &plan.Compound{Ops: []plan.CompoundOp{{Args: []plan.Field{{Kind: plan.FieldState, Ref: 1}}}}}}
		if err := s.Add(o, 10, nil); err != nil {
			t.Fatal(err)
		}
		if s.Len() < 16 {
			continue
		}
		for e, _ := s.Next(); e != nil; e, _ = s.Next() {
			if err := s.Ended(s.Take(), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(s.graph.hosts["192.0.2.1"].since.ids); n > 100 {
		t.Errorf("%d ops since the last barrier", n)
	}
	if n := len(s.graph.opens[open{}].ids); n > 100 {
		t.Errorf("%d users of an open", n)
	}
	if n := len(s.slots) + len(s.clones[0].order.ends) + len(s.agenda); n > 200 || s.Text() != 10*s.Len() {
		t.Errorf("%d slots, ends and entries, %d bytes of %d ops", n, s.Text(), s.Len())
	}
}
