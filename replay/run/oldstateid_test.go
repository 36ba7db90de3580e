package run

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
)

// TestOldStateID: a call whose state id an OPEN beside it has counted on is sent
// again with the state id as it is then, unless the captured server refused it,
// too.
func TestOldStateID(t *testing.T) {
	load := &Workload{}
	load.Tables.States = make([]plan.State, 1)
	w := newWorld(load, 0, "test")
	w.states[1] = state{seqid: 5, bound: true}
	field := plan.Field{Kind: plan.FieldState, Ref: 1, Value: 2} // two behind
	op := &plan.Op{ID: 1, Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(nfs4.OP_WRITE), Args: []plan.Field{field}}}}, Expect: &plan.Expect{}}
	e := &engine{load: load, worlds: []*world{w}}
	e.opt = Options{}.withDefaults()
	e.record = newRecorder(&e.opt, load)
	f := e.get()
	f.node, f.op, f.world, f.conn, f.slot, f.tries = &node{op: op, world: w}, op, w, &conn{}, -1, 1
	seqid := func() uint32 {
		t.Helper()
		b, err := (&resolver{e, w, f}).Append(nil, op, &op.Compound.Ops[0].Args[0])
		if err != nil {
			t.Fatal(err)
		}
		return binary.BigEndian.Uint32(b)
	}
	if n := seqid(); n != 3 {
		t.Errorf("sent with seqid %d", n)
	}
	res := &nfs4.CompoundRes{Status: nfs4.NFS4ERR_OLD_STATEID}
	op.Expect.Status = uint32(nfs4.NFS4ERR_OLD_STATEID)
	if e.retry(f, "", res) {
		t.Error("sent again, though the captured server refused it")
	}
	op.Expect.Status = 0
	if !e.retry(f, "", res) || len(e.again) != 1 || f.note == "" {
		t.Fatalf("not sent again: %d, %q", len(e.again), f.note)
	}
	if n := seqid(); n != 5 {
		t.Errorf("sent again with seqid %d", n)
	}
	f.tries = e.opt.Retries + 1
	if e.retry(f, "", res) {
		t.Error("no end of it")
	}
	e.put(f)
	if f.newest {
		t.Error("the next call has it, too")
	}
}
