package run

import (
	"encoding/binary"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/internal/bindings"
	"github.com/rpcrdma/toolkit/replay/internal/schedule"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestOldStateID: a call whose state id was advanced by a concurrent OPEN is sent again with the
// current state id, unless the captured server refused it, too.
func TestOldStateID(t *testing.T) {
	load := &workload.Workload{}
	load.Tables.States = make([]plan.State, 1)
	field := plan.Field{Kind: plan.FieldState, Ref: 1, Value: 2} // two behind
	op := &plan.Op{ID: 1, Connection: 1, Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(nfs4.OP_WRITE), Args: []plan.Field{field}}}}, Expect: &plan.Expect{},
		Binds: []plan.Bind{{Kind: plan.FieldState, Ref: 1, State: plan.OpenState}}}
	load.Ops = []*plan.Op{op}
	e, l := testEngine(t, load)
	w := e.clones[0]
	w.Learn(op, &nfs4.CompoundRes{Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(nfs4.OP_OPEN),
		Body: &nfs4.OPEN4res{Resok4: nfs4.OPEN4resok{Stateid: nfs4.Stateid4{Seqid: 5, Other: [12]byte{1}}}}}}}})
	c := e.get(e.sched.Take(), l)
	c.tries = 1
	seqid := func() uint32 {
		t.Helper()
		b, err := (&bindings.Values{Clone: w, Form: &c.form}).Append(nil, op, &op.Compound.Ops[0].Args[0])
		if err != nil {
			t.Fatal(err)
		}
		return binary.BigEndian.Uint32(b)
	}
	if n := seqid(); n != 3 {
		t.Errorf("sent with seqid %d", n)
	}
	e.step(c.entry, schedule.Hand)
	e.step(c.entry, schedule.Reply)
	res := &nfs4.CompoundRes{Status: nfs4.NFS4ERR_OLD_STATEID}
	op.Expect.Status = uint32(nfs4.NFS4ERR_OLD_STATEID)
	if e.postpone(c, "", res) {
		t.Error("sent again, though the captured server refused it")
	}
	op.Expect.Status = 0
	if !e.postpone(c, "", res) || len(e.later.list) != 1 || c.form.Note != verdict.StateMovedOn || c.entry.State() != schedule.Postponed {
		t.Fatalf("not sent again: %d, %s, %s", len(e.later.list), c.form.Note, c.entry.State())
	}
	if n := seqid(); n != 5 {
		t.Errorf("sent again with seqid %d", n)
	}
	c.tries = e.opt.Retries + 1
	if e.postpone(c, "", res) {
		t.Error("no end of it")
	}
	e.put(c)
	if c.form.Newest {
		t.Error("the next call has it, too")
	}
}
