package run

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/callback"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// In a grace period one call asks; the others wait for its answer.
func TestGrace(t *testing.T) {
	first, second := &call{}, &call{}
	p := postponements{patience: time.Hour}
	now := time.Now()
	for _, c := range []*call{first, second} {
		p.add(now.Add(p.inGrace(c, time.Minute)), c)
	}
	if p.due(now) != nil || p.due(now.Add(2*time.Minute)) != first || p.due(now.Add(2*time.Minute)) != nil {
		t.Fatal("the wrong call is due")
	}
	p.graceOver(second)
	if p.next() < 50*time.Minute {
		t.Error("an answer to another call ends the grace period")
	}
	p.graceOver(first)
	if p.due(time.Now()) != second || p.next() != 0 {
		t.Error("the grace period does not end")
	}
}

// A call waits for a slot of its own session, or for the end of the session.
func TestSlots(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.Sessions = make([]plan.Session, 1)
	w := bindings.New(load, 1, "")[0]
	w.Rehearse() // gives the session one slot
	s := &slots{blocked: map[*bindings.Session][]*call{}}
	x := &w.Sessions[1]
	a, b := &call{clone: w}, &call{clone: w}
	a.form.Session, a.form.Slot = 1, x.Take(0)
	a.lives.session = x.Lives
	b.form.Session, b.form.Slot = 1, x.Take(0)
	if a.form.Slot < 0 || b.form.Slot >= 0 {
		t.Fatalf("slots %d and %d", a.form.Slot, b.form.Slot)
	}
	s.wait(x, b)
	if s.next() != nil {
		t.Error("it goes without a slot")
	}
	s.give(a)
	if s.next() != b || s.next() != nil {
		t.Error("it does not get the slot")
	}
}

// A recall is held while calls are under way, until the plan has returned the delegation or it takes too long.
func TestHeldRecalls(t *testing.T) {
	load := &workload.Workload{}
	busy := true
	d := delegations{clones: bindings.New(load, 1, ""), returns: map[int]int64{}, busy: func() bool { return busy }, rouse: func() {}}
	given := 0
	give := func(*callback.Recall) { given++ }
	if !d.hold(&callback.Recall{}) {
		t.Error("a recall that comes before its delegation is not held")
	}
	if d.release(0, give); given != 0 {
		t.Error("it is not held long enough")
	}
	busy = false
	if d.release(0, give); given != 1 || len(d.held) != 0 {
		t.Errorf("%d given back, %d held, though nothing is under way", given, len(d.held))
	}
	if d.hold(&callback.Recall{}) {
		t.Error("held, though nothing is under way")
	}
}

// The first call that did not give a value is why others have none.
func TestRoots(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.Objects = make([]plan.Object, 2)
	x := roots{bindings.New(load, 1, ""), map[symbol]root{}}
	op := func(id, object int) *schedule.Entry {
		return &schedule.Entry{Op: &plan.Op{ID: id, Binds: []plan.Bind{{Kind: plan.FieldHandle, Ref: object}}}}
	}
	x.missing(op(1, 1), true, "NFS3ERR_NOENT", nil)
	x.missing(op(2, 1), true, "NFS3ERR_IO", nil)
	why, ok := x.follows(0, &bindings.Unbound{Kind: plan.FieldHandle, Ref: 1})
	if !ok || why.Call.ID != 1 || why.Now != "NFS3ERR_NOENT" {
		t.Errorf("%+v, %v", why, ok)
	}
	x.missing(op(3, 2), false, "not sent", []verdict.Reason{why})
	if why, _ = x.follows(0, &bindings.Unbound{Kind: plan.FieldHandle, Ref: 2}); why.Call.ID != 1 {
		t.Errorf("%+v", why)
	}
	if _, ok := x.follows(0, &bindings.Unbound{Kind: plan.FieldState, Ref: 2}); ok {
		t.Error("a symbol that nobody was to give")
	}
}
