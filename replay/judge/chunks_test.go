package judge

import (
	"slices"
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestChunks: how much of a Write chunk is used follows from the data, whose length is compared for itself. What does not
// follow is different, whatever explains the rest.
func TestChunks(t *testing.T) {
	result := func(n uint32) *nfs3.READ3res {
		r := &nfs3.READ3res{}
		r.Resok.Count, r.Resok.Eof, r.Resok.Data = n, true, xdr.Data{Length: n, Inline: []byte("12345678")[:n]}
		return r
	}
	for name, c := range map[string]struct {
		length, used uint32
		strangers    bool
		want         verdict.Verdict
		chunk        bool // it is a reason
	}{
		"as captured":            {8, 8, false, verdict.Same, false},
		"shorter":                {5, 5, false, verdict.Different, false},
		"shorter, explained":     {5, 5, true, verdict.Explained, false},
		"the chunk was not used": {8, 0, false, verdict.Different, true},
		"shorter, and not used":  {5, 0, false, verdict.Different, true},
		"only the chunk is used": {5, 8, false, verdict.Different, false},
	} {
		want := result(8)
		want.Resok.Data = xdr.Data{Length: 8, Chunk: 1}
		o := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_READ, Class: plan.Exact, Layout: &plan.Layout{UsedWrites: []uint32{8}},
			Args:   []plan.Field{{Kind: plan.FieldHandle, Ref: 1}, {Kind: plan.FieldU64}, {Kind: plan.FieldU32, Value: 8}},
			Expect: &plan.Expect{Results: want.Append(nil), Data: []plan.Result{{At: -1, Length: 8, Hash: plan.HashData([]byte("12345678"))}}}}
		load := &workload.Workload{Ops: []*plan.Op{o}}
		load.Tables.Header.Payload = plan.Captured
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
		if c.strangers {
			load.Tables.Objects[0].Notes = []plan.Note{{Kind: plan.NoteChanged}}
		}
		v := New(load, Options{}).Judge(&Reply{Op: o, Result: result(c.length), Data: inline{}, LaidOut: true, Chunks: []uint32{c.used}})
		chunk := slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return r.Code == verdict.ChunkDiffers })
		if v.Verdict != c.want || chunk != c.chunk {
			t.Errorf("%s: %s %+v", name, v.Verdict, v.Reasons)
		}
	}
}
