package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/decode/xdr"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// sized is data of the length that a reply says.
type sized struct{ noData }

func (sized) Bytes(d xdr.Data) []byte { return make([]byte, d.Length) }

// TestLimited: a server may return less than is asked for if it has said so in FSINFO.
func TestLimited(t *testing.T) {
	read := func(count uint32, eof bool) *nfs3.READ3res {
		m := &nfs3.READ3res{}
		m.Resok.Count, m.Resok.Eof = count, eof
		m.Resok.Data.Length = count
		return m
	}
	for _, c := range []struct {
		name    string
		rtmax   uint32
		have    *nfs3.READ3res
		verdict verdict.Verdict
	}{
		{"as much as it does", 512, read(512, false), verdict.Equivalent},
		{"less than that", 512, read(500, false), verdict.Different},
		{"the end of the file, which is none", 512, read(512, true), verdict.Different},
		{"nobody has said", 0, read(512, false), verdict.Different},
	} {
		ask := &plan.Op{ID: 1, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_FSINFO}
		o := &plan.Op{ID: 2, Program: nfs3.NFS_PROGRAM, Version: 3, Procedure: nfs3.NFSPROC3_READ, Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 1}},
			Expect: &plan.Expect{Results: read(1024, false).Append(nil), Data: []plan.Result{{Length: 1024}}}}
		load := &workload.Workload{Ops: []*plan.Op{ask, o}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "file"}}
		j := New(load, Options{})
		info := &nfs3.FSINFO3res{}
		info.Resok.Rtmax = c.rtmax
		j.Judge(&Reply{Op: ask, Result: info, Data: noData{}})
		if v := j.Judge(&Reply{Op: o, Result: c.have, Data: sized{}}); v.Verdict != c.verdict {
			t.Errorf("%s: %+v, want %s", c.name, v, c.verdict)
		}
	}
}
