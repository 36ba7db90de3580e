package judge

import (
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestMadeUpData: bytes of a WRITE that the capture lacks are made up, and so are not what the captured client read there. They have
// to be what this run has written all the same, and explain nothing beside them.
func TestMadeUpData(t *testing.T) {
	file := []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}
	pattern := func(offset uint64) []byte {
		b := make([]byte, 8)
		plan.FillPattern(b, 1, offset)
		return b
	}
	for name, c := range map[string]struct {
		offset    uint64
		have      []byte
		want      verdict.Verdict
		code      verdict.Code
		elsewhere bool // the file was prepared elsewhere, so that this may be another one
	}{
		"made up":     {0, pattern(0), verdict.Explained, verdict.Planned, false},
		"something":   {0, []byte("anything"), verdict.Different, verdict.WrittenDiffers, false},
		"as captured": {0, []byte("captured"), verdict.Same, verdict.None, false},
		"behind it":   {8, []byte("anything"), verdict.Different, verdict.DataDiffer, false},
		"another":     {0, []byte("anything"), verdict.Explained, verdict.Planned, true},
		"the same":    {0, []byte("captured"), verdict.Same, verdict.None, true},
	} {
		load := &workload.Workload{}
		load.Tables.Header.Payload = plan.Captured
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
		if c.elsewhere {
			load.Tables.Objects[0].Notes = []plan.Note{{Kind: plan.NoteElsewhere, Name: "f"}}
		}
		write := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_WRITE, Modifies: true, Class: plan.Synthesised, Args: append(file[:1:1],
			plan.Field{Kind: plan.FieldU64}, plan.Field{Kind: plan.FieldU32, Value: 8}, plan.Field{Kind: plan.FieldU32},
			plan.Field{Kind: plan.FieldData, Data: &plan.Payload{Length: 8, Source: plan.Pattern, Object: 1}})}
		result := func(b []byte) *nfs3.READ3res {
			r := &nfs3.READ3res{}
			r.Resok.Count, r.Resok.Data = 8, xdr.Data{Length: 8, Inline: b}
			return r
		}
		want := result(nil)
		want.Resok.Data.Chunk = 1
		read := &plan.Op{ID: 2, Time: 200, Latency: 10, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_READ, Class: plan.Exact, Args: append(file[:1:1],
			plan.Field{Kind: plan.FieldU64, Value: c.offset}, plan.Field{Kind: plan.FieldU32, Value: 8}),
			Expect: &plan.Expect{Results: want.Append(nil), Data: []plan.Result{{At: -1, Offset: c.offset, Length: 8, Hash: plan.HashData([]byte("captured"))}}}}
		load.Ops = []*plan.Op{write, read}
		j := New(load, Options{})
		wrote := &nfs3.WRITE3res{}
		wrote.Resok.Count, wrote.Resok.Committed = 8, nfs3.FILE_SYNC
		j.Judge(&Reply{Op: write, Result: wrote, Issued: time.Unix(1000, 0), Replied: time.Unix(1001, 0)})
		v := j.Judge(&Reply{Op: read, Result: result(c.have), Data: inline{}, Issued: time.Unix(1002, 0), Replied: time.Unix(1003, 0)})
		code := verdict.None
		if len(v.Reasons) > 0 {
			code = v.Reasons[0].Code
		}
		if v.Verdict != c.want || code != c.code {
			t.Errorf("%s: %s %+v", name, v.Verdict, v.Reasons)
		}
	}
}
