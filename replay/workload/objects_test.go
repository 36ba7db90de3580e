package workload_test

import (
	"net/netip"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestObjectAt follows the current and the saved file handle through a COMPOUND.
func TestObjectAt(t *testing.T) {
	handle := func(id int) []plan.Field { return []plan.Field{{Kind: plan.FieldHandle, Ref: id}} }
	name := func(id int) []plan.Field { return []plan.Field{{Kind: plan.FieldName, Ref: id}} }
	steps := []struct {
		op   nfs4.NfsOpnum4
		args []plan.Field
		want int
	}{
		{nfs4.OP_PUTFH, handle(1), 1},
		{nfs4.OP_GETATTR, nil, 1},
		{nfs4.OP_SAVEFH, nil, 1},
		{nfs4.OP_LOOKUP, name(2), 2},
		{nfs4.OP_LOOKUP, name(0), 7}, // the GETFH behind it is bound
		{nfs4.OP_GETFH, nil, 7},
		{nfs4.OP_OPEN, nil, 7}, // by file handle
		{nfs4.OP_OPEN, name(0), 0},
		{nfs4.OP_READ, nil, 0},
		{nfs4.OP_RESTOREFH, nil, 1},
		{nfs4.OP_CREATE, name(3), 3},
		{nfs4.OP_LOOKUPP, nil, 0},
		{9999, nil, 0}, // no operation
		{nfs4.OP_PUTFH, nil, 0},
	}
	o := &plan.Op{Compound: &plan.Compound{}, Binds: []plan.Bind{{At: 5, Kind: plan.FieldHandle, Ref: 7}}}
	for _, s := range steps {
		o.Compound.Ops = append(o.Compound.Ops, plan.CompoundOp{Op: uint32(s.op), Args: s.args})
	}
	for i, s := range steps {
		if got := workload.ObjectAt(o, i); got != s.want {
			t.Errorf("%d %s: object %d, want %d", i, s.op, got, s.want)
		}
	}
	if got := workload.ObjectAt(o, len(steps)+5); got != 0 {
		t.Errorf("behind the end: %d", got)
	}
	if got := workload.ObjectAt(&plan.Op{Args: handle(4)}, -1); got != 4 {
		t.Errorf("of a procedure: %d", got)
	}
}

// TestBelow: what lies above the base is not below it, whatever parents a plan names.
func TestBelow(t *testing.T) {
	w := &workload.Workload{}
	w.Tables.Objects = []plan.Object{
		{ID: 1, Origin: plan.Above},
		{ID: 2, Base: true, Origin: plan.Before, Parent: 1},
		{ID: 3, Origin: plan.Before, Parent: 2, Name: "f"},
		{ID: 4, Origin: plan.Before, Parent: 1, Name: "beside"},
		{ID: 5, Origin: plan.Before},            // without a known parent
		{ID: 6, Origin: plan.Before, Parent: 7}, // a circle
		{ID: 7, Origin: plan.Before, Parent: 6},
	}
	for id, want := range []bool{false, false, true, true, false, true, false, false} {
		if got := w.Below(id); got != want {
			t.Errorf("object %d: %v", id, got)
		}
	}
	if !w.NeedsAbove() || w.RootIsBase() || w.FileName(3) != "f" || w.FileName(5) != "rpcrdma-replay-object-5" {
		t.Errorf("%v %v %q %q", w.NeedsAbove(), w.RootIsBase(), w.FileName(3), w.FileName(5))
	}
}

// TestKnows finds addresses however they are written.
func TestKnows(t *testing.T) {
	w := &workload.Workload{}
	w.Tables.Servers = []plan.Server{{Addr: "192.0.2.1"}}
	w.Tables.Connections = []plan.Connection{{Client: "[fd00::2]:800", Address: "192.0.2.3:20049"}}
	for addr, want := range map[string]string{
		"192.0.2.1": "as a server", "::ffff:192.0.2.1": "as a server", "fd00::2": "as a client", "fd00::2%eth0": "as a client",
		"192.0.2.3": "as a server", "192.0.2.4": "",
	} {
		if got := w.Knows(netip.MustParseAddr(addr)); got != want {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
}
