package expected

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestUnbound: a CREATE or OPEN whose reply the capture lacks has no object in the plan. It empties the file that has the name here.
func TestUnbound(t *testing.T) {
	var how nfs3.Sattr3
	how.Size.SetIt = true
	create := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_CREATE, Modifies: true, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1},
		{Kind: plan.FieldName, Text: "f"}, {Kind: plan.FieldU32}, {Kind: plan.FieldRaw, Bytes: how.Append(nil)}}}
	again := *create // an exclusive one that was sent again finds its file, and leaves it
	again.Args = append(create.Args[:2:2], plan.Field{Kind: plan.FieldU32, Value: uint64(nfs3.EXCLUSIVE)}, plan.Field{Kind: plan.FieldRaw, Bytes: make([]byte, 8)})
	attrs := nfs4.Fattr4{Attrmask: nfs4.AttrBitmap4{Bitmap4: nfs4.NewBitmap4(nfs4.FATTR4_SIZE)}, AttrVals: make([]byte, 8)}
	flag := nfs4.Openflag4{Opentype: nfs4.OPEN4_CREATE, How: nfs4.Createhow4{Createattrs: attrs}}
	open := &plan.Op{ID: 1, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1, Modifies: true, Compound: &plan.Compound{Ops: []plan.CompoundOp{
		{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}},
		{Op: uint32(nfs4.OP_OPEN), Args: []plan.Field{{Kind: plan.FieldU32}, {Kind: plan.FieldU32}, {Kind: plan.FieldU32}, {Kind: plan.FieldClient, Ref: 1}, {Kind: plan.FieldU32},
			{Kind: plan.FieldRaw, Bytes: flag.Append(nil)}, {Kind: plan.FieldU32}, {Kind: plan.FieldName, Text: "f"}}}}}}
	opened := &nfs4.CompoundRes{}
	opened.Ops = []nfs4.Op{{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}}, {Number: uint32(nfs4.OP_OPEN), Body: &nfs4.OPEN4res{}}}
	for name, c := range map[string]struct {
		op   *plan.Op
		res  xdr.Message
		name string // of the file
		want verdict.Code
	}{
		"CREATE":               {create, &nfs3.CREATE3res{}, "f", verdict.None},
		"CREATE of another":    {create, &nfs3.CREATE3res{}, "g", verdict.WrittenLost},
		"a CREATE that failed": {create, &nfs3.CREATE3res{Status: nfs3.NFS3ERR_ACCES}, "f", verdict.None}, // a part of it may have been done
		"an exclusive CREATE":  {&again, &nfs3.CREATE3res{}, "f", verdict.WrittenLost},
		"OPEN":                 {open, opened, "f", verdict.None},
		"OPEN of another":      {open, opened, "g", verdict.WrittenLost},
	} {
		load := &workload.Workload{Ops: []*plan.Op{c.op}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir"}, {ID: 2, Type: "file"}}
		load.Tables.Clients = []plan.Client{{ID: 1}}
		l := New(load)
		l.Prepared(2, Prepared{Size: 64, Filled: 64, New: true})
		l.Link(Name{1, c.name}, 2)
		l.Done(&Call{Op: c.op, Result: c.res, Sent: time.Unix(1, 0), Replied: time.Unix(2, 0)})
		if _, code := l.Compare(2, 0, make([]byte, 64), func(uint64, uint64) bool { return false }); code != c.want {
			t.Errorf("%s: %v", name, code)
		}
	}
}
