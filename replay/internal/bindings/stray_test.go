package bindings

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestUnended: a client has state that the plan has not ended, or opens that it knows nothing of.
func TestUnended(t *testing.T) {
	for name, c := range map[string]struct {
		expect *plan.Expect
		status nfs4.Nfsstat4
		bound  bool // the plan gives the state a name
		closed bool
		want   bool
	}{
		"no reply captured":   {nil, nfs4.NFS4_OK, false, false, true},
		"one that is cut":     {&plan.Expect{RPC: "unreadable", Partial: true}, nfs4.NFS4_OK, false, false, true},
		"refused here":        {nil, nfs4.NFS4ERR_ACCESS, false, false, false},
		"captured":            {&plan.Expect{}, nfs4.NFS4_OK, true, false, true},
		"captured and closed": {&plan.Expect{}, nfs4.NFS4_OK, true, true, false},
		"refused there":       {&plan.Expect{Status: uint32(nfs4.NFS4ERR_ACCESS)}, nfs4.NFS4_OK, false, false, false}, // the run closes it
	} {
		load := &workload.Workload{}
		load.Tables.Clients = []plan.Client{{ID: 1, Minor: 1}, {ID: 2, Minor: 1}}
		load.Tables.Sessions = []plan.Session{{ID: 1, Client: 1}}
		load.Tables.States = []plan.State{{ID: 1, Kind: plan.OpenState, Client: 1}}
		w := New(load, 1, "test")[0]
		o := &plan.Op{ID: 1, Expect: c.expect, Compound: &plan.Compound{Minor: 1, Ops: []plan.CompoundOp{
			{Op: uint32(nfs4.OP_SEQUENCE), Args: []plan.Field{{Kind: plan.FieldSlot, Ref: 1}}}, {Op: uint32(nfs4.OP_OPEN)}}}}
		if c.bound {
			o.Binds = []plan.Bind{{At: 1, Kind: plan.FieldState, Ref: 1, State: plan.OpenState}}
		}
		open := &nfs4.OPEN4res{Status: c.status}
		open.Resok4.Stateid = nfs4.Stateid4{Seqid: 1, Other: [12]byte{7}}
		res := &nfs4.CompoundRes{Status: c.status}
		res.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_SEQUENCE), Body: &nfs4.SEQUENCE4res{}}, {Number: uint32(nfs4.OP_OPEN), Body: open}}
		w.Learn(o, res)
		if c.closed {
			w.end(1)
		}
		if got := w.Unended(1); got != c.want || w.Unended(2) || w.Unended(0) {
			t.Errorf("%s: %v, another client %v", name, got, w.Unended(2))
		}
	}
}
