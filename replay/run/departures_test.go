package run

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestParkedNotSent: what waited for a call that turns out not to be sent has
// its turn at once, since nothing else will wake the engine.
func TestParkedNotSent(t *testing.T) {
	call := func(id int) *plan.Op {
		return &plan.Op{ID: id, Connection: 1, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_SEQUENCE), Args: []plan.Field{{Kind: plan.FieldSlot, Ref: 1}}},
			{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}, // has no value
		}}}
	}
	parked, child := call(2), call(3)
	child.Deps = []plan.Dep{{Op: 2, Kind: plan.DepCreate}}
	load := &Workload{Ops: []*plan.Op{call(1), parked, child}}
	load.Tables.Sessions, load.Tables.Objects = make([]plan.Session, 1), make([]plan.Object, 1)
	w := newWorld(load, 0, "test")
	w.sessions[1] = session{bound: true, slots: make([]slot, 1)}
	c := &conn{}
	e := &engine{load: load, worlds: []*world{w}, conns: []map[int]*conn{{1: c}}, all: []*conn{c}, round: [][]*conn{nil}, left: len(load.Ops)}
	e.opt = Options{}.withDefaults()
	e.record = newRecorder(&e.opt, load)
	e.arrange()
	f := e.get()
	f.node, f.op, f.world, f.conn, f.session, f.slot = e.agenda[1], parked, w, c, 1, -1
	e.agenda = e.agenda[:1]
	c.flying++
	w.sessions[1].wait = append(w.sessions[1].wait, f)

	e.departures() // the first is not sent, so that the second's turn comes
	if e.left != 0 || len(e.agenda) != 0 || c.flying != 0 {
		t.Errorf("%d left, %d due, %d under way", e.left, len(e.agenda), c.flying)
	}
}
