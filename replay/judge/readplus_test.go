package judge

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/nfs/nfs4"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

type inline struct{}

func (inline) Bytes(d xdr.Data) []byte          { return d.Inline }
func (inline) Hash(_ xdr.Data, b []byte) string { return plan.HashData(b) }

// TestReadPlus: which zeros are a hole, and how many parts there are, is up to the server; the bytes are not.
func TestReadPlus(t *testing.T) {
	bytesOf := func(offset int, b []byte) nfs4.ReadPlusContent {
		return nfs4.ReadPlusContent{RpcContent: nfs4.NFS4_CONTENT_DATA, RpcData: nfs4.Data4{DOffset: uint64(offset), DData: xdr.Data{Length: uint32(len(b)), Inline: b}}}
	}
	hole := func(offset, n int) nfs4.ReadPlusContent {
		return nfs4.ReadPlusContent{RpcContent: nfs4.NFS4_CONTENT_HOLE, RpcHole: nfs4.DataInfo4{DiOffset: uint64(offset), DiLength: uint64(n)}}
	}
	result := func(parts ...nfs4.ReadPlusContent) *nfs4.CompoundRes {
		r := &nfs4.CompoundRes{}
		r.Ops = append(r.Ops, nfs4.Op{Number: uint32(nfs4.OP_PUTFH), Body: &nfs4.Status4res{}}, nfs4.Op{Number: uint32(nfs4.OP_READ_PLUS), Body: &nfs4.READ_PLUS4res{
			RpResok4: nfs4.ReadPlusRes4{RprEof: true, RprContents: slices.Clone(parts)}}})
		return r
	}
	// The file has 8 bytes that the run has written, zeros, and 8 bytes that it has not.
	old := []byte("captured")
	mine := make([]byte, 8)
	plan.FillPattern(mine, 1, 0)
	zeros := make([]byte, 16)
	all := bytes.Join([][]byte{mine, zeros, old}, nil)
	captured := []nfs4.ReadPlusContent{bytesOf(0, mine), hole(8, 16), bytesOf(24, old)}
	wrong := func(i int) []byte { b := bytes.Clone(all); b[i] ^= 1; return b }
	for name, c := range map[string]struct {
		have []nfs4.ReadPlusContent
		want verdict.Verdict
		code verdict.Code
	}{
		"the same":             {captured, verdict.Same, verdict.None},
		"no hole":              {[]nfs4.ReadPlusContent{bytesOf(0, all)}, verdict.Equivalent, verdict.Holes},
		"two holes":            {[]nfs4.ReadPlusContent{bytesOf(0, mine), hole(8, 4), hole(12, 12), bytesOf(24, old)}, verdict.Equivalent, verdict.Holes},
		"less":                 {captured[:2], verdict.Different, verdict.FieldDiffers},
		"other bytes captured": {[]nfs4.ReadPlusContent{bytesOf(0, mine), hole(8, 16), bytesOf(24, []byte("Captured"))}, verdict.Different, verdict.DataDiffer},
		"other bytes written":  {[]nfs4.ReadPlusContent{bytesOf(0, wrong(3))}, verdict.Different, verdict.WrittenDiffers},
		"a hole over bytes":    {[]nfs4.ReadPlusContent{hole(0, 24), bytesOf(24, old)}, verdict.Different, verdict.WrittenLost},
		"beyond any file":      {[]nfs4.ReadPlusContent{bytesOf(0, mine), hole(1<<63-1, 16), bytesOf(24, old)}, verdict.Equivalent, verdict.Holes},
	} {
		t.Run(name, func(t *testing.T) {
			load := &workload.Workload{}
			load.Tables.Header.Payload = plan.Captured
			load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
			write := &plan.Op{ID: 1, Time: 100, Latency: 10, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_WRITE, Modifies: true, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1},
				{Kind: plan.FieldU64}, {Kind: plan.FieldU32, Value: 8}, {Kind: plan.FieldU32}, {Kind: plan.FieldData, Data: &plan.Payload{Length: 8, Source: plan.Pattern, Object: 1}}}}
			read := &plan.Op{ID: 2, Time: 200, Latency: 10, Program: nfs4.NFS4_PROGRAM, Version: 4, Procedure: 1, Compound: &plan.Compound{Minor: 2, Ops: []plan.CompoundOp{
				{Op: uint32(nfs4.OP_PUTFH), Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}}}, {Op: uint32(nfs4.OP_READ_PLUS), Args: []plan.Field{{Kind: plan.FieldState}, {Kind: plan.FieldU64}, {Kind: plan.FieldU32, Value: 32}}}}},
				Expect: &plan.Expect{Ops: []uint32{0, 0}, Data: []plan.Result{{At: 1, Length: 8, Hash: plan.HashData(mine)}, {At: 1, Offset: 24, Length: 8, EOF: true, Hash: plan.HashData(old)}}}}
			want := result(captured...)
			n := 0
			for i := range want.Ops[1].Body.(*nfs4.READ_PLUS4res).RpResok4.RprContents {
				if d := &want.Ops[1].Body.(*nfs4.READ_PLUS4res).RpResok4.RprContents[i].RpcData.DData; d.Length > 0 {
					n++
					*d = xdr.Data{Length: d.Length, Chunk: n}
				}
			}
			read.Expect.Results = want.Append(nil)
			load.Ops = []*plan.Op{write, read}
			j := New(load, Options{})
			wrote := &nfs3.WRITE3res{}
			wrote.Resok.Count, wrote.Resok.Committed = 8, nfs3.FILE_SYNC
			j.Judge(&Reply{Op: write, Result: wrote, Data: inline{}, Issued: time.Unix(1000, 0), Replied: time.Unix(1001, 0)})
			v := j.Judge(&Reply{Op: read, Result: result(c.have...), Data: inline{}, Issued: time.Unix(1002, 0), Replied: time.Unix(1003, 0)})
			has := slices.ContainsFunc(v.Reasons, func(r verdict.Reason) bool { return r.Code == c.code })
			if v.Verdict != c.want || has != (c.code != verdict.None) {
				t.Errorf("%s: %+v", v.Verdict, v.Reasons)
			}
		})
	}
}
