package run

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/report"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// testEngine is an engine with one connection, to nobody.
func testEngine(t *testing.T, load *workload.Workload) (*engine, *line) {
	e := newEngine(t.Context(), load, Options{}.withDefaults(), round{record: report.NewRecorder(0)})
	l := &line{}
	e.lines = lines{all: []*line{l}, captured: []map[int]*line{{1: l}}, round: [][]*line{nil}}
	return e, l
}

// TestBlockedNotSent: if a call that waited for a slot cannot be sent, the next one goes at once,
// since nothing else would wake the engine.
func TestBlockedNotSent(t *testing.T) {
	call := func(id int) *plan.Op {
		return &plan.Op{ID: id, Connection: 1, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_SEQUENCE), Args: []plan.Field{{Kind: plan.FieldSlot, Ref: 1}}},
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}, // has no value
		}}}
	}
	child := call(3)
	child.Deps = []plan.Dep{{Op: 2, Kind: plan.DepCreate}}
	load := &workload.Workload{Ops: []*plan.Op{call(1), call(2), child}}
	load.Tables.Sessions, load.Tables.Objects = make([]plan.Session, 1), make([]plan.Object, 1)
	e, l := testEngine(t, load)
	w := e.clones[0]
	w.Rehearse() // gives the session one slot
	w.Objects[1].Handle = nil
	s := &w.Sessions[1]
	slot := s.Take(0)

	first := e.sched.Take()
	parked := e.sched.Take()
	e.admit(parked)
	if parked.State() != schedule.Slotless || len(e.slots.blocked[s]) != 1 {
		t.Fatalf("%s, %d wait for a slot", parked.State(), len(e.slots.blocked[s]))
	}
	s.Give(slot)
	e.sched.Return(first)

	e.sendDue() // the first is not sent, so that the second's turn comes
	if next, _ := e.sched.Next(); e.count.left != 0 || next != nil || l.flying != 0 || e.broken != nil {
		t.Errorf("%d left, %v due, %d under way, %v", e.count.left, next, l.flying, e.broken)
	}
	if parked.State() != schedule.GivenUp {
		t.Errorf("it is %s", parked.State())
	}
}

// TestOwnCallDropped: a call of the plan does not wait for one of ours that cannot be
// sent.
func TestOwnCallDropped(t *testing.T) {
	op := &plan.Op{ID: 1, Connection: 1, Compound: &plan.Compound{}, Expect: &plan.Expect{}}
	load := &workload.Workload{Ops: []*plan.Op{op}}
	load.Tables.Objects = make([]plan.Object, 1)
	e, l := testEngine(t, load)
	n := e.sched.Take()
	behind := e.get(n, l)
	for _, v := range []schedule.Event{schedule.Hand, schedule.Reply, schedule.Judge} {
		e.step(n, v)
	}
	noHandle := []plan.CompoundOp{{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}}
	e.sendOwn(like(op, 0, noHandle), e.clones[0], l, behind)
	if e.count.left != 0 || l.flying != 0 || n.State() != schedule.Over || e.broken != nil {
		t.Errorf("%d left, %d under way, %s, %v", e.count.left, l.flying, n.State(), e.broken)
	}
	var r report.Report
	e.record.Fill(&r)
	if len(r.Notes) != 1 {
		t.Errorf("%q", r.Notes)
	}
}

// TestReuse: a reused call keeps nothing of its previous use.
func TestReuse(t *testing.T) {
	load := &workload.Workload{Ops: []*plan.Op{{ID: 1, Connection: 1}}}
	e, l := testEngine(t, load)
	c := e.get(e.sched.Take(), l)
	if c.form.Slot != -1 || c.session() != nil || c.form.Op != load.Ops[0] {
		t.Errorf("%+v", c.form)
	}
	c.form.Newest, c.tries, c.own = true, 3, true
	e.put(c)
	if c.form != (bindings.Form{Slot: -1}) || c.tries != 0 || c.own {
		t.Errorf("the next call has what this one had: %+v", c.form)
	}
}

// TestMistake: an event that a call's state does not allow ends the run with an error instead of
// leaving it waiting.
func TestMistake(t *testing.T) {
	load := &workload.Workload{Ops: []*plan.Op{{ID: 1, Connection: 1}}}
	e, _ := testEngine(t, load)
	n, _ := e.sched.Next()
	e.step(n, schedule.Reply)
	if err := e.loop(); err == nil || n.State() != schedule.Ready || e.count.sent != 0 || e.stopping == "" {
		t.Errorf("%v, %s, %d sent", err, n.State(), e.count.sent)
	}
}
