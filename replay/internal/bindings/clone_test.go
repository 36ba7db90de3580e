package bindings

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// one is a clone of a workload with these tables.
func one(t plan.Tables, ops ...*plan.Op) *Clone {
	return New(&workload.Workload{Tables: t, Ops: ops}, 1, "test")[0]
}

// TestHandles: what replies give is what later calls get.
func TestHandles(t *testing.T) {
	w := one(plan.Tables{Objects: []plan.Object{{ID: 1, Path: "f"}, {ID: 2, Origin: plan.Above}, {ID: 3, Origin: plan.Stale}}})
	values := &Values{Clone: w, Form: &Form{Slot: -1}}
	get := func(id int) ([]byte, error) {
		return values.Append(nil, &plan.Op{}, &plan.Field{Kind: plan.FieldHandle, Ref: id})
	}
	var u *Unbound
	for id, want := range []string{"", "object 1 (f) has no handle", "above the base", "refused its handle, too"} {
		if id == 0 {
			continue
		}
		if _, err := get(id); !errors.As(err, &u) || !strings.Contains(err.Error(), want) {
			t.Errorf("object %d: %v", id, err)
		}
	}
	lookup := &plan.Op{Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_LOOKUP, Binds: []plan.Bind{{Kind: plan.FieldHandle, Ref: 1}}}
	res := &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("live")}}}
	res.Status = nfs3.NFS3ERR_IO
	if w.Learn(lookup, res); w.Objects[1].Handle != nil {
		t.Error("a handle of a failed LOOKUP")
	}
	res.Status = 0
	w.Learn(lookup, res)
	if b, err := get(1); err != nil || string(b) != string(xdr.AppendOpaque(nil, []byte("live"))) {
		t.Errorf("%x, %v", b, err)
	}
	list := &plan.Op{Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(nfs4.OP_GETFH)}}}, Binds: []plan.Bind{{Kind: plan.FieldHandle, Ref: 2}, {At: 9, Kind: plan.FieldHandle, Ref: 3}}}
	w.Learn(list, &nfs4.CompoundRes{Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(nfs4.OP_GETFH), Body: &nfs4.GETFH4res{Resok4: nfs4.GETFH4resok{Object: []byte("fh")}}}}}})
	if string(w.Objects[2].Handle) != "fh" || w.Objects[3].Handle != nil {
		t.Errorf("%q, %q", w.Objects[2].Handle, w.Objects[3].Handle)
	}
}

// TestSlots: slots are handed out once, and a session whose slots are all unknown is
// lost.
func TestSlots(t *testing.T) {
	w := one(plan.Tables{Sessions: make([]plan.Session, 1)})
	w.bindSession(1, [16]byte{1}, 2)
	if got := w.TakeOpened(); len(got) != 1 || got[0] != 1 || len(w.TakeOpened()) != 0 {
		t.Errorf("opened %v", got)
	}
	s := &w.Sessions[1]
	if a, b, c := s.Take(1), s.Take(1), s.Take(0); a != 1 || b != 0 || c != -1 {
		t.Errorf("slots %d %d %d", a, b, c)
	}
	s.Sequence(1, &nfs4.CompoundRes{Operations: nfs4.Operations{Ops: []nfs4.Op{{Body: &nfs4.SEQUENCE4res{}}}}})
	if s.Give(1); !s.Vacant() || s.Take(5) != 1 || s.slots[1].seq != 2 {
		t.Errorf("%+v", s.slots)
	}
	if s.Abandon(1) || s.Lost || !s.Abandon(0) || !s.Lost || s.Vacant() {
		t.Errorf("%+v", s)
	}
}

// TestLockRefused: where the server did not give a lock, LOCKU has nothing to do, and READ goes with the anonymous state id.
func TestLockRefused(t *testing.T) {
	w := one(plan.Tables{States: []plan.State{{Kind: plan.LockState}, {Kind: plan.OpenState}}})
	op := func(n nfs4.NfsOpnum4, binds ...plan.Bind) *plan.Op {
		return &plan.Op{Binds: binds, Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(n), Args: []plan.Field{{Kind: plan.FieldState, Ref: 1}}}}}}
	}
	lock, unlock, read := op(nfs4.OP_LOCK, plan.Bind{Kind: plan.FieldState, Ref: 1}), op(nfs4.OP_LOCKU), op(nfs4.OP_READ)
	answer := func(st nfs4.Nfsstat4) {
		m := &nfs4.LOCK4res{Status: st, Resok4: nfs4.LOCK4resok{LockStateid: nfs4.Stateid4{Seqid: 1, Other: [12]byte{1}}}}
		w.Learn(lock, &nfs4.CompoundRes{Status: st, Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(nfs4.OP_LOCK), Body: m}}}})
	}
	if why := w.Omitted(unlock); why != verdict.None {
		t.Errorf("before: %v", why)
	}
	answer(nfs4.NFS4ERR_DENIED)
	form := &Form{Op: read, Slot: -1}
	b, err := (&Values{Clone: w, Form: form}).Append(nil, read, &read.Compound.Ops[0].Args[0])
	if why := w.Omitted(unlock); why != verdict.NoState || err != nil || [16]byte(b) != [16]byte{} || form.Note != verdict.Stateless {
		t.Errorf("refused: %v, %x, %v, %v", why, b, err, form.Note)
	}
	if answer(nfs4.NFS4_OK); w.Omitted(unlock) != verdict.None || !w.States[1].Bound {
		t.Errorf("given: %+v", w.States[1])
	}
}

// TestOmitted: what there is nothing to do for, by what the server has given.
func TestOmitted(t *testing.T) {
	w := one(plan.Tables{States: []plan.State{{Kind: plan.DelegationState}, {Kind: plan.OpenState}}})
	op := func(n nfs4.NfsOpnum4, ref int) *plan.Op {
		return &plan.Op{Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(n), Args: []plan.Field{{Kind: plan.FieldState, Ref: ref}}}}}}
	}
	check := func(o *plan.Op, want verdict.Code) {
		t.Helper()
		if got := w.Omitted(o); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	check(op(nfs4.OP_DELEGRETURN, 1), verdict.NoDelegation)
	check(op(nfs4.OP_CLOSE, 2), verdict.None)
	w.States[1] = State{Bound: true}
	check(op(nfs4.OP_DELEGRETURN, 1), verdict.None)
	w.States[1].Closed = true
	check(op(nfs4.OP_DELEGRETURN, 1), verdict.Returned)
	w.States[2].Refused = true
	check(op(nfs4.OP_CLOSE, 2), verdict.NoState)
	w.States[2] = State{Bound: true}
	check(op(nfs4.OP_OPEN_CONFIRM, 2), verdict.NoConfirm)
	w.States[2].Unconfirmed = true
	check(op(nfs4.OP_OPEN_CONFIRM, 2), verdict.None)
	w.NoRoot = true
	check(op(nfs4.OP_PUTROOTFH, 0), verdict.NoRoot)
	check(&plan.Op{}, verdict.None)
}

// TestUndelegated: a state id of a delegation that the server did not give, in a call
// that is not a COMPOUND, too: a plan may say anything.
func TestUndelegated(t *testing.T) {
	w := one(plan.Tables{States: []plan.State{{Kind: plan.DelegationState}}})
	f := &Form{Op: &plan.Op{}, Slot: -1}
	b, err := (&Values{Clone: w, Form: f}).Append(nil, f.Op, &plan.Field{Kind: plan.FieldState, Ref: 1})
	if err != nil || len(b) != 16 || f.Note != verdict.Undelegated {
		t.Errorf("%x, %v, %s", b, err, f.Note)
	}
}

// TestStateIDs: results bind new states, move the seqids of known ones on, and end them.
func TestStateIDs(t *testing.T) {
	w := one(plan.Tables{States: []plan.State{{ID: 1, Kind: plan.LayoutState}, {ID: 2, Kind: plan.OpenState}, {ID: 3, Kind: plan.DelegationState}}})
	id := func(other byte, seqid uint32) nfs4.Stateid4 {
		return nfs4.Stateid4{Seqid: seqid, Other: [12]byte{other}}
	}
	learn := func(op nfs4.NfsOpnum4, ref int, body xdr.Message, binds ...plan.Bind) {
		o := &plan.Op{Compound: &plan.Compound{Ops: []plan.CompoundOp{{Op: uint32(op)}}}, Binds: binds}
		if ref != 0 {
			o.Compound.Ops[0].Args = []plan.Field{{Kind: plan.FieldState, Ref: ref}}
		}
		w.Learn(o, &nfs4.CompoundRes{Operations: nfs4.Operations{Ops: []nfs4.Op{{Number: uint32(op), Body: body}}}})
	}
	layout := func(seqid uint32) xdr.Message {
		return &nfs4.LAYOUTGET4res{LogrResok4: nfs4.LAYOUTGET4resok{LogrStateid: id(1, seqid)}}
	}
	learn(nfs4.OP_LAYOUTGET, 0, layout(1), plan.Bind{Kind: plan.FieldState, Ref: 1, State: plan.LayoutState})
	learn(nfs4.OP_LAYOUTGET, 1, layout(2))
	if s := w.States[1]; !s.Bound || s.seqid != 2 {
		t.Errorf("layout: %+v", s)
	}
	open := &nfs4.OPEN4res{Resok4: nfs4.OPEN4resok{Stateid: id(2, 1)}}
	learn(nfs4.OP_OPEN, 0, open, plan.Bind{Kind: plan.FieldState, Ref: 2}, plan.Bind{Kind: plan.FieldState, Ref: 3, State: plan.DelegationState})
	if o, d := w.States[2], w.States[3]; !o.Bound || o.seqid != 1 || d.Bound || !d.Refused {
		t.Errorf("open: %+v, delegation: %+v", o, d)
	}
	learn(nfs4.OP_CLOSE, 2, &nfs4.CLOSE4res{OpenStateid: id(2, 2)})
	if o := w.States[2]; !o.Closed || o.seqid != 2 {
		t.Errorf("after CLOSE: %+v", o)
	}
}

// TestUnknownClient: a call about a client from before the capture says why it has no value.
func TestUnknownClient(t *testing.T) {
	w := one(plan.Tables{Clients: []plan.Client{{ID: 1}, {ID: 2, DefinedBy: 7}}})
	for ref, before := range map[int]bool{1: true, 2: false} {
		_, err := (&Values{Clone: w, Form: &Form{Slot: -1}}).Append(nil, nil, &plan.Field{Kind: plan.FieldClient, Ref: ref})
		var u *Unbound
		if !errors.As(err, &u) || strings.Contains(err.Error(), "was there before the capture") != before {
			t.Errorf("client %d: %v", ref, err)
		}
	}
}

// TestOpening: where the plan goes on with an open, an OPEN does not ask for a delegation in its place.
func TestOpening(t *testing.T) {
	const xor = nfs4.OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION
	w := one(plan.Tables{States: []plan.State{{ID: 1, Kind: plan.OpenState}, {ID: 2, Kind: plan.DelegationState}}})
	for _, k := range []struct {
		binds []plan.Bind
		want  uint64
	}{
		{[]plan.Bind{{Kind: plan.FieldState, Ref: 1, State: plan.OpenState}}, 1},
		{[]plan.Bind{{Kind: plan.FieldState, Ref: 2, State: plan.DelegationState}}, 1 | xor},
	} {
		f := Form{Op: &plan.Op{Binds: k.binds, Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_OPEN), Args: []plan.Field{{N: "share_access", Kind: plan.FieldU32, Value: 1 | xor}}}}}}}
		o := w.Rewritten(&f)
		if got := o.Compound.Ops[0].Args[0].Value; got != k.want || (f.Note == verdict.Adapted) != (k.want == 1) || f.Op.Compound.Ops[0].Args[0].Value != 1|xor {
			t.Errorf("%#x, want %#x; %s", got, k.want, f.Note)
		}
	}
}

// TestRetimed: times that a client has kept with a delegation have the captured distance to the call.
func TestRetimed(t *testing.T) {
	called := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	a := nfs4.Attrs{Mask: nfs4.NewBitmap4(nfs4.FATTR4_TIME_DELEG_MODIFY), TimeDelegModify: nfs4.Nfstime4{Seconds: called.Unix() - 60}}
	was := a.Fattr4()
	raw := was.Append(nil)
	w := one(plan.Tables{Header: plan.Header{Start: called.UnixNano() - 5e9}})
	f := Form{Op: &plan.Op{Time: 5e9, Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{
		{Op: uint32(nfs4.OP_SETATTR), Args: []plan.Field{{N: "obj_attributes", Kind: plan.FieldRaw, Bytes: raw}}}}}}}
	var r xdr.Reader
	var now nfs4.Fattr4
	out := w.Rewritten(&f).Compound.Ops[0].Args[0].Bytes
	r.Reset(out, 0)
	now.Decode(&r)
	if err := a.Decode(&now); err != nil {
		t.Fatal(err)
	}
	if ago := time.Since(time.Unix(a.TimeDelegModify.Seconds, int64(a.TimeDelegModify.Nseconds))); ago < time.Minute || ago > 2*time.Minute || &out[0] == &raw[0] {
		t.Errorf("%s ago", ago)
	}
}

// TestApart: a server may have other handles for NFSv3 than for NFSv4. Each call has those of its version.
func TestApart(t *testing.T) {
	w := one(plan.Tables{Objects: []plan.Object{{ID: 1}, {ID: 2, Origin: plan.Created}}})
	w.Objects[1].Handle = []byte("four")
	v3, v4 := &plan.Op{Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_LOOKUP, Binds: []plan.Bind{{Kind: plan.FieldHandle, Ref: 2}}}, &plan.Op{Compound: &plan.Compound{}}
	handle := func(o *plan.Op, id int) string {
		b, err := (&Values{Clone: w, Form: &Form{Slot: -1}}).Append(nil, o, &plan.Field{Kind: plan.FieldHandle, Ref: id})
		if err != nil {
			return ""
		}
		return string(bytes.TrimRight(b[4:], "\x00"))
	}
	same := w.Beside()
	same.Objects[1].Handle = []byte("four")
	if w.Take(same); w.Apart() || handle(v3, 1) != "four" {
		t.Error("equal handles are told apart")
	}
	other := w.Beside()
	other.Objects[1].Handle = []byte("three")
	if w.Take(other); !w.Apart() || handle(v3, 1) != "three" || handle(v4, 1) != "four" {
		t.Errorf("NFSv3 has %q, NFSv4 %q", handle(v3, 1), handle(v4, 1))
	}
	w.Learn(v3, &nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{Object: nfs3.NfsFh3{Data: []byte("new")}}})
	if handle(v3, 2) != "new" || handle(v4, 2) != "" {
		t.Errorf("after LOOKUP, NFSv3 has %q, NFSv4 %q", handle(v3, 2), handle(v4, 2))
	}
	r := w.Beside()
	if !r.Restore(w.Snapshot()) {
		t.Fatal("no clone again")
	}
	if w = r; !w.Apart() || handle(v3, 1) != "three" || handle(v4, 1) != "four" || handle(v3, 2) != "new" {
		t.Error("a saved clone has other handles")
	}
}
