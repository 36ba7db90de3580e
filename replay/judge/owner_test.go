package judge

import (
	"testing"

	"github.com/rpcrdma/toolkit/decode/nfs/nfs3"
	"github.com/rpcrdma/toolkit/replay/judge/verdict"
	"github.com/rpcrdma/toolkit/replay/plan"
	"github.com/rpcrdma/toolkit/replay/workload"
)

// TestOtherUser: a file that a Kerberos principal made belongs to somebody else here, who may refuse it to others.
func TestOtherUser(t *testing.T) {
	ok := (&nfs3.READ3res{}).Append(nil)
	for name, c := range map[string]struct {
		maker  int // credential
		status nfs3.Nfsstat3
		want   verdict.Verdict
	}{
		"refused":              {2, nfs3.NFS3ERR_ACCES, verdict.Explained},
		"another error":        {2, nfs3.NFS3ERR_IO, verdict.Worse},
		"made by a known user": {1, nfs3.NFS3ERR_ACCES, verdict.Worse},
	} {
		create := &plan.Op{ID: 1, Credential: c.maker, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_CREATE, Modifies: true,
			Args:  []plan.Field{{Kind: plan.FieldHandle, Ref: 1}, {Kind: plan.FieldName, Text: "f", Ref: 2}},
			Binds: []plan.Bind{{Kind: plan.FieldHandle, Ref: 2}}, Expect: &plan.Expect{}}
		read := &plan.Op{ID: 2, Credential: 1, Program: nfs3.NFS_PROGRAM, Version: nfs3.NFS_V3, Procedure: nfs3.NFSPROC3_READ,
			Args: []plan.Field{{Kind: plan.FieldHandle, Ref: 2}}, Expect: &plan.Expect{Results: ok}}
		load := &workload.Workload{Ops: []*plan.Op{create, read}}
		load.Tables.Objects = []plan.Object{{ID: 1, Type: "dir"}, {ID: 2, Type: "file", Parent: 1, Name: "f", Origin: plan.Created}}
		load.Tables.Credentials = []plan.Credential{{ID: 1, Flavor: "sys"}, {ID: 2, Flavor: "gss"}}
		j := New(load, Options{})
		j.Judge(&Reply{Op: create, Result: &nfs3.CREATE3res{}, Data: noData{}})
		if v := j.Judge(&Reply{Op: read, Result: &nfs3.READ3res{Status: c.status}, Data: noData{}}); v.Verdict != c.want {
			t.Errorf("%s: %+v, want %s", name, v, c.want)
		}
	}
}
